"""Growth over layers on a logarithmic axis: the difference, what each layer adds, and what rounds measured."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from dump_analysis.report.charts.svg import NARROW, WIDE, every, n, pair, path, rect, svg, text
from dump_analysis.report.growth import Growth, Line
from dump_analysis.report.said import Voice, figure
from dump_analysis.report.states import State
from dump_analysis.wording import word

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_APART = 15  # units between labels at line ends


class _Plane(NamedTuple):
    """Where values lie: columns of layers, then of the end; decades from ``low`` to ``high``."""

    left: float
    right: float
    top: float
    floor: float
    low: int
    high: int
    columns: int

    def x(self, column: int) -> float:
        return self.left + (column + 0.5) * (self.right - self.left) / self.columns

    def y(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.floor - part * (self.floor - self.top)


def growth_chart(growth: Growth, voice: Voice) -> Markup:
    """Both drawings."""
    label = voice.say(word("alt_growth", answer=growth.answer))
    return pair(_drawn(growth, WIDE, label, voice), _drawn(growth, NARROW, label, voice))


def _drawn(growth: Growth, width: int, label: str, voice: Voice) -> Markup:
    layers = growth.layers
    columns = len(layers) + bool(growth.end_name)
    box = (58, 752, 30, 280) if width == WIDE else (40, 306, 30, 226)
    plane = _Plane(*box, *_decades(growth), columns)
    at = {layer: place for place, layer in enumerate(layers)}
    body = [text(0, 12, voice.say(word("col_error"))), *_decade_lines(plane)]
    body += _layer_axis(growth, plane, width, voice)
    body += [path("lc", _points(line, at, plane, columns)) for line in growth.dashed]
    body.append(path("ln", _points(growth.line, at, plane, columns)))
    zeros = [at[layer] for layer, value in growth.line.points if value == 0]
    body.append(path("px", "".join(f"M{n(plane.x(place))} {n(plane.floor)}h0" for place in zeros)))
    body += _added(growth, at, plane, width, voice)
    body += _ends(growth, at, plane, width)
    return svg(width, plane.floor + 36, label, body, linked=False)


def _decades(growth: Growth) -> tuple[int, int]:
    values = [value for line in (growth.line, *growth.dashed) for _, value in line.points if value > 0]
    values += [line.end for line in (growth.line, *growth.dashed) if line.end]
    values += [added.local for added in growth.added]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _decade_lines(plane: _Plane) -> list[Markup]:
    drawn = []
    step = 1 + (plane.high - plane.low) // 8
    for power in range(plane.low, plane.high + 1, step):
        y = plane.y(10.0**power)
        shown = "1" if power == 0 else "10" + str(power).translate(_RAISED) if power != 1 else "10"
        drawn += [path("grid", f"M{n(plane.left)} {n(y)}H{n(plane.right)}"), text(plane.left - 8, y + 4, shown, to="end")]
    return drawn


def _layer_axis(growth: Growth, plane: _Plane, width: int, voice: Voice) -> list[Markup]:
    layers = growth.layers
    pitch = (plane.right - plane.left) / plane.columns
    step = every(len(layers), pitch, width)
    drawn = [text(plane.x(place), plane.floor + 18, str(layers[place]), to="middle") for place in range(0, len(layers), step)]
    if growth.end_name:
        named = growth.end_name if width == WIDE and len(growth.end_name) <= 12 else voice.say(word("col_output"))
        drawn = drawn[:-1] if (len(layers) - 1) % step == 0 and pitch < 30 and len(drawn) > 1 else drawn
        drawn.append(text(plane.x(plane.columns - 1), plane.floor + 18, named, to="middle"))
    return [*drawn, text(plane.left, plane.floor + 33, voice.say(word("col_layer")))]


def _points(line: Line, at: dict[int, int], plane: _Plane, columns: int) -> str:
    """A line that breaks where a layer is exact or was not measured."""
    data, drawing, before = "", False, None
    for layer, value in line.points:
        if value <= 0 or layer not in at:
            drawing = False
            continue
        data += f"{'L' if drawing and before == at[layer] - 1 else 'M'}{n(plane.x(at[layer]))} {n(plane.y(value))}"
        drawing, before = True, at[layer]
    if line.end:
        data += f"{'L' if drawing else 'M'}{n(plane.x(columns - 1))} {n(plane.y(line.end))}"
    return data


def _added(growth: Growth, at: dict[int, int], plane: _Plane, width: int, voice: Voice) -> list[Markup]:
    """A disc a layer, a square where a fault dominates; the largest fault is named."""
    known = [added for added in growth.added if added.layer in at]
    discs = "".join(f"M{n(plane.x(at[one.layer]))} {n(plane.y(one.local))}h0" for one in known if one.state is State.ROUNDING)
    open_ = "".join(f"M{n(plane.x(at[one.layer]))} {n(plane.y(one.local))}h0" for one in known if one.state is State.OPEN)
    pitch = (plane.right - plane.left) / plane.columns
    size = min(12 if width == WIDE else 10, 0.8 * pitch)
    kind = "g10" if pitch > 13 else "g7" if pitch > 8 else "g5"
    drawn = [Markup('<g class="{}">{}</g>').format(kind, path("pr", discs) + path("ph", open_) + path("ph2", open_))]
    squares = [one for one in known if one.state is State.FAULT]
    drawn += [rect("f", plane.x(at[one.layer]) - size / 2, plane.y(one.local) - size / 2, size, size) for one in squares]
    top = growth.largest
    if top is not None and top.layer in at:
        x, y = plane.x(at[top.layer]), plane.y(top.local) + 4
        right = at[top.layer] >= plane.columns / 2
        named = voice.say(word("growth_adds", id=top.finding, local=figure(top.local), layer=top.layer)) if width == WIDE else top.finding
        drawn.append(text(x - 12 if right else x + 12, y, named, "b fx", to="end" if right else "start"))
    return drawn


def _ends(growth: Growth, at: dict[int, int], plane: _Plane, width: int) -> list[Markup]:
    """Labels where lines end, moved apart where they would meet."""
    wanted = []
    for line, kind in [(growth.line, "b"), *((dashed, "s") for dashed in growth.dashed)]:
        value = line.end or next((value for _, value in reversed(line.points) if value > 0), None)
        if value is None:
            continue
        last = plane.columns - 1 if line.end else at.get(line.points[-1][0], plane.columns - 1)
        named = f"{line.label} {figure(value)}" if width == WIDE else figure(value)
        wanted.append((plane.y(value) + 4, plane.x(last) + (10 if width == WIDE else 8), named, kind))
    return [text(x, y, named, kind) for (y, x, named, kind) in _apart(sorted(wanted))]


def _apart(wanted: Sequence[tuple[float, float, str, str]]) -> list[tuple[float, float, str, str]]:
    placed: list[tuple[float, float, str, str]] = []
    for y, x, named, kind in wanted:
        floor = placed[-1][0] + _APART if placed else y
        placed.append((max(y, floor), x, named, kind))
    return placed
