"""The page's budget: what is fixed, what each boundary costs, and that charts do not grow with the number of places."""

import re
from pathlib import Path

import pytest
from report_cases import large
from running import SCRIPTS

ASSETS = SCRIPTS / "dump_analysis/report/assets"
KB = 1024


def test_style_and_script_keep_within_their_budget() -> None:
    assert len((ASSETS / "report.css").read_bytes()) <= 18 * KB
    assert len((ASSETS / "report.js").read_bytes()) <= 8 * KB


@pytest.mark.parametrize(
    ("layers", "extra", "whole", "charts"), [(28, 0, 150, 60), (80, 47, 500, 150)], ids=["450 boundaries", "5000 boundaries"]
)
def test_a_page_keeps_within_its_budget(layers: int, extra: int, whole: int, charts: int, tmp_path: Path) -> None:
    case = large(layers, extra)
    page = case.rendered(tmp_path, "en").html
    assert len(page.encode()) <= whole * KB
    drawn = sum(len(figure.encode()) for figure in re.findall(r"(?s)<figure.*?</figure>", page))
    assert drawn <= charts * KB
    island = page.split('id="rows">')[1].split("</script>")[0]
    assert len(island.encode()) / len(case.found) <= 40
