"""What a report says and never says; each glyph stands beside its word; nothing that was found is left out."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from dump_analysis import words
from dump_analysis.artefacts.common import Worded
from dump_analysis.report.states import State
from dump_analysis.wording import TABLE, word
from msprobe_files.errors import DumpError
from report_cases import CASES, LANGUAGES, WEIGHTS, Case, conclusion, finding, hostile, large, seen

NEVER = r"\b(?:AI|magic|unfortunately|probably|abnormal|error rate|score|grade|passed)\b"
FAULTY = ("one_fault", "several")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES)
def test_a_report_never_says(case: str, language: str, tmp_path: Path) -> None:
    made = CASES[case]().rendered(tmp_path, language)
    for text in (made.markdown, re.sub(r"(?s)<(style|script)[^>]*>.*?</\1>", "", made.html)):
        assert not re.search(NEVER, text)
        assert not re.search(r"(?<!not a )\bpass\b", text)
        assert not re.search(r"\b(?:nan|inf|True|False)\b|\bNone\b(?! of | was )", text)
        assert str(tmp_path) not in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", ["exact", "rounding"])
def test_a_clean_pair_is_called_consistent_at_once(case: str, language: str, tmp_path: Path) -> None:
    lines = [line for line in CASES[case]().rendered(tmp_path, language).markdown.splitlines() if line]
    told = lines[0] + lines[2]
    assert ("一致" in told) if language == "zh-CN" else re.search("consistent|equal", told)
    assert not re.search("Inconsistent|不一致", told)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", FAULTY)
def test_the_three_sentences_name_the_faults_and_proven_sides_only(case: str, language: str, tmp_path: Path) -> None:
    made = CASES[case]()
    lead = "\n".join(made.rendered(tmp_path, language).markdown.splitlines()[:9])
    faults = [one for one in made.told["findings"] if one["character"] == "logic"]
    for fault in faults[:3]:
        assert fault["id"] in lead
    if len(faults) > 3:
        assert faults[3]["id"] not in lead
        assert ("And 1 more." if language == "en" else "另有 1 处。") in lead


def test_a_side_is_named_only_where_it_is_proven(tmp_path: Path) -> None:
    made = CASES["one_fault"]()
    made.told["findings"][0]["side"] = "unknown"
    made.told["findings"][0]["fix"] = None
    lead = "\n".join(made.rendered(tmp_path, "en").markdown.splitlines()[:9])
    assert "on one of the two sides, not decided which" in lead
    assert "train side" not in lead


def test_every_rounding_point_is_listed_and_none_is_mended(tmp_path: Path) -> None:
    """Twelve known gaps stay visible, each with its cause and its size."""
    names = [f"layers.{at}.attn_core.out" for at in range(12)]
    points = [finding(f"F{at + 1}", "rounding", [name], word("variant_stored", format=f"format{at}")) for at, name in enumerate(names)]
    found = seen(12, names[0], dict.fromkeys(names, "r"))
    made = Case(found, WEIGHTS, conclusion(found, points, "consistent")).rendered(tmp_path, "en")
    for at in range(12):
        assert f"F{at + 1} the result kept in format{at}" in made.markdown
        assert f'<tr id="F{at + 1}">' in made.html
    assert made.markdown.count("518 of") + made.markdown.count("67.4 % of 768") >= 12
    assert "resolved" not in made.markdown


def test_beyond_twelve_cards_faults_stand_in_a_table(tmp_path: Path) -> None:
    names = [f"layers.{at}.q.out" for at in range(15)]
    faults = [
        finding(f"F{at + 1}", "logic", [name], word("edge", name=name) if "edge" in TABLE else Worded("edge", {}, f"cause {at}"))
        for at, name in enumerate(names)
    ]
    found = seen(15, names[0], dict.fromkeys(names, "f"))
    made = Case(found, WEIGHTS, conclusion(found, faults, "inconsistent")).rendered(tmp_path, "en")
    assert made.html.count('<article class="card"') == 12
    assert "3 further findings, in short" in made.html
    for at in range(15):
        assert f'id="F{at + 1}"' in made.html
        assert f"F{at + 1}" in made.markdown
    assert "+ 7 more findings" in made.html  # of the strip, which shows eight


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_glyph_stands_beside_its_word(language: str, tmp_path: Path) -> None:
    """No state is told by its mark or its colour alone."""
    page = hostile().rendered(tmp_path, language).html
    icons = re.findall(r'<svg class="ic [a-z]+" viewBox="0 0 16 16" aria-hidden="true"><use href="#i-[a-z]+"/></svg>\s*(?=(.{1,60}))', page)
    assert len(icons) > 30
    for after in icons:
        assert re.match(r"\s*(?:<b>[\d,]+</b> |<code|<a |<span)?\s*\S", after), after
    text = hostile().rendered(tmp_path / "again", language).markdown
    for state in State:
        if state.glyph in text:
            assert re.search(re.escape(state.glyph) + r" (?:[\d,]+ )?\S", text)


def test_sections_without_data_are_left_out_and_said(tmp_path: Path) -> None:
    """Of an exact pair there is no growth, no positions and no round; nothing of that is an empty chart."""
    page = CASES["exact"]().rendered(tmp_path, "en").html
    for section in ("growth", "tokens", "rounds"):
        assert f'<section id="{section}"' not in page
        assert f'href="#{section}"' not in page
    for section in ("conclusion", "where", "findings", "causes", "table", "open", "inputs", "read"):
        assert f'<section id="{section}"' in page
    assert "No round was run" in page


def test_an_ineffective_round_concludes_nothing(tmp_path: Path) -> None:
    text = CASES["one_fault"]().rendered(tmp_path, "en").markdown
    rounds = text.split("## How was it confirmed?")[1].split("## ")[0]
    assert re.search(
        r"- \*\*1 Equal inputs behind `layers.1.resid_mlp`\*\*\n  - ✓ Override proven: `layers.1.resid_mlp` is EXACT\n", rounds
    )
    assert re.search(r"- \*\*2 Inputs overridden\*\*\n  - × Did not take effect; nothing was concluded\n", rounds)


@pytest.mark.parametrize("empty", [False, True])
def test_rounds_have_ended_where_the_plan_after_them_is_empty(empty: bool, tmp_path: Path) -> None:
    """The judgement names where to go on; once the plan says that nothing is added there, the report must not call it open."""
    made = CASES["one_fault"]()
    made.rounds = [{**made.rounds[0], "stop": "continue", "next": {"boundary": "layers.2.resid_mlp"}}]
    (tmp_path / "round_plan.json").write_text(json.dumps({"rounds": [] if empty else [{"round": 2}]}), encoding="utf-8")
    rounds = made.rendered(tmp_path, "en").markdown.split("## How was it confirmed?")[1].split("## ")[0]
    assert ("no further round adds anything." in rounds) is empty
    assert ("more is open behind `layers.2.resid_mlp`" in rounds) is not empty
    assert ("Next: `layers.2.resid_mlp`" in rounds) is not empty


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        (True, "One round with inputs overridden; the next is planned and not run yet."),
        (False, "A round is planned; none has been run yet."),
    ],
)
def test_a_round_that_was_only_planned_is_not_counted_as_run(ran: bool, said: str, tmp_path: Path) -> None:
    made = CASES["one_fault"]()
    made.rounds = made.rounds[:1] if ran else []
    short = {"kind": "cut", "target_side": "infer", "isolated": None, "why_not": None, "differ": [], "contradicted": [], "stop": None}
    made.told["rounds"] = [{"round": 2, "effective": None, **short}]
    assert said in made.rendered(tmp_path, "en").markdown


def test_rounds_are_told_from_the_conclusion_where_their_results_are_elsewhere(tmp_path: Path) -> None:
    """And what a round contradicts is told with both readings."""

    def said(text: str) -> Worded:
        return Worded("of another release", {}, text)

    made = CASES["one_fault"]()
    made.rounds[0]["contradicted"] = [
        {"finding": "F2", "boundary": "layers.2.q.out", "replay": word("order_same", n=3), "round": word("sum_nothing")},
        {"finding": None, "boundary": "layers.2.k.out", "replay": said("replay text"), "round": said("round text")},
    ]
    made.rounds[0] = msgspec.to_builtins(made.rounds[0])
    short = {"kind": "cut", "target_side": "infer", "isolated": "layers.0.resid_mlp", "why_not": None, "stop": "continue"}
    made.told["rounds"] = [
        {"round": 1, "effective": True, "differ": ["logits"], "contradicted": [], **short},
        {"round": 3, "effective": True, "differ": ["layers.1.q.out", "logits"], "contradicted": [], **short},
        {"round": 4, "effective": None, "differ": [], "contradicted": [], **short},
    ]
    text = made.rendered(tmp_path, "en").markdown
    rounds = text.split("## How was it confirmed?")[1].split("## ")[0]
    assert "F2 at `layers.2.q.out` is contradicted: replay says all 3 modules are rounded at the same points" in rounds
    assert "replay says replay text; the round says round text" in rounds
    assert "- **3 Equal inputs behind `layers.0.resid_mlp`: infer ← train**" in rounds
    assert "Behind it these differ: `layers.1.q.out`, logits." in rounds
    assert "Planned; not run yet" in rounds


@pytest.mark.parametrize("wrong", [{"local": "layers.1.q.out"}, {"confirmed": [1e308]}, {"downstream": [{"status": "EXACT"}]}, {"stop": 1}])
def test_a_result_of_a_round_that_is_none_is_refused_by_its_field(wrong: dict[str, object], tmp_path: Path) -> None:
    """What a hand or a cut file left is named, and never told as a round."""
    made = CASES["one_fault"]()
    made.rounds[0] |= wrong
    with pytest.raises(DumpError, match=rf"^Cannot use round1/round_result\.json: .*{next(iter(wrong))}"):
        made.rendered(tmp_path, "en")


def test_layers_that_are_alike_are_folded_on_a_phone(tmp_path: Path) -> None:
    page = large(60).rendered(tmp_path, "en").html
    narrow = page.split('<figure class="chart map">')[1].split('<div class="n">')[1].split("</figure>")[0]
    wide = page.split('<figure class="chart map">')[1].split('<div class="n">')[0]
    assert ">0–59</text>" in narrow
    assert "0–59" not in wide


def test_a_place_of_the_map_leads_to_its_rows(tmp_path: Path) -> None:
    """Each link's words are found in the names of just the boundaries that the row of the map stands for."""
    case = large(3, 2)
    page = case.rendered(tmp_path, "en").html
    for place, found in (("q.out", 3), ("experts.*.out", 6)):
        link = re.search(rf'href="#table\?q=([^"]*)"><text[^>]*>{re.escape(place)}</text>', page)
        assert link is not None
        words_ = unquote(link[1]).split()
        assert sum(all(word_ in name for word_ in words_) for name in case.found) == found


def test_no_kind_of_sentence_is_defined_twice() -> None:
    """A kind in two files would silently say what the other says."""
    folder = Path(words.__file__).parent
    kinds = [
        kind
        for path in sorted(folder.glob("*.py"))
        for kind in re.findall(r'^    "(\w+)": \(', path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(kinds) > 500
    assert len(kinds) == len(set(kinds)), {kind for kind in kinds if kinds.count(kind) > 1}
