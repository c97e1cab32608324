"""What each file of the source folder will hold and where it goes; all is checked against both dumps, nothing is written.

msprobe 26.2.0 looks a tensor up at ``{path}/step{current}/{rank{current} | proc*}/dump_tensor_data/{target's name}.pt``
(``TensorLoader._build_pt_path``) and replaces an argument whatever shape and dtype it finds there: so both are checked here.
"""

import os
import re
from typing import Any, Dict, List, NamedTuple, Tuple

from msprobe_files import names, operands, release
from msprobe_files.errors import DumpError
from msprobe_files.operands import OperandError, Shape
from msprobe_files.pt_archive import PtTensor
from msprobe_files.units import Unit

from dump_collection.wording import word

from . import recorded
from .instruction import Input, Instruction, Module, wrong
from .recorded import Recorded

_SHOWN = 4  # names in one sentence
_LONGEST_NAME = 255  # bytes; msprobe refuses longer file names inside the forward
_RANK_FOLDER = re.compile(r"(rank|proc)[0-9]+\Z")
_STEP_FOLDER = re.compile(r"step[0-9]+\Z")
_ADDS = re.compile(r"(bfloat16|float(16|32|64)|u?int(8|16|32|64))\Z")


class Planned(NamedTuple):
    """One file: its place below the source folder, the call whose argument it replaces, and the tensors that it is made of."""

    file: str
    rank: int
    module: Module
    input: Input
    tensors: Tuple[PtTensor, ...]


class Plan(NamedTuple):
    """``step``: the dump step of the target that is overridden. ``warnings``: worded."""

    step: int
    files: Tuple[Planned, ...]
    warnings: Tuple[Dict[str, Any], ...]

    @property
    def entries(self) -> List[str]:
        """The calls to override, each once, in the instruction's order."""
        return list(dict.fromkeys(planned.module.entry for planned in self.files))


def plan(instruction: Instruction, source: Recorded, target: Recorded) -> Plan:
    """Raises DumpError with the path in the instruction for whatever ``load`` would skip or replace wrongly."""
    step = _step(instruction, target)
    made: List[Planned] = []
    left: Dict[str, None] = {}
    for module in instruction.modules:
        for unit in _units(module, target, step):
            held = recorded.recorded_inputs(unit, module.entry)
            for item in module.inputs:
                _fits_target(item, held)
                tensors = _sources(item, source, unit.place.rank)
                _fits_expected(item, tensors)
                made.append(Planned(_file(module, item, unit), unit.place.rank, module, item, tensors))
            given = {item.label for item in module.inputs}
            left.update({"%s.%s" % (module.entry, label): None for label, what in held.items() if what is not None and label not in given})
    warnings = [word("inputs_left", n=len(left), names=list(left)[:_SHOWN])] if left else []
    warnings += _spoiled_inputs(instruction, source)
    return Plan(step, tuple(made), tuple(warnings))


# --- the target ---


def _step(instruction: Instruction, target: Recorded) -> int:
    """The one step of the target that records all calls as the instruction expects them."""
    steps = set(target.steps)
    for module in instruction.modules:
        holding = {unit.place.step for unit in target.units if module.entry in unit.entries}
        if not holding:
            raise wrong(module.where + ".target_entry", "the target never recorded %s%s" % (module.entry, _near(target, module.entry)))
        steps &= holding
    if not steps:
        raise wrong("modules", "no one step of the target records all of these calls")
    if len(steps) > 1:
        steps = {step for step in steps if all(_as_expected(module, target, step) for module in instruction.modules)} or steps
    if len(steps) > 1:
        shown = ", ".join(map(str, sorted(steps)))
        raise DumpError("Cannot tell which step to override: the steps %s record these calls. Hand one stepN as --target-dump." % shown)
    return steps.pop()


def _as_expected(module: Module, target: Recorded, step: int) -> bool:
    held = [
        recorded.recorded_inputs(unit, module.entry) for unit in target.units if unit.place.step == step and module.entry in unit.entries
    ]
    return all(inputs.get(item.label) == (item.shape, item.dtype) for inputs in held for item in module.inputs)


def _near(target: Recorded, entry: str) -> str:
    """The calls of the same module under another class or call number, for the reader of an error."""
    path = names.parse_entry(entry).path
    near = sorted({other for unit in target.units for other in unit.entries if names.parse_entry(other).path == path})
    return "; it recorded " + ", ".join(near[:4]) if near else ", nor another call of that module"


def _units(module: Module, target: Recorded, step: int) -> List[Unit]:
    """The units of the target whose call is overridden, one a rank."""
    found = [unit for unit in target.units if unit.place.step == step and module.entry in unit.entries]
    ranks = [unit.place.rank for unit in found]
    if len(set(ranks)) < len(ranks):
        raise DumpError("Cannot use the target's dump: several dumps of one rank, %s. Hand one of them." % recorded.named(found))
    if module.rank is not None:
        found = [unit for unit in found if unit.place.rank == module.rank]
        if not found:
            raise wrong(module.where + ".rank", "the target recorded this call on rank %s, not on %d" % (ranks, module.rank))
    for unit in found:
        if not unit.place.has_json:
            raise DumpError(
                "Cannot use the target's dump: %s has no dump.json, so nothing tells its inputs. Dump again." % unit.place.folder
            )
    return found


