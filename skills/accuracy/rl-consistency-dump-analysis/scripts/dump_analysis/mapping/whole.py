"""A mapping of sides that hold one unit or several: proposed on the assembled sides, its rows said of the units."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msprobe_files import names
from msprobe_files.operands import Operand, OperandError
from msprobe_files.pt_archive import PtTensor

from dump_analysis.artefacts.assembly_plan import AssemblyPlan, SidePlan
from dump_analysis.artefacts.common import Modules, SideLabel, Worded
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping
from dump_analysis.assembly import AssembledSide, assemble, expanded
from dump_analysis.joined_tensors import JoinedTensor
from dump_analysis.mapping import proposal
from dump_analysis.mapping.proposal import Proposal
from dump_analysis.mapping.ranks.copies import of_plan
from dump_analysis.mapping.ranks.plan import plan_sides
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.sides import Side
from dump_analysis.wording import word

LOST = "input_ids.left_out_tokens"
_LOST = ("chunk_lacks_ranks", "chunks_past_gap")
Weights = dict[str, PtTensor]  # of a checkpoint, by name


class Assembly(NamedTuple):
    """Both sides put together; None for one that was a single unit. ``remarks``: how, and what was left out.

    ``by_step``: side -> plans that put each of its dump steps together first, where that is needed.
    """

    plan: AssemblyPlan
    train: AssembledSide | None
    infer: AssembledSide | None
    remarks: list[Worded]
    by_step: dict[str, list[SidePlan]]


def propose(train: Side, infer: Side, plan: AssemblyPlan | None = None, reference: Weights | None = None) -> Proposal:
    """The mapping that two dumps themselves tell, of however many units each is, put together by a plan or by what the data tell.

    ``reference``: the weights of a checkpoint, where matrices are whole.

    Raises DumpError where no tokens join the sides, where a side recorded no tensors, or where the plan does not fit.
    """
    made = assembled(train, infer, plan, reference)
    if made.train is None and made.infer is None:
        found = proposal.propose(train, infer)
        return Proposal(found.mapping, [*made.remarks, *found.remarks])
    sides = [side if whole is None else whole.side for side, whole in ((train, made.train), (infer, made.infer))]
    found = proposal.propose(*sides)
    mapping = _of_units(found.mapping, sides, made.plan)
    for alike in (remark for remark in made.remarks if remark.kind == "steps_alike"):
        mapping = _undecided(mapping, alike)
    for lost in (remark for remark in made.remarks if remark.kind in _LOST):
        mapping = _with_lost_tokens(mapping, lost)
    return Proposal(mapping, [*made.remarks, *found.remarks])


def assembled(train: Side, infer: Side, plan: AssemblyPlan | None = None, reference: Weights | None = None) -> Assembly:
    """Both sides put together, by ``plan`` where one is given. Raises DumpError as `propose` does."""
    remarks: list[Worded] = []
    by_step: dict[str, list[SidePlan]] = {}
    several = max(sum(bool(unit.entries) for unit in side.units) for side in (train, infer)) > 1
    if reference is not None and (plan is not None or not several):
        remarks.append(word("reference_unneeded"))
    if plan is None:
        left, right = plan_sides(train, infer, Reference(reference.values()) if reference is not None and several else None)
        by_step = {label: found.by_step for label, found in (("train", left), ("infer", right)) if found is not None and found.by_step}
        plan = AssemblyPlan(left.plan if left else None, right.plan if right else None)
        remarks += [remark for found in (left, right) if found is not None for remark in found.remarks]
    else:
        plan, remarks = _of_these(train, infer, plan, remarks)
    made = [None if own is None else assemble(side, own) for side, own in ((train, plan.train), (infer, plan.infer))]
    for whole in (one for one in made if one is not None and one.left_out):
        name, why = whole.left_out[0]
        remarks.append(word("not_assembled", side=whole.side.label, n=len(whole.left_out), name=name, why=why))
    return Assembly(plan, made[0], made[1], remarks, by_step)


def _of_these(train: Side, infer: Side, plan: AssemblyPlan, remarks: list[Worded]) -> tuple[AssemblyPlan, list[Worded]]:
    """A plan that was handed in. Made for another dump, or by people, it is declared, no more; copies are looked at anew."""
    checked: dict[str, SidePlan | None] = {}
    for side, own in ((train, plan.train), (infer, plan.infer)):
        stated = own.dump if own is not None else msgspec.UNSET
        if own is None or (isinstance(stated, SideLabel) and stated.digest == side.digest):
            checked[side.label] = own
            continue
        if isinstance(stated, SideLabel):
            remarks = [*remarks, word("plan_foreign", side=side.label)]
        checked[side.label] = msgspec.structs.replace(own, dump=msgspec.UNSET, basis=["declared"], disagree=of_plan(side, own))
    return AssemblyPlan(checked["train"], checked["infer"]), remarks


def _undecided(mapping: SemanticMapping, why: Worded) -> SemanticMapping:
    """Where several dump steps match alike, which one was compared is open: so is the row of the ids."""
    open_rows = [row for row in mapping.boundaries if row.boundary == "input_ids"]
    names_of = [[[source.name for source in getattr(row, side).sources] for side in ("train", "infer")] for row in open_rows]
    gaps = [MissingRow(row.boundary, row.order, why, *both) for row, both in zip(open_rows, names_of, strict=True)]
    rows = [row for row in mapping.boundaries if row.boundary != "input_ids"]
    return msgspec.structs.replace(mapping, boundaries=rows, evidence_missing=[*gaps, *mapping.evidence_missing])


def _with_lost_tokens(mapping: SemanticMapping, why: Worded) -> SemanticMapping:
    """Tokens of chunks that were left out are a gap that an equal rest does not close; they were in no cache."""
    cached = "input_ids.cached_tokens"
    if any(row.boundary == LOST for row in mapping.evidence_missing):
        return mapping
    rows, gaps, tokens = mapping.boundaries, mapping.evidence_missing, mapping.tokens
    if any(row.boundary == cached and row.reason.values.get("side") == why.values["side"] for row in gaps):
        gaps = [msgspec.structs.replace(row, boundary=LOST, reason=why) if row.boundary == cached else row for row in gaps]
        kept = [remark for remark in tokens.remarks if remark.kind != "cached_tokens"] if tokens is not None else []
        tokens = msgspec.structs.replace(tokens, remarks=kept) if tokens is not None else None
    else:
        rows = [msgspec.structs.replace(row, order=row.order + 1) for row in rows]
        gaps = [MissingRow(LOST, 0, why, [], []), *(msgspec.structs.replace(row, order=row.order + 1) for row in gaps)]
    return msgspec.structs.replace(mapping, boundaries=rows, evidence_missing=gaps, tokens=tokens)


# --- rows of assembled sides as rows of units ---


def _of_units(mapping: SemanticMapping, sides: Sequence[Side], plan: AssemblyPlan) -> SemanticMapping:
    plans = plan.train, plan.infer
    boundaries, missing = _rows(mapping.boundaries, sides, plans)
    weights, no_weights = _rows(mapping.weights, sides, plans)
    gaps = [_gap(row, sides) for row in mapping.evidence_missing]
    return msgspec.structs.replace(
        mapping,
        boundaries=boundaries,
        weights=weights,
        evidence_missing=[*gaps, *missing, *no_weights],
        ranks=plan,
    )


def _rows(rows: Sequence[Row], sides: Sequence[Side], plans: Sequence[SidePlan | None]) -> tuple[list[Row], list[MissingRow]]:
    """The rows over units, and those that no flat operand can say."""
    kept: list[Row] = []
    missing: list[MissingRow] = []
    for row in rows:
        operands = row.train, row.infer
        try:
            train, infer = (
                operand if plan is None else expanded(operand, side) for operand, side, plan in zip(operands, sides, plans, strict=True)
            )
        except OperandError as error:
            names_of = [_names(operand, side) for operand, side in zip(operands, sides, strict=True)]
            missing.append(MissingRow(row.boundary, row.order, word("not_flat", why=error.why), *names_of))
            continue
        module = None
        if row.module is not None:
            entries = row.module.train, row.module.infer
            module = Modules(*(_entry(entry, side) for entry, side in zip(entries, sides, strict=True)))
        kept.append(msgspec.structs.replace(row, train=train, infer=infer, module=module))
    return kept, missing


def _names(operand: Operand, side: Side) -> list[str]:
    return [name for source in operand.sources for name in _recorded(source.name, side)]


def _gap(row: MissingRow, sides: Sequence[Side]) -> MissingRow:
    train, infer = (
        list(dict.fromkeys(name for one in given for name in _recorded(one, side)))
        for given, side in zip((row.train, row.infer), sides, strict=True)
    )
    return msgspec.structs.replace(row, train=train, infer=infer)


def _recorded(name: str, side: Side) -> list[str]:
    """What the units call the parts of an assembled tensor; the name itself where nothing was put together."""
    tensors = [place.tensor for place in side.by_name.get(name, ())]
    return list(dict.fromkeys(part.source.name for tensor in tensors if isinstance(tensor, JoinedTensor) for part in tensor.parts)) or [
        name
    ]


def _entry(entry: str | None, side: Side) -> str | None:
    """What the units call an assembled entry."""
    if entry is None:
        return None
    for record in side.units[0].entries.get(entry, ()):
        for name in _recorded(record.name, side):
            parsed = names.parse_tensor(name)
            if parsed is not None:
                return parsed.entry
    return entry
