"""The assembly plan of a side: stages one after the other, ranks of a stage joined, dump steps of one prompt row after row."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from dump_analysis.artefacts.assembly_plan import Assembled, Basis, Disagreement, Parallel, PartAt, SidePlan, UnitAt, as_steps
from dump_analysis.artefacts.common import SideLabel, Worded
from dump_analysis.mapping.ranks.copies import parting
from dump_analysis.mapping.ranks.members import Chosen, Member, Step, choose, members_of
from dump_analysis.mapping.ranks.order import in_order, votes_of
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.mapping.ranks.shards import Held, Shards, shards_of, token_axis
from dump_analysis.mapping.ranks.stages import Chain, Copies, Rank, chained, opened, renamings, stages_of, without_copies
from dump_analysis.mapping.recorded.nodes import Window
from dump_analysis.sides import Side
from dump_analysis.tensors import Tensor
from dump_analysis.wording import word


class Proposed(NamedTuple):
    """The plan of a side and what people should know of it.

    ``by_step``: a plan for each dump step alone, where tensors are cut by ranks and by steps at once, which no flat operand joins.
    """

    plan: SidePlan
    remarks: list[Worded]
    by_step: list[SidePlan]


def plan_sides(train: Side, infer: Side, reference: Reference | None = None) -> tuple[Proposed | None, Proposed | None]:
    """How the units of each side are put together; None for a side of one unit. ``reference``: a checkpoint that holds every matrix whole.

    Raises DumpError where a side recorded nothing, or where no ids of the two sides agree.
    """
    counts = [sum(bool(unit.entries) for unit in side.units) for side in (train, infer)]
    if max(counts) < 2:
        return None, None
    (left, told), (right, also) = members_of(train), members_of(infer)
    members = left, right
    for side, found in zip((train, infer), members, strict=True):
        if len(found) > 1 and not any(member.integers.ids for member in found):
            why = f"the {side.label} dump records no token ids, by which its {len(found)} units would be told apart"
            raise DumpError(f"Cannot propose a mapping: {why}. Dump the embedding's input too, or hand one unit.")
    chosen = choose(*members)
    if chosen is None:
        where = " and ".join(f"{len(each)} units of {side.label}" for each, side in zip(members, (train, infer), strict=True))
        raise DumpError(
            f"Cannot propose a mapping: in none of {where} do half of the token ids agree with the other side. "
            "Dump one prompt, tokenised once, on both."
        )
    # Where both sides are cut, one is laid out as the other is.
    seen = chosen[1].main.members, chosen[0].main.members if counts[0] < 2 else []
    plans = [
        _proposed(side, found, others, reference) if count > 1 else None
        for side, found, others, count in zip((train, infer), chosen, seen, counts, strict=True)
    ]
    for plan, remarks in zip(plans, (told, also), strict=True):
        if plan is not None:
            plan.remarks.extend(remarks)
    return plans[0], plans[1]


def _proposed(side: Side, chosen: Chosen, others: Sequence[Member], reference: Reference | None) -> Proposed:
    steps = [_Step(step, others, reference) for step in chosen.steps]
    main = max(steps, key=lambda step: step.step.matches)
    tensors: dict[str, Assembled] = {}
    unplaced: list[str] = []
    twice: list[str] = []
    disagree: list[Disagreement] = []
    unread: list[str] = []
    for step in steps:
        unplaced += [name for shards in step.shards for name in shards.unplaced]
        for found in _disagreements(step):
            if isinstance(found, str):
                unread.append(found)
            else:
                disagree.append(found)
    for stage, renamed in enumerate(main.renamed):
        for name, held in main.shards[stage].held.items():
            made = _assembled(steps, main, stage, name, held)
            if made is None:
                twice.append(name)
            else:
                whole = _renamed(name, renamed)
                tensors[whole] = Assembled(name=whole, how=made.how, axis=made.axis, order=made.order, steps=made.steps)
    remarks = [*chosen.remarks, *_stage_remarks(side, main, reference)]
    unplaced = list(dict.fromkeys(unplaced))
    remarks += [word("unplaced", side=side.label, n=len(unplaced), names=unplaced[:6])] if unplaced else []
    remarks += [word("cut_twice", side=side.label, n=len(twice))] if twice else []
    remarks += [word("copies_unread", side=side.label, n=len(unread), names=unread[:6])] if unread else []
    remarks += [word("ranks_disagree", side=side.label, names=[one.name for one in disagree][:6], n=len(disagree))] if disagree else []
    units = [UnitAt(step=rank.member.unit.place.step, rank=rank.number) for step in [main, *steps] for rank in step.ranks()]
    plan = SidePlan(
        dump=SideLabel(side.label, side.digest),
        units=list(dict.fromkeys(units)),
        parallel=_parallel(main),
        tensors=list(tensors.values()),
        basis=_basis(main, steps, reference),
        disagree=disagree,
    )
    by_step = [_proposed(side, Chosen([step.step], [], []), others, reference).plan for step in steps] if twice else []
    return Proposed(plan, remarks, by_step)


class _Step:
    """A dump step with its ranks as stages and how each stage holds its tensors."""

    def __init__(self, step: Step, others: Sequence[Member], reference: Reference | None) -> None:
        self.step = step
        ranks = opened(step)
        chain = chained(stages_of(ranks)) if step.pieces is None else Chain([ranks], [])
        self.loose = [rank.member.place for stage in chain.loose for rank in stage]
        found = [without_copies(stage) if step.pieces is None else Copies(stage, []) for stage in chain.stages]
        self.stages = [in_order(one.ranks, others, reference) if step.pieces is None else one.ranks for one in found]
        self.copies = [one.copies for one in found]
        pieces = step.pieces.order if step.pieces is not None else ()
        self.shards: list[Shards] = [shards_of(stage, pieces, reference) for stage in self.stages]
        self.renamed = renamings(self.stages)
        self.tensors = [_together(stage) for stage in self.stages]

    def ranks(self) -> list[Rank]:
        """All ranks that take part, copies last."""
        return [rank for stage in self.stages for rank in stage] + [copy for copies in self.copies for copy, _ in copies]

    def part(self, stage: int, name: str, rank: int, ops: tuple[Op, ...]) -> PartAt:
        unit = self.stages[stage][rank].member.unit
        return PartAt(rank=unit.place.rank, dump_step=unit.place.step, name=name, steps=as_steps(ops))


def _together(stage: Sequence[Rank]) -> dict[str, list[Tensor]]:
    """What the ranks of a stage hold under each name."""
    found: dict[str, list[Tensor]] = {}
    for rank in stage:
        for name, tensor in _tensors(rank).items():
            found.setdefault(name, []).append(tensor)
    return found


def _renamed(name: str, entries: dict[str, str]) -> str:
    parsed = names.parse_tensor(name)
    if parsed is None or entries.get(parsed.entry, parsed.entry) == parsed.entry:
        return name
    return names.tensor_name(entries[parsed.entry], parsed.category, parsed.suffix)


# --- one tensor ---


def _assembled(steps: Sequence[_Step], main: _Step, stage: int, name: str, held: Held) -> Assembled | None:
    """The tensor from all steps; None where it is cut by ranks and by steps at once."""
    own = [main.part(stage, name, rank, ops) for rank, ops in held.parts]
    how = held.how
    if main.copies[stage] and len(main.stages[stage]) == 1:
        how = "replica"
        own += [PartAt(rank=copy.number, dump_step=own[0].dump_step, name=name) for copy, _ in main.copies[stage]]
    whole = Assembled(name=name, how=how, axis=held.axis, order=own, steps=as_steps(held.steps))
    axis = token_axis(main.tensors[stage][name][0].shape, main.step.window.total) if len(steps) > 1 else None
    parsed = names.parse_tensor(name)
    if len(steps) == 1 or (parsed is not None and parsed.category == "parameters"):
        return whole
    there = [step for step in steps if stage < len(step.stages) and name in step.shards[stage].held]
    if axis is None or len(there) < len(steps):
        last = steps[-1]  # one row a sequence: the last step has the prompt's
        found = last.shards[stage].held.get(name) if stage < len(last.stages) else None
        if found is None:
            return None
        parts = [last.part(stage, name, rank, ops) for rank, ops in found.parts]
        return Assembled(name=name, how=found.how, axis=found.axis, order=parts, steps=as_steps(found.steps))
    if held.how in ("cat", "sum"):
        return None
    order = [step.part(stage, name, 0, _rows(step.tensors[stage][name][0], step.step.window)) for step in steps]
    return Assembled(name=name, how="chunk", axis=axis, order=order)


def _rows(tensor: Tensor, window: Window) -> tuple[Op, ...]:
    axis = token_axis(tensor.shape, window.total)
    if axis is None or (window.start, window.stop) == (0, window.total):
        return ()
    each = tensor.shape[axis] // window.total
    return (Op("slice", axis=axis, start=window.start * each, stop=window.stop * each),)


# --- copies that should be equal ---


def _disagreements(step: _Step) -> Iterator[Disagreement | str]:
    """Copies that differ, under the name and the ranks that recorded them; the name alone of one that cannot be read."""
    for at, stage in enumerate(step.stages):
        for name in step.shards[at].copies:
            held = list(zip([rank.number for rank in stage], step.tensors[at][name], strict=True))
            yield from parting(name, held[0], held[1:])
        for copy, twin in step.copies[at]:
            ours, theirs = _tensors(copy), _tensors(twin)
            for name in (name for name in theirs if name in ours):
                yield from parting(name, (twin.number, theirs[name]), [(copy.number, ours[name])])


def _tensors(rank: Rank) -> dict[str, Tensor]:
    records = rank.member.records
    activations = {one.record.name: one.tensor for one in records.activations}
    return activations | {one.record.name: one.tensor for one in records.parameters}


# --- facts ---


def _parallel(step: _Step) -> Parallel:
    """Sizes that the data show: shards (tp), stages (pp), copies of everything (dp)."""
    most = max(len(stage) for stage in step.stages)
    hows = {held.how for shards in step.shards for held in shards.held.values()}
    if step.step.pieces is not None:
        return Parallel(cp=most)
    sharded = most > 1 and bool(hows & {"cat", "sum"})
    copies = max(len(copies) // len(stage) for stage, copies in zip(step.stages, step.copies, strict=True))
    cut_tokens = any(shards.cut_tokens for shards in step.shards)
    return Parallel(tp=most if sharded else 1, pp=len(step.stages), sp=cut_tokens, dp=1 + copies)


def _basis(main: _Step, steps: Sequence[_Step], reference: Reference | None) -> list[Basis]:
    found: list[Basis] = ["tokens"]
    found += ["weights"] if reference is not None and any(votes_of(stage, reference) for stage in main.stages) else []
    found += ["values"] if any(len(stage) > 1 for stage in main.stages) else []
    found += ["structure"] if len(main.stages) > 1 or len(steps) > 1 else []
    return found


def _stage_remarks(side: Side, main: _Step, reference: Reference | None) -> list[Worded]:
    found: list[Worded] = []
    if main.loose:
        found.append(word("stages_loose", side=side.label, units=main.loose))
    parallel = _parallel(main)
    for stage in main.stages:
        numbers = [rank.number for rank in stage]
        told = reference is not None and bool(votes_of(stage, reference))
        kind = "ranks_by_reference" if told else "ranks_reordered"
        found += [word(kind, side=side.label, order=numbers)] if numbers != sorted(numbers) else []
        if reference is not None and parallel.tp > 1 and not told:
            found.append(word("reference_unlike", side=side.label))
    if parallel.tp > 1:
        found.append(word("shards_joined", side=side.label, n=parallel.tp))
    if parallel.dp > 1:
        found.append(word("replicas_joined", side=side.label, n=parallel.dp))
    if parallel.pp > 1:
        found.append(word("stages_joined", side=side.label, n=parallel.pp))
    return found
