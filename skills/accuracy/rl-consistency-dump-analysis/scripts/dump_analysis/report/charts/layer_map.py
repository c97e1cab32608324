"""The layer map: places of computation against layers, one mark each; turned by a quarter on phones."""

from urllib.parse import quote

from markupsafe import Markup

from dump_analysis.report.charts.svg import NARROW, WIDE, every, link, marks, pair, path, rect, svg, text, to_finding, turned
from dump_analysis.report.layers import Grid
from dump_analysis.report.said import Voice, short
from dump_analysis.report.states import State
from dump_analysis.report.view import Where
from dump_analysis.wording import word

_ROW, _LINE = 21, 17
_CHARACTER = 7.3  # units of a character in the fixed-width face at 12
_MOST_PITCH = 44
_IDS = 44  # room for the findings at a row's end


def layer_map(where: Where, voice: Voice) -> Markup:
    """Both drawings; nothing where no boundary lies in a layer."""
    if where.wide is None or where.narrow is None:
        return Markup("")
    label = voice.say(word("alt_map", answer=where.answer))
    return pair(_wide(where.wide, label, voice), _narrow(where.narrow, label), "map")


def _wide(grid: Grid, label: str, voice: Voice) -> Markup:
    longest = max(len(short(place.name, 24)) for place in grid.places)
    left = max(70, longest * _CHARACTER + 16)
    pitch = min(_MOST_PITCH, (WIDE - _IDS - left) / len(grid.columns))
    top = 26
    bottom = top + _ROW * len(grid.places)
    across = [left + (at + 0.5) * pitch for at in range(len(grid.columns))]
    right = left + pitch * len(grid.columns)
    body = [text(0, 14, voice.say(word("col_layer"))), *_axis(grid, across, pitch)]
    points: dict[State, list[tuple[float, float]]] = {}
    for row, place in enumerate(grid.places):
        middle = top + _ROW * (row + 0.5)
        words = short(place.name, 60).replace(".*", ". ")  # the table knows experts.0.out and so on: two words of it find them all
        target = f"table?q={quote(words, safe='')}"
        body.append(link(target, [text(0, middle + 4.2, short(place.name, 24), "mono")]))
        for state, x in zip(place.states, across, strict=True):
            if state is not None:
                points.setdefault(state, []).append((x, middle))
        if place.findings:
            body.append(_ids(place.findings, right + 10, middle + 4.2, State.FAULT in place.states))
        if place.ends_attention:
            body.append(path("grid", f"M0 {top + _ROW * (row + 1)}H{right:.1f}"))
    size = min(10.0, max(4.0, pitch - 1.75))
    for column, ids in grid.marked:
        body.append(rect("col", across[column] - pitch / 2 + 0.5, top - 1, pitch - 1, bottom - top + 2, 4))
        body.append(to_finding(ids.split(" ")[0], [text(across[column], bottom + 15, ids, "b", to="middle")]))
    body.append(_sized(points, size))
    return svg(WIDE, bottom + (20 if grid.marked else 4), label, body, linked=True)


def _sized(points: dict[State, list[tuple[float, float]]], size: float) -> Markup:
    """The marks in a group that tells the page how large discs are."""
    kind = "g10" if size > 8 else "g7" if size > 5.5 else "g5"
    return Markup('<g class="{}">{}</g>').format(kind, marks(points, 10 if kind == "g10" else 7 if kind == "g7" else 5))


def _ids(findings: tuple[str, ...], x: float, y: float, has_fault: bool) -> Markup:
    first, more = findings[0], len(findings) - 1
    return to_finding(first, [text(x, y, first + (f" +{more}" if more else ""), "b" if has_fault else "s")])


def _axis(grid: Grid, across: list[float], pitch: float) -> list[Markup]:
    """Labels of layers; those of outlined columns stand in any case, and push their neighbours away."""
    step = every(len(across), pitch, WIDE)
    outlined = {column for column, _ in grid.marked}
    wanted = [at for at in range(0, len(across), step) if at in outlined or all(abs(at - one) * pitch >= 30 for one in outlined)]
    return [
        text(across[at], 14, grid.columns[at].label, "b" if at in outlined else "s", to="middle") for at in sorted({*wanted, *outlined})
    ]


def _narrow(grid: Grid, label: str) -> Markup:
    names = [short(place.name.removesuffix(".out"), 16) for place in grid.places]
    left = 14 + 6.8 * max(len(column.label) for column in grid.columns)
    top = 12 + _CHARACTER * max(map(len, names))
    pitch = min(30.0, (NARROW - left) / len(names))
    across = [left + (at + 0.5) * pitch for at in range(len(names))]
    body = [turned(x + 4, top - 6, name) for x, name in zip(across, names, strict=True)]
    marked = dict(grid.marked)
    points: dict[State, list[tuple[float, float]]] = {}
    for row, column in enumerate(grid.columns):
        middle = top + _LINE * (row + 0.5)
        body.append(text(left - 8, middle + 4, column.label, "b" if row in marked else "s", to="end"))
        for place, x in zip(grid.places, across, strict=True):
            if (state := place.states[row]) is not None:
                points.setdefault(state, []).append((x, middle))
        if row in marked:
            body.append(rect("col", left - 2, middle - _LINE / 2, pitch * len(names) + 1, _LINE, 4))
    body.append(_sized(points, min(10.0, pitch - 1.75)))
    return svg(NARROW, top + _LINE * len(grid.columns) + 4, label, body, linked=False)
