"""How a difference grows: the residual stream by layer, what each layer adds by itself, and what rounds measured."""

import math
from typing import NamedTuple

from dump_analysis import chain
from dump_analysis.boundaries import layer_of
from dump_analysis.report.effects import end_of
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.layers import lived_in
from dump_analysis.report.said import Voice, figure
from dump_analysis.report.states import State, of_finding
from dump_analysis.wording import word


class Added(NamedTuple):
    """The largest that a finding adds in a layer from equal inputs."""

    layer: int
    local: float
    finding: str
    state: State


class Line(NamedTuple):
    """A line over layers; ``end``: its value at the last boundary of the model, None where that was not measured."""

    label: str
    points: tuple[tuple[int, float], ...]
    end: float | None


class Growth(NamedTuple):
    """``line``: between the sides; zero stands for exact. ``end_name``: the boundary behind the layers, empty where there is none."""

    layers: tuple[int, ...]
    line: Line
    dashed: tuple[Line, ...]
    added: tuple[Added, ...]
    end_name: str
    answer: str
    notes: tuple[str, ...]
    largest: Added | None


def growth(evidence: Evidence, voice: Voice) -> Growth | None:
    """The growth; None where fewer than two layers differ."""
    links = chain.growth(evidence.results.boundaries)
    rising = [link for link in links if link.rel_l2 > 0]
    if len(rising) < 2:
        return None
    last = end_of(evidence)
    end = last if last is not None and layer_of(last.boundary) is None and last.rel_l2 > 0 else None
    points = tuple((link.layer, link.rel_l2) for link in links)
    line = Line(voice.say(word("col_difference")), points, end.rel_l2 if end else None)
    added, dashed = _added(evidence), _rounds(evidence, voice)
    high, name = (end.rel_l2, end.boundary) if end else (rising[-1].rel_l2, rising[-1].boundary)
    told = {"low": figure(rising[0].rel_l2), "first": rising[0].layer, "high": figure(high), "end": name}
    most = max(added, key=lambda one: one.local, default=None)
    layer = _steepest(rising)
    ids = [one.id for one in evidence.conclusion.findings if one.character == "logic" and layer in lived_in(one)]
    answer = word("growth_line_of", ids=voice.join(ids), layer=layer, **told) if ids else word("growth_line", layer=layer, **told)
    notes = [word("growth_note")]
    notes += [word("growth_note_local")] if added else []
    notes += [word("growth_note_zero")] if any(value == 0 for _, value in points) else []
    notes += [word("growth_note_round")] if dashed else []
    return Growth(
        tuple(link.layer for link in links),
        line,
        dashed,
        added,
        end.boundary if end else "",
        voice.say(answer),
        tuple(map(voice.say, notes)),
        most if most is not None and most.state is State.FAULT else None,
    )


def _steepest(links: list[chain.Link]) -> int:
    """The layer after which the difference is larger by most than after the one before."""
    before = [0.0, *(link.rel_l2 for link in links)]
    return max(zip(links, before, strict=False), key=lambda one: one[0].rel_l2 - one[1])[0].layer


def _added(evidence: Evidence) -> tuple[Added, ...]:
    found: dict[int, Added] = {}
    for finding in evidence.conclusion.findings:
        for link in finding.chain:
            if link.local and (link.layer not in found or link.local > found[link.layer].local):
                found[link.layer] = Added(link.layer, link.local, finding.id, of_finding(finding))
    return tuple(found[layer] for layer in sorted(found))


def _rounds(evidence: Evidence, voice: Voice) -> tuple[Line, ...]:
    """The residual stream behind the cut of each round that took effect."""
    lines = []
    for one in evidence.rounds:
        if one.result is None or not one.result.effective:
            continue
        measured = [(row.boundary, row.rel_l2) for row in one.result.downstream if row.rel_l2 is not None]
        stream = [(layer, value) for boundary, value in measured if _is_stream(boundary) and (layer := layer_of(boundary)) is not None]
        ends = [value for boundary, value in measured if boundary == "logits"]
        if stream or ends:
            lines.append(Line(voice.say(word("round_label", n=one.number)), tuple(stream), ends[-1] if ends and ends[-1] > 0 else None))
    return tuple(lines)


def _is_stream(boundary: str) -> bool:
    return boundary.endswith(".resid_mlp")


def decades(found: Growth) -> list[tuple[str, int]]:
    """Each power of ten with the first layer whose difference reaches it: growth in figures."""
    values = [value for _, value in found.line.points if value > 0]
    low, high = math.floor(math.log10(min(values))), math.floor(math.log10(max(values)))
    rows = []
    for power in range(low, high + 1):
        layer = next((layer for layer, value in found.line.points if value >= 10.0**power), None)
        if layer is not None:
            rows.append((f"1e{power}", layer))
    return rows
