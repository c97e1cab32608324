"""The assembly plan of a side: stages one after the other, ranks of a stage joined, dump steps of one prompt row after row."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msprobe_files import names
from msprobe_files.errors import DumpError

from dump_analysis.artefacts.assembly_plan import Assembled, Basis, Disagreement, Parallel, SidePlan, UnitAt
from dump_analysis.artefacts.common import SideLabel, Worded
from dump_analysis.mapping.ranks.choosing import choose
from dump_analysis.mapping.ranks.copies import parting
from dump_analysis.mapping.ranks.laid import TWICE, Laid, from_pieces, from_steps, tensors_of
from dump_analysis.mapping.ranks.members import Chosen, Member, members_of
from dump_analysis.mapping.ranks.order import votes_of
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.mapping.tokens.token_vectors import FEWEST
from dump_analysis.sides import Side
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
            raise DumpError(
                f"Cannot propose a mapping: {why} (vectors of fewer than {FEWEST} integers are not taken for ids). "
                "Dump the embedding's input too, in chunks of more tokens, or hand one unit."
            )
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
    steps = [Laid(step, others, reference) for step in chosen.steps]
    pieces = chosen.pieces.order if chosen.pieces is not None else None
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
        also = steps if pieces is not None else steps[-1:]
        further = [step.shards[stage].held for step in also if stage < len(step.stages)]
        for name, held in {name: held for each in [*further, main.shards[stage].held] for name, held in each.items()}.items():
            made = from_steps(steps, main, stage, name, held) if pieces is None else from_pieces(steps, pieces, stage, name, held)
            if made == TWICE:
                twice.append(name)
            elif isinstance(made, str):
                unplaced.append(name)
            else:
                whole = _renamed(name, renamed)
                tensors[whole] = Assembled(name=whole, how=made.how, axis=made.axis, order=made.order, steps=made.steps)
    remarks = [*chosen.remarks, *_stage_remarks(side, main, reference)]
    disagree += _parameters_apart(steps) if pieces is not None else []
    remarks += _left(side, list(dict.fromkeys(unplaced)), twice, unread, disagree)
    units = [UnitAt(step=rank.member.unit.place.step, rank=rank.number) for step in [main, *steps] for rank in step.ranks()]
    plan = SidePlan(
        dump=SideLabel(side.label, side.digest),
        units=list(dict.fromkeys(units)),
        parallel=_parallel(main, len(steps) if pieces is not None else 1),
        tensors=list(tensors.values()),
        basis=_basis(main, steps, reference),
        disagree=disagree,
    )
    by_step = [_proposed(side, Chosen([step.step], [], []), others, reference).plan for step in steps] if twice else []
    return Proposed(plan, remarks, by_step)


def _left(side: Side, unplaced: list[str], twice: list[str], unread: list[str], disagree: list[Disagreement]) -> list[Worded]:
    """What was not put together, and what should be alike and is not."""
    found = [word("unplaced", side=side.label, n=len(unplaced), names=unplaced[:6])] if unplaced else []
    found += [word("cut_twice", side=side.label, n=len(twice))] if twice else []
    found += [word("copies_unread", side=side.label, n=len(unread), names=unread[:6])] if unread else []
    found += [word("ranks_disagree", side=side.label, names=[one.name for one in disagree][:6], n=len(disagree))] if disagree else []
    return found


def _renamed(name: str, entries: dict[str, str]) -> str:
    parsed = names.parse_tensor(name)
    if parsed is None or entries.get(parsed.entry, parsed.entry) == parsed.entry:
        return name
    return names.tensor_name(entries[parsed.entry], parsed.category, parsed.suffix)


# --- copies that should be equal ---


def _disagreements(step: Laid) -> Iterator[Disagreement | str]:
    """Copies that differ, under the name and the ranks that recorded them; the name alone of one that cannot be read."""
    for at, stage in enumerate(step.stages):
        for name in step.shards[at].copies:
            held = list(zip([rank.number for rank in stage], step.tensors[at][name], strict=True))
            yield from parting(name, held[0], held[1:])
        for copy, twin in step.copies[at]:
            ours, theirs = tensors_of(copy), tensors_of(twin)
            for name in (name for name in theirs if name in ours):
                yield from parting(name, (twin.number, theirs[name]), [(copy.number, ours[name])])


def _parameters_apart(groups: Sequence[Laid]) -> list[Disagreement]:
    """Parameters of which groups of ranks with other tokens hold copies that differ."""
    found: list[Disagreement] = []
    for stage, ranks in enumerate(groups[0].stages):
        for at, rank in enumerate(ranks):
            twins = [group.stages[stage][at] for group in groups[1:] if stage < len(group.stages) and at < len(group.stages[stage])]
            for one in rank.member.records.parameters:
                name = one.record.name
                others = [(twin.number, tensor) for twin in twins if (tensor := tensors_of(twin).get(name)) is not None]
                found += [each for each in parting(name, (rank.number, one.tensor), others) if isinstance(each, Disagreement)]
    return found


# --- facts ---


def _parallel(step: Laid, groups: int = 1) -> Parallel:
    """Sizes that the data show: shards (tp), stages (pp), copies of everything (dp). ``groups``: of ranks with other tokens (cp)."""
    most = max(len(stage) for stage in step.stages)
    hows = {held.how for shards in step.shards for held in shards.held.values() if step.experts < 2 or held.axis != 0}
    sharded = most > 1 and bool(hows & {"cat", "sum"})
    copies = max(len(copies) // len(stage) for stage, copies in zip(step.stages, step.copies, strict=True))
    cut_tokens = any(shards.cut_tokens for shards in step.shards)
    return Parallel(tp=most if sharded else 1, pp=step.layers, ep=step.experts, cp=groups, sp=cut_tokens, dp=1 + copies)


def _basis(main: Laid, steps: Sequence[Laid], reference: Reference | None) -> list[Basis]:
    found: list[Basis] = ["tokens"]
    found += ["weights"] if reference is not None and any(votes_of(stage, reference) for stage in main.stages) else []
    found += ["values"] if any(len(stage) > 1 for stage in main.stages) else []
    found += ["structure"] if len(main.stages) > 1 or len(steps) > 1 else []
    return found


def _stage_remarks(side: Side, main: Laid, reference: Reference | None) -> list[Worded]:
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
