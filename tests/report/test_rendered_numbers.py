"""The figures of a report are those of the artefacts: parsed back out of both renderings and held against the files."""

import json
import re
from pathlib import Path

import pytest
from dump_analysis.report.said import count, figure, ranges, share
from hypothesis import given, settings
from hypothesis import strategies as st
from report_cases import CASES, LANGUAGES, boundaries


def test_a_measure_is_itself_to_its_digits_and_never_nothing() -> None:
    @settings(max_examples=500, deadline=None, derandomize=True)
    @given(st.floats(1e-30, 1e30), st.sampled_from([2, 3, 4]))
    def judge(value: float, digits: int) -> None:
        shown = float(figure(value, digits))
        assert shown != 0
        assert shown == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits))

    judge()
    assert [figure(value) for value in (None, 0.0, 0.31, 0.5998, 2.1e-5, 12.0, 340.0, 1e9)] == [
        "–", "0", "0.31", "0.60", "2.1e-5", "12", "340", "1.0e9",
    ]  # fmt: skip


def test_a_share_is_never_all_or_nothing_by_rounding() -> None:
    @settings(max_examples=500, deadline=None, derandomize=True)
    @given(st.integers(0, 10**9), st.integers(1, 10**9))
    def judge(part: int, of: int) -> None:
        shown = share(min(part, of), of)
        assert (shown == "100 %") == (part >= of)
        assert (shown == "0 %") == (part == 0)
        if "<" not in shown and 0 < part < of:
            assert float(shown.removesuffix(" %")) == pytest.approx(100 * part / of, rel=0.051, abs=0.006)

    judge()
    assert [share(part, 10_000) for part in (1, 8, 518, 5000, 9997, 10_000)] == [
        "0.010 %",
        "0.080 %",
        "5.2 %",
        "50.0 %",
        "99.97 %",
        "100 %",
    ]
    assert share(1, 10**6) == "< 0.01 %"


def test_a_direction_is_one_sided_only_where_all_go_one_way(tmp_path: Path) -> None:
    """518 to 1 is not 100 : 0, for one-sided means that no rounding made it."""
    made = CASES["rounding"]()
    size = {"unequal": 519, "of": 1000, "ulp_max": 2, "smaller": 518, "larger": 1, "unexplained": 0}
    made.told["findings"][0]["size"] = size
    assert "| 99 : 1 |" in made.rendered(tmp_path / "near", "en").markdown
    made.told["findings"][0]["size"] = {**size, "smaller": 519, "larger": 0}
    assert "| 100 : 0 |" in made.rendered(tmp_path / "all", "en").markdown


def test_layers_are_said_in_stretches() -> None:
    assert ranges([2, 0, 1, 7]) == "0–2, 7"
    assert ranges(list(range(0, 40, 2))) == "0, 2, 4, 6, 8, …, 38"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES)
def test_the_table_is_boundary_results(case: str, language: str, tmp_path: Path) -> None:
    """Every boundary is in the page, in the order of computation, with its figures to three digits."""
    page = CASES[case]().rendered(tmp_path, language).html
    data = json.loads(page.split('id="rows">')[1].split("</script>")[0])
    rows = json.loads((tmp_path / "boundary_results.json").read_text())["boundaries"]
    assert len(data["r"]) == len(rows)
    for told, row in zip(data["r"], rows, strict=True):
        name = data["p"][told[0]] if told[1] is None else f"layers.{told[1]}.{data['p'][told[0]]}"
        assert name == row["boundary"]
        expected = [row["unequal"]["share"] if row["unequal"] else None, row["max_abs_diff"], row["rel_l2"]]
        assert [value if value is None else float(f"{value:.3g}") for value in told[3:6]] == [
            value if value is None else float(f"{value:.3g}") for value in expected
        ]
        assert (told[2] == "x", told[2] == "o") == (row["status"] == "EXACT", row["status"] == "evidence_missing")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES)
def test_the_tally_sums_to_all_boundaries(case: str, language: str, tmp_path: Path) -> None:
    page = CASES[case]().rendered(tmp_path, language).html
    legend = page.split('<ul class="legend sums">')[1].split("</ul>")[0]
    rows = json.loads((tmp_path / "boundary_results.json").read_text())["boundaries"]
    assert sum(int(number.replace(",", "")) for number in re.findall(r"<b>([\d,]+)</b>", legend)) == len(rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_figures_of_a_fault_are_the_conclusions(language: str, tmp_path: Path) -> None:
    """518 of 680,960 elements, the logits' difference and what is left of it, in both renderings."""
    made = CASES["one_fault"]().rendered(tmp_path, language)
    concluded = json.loads((tmp_path / "conclusion.json").read_text())
    rows = json.loads((tmp_path / "boundary_results.json").read_text())["boundaries"]
    size = concluded["findings"][0]["size"]
    for text in (made.html, made.markdown):
        assert count(size["unequal"]) in text
        assert "680,960" in text
        assert f"{rows[-1]['rel_l2']:.1e}".replace("e-0", "e-") in text
        assert "0.011" in text  # the account's repair of F1
        assert "0.036" in text  # the log's last mean
    layers = len({name.split(".")[1] for name in boundaries(3) if name.startswith("layers.")})
    assert f"F1   {'■' * layers}" in made.markdown


def test_what_was_not_computed_is_never_a_zero(tmp_path: Path) -> None:
    """A response metric with valid 0, and metrics that no log states."""
    text = CASES["one_fault"]().rendered(tmp_path, "en").markdown
    assert "rollout_probs_diff`: not run; a prompt-only run computes none; this is not 0" in text
    silent = CASES["rounding"]().rendered(tmp_path / "other", "en").markdown
    assert silent.count("no training log states it; this is not 0") == 2


def test_a_metric_that_rises_is_not_explained_by_one_step(tmp_path: Path) -> None:
    """A pair of step 0 says nothing of step 30: the report asks for a pair there, weights first, then the cache."""
    text = CASES["one_fault"]().rendered(tmp_path, "en").markdown
    assert "rises from 0.011 at step 0 to 0.036 at step 30; this pair says nothing of steps but its own" in text
    assert "compare its weights first, then cache reuse" in text