def _fits_target(item: Input, held: Dict[str, Any]) -> None:
    """``load`` replaces an argument that is itself a tensor, and only warns where shape or dtype is another."""
    if item.label not in held:
        nested = [label for label in held if label.startswith(item.label + ".")]
        why = "holds its tensors inside (%s), which load does not reach" % ", ".join(nested[:3]) if nested else "is no tensor there"
        tensors = ", ".join(label for label, what in held.items() if what is not None)
        raise wrong(item.where, "%s of the target's call %s; its tensors: %s" % (item.label, why, tensors or "none"))
    shape, dtype = held[item.label]
    if shape != item.shape:
        raise wrong(item.where + ".expect.shape", "%s, but the target receives %s" % (list(item.shape), list(shape)))
    if dtype != item.dtype:
        raise wrong(item.where + ".expect.dtype", "%s, but the target receives %s" % (item.dtype, dtype))


def _file(module: Module, item: Input, unit: Unit) -> str:
    folder = os.path.basename(unit.place.folder)
    parts = unit.place.folder.split(os.sep)
    if not _RANK_FOLDER.match(folder) or not any(map(_STEP_FOLDER.match, parts)):
        raise DumpError(
            "Cannot tell where msprobe will look: %s does not lie in a stepN/rankM or stepN/procP as msprobe makes it. "
            "Hand the target's dump as it was written." % unit.place.folder
        )
    name = names.tensor_name(module.entry, item.category, item.suffix) + ".pt"
    if len(name) > _LONGEST_NAME:
        raise wrong(module.where + ".target_entry", "its file name has %d characters; msprobe takes %d" % (len(name), _LONGEST_NAME))
    return "step%d/%s/dump_tensor_data/%s" % (unit.place.step, folder, name)


# --- the source ---


def _sources(item: Input, source: Recorded, target_rank: int) -> Tuple[PtTensor, ...]:
    found: List[PtTensor] = []
    for at, wanted in enumerate(item.operand.sources):
        where = "%s.from.sources[%d]" % (item.where, at)
        try:
            found.append(recorded.find(source, wanted, target_rank)[2])
        except (LookupError, DumpError) as error:
            raise wrong(where + ".name", str(error.args[0])) from None
    return tuple(found)


def _fits_expected(item: Input, tensors: Tuple[PtTensor, ...]) -> None:
    try:
        shape, dtype = made_of(item, tensors)
    except OperandError as error:
        raise wrong("%s.from.%s" % (item.where, error.where), error.why) from None
    if shape != item.shape:
        raise wrong(item.where + ".expect.shape", "%s, but the operand makes %s" % (list(item.shape), list(shape)))
    if dtype != item.dtype:
        raise wrong(item.where + ".expect.dtype", "%s, but the operand makes %s" % (item.dtype, dtype))


def made_of(item: Input, tensors: Tuple[PtTensor, ...]) -> Tuple[Shape, str]:
    """Shape and dtype of what the operand makes of these tensors. Raises OperandError with the path inside the operand."""
    shapes: List[Shape] = []
    dtypes: List[str] = []
    for at, (source, tensor) in enumerate(zip(item.operand.sources, tensors)):
        where = "sources[%d].steps" % at
        shapes.append(operands.shape_after(source.steps or (), tensor.shape, where))
        dtypes.append(_dtype_after(source.steps or (), tensor.dtype, where))
    if item.operand.combine == "zeros":
        return (operands.combined_shape(item.operand, shapes) if shapes else item.shape), item.dtype
    for at, dtype in enumerate(dtypes):
        if dtype != dtypes[0]:
            raise OperandError("sources[%d]" % at, "%s of %s and %s" % (item.operand.combine, dtypes[0], dtype))
    if item.operand.combine == "sum" and not _ADDS.match(dtypes[0]):
        raise OperandError("combine", "sum of %s, which is not done here" % dtypes[0])
    return operands.combined_shape(item.operand, shapes), dtypes[0]


def _dtype_after(steps: Any, dtype: str, where: str) -> str:
    for at, op in enumerate(steps):
        if op.op == "cast":
            dtype = op.dtype
        if op.op == "add" and not _ADDS.match(dtype):
            raise OperandError("%s[%d]" % (where, at), "an addition to %s, which is not done here" % dtype)
        if op.op == "add" and "int" in dtype and op.value != int(op.value):
            raise OperandError("%s[%d]" % (where, at), "an addition of %r to %s" % (op.value, dtype))
    return dtype


def _spoiled_inputs(instruction: Instruction, source: Recorded) -> List[Dict[str, Any]]:
    """Before 26.2 msprobe took a module's inputs after it ran: those of a module that works in place are its results."""
    taken = sorted({wanted.name for _, item in instruction.inputs() for wanted in item.operand.sources if _is_input(wanted.name)})
    post_call = taken and any(recorded.inputs_are(unit) == release.POST_CALL for unit in source.units)
    return [word("source_inputs_post_call", names=taken[:_SHOWN])] if post_call else []


def _is_input(name: str) -> bool:
    parsed = names.parse_tensor(name)
    return parsed is not None and parsed.category in ("input", "kwargs")
