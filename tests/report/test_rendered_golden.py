"""Every case that a report can be of, in both languages and both forms, against what was read and found right.

`python tests/report/accept_golden.py` writes what is rendered now over what is expected; read the difference before it is committed.
"""

from pathlib import Path

import pytest
from report_cases import CASES, LANGUAGES, without_assets

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES)
def test_a_case_is_rendered_as_it_was_accepted(case: str, language: str, tmp_path: Path) -> None:
    """Catches a change of words, figures, order or structure that nobody meant."""
    rendered = CASES[case]().rendered(tmp_path, language)
    for kind, text in (("md", rendered.markdown), ("html", without_assets(rendered.html))):
        expected = (GOLDEN / f"{case}.{language}.{kind}").read_text(encoding="utf-8")
        assert text == expected, f"{case} {language} {kind}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_source_gives_the_same_bytes(language: str, tmp_path: Path) -> None:
    """Also from another folder: nothing of the machine is in a report."""
    make = CASES["one_fault"]
    assert make().rendered(tmp_path / "one", language) == make().rendered(tmp_path / "other place", language)


HEADLINES = {
    ("exact", "en"): "Exact: the same to the last bit",
    ("exact", "zh-CN"): "一致：逐比特相同",
    ("rounding", "en"): "Consistent: rounding only",
    ("rounding", "zh-CN"): "一致：仅舍入差异",
    ("one_fault", "en"): "Inconsistent: one fault",
    ("one_fault", "zh-CN"): "不一致：一处故障",
    ("several", "en"): "Inconsistent: 4 independent faults",
    ("several", "zh-CN"): "不一致：4 处独立故障",
    ("undecided", "en"): "Undecided: 4 boundaries could hide a fault",
    ("undecided", "zh-CN"): "未决：4 个边界可能隐藏故障",
    ("not_run", "en"): "Not run: nothing was compared",
    ("not_run", "zh-CN"): "未执行：未比对任何边界",
}


@pytest.mark.parametrize(("case", "language"), HEADLINES)
def test_the_headline_is_the_first_thing_said(case: str, language: str, tmp_path: Path) -> None:
    rendered = CASES[case]().rendered(tmp_path, language)
    headline = HEADLINES[case, language]
    assert rendered.markdown.splitlines()[0].endswith(f" {headline}")
    assert f"<span>{headline}</span></h1>" in rendered.html
    assert f"<title>{headline} · " in rendered.html
