"""Ranks, stages and dump steps of one side put together by a plan into a side of one unit. Knows no policy: see `mapping.ranks`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, OperandError, Source
from msprobe_files.units import Record, Unit

from . import tensors
from .artefacts.assembly_plan import Assembled, SidePlan, ops_of
from .joined_tensors import JoinedTensor, Part, joined
from .sides import Place, Side, resolve
from .tensors import Tensor

_JOINED = {"cat": "cat", "chunk": "cat", "sum": "sum"}
Key = tuple[int, int, str]  # step, rank, tensor's or entry's name


class AssembledSide(NamedTuple):
    """``side``: one unit that reads like a single rank's. ``left_out``: tensors of the plan that cannot be put together, and why.

    ``units``: those of the plan, in its order; ``renamed``: (step, rank, recorded name) -> name in the assembled unit.
    """

    side: Side
    left_out: list[tuple[str, str]]
    units: list[Unit]
    renamed: dict[Key, str]


def assemble(side: Side, plan: SidePlan) -> AssembledSide:
    """The side that a plan makes of several units; nothing is read but headers.

    Entries stand in the order of the plan's units. Raises DumpError where the plan names a unit that is not there.
    """
    units = [_unit(side, at.step, at.rank) for at in plan.units]
    made: dict[str, JoinedTensor] = {}
    left_out: list[tuple[str, str]] = []
    for one in plan.tensors:
        try:
            made[one.name] = _joined(side, one)
        except (DumpError, OperandError) as error:
            left_out.append((one.name, str(error)))
    renamed = {key: one.name for one in plan.tensors if one.name in made for key in _parts_of(one)}
    entries = _entries(units, renamed, made)
    first = units[0]
    whole = first._replace(entries={entry: tuple(records) for entry, records in entries.items()}, trace=_trace(units, renamed))
    by_name: dict[str, tuple[Place, ...]] = {
        record.name: (Place(whole, record, made[record.name]),) for records in entries.values() for record in records
    }
    return AssembledSide(Side(side.label, (whole,), side.digest, by_name), left_out, units, renamed)


def _unit(side: Side, step: int, rank: int) -> Unit:
    found = [unit for unit in side.units if (unit.place.step, unit.place.rank) == (step, rank)]
    if len(found) != 1:
        raise DumpError(
            f"Cannot assemble the {side.label} dump: its plan names step{step}/rank{rank}, and {len(found)} such units are there. "
            "Hand all of them, each once, or correct the plan."
        )
    return found[0]


def _parts_of(one: Assembled) -> Iterator[Key]:
    return ((part.dump_step, part.rank, part.name) for part in one.order)


def _joined(side: Side, one: Assembled) -> JoinedTensor:
    parts: list[Part] = []
    for at in one.order if one.how in _JOINED else one.order[:1]:
        source = Source(at.name, at.rank, at.dump_step, ops_of(at.steps))
        place = resolve(side, source)
        tensor = tensors.header(place) if place is not None else None
        if tensor is None or isinstance(tensor, JoinedTensor):
            raise DumpError(f"step{at.dump_step}/rank{at.rank} of {side.label} does not hold {at.name}")
        parts.append(Part(source, tensor))
    combine = _JOINED[one.how] if len(parts) > 1 else None
    return joined(f"{side.label}:{one.name}", parts, combine, one.axis, ops_of(one.steps))


def merged(orders: Iterable[Iterable[str]]) -> list[str]:
    """One order of what several units recorded: what an earlier unit lacks stands before the next thing that both have, else behind all."""
    found: dict[str, None] = {}
    for order in orders:
        new: list[str] = []
        before: dict[str, list[str]] = {}
        for one in dict.fromkeys(order):
            if one not in found:
                new.append(one)
            elif new:
                before[one], new = new, []
        found = dict.fromkeys(each for one in found for each in (*before.get(one, ()), one)) | dict.fromkeys(new)
    return list(found)


def _entries(units: Sequence[Unit], renamed: dict[Key, str], made: dict[str, JoinedTensor]) -> dict[str, list[Record]]:
    """The assembled records by entry, in the order in which the units recorded them."""
    entries: dict[str, list[Record]] = {}
    seen: set[str] = set()
    orders: list[list[str]] = []
    for unit in units:
        orders.append([])
        for record in unit.records():
            name = renamed.get((unit.place.step, unit.place.rank, record.name))
            if name is None:
                continue
            parsed = names.parse_tensor(name)
            entry = parsed.entry if parsed is not None else name
            orders[-1].append(entry)
            if name in seen:
                continue
            seen.add(name)
            tensor = made[name]
            kept = record._replace(name=name, entry=entry, dtype=tensor.dtype, shape=tensor.shape, file=f"{name}.pt", statistics={})
            entries.setdefault(entry, []).append(kept._replace(digest=None, refused=None))
    return {entry: entries[entry] for entry in merged(orders)}


def _trace(units: Sequence[Unit], renamed: dict[Key, str]) -> dict[str, str | None] | None:
    """Parents of all units, in one order of starts; None where one of them has no construct.json."""
    if any(unit.trace is None for unit in units):
        return None
    trace: dict[str, str | None] = {}
    orders: list[list[str]] = []
    for unit in units:
        own = _renamed_entries(unit, renamed)
        # What recorded nothing is called the same on every stage: it says nothing of the order.
        orders.append([own.get(child, child) for child in unit.trace or {} if child in own or child not in trace])
        for child, parent in (unit.trace or {}).items():
            trace.setdefault(own.get(child, child), None if parent is None else own.get(parent, parent))
    return {child: trace[child] for child in merged(orders)}


def _renamed_entries(unit: Unit, renamed: dict[Key, str]) -> dict[str, str]:
    """Entry of a unit -> what it is called in the assembled one."""
    found: dict[str, str] = {}
    for record in unit.records():
        name = renamed.get((unit.place.step, unit.place.rank, record.name))
        parsed = names.parse_tensor(name) if name is not None else None
        if parsed is not None:
            found.setdefault(record.entry, parsed.entry)
    return found


# --- mapping rows of an assembled side, said of the units ---


def expanded(operand: Operand, side: Side) -> Operand:
    """An operand over an assembled side as one over its units, with rank and dump step.

    Raises OperandError where no flat operand says the same: a sum of tensors that lie in pieces side by side.
    """
    whole = [_cut(side, source) for source in operand.sources]
    if len(whole) == 1:
        return whole[0]
    several = [one for one in whole if len(one.sources) > 1]
    if operand.combine == "cat" and all(one.combine == "cat" and one.axis == operand.axis for one in several):
        return Operand([source for one in whole for source in one.sources], "cat", operand.axis)
    if operand.combine == "sum" and len(several) <= 1 and all(one.combine == "sum" for one in several):
        ordered = [*several, *(one for one in whole if one not in several)]  # partial sums first, as the ranks added them
        return Operand([source for one in ordered for source in one.sources], "sum")
    raise OperandError("combine", f"a {operand.combine} of tensors that are put together themselves")


def _cut(side: Side, source: Source) -> Operand:
    place = resolve(side, source)
    tensor: Tensor | None = place.tensor if place is not None else None
    if not isinstance(tensor, JoinedTensor):
        raise OperandError("name", f"{source.name} is no assembled tensor")
    return tensor.cut(source.steps or ())[0]
