"""What rounds have shown, as a conclusion tells it: findings confirmed, settled, contradicted and new, and each round in a line."""

from collections.abc import Mapping, Sequence

import msgspec

from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import Modules, Worded
from dump_analysis.artefacts.conclusion import Character, Confirmation, Finding, RoundSummary, Size
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from dump_analysis.artefacts.round_result import Basis, Downstream, Local
from dump_analysis.boundaries import layer_of, made_by, place_of
from dump_analysis.replay.places import module_of
from dump_analysis.rounds.character import by_looks
from dump_analysis.rounds.history import Round
from dump_analysis.rounds.open_points import sources
from dump_analysis.wording import word

Seen = Local | Downstream
_BY: dict[Basis, Confirmation] = {"weights": "weights", "fingerprint": "fingerprint", "replay": "replay"}


class Shown:
    """The boundaries that effective rounds saw on equal inputs: which differed, which did not, and in which rounds."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.apart: dict[str, list[tuple[int, Seen]]] = {}
        self.equal: dict[str, list[int]] = {}
        for one in rounds:
            for seen in one.judged:
                if seen.inputs == "equal" and seen.status != "EXACT":
                    self.apart.setdefault(seen.boundary, []).append((one.number, seen))
                elif seen.inputs == "equal":
                    self.equal.setdefault(seen.boundary, []).append(one.number)

    def of(self, finding: Finding) -> list[str]:
        """The boundaries of a finding, or that its weights make, that were seen on equal inputs."""
        names = dict.fromkeys((*finding.boundaries, *map(made_by, finding.boundaries)))
        return [name for name in names if name in self.apart or name in self.equal]


def settled(replay: ReplayResults | None, rounds: Sequence[Round]) -> ReplayResults | None:
    """Replay's verdicts, with what it left unknown and rounds have seen equal, bit for bit from equal inputs, as the same."""
    shown = Shown(rounds)
    if replay is None or not shown.equal:
        return replay
    equal = {module_of(name): numbers for name, numbers in shown.equal.items() if name not in shown.apart}
    modules = [_as_same(one, equal[one.module]) if one.verdict == "unknown" and one.module in equal else one for one in replay.modules]
    return msgspec.structs.replace(replay, modules=modules)


def _as_same(module: ModuleReplay, numbers: Sequence[int]) -> ModuleReplay:
    told = word("round_same", rounds=list(numbers), module=module.module)
    return msgspec.structs.replace(module, verdict="same", evidence=[told, *module.evidence], would_decide=[])


def with_rounds(
    findings: Sequence[Finding], rounds: Sequence[Round], results: BoundaryResults, modules: Mapping[str, Modules]
) -> list[Finding]:
    """The findings in the order of their boundaries, numbered anew where rounds add some.

    A difference that nothing had judged, and that rounds show to be carried in, is none.
    """
    shown = Shown(rounds)
    if not shown.apart and not shown.equal:
        return list(findings)
    compared = {row.boundary: row for row in results.boundaries}
    kept = [made for finding in findings if (made := _shown(finding, shown, compared)) is not None]
    told = {name for finding in kept for name in (*finding.boundaries, *map(made_by, finding.boundaries))}
    kept += [_new(names, shown, modules) for names in _together([name for name in shown.apart if name not in told], shown, compared)]
    places = {name: at for at, name in enumerate(compared)}
    kept.sort(key=lambda finding: places.get(finding.boundary, places.get(made_by(finding.boundary), len(places))))
    return [msgspec.structs.replace(finding, id=f"F{number}") for number, finding in enumerate(kept, 1)]


def _together(names: Sequence[str], shown: Shown, compared: Mapping[str, BoundaryResult]) -> list[list[str]]:
    """Boundaries that may have one cause: made from the same values, and of one place in all layers."""
    known = dict(compared)
    ordered = sorted((name for name in names if name in known), key=lambda name: known[name].order)
    groups: dict[object, list[str]] = {}
    for name in ordered:
        place = place_of(name)
        everywhere = [other for other in known if place_of(other) == place and (other in shown.apart or other in shown.equal)]
        in_all = len(everywhere) > 1 and all(other in ordered and _kind(other, shown) == _kind(name, shown) for other in everywhere)
        groups.setdefault(place if in_all else frozenset(sources(name, known)), []).append(name)
    return list(groups.values())


def _kind(name: str, shown: Shown) -> Character | None:
    return shown.apart[name][-1][1].character if name in shown.apart else None


def _shown(finding: Finding, shown: Shown, compared: Mapping[str, BoundaryResult]) -> Finding | None:
    """A finding with what rounds showed of it; None where they show that its difference is carried in."""
    at = shown.of(finding)
    apart = [name for name in at if name in shown.apart]
    if apart:
        return _confirmed(finding, apart, shown)
    if not at or not {finding.boundary, made_by(finding.boundary)} & set(at):
        return _from_equal_inputs(finding, compared)
    if finding.character == "unknown" and set(finding.boundaries) <= set(at):
        return None
    if finding.character == "logic" and "replay" in finding.confirmed_by:
        numbers = sorted({number for name in at for number in shown.equal[name]})
        told = word("round_contradicts", rounds=numbers, boundary=finding.boundary, finding=finding.cause)
        evidence = [told, *finding.evidence]
        return msgspec.structs.replace(finding, character="unknown", cause=told, evidence=evidence, rounds=numbers, fix=None)
    return finding


