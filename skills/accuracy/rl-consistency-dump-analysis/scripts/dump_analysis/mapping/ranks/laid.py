"""A dump step as its ranks hold it, and a tensor put together from one step, from several chunks, or from groups with other tokens."""

from collections.abc import Sequence

from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from dump_analysis.artefacts.assembly_plan import Assembled, PartAt, as_steps
from dump_analysis.mapping.ranks.context import Piece
from dump_analysis.mapping.ranks.experts import experts_apart, renumbered
from dump_analysis.mapping.ranks.members import Member, Step
from dump_analysis.mapping.ranks.order import in_order
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.mapping.ranks.shards import Held, Shards, all_equal, shards_of, token_axis
from dump_analysis.mapping.ranks.stages import Rank, chained, opened, renamings, stages_of, without_copies
from dump_analysis.mapping.recorded.nodes import Window
from dump_analysis.tensors import Tensor

TWICE, UNPLACED = "twice", "unplaced"  # cut by ranks and by tokens at once · nothing fits


class Laid:
    """A dump step with its ranks as stages and how each stage holds its tensors.

    The first ``layers`` of ``stages`` are pipeline stages, the others experts, of which ``experts`` groups of ranks hold different ones.
    """

    def __init__(self, step: Step, others: Sequence[Member], reference: Reference | None) -> None:
        self.step = step
        chain = chained(stages_of(opened(step)))
        self.loose = [rank.member.place for stage in chain.loose for rank in stage]
        found = [without_copies(stage) for stage in chain.stages]
        whole = [in_order(one.ranks, others, reference) for one in found]
        apart = [experts_apart(stage) for stage in whole]
        self.layers, self.experts = len(apart), max(len(one.groups) for one in apart)
        self.stages = [one.stage for one in apart] + [experts.ranks for one in apart for experts in one.experts]
        self.copies: list[list[tuple[Rank, Rank]]] = [one.copies for one in found] + [[] for one in apart for _ in one.experts]
        self.shards: list[Shards] = [shards_of(one.stage, reference, one) for one in apart]
        self.shards += [shards_of(stage, reference, routed=True) for stage in self.stages[self.layers :]]
        self.renamed = renamings(whole)
        self.renamed += [
            {entry: renumbered(name, experts.shift) for entry, name in self.renamed[at].items()}
            for at, one in enumerate(apart)
            for experts in one.experts
        ]
        self.tensors = [_together(stage) for stage in self.stages]

    def ranks(self) -> list[Rank]:
        """All ranks that take part, copies last."""
        return [rank for stage in self.stages[: self.layers] for rank in stage] + [copy for copies in self.copies for copy, _ in copies]

    def part(self, stage: int, name: str, rank: int, ops: tuple[Op, ...]) -> PartAt:
        unit = self.stages[stage][rank].member.unit
        return PartAt(rank=unit.place.rank, dump_step=unit.place.step, name=name, steps=as_steps(ops))


def _together(stage: Sequence[Rank]) -> dict[str, list[Tensor]]:
    """What the ranks of a stage hold under each name."""
    found: dict[str, list[Tensor]] = {}
    for rank in stage:
        for name, tensor in tensors_of(rank).items():
            found.setdefault(name, []).append(tensor)
    return found


def tensors_of(rank: Rank) -> dict[str, Tensor]:
    records = rank.member.records
    activations = {one.record.name: one.tensor for one in records.activations}
    return activations | {one.record.name: one.tensor for one in records.parameters}


# --- one tensor ---


def from_steps(steps: Sequence[Laid], main: Laid, stage: int, name: str, held: Held) -> Assembled | str:
    """The tensor from all steps, or why it is not put together."""
    if name not in main.shards[stage].held:  # the head runs for the last chunk alone, say
        own = steps[-1]
        of_tokens = token_axis(own.tensors[stage][name][0].shape, own.step.window.total) is not None
        return UNPLACED if of_tokens and own.step.window.total > 1 else _of_step(own, stage, name, held)
    whole = _of_step(main, stage, name, held)
    parsed = names.parse_tensor(name)
    if len(steps) == 1 or (parsed is not None and parsed.category == "parameters"):
        return whole
    axis = token_axis(main.tensors[stage][name][0].shape, main.step.window.total)
    there = [step for step in steps if stage < len(step.stages) and name in step.shards[stage].held]
    if axis is None:
        last = steps[-1]  # one row a sequence: the last step has the prompt's
        return _of_step(last, stage, name, last.shards[stage].held[name]) if last in there else UNPLACED
    if len(there) < len(steps):
        return UNPLACED
    if held.how in ("cat", "sum"):
        return TWICE
    order = [
        step.part(stage, name, step.shards[stage].held[name].parts[0][0], _rows(step.tensors[stage][name][0], step.step.window))
        for step in steps
    ]
    return Assembled(name=name, how="chunk", axis=axis, order=order)


def _of_step(step: Laid, stage: int, name: str, held: Held) -> Assembled:
    """The tensor from the ranks of one step."""
    own = [step.part(stage, name, rank, ops) for rank, ops in held.parts]
    copies = step.copies[stage] if len(step.stages[stage]) == 1 else []
    own += [PartAt(rank=copy.number, dump_step=own[0].dump_step, name=name) for copy, _ in copies]
    return Assembled(name=name, how="replica" if copies else held.how, axis=held.axis, order=own, steps=as_steps(held.steps))


def from_pieces(groups: Sequence[Laid], pieces: Sequence[Piece], stage: int, name: str, held: Held) -> Assembled | str:
    """The tensor from groups of ranks that hold other tokens: a copy of each group's, or rows in the order of the prompt."""
    each = [group.tensors[stage].get(name) if stage < len(group.stages) else None for group in groups]
    firsts = [tensors[0] for tensors in each if tensors is not None]
    parsed = names.parse_tensor(name)
    holders = [group for group in groups if stage < len(group.stages) and name in group.shards[stage].held]
    if holders and (len(firsts) == 1 or (parsed is not None and parsed.category == "parameters")):
        return _of_step(holders[0], stage, name, holders[0].shards[stage].held[name])
    if len(firsts) < len(groups):
        return UNPLACED
    if _alike(firsts):
        own = [_of_step(group, stage, name, group.shards[stage].held.get(name, held)) for group in groups]
        return (
            own[0]
            if held.how in ("cat", "sum")
            else Assembled(name=name, how="replicated", axis=None, order=[part for one in own for part in one.order])
        )
    total = groups[0].step.window.total
    axis = token_axis(firsts[0].shape, total)
    if axis is None or len({tensor.shape for tensor in firsts}) > 1:
        return UNPLACED
    if held.how in ("cat", "sum"):
        return TWICE
    unit, size = firsts[0].shape[axis] // total, firsts[0].shape[axis]
    cuts = [(piece.group, piece.start * unit, piece.stop * unit) for piece in pieces]
    order = [
        groups[at].part(stage, name, 0, () if (start, stop) == (0, size) else (Op("slice", axis=axis, start=start, stop=stop),))
        for at, start, stop in cuts
    ]
    return Assembled(name=name, how="cat", axis=axis, order=order)


def _alike(tensors: Sequence[Tensor]) -> bool:
    try:
        return all_equal(tensors)
    except DumpError:
        return False  # what cannot be read is no copy


def _rows(tensor: Tensor, window: Window) -> tuple[Op, ...]:
    axis = token_axis(tensor.shape, window.total)
    if axis is None or (window.start, window.stop) == (0, window.total):
        return ()
    each = tensor.shape[axis] // window.total
    return (Op("slice", axis=axis, start=window.start * each, stop=window.stop * each),)
