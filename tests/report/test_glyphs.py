"""The report in a terminal: findings over the layers, a glyph a layer, and what can be said where no tensor was compared."""

from pathlib import Path

import pytest
from dump_analysis.report import evidence
from dump_analysis.report.glyphs import glyph_strip, lead_of
from dump_analysis.wording import word
from report_cases import CASES, LANGUAGES, Case, boundaries, conclusion, large

FILES = ("replay_results.json", "semantic_mapping.json")


def test_each_finding_lies_in_its_layers(tmp_path: Path) -> None:
    strip = glyph_strip(evidence.read(CASES["several"]().write(tmp_path), FILES), "en")
    assert strip == [
        "layers 0 to 3: ■ fault, ● rounding, ◐ not decided",
        "F1   ■     scale",
        "F2    ■    k.out",
        "F3     ■   theta",
        "F4      ■  multiplier",
        "F5   ●●●●  attn_core.out",
    ]


def test_more_layers_than_a_terminal_is_wide_share_a_column(tmp_path: Path) -> None:
    strip = glyph_strip(evidence.read(large(150).write(tmp_path), FILES), "en")
    assert strip[0].startswith("layers 0 to 149, 2 a column")
    assert strip[1] == f"F1   {'■' * 75}  eps"


def test_without_findings_or_layers_there_is_no_strip(tmp_path: Path) -> None:
    assert glyph_strip(evidence.read(CASES["exact"]().write(tmp_path), FILES), "en") == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES)
def test_the_terminal_says_what_the_report_says(case: str, language: str, tmp_path: Path) -> None:
    text = CASES[case]().rendered(tmp_path, language).markdown.replace("`", "").replace("\\", "")
    told = lead_of(evidence.read(tmp_path, FILES), language)
    assert text.startswith(f"# {told.glyph} {told.headline}\n")
    for sentence in told.sentences:
        assert sentence in text


def test_statistics_alone_are_told_in_their_own_sentences(tmp_path: Path) -> None:
    """Not "nothing could be compared": they agree or not, and a dump of tensors would decide."""
    found = dict.fromkeys(boundaries(1), "o")
    agree = word("sum_stats_agree", n=18, of=19, untold=1, layers=word("sum_stats_layers", first=0, last=0))
    decide = [word("decide_gap", names=["q.out"]), word("decide_tensors", names=["Module.embed"])]
    told = conclusion(found, [], "undecided", overall="evidence_missing", summary=[agree] * 3, would_decide=decide)
    lead = lead_of(evidence.read(Case(found, {}, told).write(tmp_path), FILES), "en")
    assert lead.case == "undecided"
    assert lead.sentences[0] == agree.text
    assert "Module.embed" in lead.sentences[2]