def _from_equal_inputs(finding: Finding, compared: Mapping[str, BoundaryResult]) -> Finding:
    """What nothing has judged, by its looks where all that it is made from is EXACT in the pair itself: no round need show that again."""
    row, known = compared.get(finding.boundary), dict(compared)
    if finding.character != "unknown" or row is None or any(known[one].status != "EXACT" for one in sources(finding.boundary, known)):
        return finding
    judged = by_looks(row, [])
    if judged.character is None or judged.basis is None:
        return finding
    seen = Downstream(row.boundary, row.status, judged.character, row.rel_l2, judged.basis, "equal", judged.evidence)
    by = [*finding.confirmed_by, *([] if "fingerprint" in finding.confirmed_by else ["fingerprint"])]
    evidence = [*finding.evidence, *judged.evidence]
    return msgspec.structs.replace(
        finding, character=judged.character, cause=_cause([row.boundary], seen), evidence=evidence, confirmed_by=by
    )


def _confirmed(finding: Finding, apart: Sequence[str], shown: Shown) -> Finding:
    numbers = sorted({number for name in apart for number, _ in shown.apart[name]})
    first = shown.apart[apart[0]][-1][1]
    by = list(finding.confirmed_by)
    character: Character = finding.character
    if character == "unknown" and first.character is not None:
        character = first.character
        by += [_BY[first.basis]] if first.basis in _BY and _BY[first.basis] not in by else []
    told = [_saw(apart[0], numbers, first), *(first.evidence if finding.character == "unknown" else [])]
    cause = finding.cause if finding.character != "unknown" or character == "unknown" else _cause(apart, first)
    return msgspec.structs.replace(
        finding, character=character, cause=cause, evidence=[*finding.evidence, *told], rounds=numbers, confirmed_by=[*by, "round"]
    )


def _saw(boundary: str, numbers: Sequence[int], seen: Seen) -> Worded:
    return word("round_confirms", rounds=list(numbers), boundary=boundary, rel=seen.rel_l2 or 0.0)


def _cause(names: Sequence[str], seen: Seen) -> Worded:
    kind = seen.character or "unknown"
    how = word("judged_by_floor") if seen.basis == "noise_floor" else word("judged_by_weights") if seen.basis == "weights" else None
    if kind == "unknown":
        return word("round_cause_unknown", boundaries=list(names))
    how = how or word("judged_by_looks")
    return word("round_cause_logic" if kind == "logic" else "round_cause_rounding", boundaries=list(names), by=how)


def _new(names: Sequence[str], shown: Shown, modules: Mapping[str, Modules]) -> Finding:
    """A finding of boundaries that differ from equal inputs and that nothing else tells of."""
    seen = [shown.apart[name][-1][1] for name in names]
    grave = next((one for one in seen if one.character == "logic"), seen[0])
    numbers = sorted({number for name in names for number, _ in shown.apart[name]})
    by: list[Confirmation] = ["round", *([_BY[grave.basis]] if grave.basis in _BY else [])]
    return Finding(
        id="",
        boundary=names[0],
        layers=sorted({layer for layer in map(layer_of, names) if layer is not None}),
        boundaries=list(names),
        module=modules.get(names[0], Modules(None, None)),
        character=grave.character or "unknown",
        side="both" if grave.character == "rounding" else "unknown",
        cause=_cause(names, grave),
        size=Size(None, None),
        evidence=[_saw(name, numbers, one) for name, one in zip(names, seen, strict=True)] + list(grave.evidence),
        ruled_out=[],
        chain=[],
        rounds=numbers,
        confirmed_by=by,
        resolvable="no" if grave.character == "rounding" else "unknown",
        fix=None,
    )


def summaries(rounds: Sequence[Round]) -> list[RoundSummary]:
    """Each round that was planned, judged or not."""
    return [_summary(one) for one in rounds]


def _summary(one: Round) -> RoundSummary:
    made, result = one.instruction, one.result
    isolated = made.isolate_boundary.boundary if made.isolate_boundary is not None else None
    differ = [seen.boundary for seen in one.judged if seen.inputs == "equal" and seen.status != "EXACT"]
    against = result.contradicted if result is not None else []
    return RoundSummary(
        round=one.number,
        kind=made.kind,
        target_side=made.target_side,
        isolated=isolated,
        effective=result.effective if result is not None else None,
        why_not=result.why_not if result is not None else None,
        differ=differ,
        contradicted=[word("round_disagrees", boundary=each.boundary, replay=each.replay, round=each.round) for each in against],
        stop=result.stop if result is not None else None,
    )
