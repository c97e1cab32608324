"""Findings over layers: a bar for a fault, a disc a layer for rounding; and the shares of all boundaries by state."""

from collections.abc import Sequence

from markupsafe import Markup

from dump_analysis.report.charts.svg import NARROW, WIDE, every, link, marks, pair, path, rect, svg, text, to_finding
from dump_analysis.report.layers import Life
from dump_analysis.report.said import Voice, count, ranges, short
from dump_analysis.report.states import State
from dump_analysis.report.whereabouts import state_name
from dump_analysis.wording import word

MOST_ROWS = 8
_ROW, _TIGHT = 27, 12  # below a pitch of 12, discs of neighbouring layers would touch: they become a bar
_LEAST = 6  # units of a share that is not zero


def strip(lives: Sequence[Life], layers: Sequence[int], voice: Voice) -> Markup:
    """The chart; nothing where there is no finding or no layer."""
    if not lives or not layers:
        return Markup("")
    said = [_said(life, voice) for life in lives[:MOST_ROWS]]
    label = voice.say(word("alt_strip", list=("；" if voice.is_chinese else "; ").join(said)))
    return pair(*(_drawn(lives, layers, width, label, voice) for width in (WIDE, NARROW)))


def _said(life: Life, voice: Voice) -> str:
    where = voice.say(word("at_layers", layers=ranges(life.layers))) if life.layers else voice.say(word("alt_no_layer"))
    return voice.say(word("alt_strip_one", id=life.finding, state=state_name(life.state, voice), where=where))


def _drawn(lives: Sequence[Life], layers: Sequence[int], width: int, label: str, voice: Voice) -> Markup:
    left, right = (196, width - 4) if width == WIDE else (36, width - 4)
    pitch = (right - left) / len(layers)
    shown = lives[:MOST_ROWS]
    more = len(lives) - len(shown)
    bottom = 4 + _ROW * (len(shown) + bool(more))
    step = every(len(layers), pitch, width)
    ticks = range(0, len(layers), step)
    body = [path("grid", "".join(f"M{left + at * pitch:.1f} 2V{bottom}" for at in [*ticks, len(layers)]))]
    body += [_row(life, at, layers, (left, pitch), width, voice) for at, life in enumerate(shown)]
    if more:
        body.append(link("findings", [text(0, 4 + _ROW * len(shown) + 17, voice.say(word("alt_more_rows", m=count(more))))]))
    body.append(text(0, bottom + 16, voice.say(word("col_layer"))))
    body += [text(left + (at + 0.5) * pitch, bottom + 16, str(layers[at]), to="middle") for at in ticks]
    return svg(width, bottom + 22, label, body, linked=True)


def _row(life: Life, at: int, layers: Sequence[int], box: tuple[float, float], width: int, voice: Voice) -> Markup:
    left, pitch = box
    top = 4 + _ROW * at
    middle = top + _ROW / 2
    inner = [rect("hit", 0, top, width, _ROW), text(0, middle + 4.2, short(life.finding, 5), "b")]
    if width == WIDE:
        inner.append(text(40, middle + 4.2, life.label))
    inside = [place for place, layer in enumerate(layers) if layer in set(life.layers)]
    if not inside:
        inner.append(text(left + 4, middle + 4.2, voice.say(word("where_outside_layers"))))
    elif life.state is State.FAULT or pitch < _TIGHT:
        kind, height = ("f", 15) if life.state is State.FAULT else ("rr" if life.state is State.ROUNDING else "ro", 4)
        inner += [
            rect(kind, left + first * pitch + 1, middle - height / 2, max(_LEAST, (last - first + 1) * pitch - 2), height, 2)
            for first, last in _runs(inside)
        ]
    else:
        inner.append(marks({life.state: [(left + (place + 0.5) * pitch, middle) for place in inside]}, 10))
    return to_finding(life.finding, inner)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbouring columns as one."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and place == found[-1][1] + 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


# --- tally ---


def tally(counts: Sequence[tuple[State, int]], voice: Voice) -> Markup:
    """Shares of all boundaries; a state with any is at least six units wide, so that one is seen."""
    listed = voice.join(f"{count(number)} {state_name(state, voice)}" for state, number in counts if number)
    label = voice.say(word("alt_tally", list=listed))
    if not any(number for _, number in counts):
        return Markup("")
    return pair(*(_bar(counts, width, label) for width in (WIDE, NARROW)))


_TONES = {State.EXACT: "tx", State.FAULT: "tf", State.OPEN: "th", State.ROUNDING: "tr", State.CARRIED: "tm", State.UNCOMPARED: "to"}


def _bar(counts: Sequence[tuple[State, int]], width: int, label: str) -> Markup:
    present = [(state, number) for state, number in counts if number]
    room = width - 2 * (len(present) - 1)
    whole = sum(number for _, number in present)
    small = [number for _, number in present if number * room / whole < _LEAST]
    rest, left = room - _LEAST * len(small), whole - sum(small)
    body, at = [], 0.0
    for state, number in present:
        wide = _LEAST if number in small and number * room / whole < _LEAST else number * rest / left
        inset = 0.5 if state is State.UNCOMPARED else 0
        body.append(rect(_TONES[state], at + inset, inset, wide - 2 * inset, 12 - 2 * inset, 2))
        at += wide + 2
    return svg(width, 12, label, body, linked=False)
