"""Pieces of SVG: numbers in a fixed form, every string escaped, marks of one state as one path."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from dump_analysis.report.markup import anchor
from dump_analysis.report.said import visible
from dump_analysis.report.states import State

WIDE, NARROW = 880, 350
_LABEL_ROOM = {WIDE: 34, NARROW: 30}  # between labels of an axis


def n(value: float) -> str:
    """A coordinate: one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def svg(width: int, height: float, label: str, body: Iterable[Markup], *, linked: bool) -> Markup:
    """A drawing; ``linked``: it holds links, so it is a group and not one image."""
    role = "group" if linked else "img"
    inner = Markup("").join(body)
    return Markup('<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="{role}" aria-label="{label}">{inner}</svg>').format(
        w=width, h=n(height), role=role, label=visible(label), inner=inner
    )


def text(x: float, y: float, shown: str, kind: str = "s", *, to: str = "start") -> Markup:
    """A text that stands from ``x`` on, ends there, or is centred on it (``to``: start, end, middle)."""
    where = "" if to == "start" else f' text-anchor="{to}"'
    return Markup('<text x="{}" y="{}"{} class="{}">{}</text>').format(n(x), n(y), Markup(where), kind, visible(shown))


def turned(x: float, y: float, shown: str) -> Markup:
    """A text that reads upwards."""
    return Markup('<text class="mono" transform="translate({} {}) rotate(-90)">{}</text>').format(n(x), n(y), visible(shown))


def path(kind: str, data: str) -> Markup:
    """A path of one class; nothing where it has no data."""
    return Markup('<path class="{}" d="{}"/>').format(kind, Markup(data)) if data else Markup("")


def rect(kind: str, x: float, y: float, width: float, height: float, radius: float = 0) -> Markup:
    """A rectangle."""
    round_ = f' rx="{n(radius)}"' if radius else ""
    return Markup('<rect class="{}"{} x="{}" y="{}" width="{}" height="{}"/>').format(kind, Markup(round_), n(x), n(y), n(width), n(height))


def link(target: str, inner: Iterable[Markup]) -> Markup:
    """A link to a part of the page."""
    return Markup('<a href="#{}">{}</a>').format(target, Markup("").join(inner))


def to_finding(finding: str, inner: Iterable[Markup]) -> Markup:
    """A link to a finding's card or row."""
    return link(anchor(finding), inner)


def marks(points: dict[State, list[tuple[float, float]]], size: float) -> Markup:
    """The marks of a map, one path a state; ``size``: the side of a square. A zero-length square cap would vanish in PDF."""
    half = size / 2
    dashes = "".join(f"M{n(x - half + 1)} {n(y)}h{n(size - 2)}" for x, y in points.get(State.CARRIED, []))
    squares = "".join(f"M{n(x - half)} {n(y - half)}h{n(size)}v{n(size)}h-{n(size)}z" for x, y in points.get(State.FAULT, []))
    halves = "".join(f"M{n(x)} {n(y - half)}a{n(half)} {n(half)} 0 0 0 0 {n(size)}z" for x, y in points.get(State.OPEN, []))
    rings = _dots(points.get(State.UNCOMPARED, []))
    open_ = _dots(points.get(State.OPEN, []))
    kinds = [
        ("pm", dashes), ("po", rings), ("po2", rings), ("px", _dots(points.get(State.EXACT, []))),
        ("ph", open_), ("ph2", open_), ("ph3", halves), ("pr", _dots(points.get(State.ROUNDING, []))), ("pf", squares),
    ]  # fmt: skip
    return Markup("").join(path(kind, data) for kind, data in kinds)


def _dots(points: Sequence[tuple[float, float]]) -> str:
    """Zero-length subpaths that round caps make discs of; those of one row move on from each other."""
    data, before = "", None
    for x, y in points:
        if before is not None and before[1] == y:
            data += f"m{n(x - before[0])} 0h0"
            before = (before[0] + round(x - before[0], 1), y)
        else:
            data += f"M{n(x)} {n(y)}h0"
            before = (round(x, 1), y)
    return data


def every(count: int, pitch: float, width: int) -> int:
    """Every how many columns an axis is labelled."""
    step = 1
    while step < count and step * pitch < _LABEL_ROOM[width]:
        step *= 2
    return step


def pair(wide: Markup, narrow: Markup, kind: str = "") -> Markup:
    """Both drawings of a chart; the page shows the one that fits."""
    return Markup('<figure class="chart {}"><div class="w">{}</div><div class="n">{}</div></figure>').format(kind, wide, narrow)


def safe(shown: str) -> Markup:
    """A string as HTML text."""
    return escape(visible(shown))
