"""The report's page in a real browser: `make browser-tests` runs this; `make browser` brings Chromium, playwright-core and axe-core.

One process opens every page once and writes down what it saw; the tests judge that. Screenshots lie in `.browser/` afterwards.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from report_cases import CASES, LANGUAGES, hostile, large
from running import ROOT

HERE = Path(__file__).parent
OUT = ROOT / ".browser"
NEEDED = "Run `make browser` (it installs chromium by apt-get, and playwright-core and axe-core by npm into tests/browser)."
PAGES = [*(f"{case}.{language}" for case in CASES for language in LANGUAGES), "hostile.en", "large.zh-CN"]
DRAWN = ["one_fault.zh-CN", "several.en"]  # screenshots and PDF cost most of the time
WIDTHS = ["360", "390", "768", "1280"]
SECONDS = 500  # of one whole run: many times what it takes


@pytest.fixture(scope="session")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the browser saw of every page."""
    browser, node = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("node")
    assert browser, f"chromium was not found. {NEEDED}"
    assert node, f"node was not found. {NEEDED}"
    assert (HERE / "node_modules/axe-core").is_dir(), f"axe-core was not found. {NEEDED}"
    folder = tmp_path_factory.mktemp("pages")
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    files: dict[str, str] = {}
    makes = {**CASES, "hostile": hostile, "large": lambda: large(28)}
    for name in PAGES:
        case, language = name.split(".")
        limits = ["| a | b |\n| - | - |\n| 1 | 2 |", "**bold** `code`", "x" * 3000]
        page = folder / f"{name}.html"
        page.write_text(makes[case]().rendered(folder / name, language, limitations=limits).html, encoding="utf-8")
        files[name] = str(page)
    listed = folder / "pages.json"
    listed.write_text(
        json.dumps({"looks": files, "drawn": DRAWN, "acts": files["several.en"], "grows": files["large.zh-CN"]}), encoding="utf-8"
    )
    ran = subprocess.run(
        [node, HERE / "observe.cjs", listed, OUT, browser], capture_output=True, text=True, check=False, timeout=SECONDS, cwd=HERE
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads((OUT / "observed.json").read_text())


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_logged_and_nothing_is_fetched(observed: dict[str, Any], page: str) -> None:
    seen = observed["looks"][page]
    assert seen["console"] == []
    assert seen["requests"] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways(observed: dict[str, Any], page: str, width: str) -> None:
    """With all details open, from the smallest phone to a desktop."""
    assert observed["looks"][page]["overflow"][width] == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_no_violation(observed: dict[str, Any], page: str, theme: str) -> None:
    assert observed["looks"][page]["axe"][theme] == []


@pytest.mark.parametrize("page", PAGES)
def test_dark_is_dark_and_paper_is_white(observed: dict[str, Any], page: str) -> None:
    seen = observed["looks"][page]
    assert seen["ground"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
    assert seen["print"] == {"ground": "rgb(255, 255, 255)", "ink": "rgb(0, 0, 0)", "rail": "none", "filter": "none"}
    if page in DRAWN:
        assert 3 <= seen["pdf_pages"] <= 30


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_read_without_script(observed: dict[str, Any], page: str) -> None:
    seen = observed["looks"][page]["without_script"]
    assert len(seen["lead"]) > 100
    assert seen["rows"] > 1
    assert not seen["filter"]
    assert not seen["copy"]


def test_the_filter_finds_by_words_and_by_finding(observed: dict[str, Any]) -> None:
    acts = observed["acts"]
    assert acts["console"] == acts["requests"] == []
    assert acts["first"]["count"] == "20 of 65"
    assert [row[0] for row in acts["filtered"]["rows"]] == ["layers.1.resid_attn", "layers.1.resid_mlp"]
    assert acts["filtered"]["count"] == "2 shown, 2 found, 65 in all"
    assert acts["filtered"]["hash"] == "#table?q=layers.1%20resid"
    assert [row[0] for row in acts["by_finding"]["rows"]] == ["layers.1.k.out", "layers.1.v.out"]


def test_chips_add_up_and_sorting_puts_the_uncompared_last(observed: dict[str, Any]) -> None:
    acts = observed["acts"]
    states = [row[1] for row in acts["chips"]["rows"]]
    assert states.count("rounding here") == 4
    assert states.count("not compared") == 8
    assert len(states) == 12
    assert acts["chips"]["hash"] == "#table?q=&s=ro"
    assert sorted(acts["pressed"]) == ["ffalse", "mfalse", "otrue", "rtrue", "xfalse"]
    for key, way in (("sorted", -1), ("sorted_back", 1)):
        rows = acts[key]["rows"]
        values = [float(row[4]) for row in rows[:4]]
        assert values == sorted(values, reverse=way < 0)
        assert [row[1] for row in rows[4:]] == ["not compared"] * 8
    assert acts["aria"] == ["none", "none", "none", "none", "descending"]


def test_an_empty_result_says_so_and_can_be_cleared(observed: dict[str, Any]) -> None:
    acts = observed["acts"]
    assert acts["none"]["rows"] == []
    assert acts["none"]["said"]
    assert acts["cleared"]["count"] == "50 of 65"
    assert acts["cleared"]["hash"] == "#table"


def test_a_link_carries_the_filter(observed: dict[str, Any]) -> None:
    acts = observed["acts"]
    assert [row[0] for row in acts["sent"]["rows"]] == ["layers.2.q.out"]
    assert {row[0].split(".", 2)[2] for row in acts["changed"]["rows"]} == {"q.out"}


def test_theme_details_and_copying(observed: dict[str, Any]) -> None:
    acts = observed["acts"]
    assert acts["theme"] == ["dark", "rgb(20, 23, 26)"]
    before, during, after = acts["opened"]
    assert all(during)
    assert not any(before)
    assert after == before
    assert acts["copied"].startswith("✓")


def test_everything_can_be_reached_by_key_and_hit_by_finger(observed: dict[str, Any]) -> None:
    assert observed["acts"]["focus"] == []
    assert observed["acts"]["small"] == []


def test_many_rows_come_in_parts(observed: dict[str, Any]) -> None:
    grows = observed["grows"]
    assert (grows["drawn"], grows["more"], grows["count"]) == (20, 70, "70 / 425")
