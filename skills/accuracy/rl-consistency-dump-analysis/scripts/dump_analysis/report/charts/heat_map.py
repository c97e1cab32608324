"""Token positions against layers, the largest relative error of each bin in eight steps of grey; drawn once, shown at two widths."""

import math

from markupsafe import Markup

from dump_analysis.report.charts.svg import NARROW, WIDE, every, n, pair, path, rect, svg, text
from dump_analysis.report.positions import Positions
from dump_analysis.report.said import Voice, figure
from dump_analysis.wording import word

_STEPS = 8
_LEFT = 44


def heat_map(positions: Positions, voice: Voice) -> Markup:
    """Both drawings, and the cells that they share."""
    label = voice.say(word("alt_heat", answer=positions.answer))
    cells = Markup('<svg width="0" height="0" class="defs" aria-hidden="true"><defs><g id="hm">{}</g></defs></svg>').format(
        _cells(positions)
    )
    return cells + pair(_drawn(positions, WIDE, label, voice), _drawn(positions, NARROW, label, voice))


def level(value: float, low: float, high: float) -> int:
    """The step of the ramp, by the logarithm between the smallest and the largest value."""
    if high <= low:
        return _STEPS // 2
    return min(_STEPS - 1, int(_STEPS * (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))))


def _cells(positions: Positions) -> Markup:
    """One path a step, in units of a cell; cells below each other are one stroke."""
    data = [""] * _STEPS
    for column, band in enumerate(positions.bands):
        steps = [level(value, positions.low, positions.high) if value else None for value in band.largest]
        at = 0
        while at < len(steps):
            end = at
            while end + 1 < len(steps) and steps[end + 1] == steps[at]:
                end += 1
            step = steps[at]
            if step is not None:
                data[step] += f"M{column} {at}h.95v{end - at + 1}h-.95z"
            at = end + 1
    return Markup("").join(path(f"h{step}", drawn) for step, drawn in enumerate(data))


def _drawn(positions: Positions, width: int, label: str, voice: Voice) -> Markup:
    columns, bins = len(positions.bands), len(positions.edges) - 1
    pitch = min(80.0, (width - _LEFT - 8) / columns)
    tall = min(18.0, max(6.0, 190 / bins))
    top, bottom = 8, 8 + tall * bins
    right = _LEFT + pitch * columns
    body = [Markup('<use href="#hm" transform="translate({} {}) scale({:.4f} {:.4f})"/>').format(_LEFT, top, pitch, tall)]
    ends = positions.edges
    body += [path("axis", f"M{_LEFT} {n(top + tall * _bin(ends, border))}H{n(right)}") for border in positions.borders]
    step = max(1, round(20 / tall))
    body += [text(_LEFT - 8, top + tall * (at + 0.5) + 4, str(ends[at]), to="end") for at in range(0, bins, step)]
    across = every(columns, pitch, width)
    shown = range(0, columns, across)
    body += [text(_LEFT + pitch * (at + 0.5), bottom + 16, str(positions.bands[at].layer), to="middle") for at in shown]
    body.append(text(0, bottom + 16, voice.say(word("col_layer"))))
    return svg(width, bottom + 46, label, [*body, *_scale(positions, bottom + 32, voice)], linked=False)


def _bin(edges: tuple[int, ...], border: int) -> float:
    """The bin that begins at a border, or holds it."""
    return next((at for at, edge in enumerate(edges) if edge >= border), len(edges) - 1)


def _scale(positions: Positions, y: float, voice: Voice) -> list[Markup]:
    """The ramp with its ends in figures."""
    drawn = [text(_LEFT, y + 10, figure(positions.low))]
    at = _LEFT + 8 + 7 * len(figure(positions.low))
    drawn += [rect(f"h{step}", at + 16 * step, y, 15, 12) for step in range(_STEPS)]
    end = at + 16 * _STEPS + 8
    drawn.append(text(end, y + 10, figure(positions.high)))
    if any(value is None for band in positions.bands for value in band.largest):
        drawn.append(text(end + 14 + 7 * len(figure(positions.high)), y + 10, voice.say(word("tokens_exact"))))
    return drawn
