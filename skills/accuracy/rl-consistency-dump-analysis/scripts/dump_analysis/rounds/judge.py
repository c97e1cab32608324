"""What a round has shown: each boundary behind the override on equal inputs, what that confirms, and whether the loop ends."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from dump_analysis import gate
from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult
from dump_analysis.artefacts.common import FileDigest, Worded
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.round_result import Contradiction, Downstream, Inputs, Isolation, Local, Next, RoundResult, Stop
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.artefacts.stub_instruction import StubInstruction
from dump_analysis.boundaries import INPUTS, made_by
from dump_analysis.replay.places import module_of
from dump_analysis.rounds.character import Evidence, Judged, character
from dump_analysis.rounds.feeds import Feeds
from dump_analysis.rounds.history import equal_inputs, forced_into, seats_in
from dump_analysis.rounds.observed import Seat, seats_of
from dump_analysis.rounds.open_points import Ground, carried_in, sources_of_all
from dump_analysis.rounds.reach import Reach
from dump_analysis.rounds.values import of_side
from dump_analysis.sides import Side
from dump_analysis.wording import word


class View(NamedTuple):
    """A round's dump beside the source. ``seen``: the boundaries that still say how they came out; ``unseen``: those that it hides.

    ``made_from``: what each boundary of the target is made from, seen or not. ``overridden``: the arguments that were; ``cut``: the order
    of the isolated boundary, None in a forced round.
    """

    seen: dict[str, BoundaryResult]
    unseen: set[str]
    overridden: frozenset[Seat]
    feeds: Feeds
    reach: Reach
    made_from: dict[str, set[str]]
    cut: int | None


def not_effective(instruction: StubInstruction, digest: str, why: Worded) -> RoundResult:
    """A round that proves nothing: nothing downstream is judged."""
    return RoundResult(
        round=instruction.round,
        instruction=FileDigest(digest),
        target_side=instruction.target_side,
        kind=instruction.kind,
        effective=False,
        why_not=why,
        isolated=None,
        local=[],
        downstream=[],
        confirmed=[],
        contradicted=[],
        next=None,
        stop="evidence_missing",
    )


def judge(
    instruction: StubInstruction, digest: str, feeds: Feeds, new: Side, ground: Ground, known: Evidence, *, other_side: bool = False
) -> RoundResult:
    """The result of an effective round. ``new``: the target dumped again; ``ground.rounds``: the rounds before this one.

    ``other_side``: the other side can be overridden too, and not all forced rounds that it may take are among the rounds.
    """
    view = _view(instruction, feeds, new)
    isolated = _isolated(instruction, view)
    if isolated is not None and isolated.status != "EXACT":
        why = word("why_not_isolated", boundary=isolated.boundary, status=isolated.status)
        return not_effective(instruction, digest, why)
    judged = {name: _of(row, view, known) for name, row in view.seen.items() if name not in INPUTS and _is_behind(row, view)}
    confirmed, contradicted = _findings(judged, ground, known)
    following, stop = _end(judged, view, ground, other_side=other_side)
    local = [_local(one) for one in judged.values()] if view.cut is None else []
    return RoundResult(
        round=instruction.round,
        instruction=FileDigest(digest),
        target_side=instruction.target_side,
        kind=instruction.kind,
        effective=True,
        why_not=None,
        isolated=isolated,
        local=local,
        downstream=[] if view.cut is None else list(judged.values()),
        confirmed=confirmed,
        contradicted=contradicted,
        next=Next(following) if following is not None else None,
        stop=stop,
    )


# --- what was seen ---


def _view(instruction: StubInstruction, feeds: Feeds, new: Side) -> View:
    overridden = seats_in(instruction)
    hidden = {name for feed in feeds.feeds if feed.seat in overridden for name in feed.alone}
    rows = []
    for one in feeds.mapped.values():
        operand = of_side(one.pair, feeds.target_side)[0]
        if overridden & set(seats_of(one, feeds.target_side)):
            if one.boundary not in feeds.outputs:
                hidden.add(one.boundary)
                continue
            operand = feeds.outputs[one.boundary]
        row = one.pair.row
        train, infer = (operand, row.infer) if feeds.target_side == "train" else (row.train, operand)
        rows.append(Row(row.boundary, row.order, train, infer, row.basis, row.confidence, row.module, row.note))
    left, right = (new, feeds.source) if feeds.target_side == "train" else (feeds.source, new)
    compared, _ = gate.compare([row for row in rows if row.boundary not in hidden], [], left, right)
    isolated = instruction.isolate_boundary
    cut = feeds.mapped[isolated.boundary].order if isolated is not None and isolated.boundary in feeds.mapped else None
    seen = {row.boundary: row for row in compared if row.status == "EXACT" or row.status in DIVERGED}
    known = {name: seen.get(name) or BoundaryResult(name, one.order, "MISSING") for name, one in feeds.mapped.items()}
    return View(seen, hidden, overridden, feeds, Reach(feeds), sources_of_all(known), cut)


def _isolated(instruction: StubInstruction, view: View) -> Isolation | None:
    """What the isolated boundary is now: where the target made it before the override, what was given in its place, which is equal."""
    isolated = instruction.isolate_boundary
    if isolated is None:
        return None
    row = view.seen.get(isolated.boundary)
    if row is None:
        return Isolation(isolated.boundary, "EXACT")
    entries = {place.record.entry for place in of_side(view.feeds.mapped[isolated.boundary].pair, view.feeds.target_side)[1].places}
    made_after = any(entry in entries for entry, _ in view.overridden)
    return Isolation(isolated.boundary, row.status if made_after else "EXACT")


def _is_behind(row: BoundaryResult, view: View) -> bool:
    return view.cut is None or row.order > view.cut


# --- whether a difference is its own ---


def _of(row: BoundaryResult, view: View, known: Evidence) -> Downstream:
    inputs = _inputs(row.boundary, view)
    own = row.status != "EXACT" and (inputs == "equal" or known.verdict(row.boundary) in ("rounding", "logic"))
    judged = character(row, known) if own else Judged(None, None, [])
    return Downstream(
        row.boundary, row.status, judged.character, row.rel_l2 if row.status != "EXACT" else 0.0, judged.basis, inputs, judged.evidence
    )


def _inputs(boundary: str, view: View) -> Inputs:
    """Whether all that a value is made from was equal: overridden on its way there, or EXACT."""
    told: set[Inputs] = set()
    waiting, passed = [boundary], {boundary}
    while waiting:
        at = waiting.pop()
        for one in view.made_from[at]:
            if one in passed or _is_cut(one, at, view):
                continue
            passed.add(one)
            if one in view.unseen or one not in view.seen:
                told.add("unseen")
                waiting.append(one)
            elif view.seen[one].status != "EXACT":
                told.add("carried")
    return "carried" if "carried" in told else "unseen" if "unseen" in told else "equal"


def _is_cut(source: str, boundary: str, view: View) -> bool:
    """Whether a boundary gets the other side's value of a source."""
    if view.cut is not None:
        return view.feeds.mapped[source].order <= view.cut
    return view.reach.is_given(source, boundary, view.overridden)


