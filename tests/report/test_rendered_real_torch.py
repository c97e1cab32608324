"""Real pairs from their dumps to their reports: what is wrong stands in the first three sentences, and what is clean is called so."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from laying import lay_out
from running import run_command


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder that diagnose.py leaves of a sample with its own mapping."""
    made: dict[str, Path] = {}
    root = tmp_path_factory.mktemp("reported")

    def by_name(name: str) -> Path:
        if name not in made:
            pair, out = lay_out(name, root), root / f"{name}-analysed"
            ran = run_command(
                "diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", out, "--quiet"
            )
            assert ran.returncode == 0, ran.stderr
            made[name] = out
        return made[name]

    return by_name


def first_screen(folder: Path) -> list[str]:
    """Headline, and the three sentences."""
    lines = [line for line in (folder / "alignment_report.md").read_text(encoding="utf-8").splitlines() if line]
    return [lines[0], *lines[2:5]]


@pytest.mark.parametrize("name", ["qwen2-hf-vllm-rms_eps", "qwen2-hf-vllm-kv_swapped"])
def test_a_faulty_pair_names_its_faults_at_once(reported: Callable[[str], Path], name: str) -> None:
    folder = reported(name)
    told = " ".join(first_screen(folder))
    concluded = json.loads((folder / "conclusion.json").read_text())
    faults = [one for one in concluded["findings"] if one["character"] == "logic"]
    assert faults
    assert "Inconsistent" in told
    for fault in faults[:3]:
        assert re.search(rf"\b{fault['id']}\b", told)
    page = (folder / "alignment_report.html").read_text(encoding="utf-8")
    for fault in concluded["findings"]:
        assert f'id="{fault["id"]}"' in page


def test_a_clean_pair_is_consistent_in_its_first_sentence(reported: Callable[[str], Path]) -> None:
    headline, first, *_ = first_screen(reported("qwen2-hf-vllm-clean"))
    assert headline == "# ≈ Consistent: rounding only"
    assert "consistent" in first


def test_the_figures_are_those_of_the_artefacts(reported: Callable[[str], Path]) -> None:
    """The page's table against boundary_results.json, and the counts in the sentences."""
    folder = reported("qwen2-hf-vllm-clean")
    page = (folder / "alignment_report.html").read_text(encoding="utf-8")
    data = json.loads(page.split('id="rows">')[1].split("</script>")[0])
    rows = json.loads((folder / "boundary_results.json").read_text())["boundaries"]
    assert len(data["r"]) == len(rows)
    for told, row in zip(data["r"], rows, strict=True):
        assert told[5] == (None if row["rel_l2"] is None else float(f"{row['rel_l2']:.3g}"))
    compared = sum(row["status"] not in ("MISSING", "evidence_missing") for row in rows)
    logits = next(row for row in rows if row["boundary"] == "logits")
    third = first_screen(folder)[3]
    assert f"{compared} of {len(rows)} boundaries compared" in third
    found = re.search(r"logits differ by ([\d.e-]+)", third)
    assert found is not None
    assert float(found[1].rstrip(".")) == float(f"{logits['rel_l2']:.2g}")
