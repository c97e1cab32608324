"""A histogram of distances in ULP, smaller on the left and larger on the right, in one scale for all cards."""

from markupsafe import Markup

from dump_analysis.report.charts.svg import path, rect, svg, text
from dump_analysis.report.said import Voice
from dump_analysis.report.ulp_histogram import Histogram
from dump_analysis.wording import word

_WIDTH, _MIDDLE, _FULL = 300, 176.0, 90.0
_ROW = 17


def histogram_chart(found: Histogram, voice: Voice) -> Markup:
    """The chart; elements of opposite sign have no side and stand on the axis."""
    height = 24 + _ROW * len(found.bars)
    body = [
        text(_MIDDLE - 6, 11, voice.say(word("col_train_smaller")), to="end"),
        text(_MIDDLE + 6, 11, voice.say(word("col_train_larger"))),
        path("axis", f"M{_MIDDLE} 16V{height}"),
    ]
    for row, bar in enumerate(found.bars):
        y = 22 + _ROW * row
        body.append(text(42, y + 10.5, bar.label, to="end"))
        for number, side in ((bar.smaller, -1), (bar.larger, 1)):
            if number:
                body += _half(found, number, side, y, on_axis=row == len(found.bars) - 1)
    label = voice.say(word("alt_hist", id=found.finding, reading=found.reading))
    return svg(_WIDTH, height, label, body, linked=False)


def _half(found: Histogram, number: int, side: int, y: float, *, on_axis: bool) -> list[Markup]:
    wide = max(1.5, _FULL * number / found.of)
    if on_axis:
        start, end = _MIDDLE - wide / 2, _MIDDLE + wide / 2
        return [rect("bar", start, y, wide, 12), text(end + 5, y + 10.5, found.per_cent(number))]
    start = _MIDDLE - wide if side < 0 else _MIDDLE
    label = (
        text(start - 5, y + 10.5, found.per_cent(number), to="end")
        if side < 0
        else text(start + wide + 5, y + 10.5, found.per_cent(number))
    )
    return [rect("bar", start, y, wide, 12), label]
