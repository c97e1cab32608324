"""Where the two sides part: the answer over the layer map, and what stands outside it."""

from collections.abc import Sequence

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.boundaries import layer_of
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.layers import Grid, lived_in, said_layers
from dump_analysis.report.said import Voice, count
from dump_analysis.report.states import IN_ORDER, Cell, State, grouped
from dump_analysis.wording import word

_NAMED = 3  # findings that the answer places
_PLACES = 3
_OUTSIDE = 8  # boundaries outside the layers that the note names


def state_name(state: State, voice: Voice) -> str:
    """A state in words."""
    told = {
        State.FAULT: word("state_fault"),
        State.ROUNDING: word("state_rounding"),
        State.OPEN: word("state_open"),
        State.CARRIED: word("state_carried"),
        State.UNCOMPARED: word("state_uncompared"),
        State.EXACT: word("state_exact"),
    }
    return voice.say(told[state])


def answer(evidence: Evidence, cells: Sequence[Cell], every_layer: Sequence[int], voice: Voice) -> str:
    """Where the first difference is and where the faults sit; without faults, where rounding is made first."""
    first = evidence.conclusion.first_divergence
    if all(row.status in GAPS for row in evidence.results.boundaries):
        return voice.say(word("where_not_run"))
    if first is None:
        return voice.say(word("where_nowhere"))
    ids = next((cell.findings for cell in cells if cell.boundary == first.boundary), ())
    start = word("where_at_fault", boundary=first.boundary, ids=voice.join(ids)) if ids else word("where_at", boundary=first.boundary)
    findings = evidence.conclusion.findings
    faults = [finding for finding in findings if finding.character == "logic"]
    shown = [_at(finding, every_layer, voice) for finding in (faults or grouped(findings))[:_NAMED]]
    if not shown:
        return voice.say(start)
    listed = voice.join(shown) if voice.is_chinese else "; ".join(shown)
    return voice.flow([voice.say(start), voice.say(word("where_faults", list=listed) if faults else word("where_later", list=listed))])


def _at(finding: Finding, every_layer: Sequence[int], voice: Voice) -> str:
    names = list(dict.fromkeys([finding.boundary, *finding.boundaries]))
    places = list(dict.fromkeys(name.split(".", 2)[2] if layer_of(name) is not None else name for name in names))
    told = (
        places if len(places) <= _PLACES else [*places[: _PLACES - 1], voice.say(word("detail_more", n=count(len(places) - _PLACES + 1)))]
    )
    layers = lived_in(finding)
    said = said_layers(layers, every_layer)
    if not layers:
        return voice.say(word("where_of_fault", id=finding.id, places=voice.join(told)))
    if len(layers) == 1:
        return voice.say(word("where_of_fault", id=finding.id, places=voice.join(names[:_PLACES])))
    if not said:
        return voice.say(word("where_of_fault_all", id=finding.id, places=voice.join(told)))
    return voice.say(word("where_of_fault_in", id=finding.id, places=voice.join(told), layers=said))


def notes(cells: Sequence[Cell], grid: Grid | None, voice: Voice) -> list[str]:
    """How to read the map, and what stands outside it."""
    told = [word("where_note")] if grid is not None else [word("where_no_layers")]
    if any(cell.state is State.OPEN for cell in cells):
        told.append(word("where_note_open"))
    if grid is not None and any(column.first != column.last for column in grid.columns):
        told.append(word("where_folded"))
    if grid is not None and grid.left_out:
        told.append(word("where_left_out", n=count(grid.left_out)))
    outside = [cell for cell in cells if cell.layer is None]
    named = []
    for state in IN_ORDER:
        names = [cell.boundary for cell in outside if cell.state is state]
        if names:
            shown = names[:_OUTSIDE]
            shown += [voice.say(word("detail_more", n=count(len(names) - _OUTSIDE)))] if len(names) > _OUTSIDE else []
            named.append(voice.say(word("where_outside_one", state=state_name(state, voice), boundaries=voice.join(shown))))
    if named:
        told.append(word("where_outside", list=("；" if voice.is_chinese else "; ").join(named)))
    return [voice.say(sentence) for sentence in told]
