"""Contrast of every colour that carries meaning, computed from the style sheet by WCAG's formula (2.2, relative luminance)."""

import re

import pytest
from running import SCRIPTS

CSS = (SCRIPTS / "dump_analysis/report/assets/report.css").read_text(encoding="utf-8")
TEXT, MARK = 4.5, 3.0


def palette(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})", block))


LIGHT = palette(CSS.split("/*dark*/")[0])
PALETTES = {
    "light": LIGHT,
    "dark, asked for": palette(CSS.split(":root[data-theme=dark]{")[1].split("}")[0]),
    "dark, of the system": palette(CSS.split(":root:not([data-theme=light]){")[1].split("}")[0]),
    "print": palette(CSS.split("@media print")[1].split("}")[1] + CSS.split("@media print")[1].split("}")[2]),
}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_the_formula_is_the_standards() -> None:
    """Black on white is 21 by definition; #767676 is the well-known grey that just passes."""
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert 4.5 < contrast("#767676", "#ffffff") < 4.6


@pytest.mark.parametrize("name", PALETTES)
def test_text_and_marks_can_be_seen(name: str) -> None:
    of = PALETTES[name]
    for ground in ("page", "surface"):
        for ink in ("ink", "soft", "fault", "round"):
            assert contrast(of[ink], of[ground]) >= TEXT, (ink, ground)
        assert contrast(of["mark"], of[ground]) >= MARK, ground
    assert contrast(of["fault"], of["fault-tint"]) >= TEXT
    assert contrast(of["round"], of["round-tint"]) >= TEXT
    for tile in ("fault", "round", "ink"):  # the glyph on its tile
        assert contrast(of["page"], of[tile]) >= TEXT


@pytest.mark.parametrize("name", PALETTES)
def test_the_ramp_goes_one_way(name: str) -> None:
    steps = [contrast(PALETTES[name][f"r{step}"], PALETTES[name]["page"]) for step in range(8)]
    assert steps == sorted(steps)
    assert steps[-1] >= MARK


def test_both_ways_to_the_dark_are_the_same() -> None:
    assert PALETTES["dark, asked for"] == PALETTES["dark, of the system"]


def test_every_colour_comes_from_the_palette() -> None:
    """A colour written elsewhere would be missed by all of the above."""
    rules = CSS.split("/*base*/")[1]
    outside_print = rules.split("@media print")[0]
    assert not re.search(r"#[0-9a-f]{3,6}\b(?![^{]*\{)", re.sub(r"#[a-z][\w-]*\{", "{", outside_print))
    assert len(LIGHT) == 18