def _local(one: Downstream) -> Local:
    return Local(module_of(one.boundary), one.boundary, one.status, one.character, one.rel_l2, one.basis, one.inputs, one.evidence)


# --- findings ---


def _findings(judged: Mapping[str, Downstream], ground: Ground, known: Evidence) -> tuple[list[str], list[Contradiction]]:
    equal = {name: one for name, one in judged.items() if one.inputs == "equal"}
    confirmed, contradicted = [], []
    for finding in ground.conclusion.findings:
        at = [equal[name] for name in dict.fromkeys((*map(made_by, finding.boundaries), *finding.boundaries)) if name in equal]
        if any(one.status != "EXACT" for one in at):
            confirmed.append(finding.id)
        elif at and finding.boundary in equal and _should_show(finding):
            contradicted.append(
                Contradiction(finding.id, finding.boundary, finding.cause, word("round_saw_equal", boundary=finding.boundary))
            )
    told = {name for finding in ground.conclusion.findings for name in (*finding.boundaries, *map(made_by, finding.boundaries))}
    for name, one in equal.items():
        if one.status != "EXACT" and one.character == "logic" and known.verdict(name) == "same" and name not in told:
            saw = word("round_saw_apart", boundary=name, rel=one.rel_l2 or 0.0)
            contradicted.append(Contradiction(None, name, word("replay_said_same", module=module_of(name)), saw))
    return confirmed, contradicted


def _should_show(finding: Finding) -> bool:
    """Whether a finding claims a difference that its module must make from any inputs: weights may lie where no token looks."""
    return finding.character == "logic" and "replay" in finding.confirmed_by


# --- the end ---


def _end(judged: Mapping[str, Downstream], view: View, ground: Ground, *, other_side: bool) -> tuple[str | None, Stop]:
    return _end_of_cut(judged, ground) if view.cut is not None else _end_of_forced(judged, view, ground, other_side=other_side)


def _end_of_cut(judged: Mapping[str, Downstream], ground: Ground) -> tuple[str | None, Stop]:
    """The end of a loop of cuts is reached where nothing is left unjudged, before this cut or behind it."""
    if not judged:
        return None, "evidence_missing"
    apart = [one for one in judged.values() if one.status != "EXACT"]
    grave = [one for one in apart if one.character in ("logic", "unknown")]
    if grave:
        return grave[0].boundary, "continue"
    seen = {*equal_inputs(ground.rounds), *(one.boundary for one in judged.values() if one.inputs == "equal")}
    left = [name for name in carried_in(ground) if name not in seen]
    if left:
        own = [one.boundary for one in apart if one.inputs == "equal"]
        return (own or left)[0], "continue"
    return None, "only_rounding" if apart else "all_exact"


def _end_of_forced(judged: Mapping[str, Downstream], view: View, ground: Ground, *, other_side: bool) -> tuple[str | None, Stop]:
    before = equal_inputs(ground.rounds)
    undecided = _undecided(judged, view, before, ground)
    if undecided:
        another_turn = any(feed.alone for feed in view.feeds.feeds) and not forced_into(ground.rounds, view.feeds.target_side)
        return (undecided[0], "continue") if another_turn or other_side else (None, "evidence_missing")
    every: Sequence[Local | Downstream] = [*before.values(), *judged.values()]
    characters = {one.character for one in every if one.status != "EXACT" and one.character is not None}
    if characters & {"logic", "unknown"}:
        return None, "all_listed"
    return None, "only_rounding" if characters else "all_exact"


def _undecided(judged: Mapping[str, Downstream], view: View, before: Collection[str], ground: Ground) -> list[str]:
    """Boundaries of which neither this round nor one before it, nor replay, tells whether they differ by themselves."""
    found = []
    for name, one in view.feeds.mapped.items():
        if name in INPUTS or name in before or ground.is_decided(name):
            continue
        row = judged.get(name)
        hidden = row is None and name in view.unseen and ground.compared[name].status in DIVERGED
        if hidden or (row is not None and row.status != "EXACT" and row.inputs != "equal"):
            found.append((one.order, name))
    return [name for _, name in sorted(found)]
