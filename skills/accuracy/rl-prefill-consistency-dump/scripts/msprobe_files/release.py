"""Which msprobe release made a unit, and whether it recorded module inputs before or after the call.

dump.json has no version field.  Measured on dumps of 8.1.2, 8.3.3, 26.0.0, 26.1.0.post1 and 26.2.0:
every release before 26.2.0 stores the inputs of a *module* after it ran, so a module that works in
place (the fused add + norm of vLLM and SGLang) shows its results there.
"""

import json
import math
import operator
import os
import struct
from array import array
from typing import Dict, Iterator, List, Tuple

from . import names, pt_archive
from .errors import DumpError
from .units import Record, Unit, tensor_path

PRE_CALL, POST_CALL, UNKNOWN = "pre_call", "post_call", "unknown"
_SUMMED = {"bfloat16", "float16", "float32"}
_HALF_OVERFLOWS = 65520.0  # from here on float16 rounds to infinity
_ENOUGH = 1 << 16  # elements that agree in every bit: a sum


def inputs_are(unit: Unit) -> str:
    """``pre_call``, ``post_call`` or ``unknown``: when this unit took its module inputs.

    stack.json's top frame decides where it is there.  Else the data: ``post_call`` where some class
    that owns parameters has, in every call with as many tensors (an engine's first norm gets no
    residual), each of two or more ``output.i`` bit-equal to ``input.i``; ``pre_call`` where one of two or
    more outputs is the rounded sum of two inputs of its entry (add + norm).
    """
    told = _from_stack(unit)
    if told != UNKNOWN:
        return told
    if _in_place_class(unit):
        return POST_CALL
    if any(_is_add_and_more(unit, records) for records in unit.entries.values()):
        return PRE_CALL
    return UNKNOWN


def release_of(unit: Unit, inputs: str) -> str:
    """The range of releases that the marks in a unit leave: ``<=8.3``, ``26.0``, ``26.1``, ``>=26.2`` … or ``unknown``.

    ``inputs``: what `inputs_are` said of the unit.
    """
    marks = unit.marks
    if inputs == PRE_CALL:
        return ">=26.2"
    if marks["bare_parameters_grad"] or os.path.basename(unit.place.folder) == "rank":
        return "<=8.3"
    if marks["is_recompute"]:
        owns = any(record.category == "parameters" for record in unit.records())
        return "26.0" if owns else "<=26.0"  # 8.x writes a bare parameters_grad entry for each owner
    if not unit.entries or not unit.order_known:
        return "unknown"
    return "26.1" if inputs == POST_CALL else ">=26.1"


def _from_stack(unit: Unit) -> str:
    """msprobe's own frame on top of each stack: 26.2 takes inputs in a pre-hook, earlier ones in a forward hook."""
    if "stack.json" not in unit.present:
        return UNKNOWN
    try:
        with open(os.path.join(unit.place.folder, "stack.json"), encoding="utf-8") as file:
            groups = json.load(file)
    except (OSError, ValueError, RecursionError):
        return UNKNOWN  # a broken stack.json costs this hint only; `probe` says that it is broken
    for group in groups.values() if isinstance(groups, dict) else ():
        if not (isinstance(group, list) and len(group) == 2 and isinstance(group[1], list) and group[1]):
            continue
        names_of, top = group[0], str(group[1][0])
        if not (isinstance(names_of, list) and names_of and str(names_of[0]).startswith("Module.")):
            continue
        if "args_kwargs_result" in top:
            return PRE_CALL
        if "hook_result" in top:
            return POST_CALL
    return UNKNOWN


def _in_place_class(unit: Unit) -> bool:
    verdicts: Dict[Tuple[str, int, int], List[bool]] = {}
    for entry, records in unit.entries.items():
        parsed = names.parse_entry(entry)
        owns = any(record.category == "parameters" for record in records)
        if parsed.kind != "module" or parsed.direction != "forward" or not owns:
            continue
        inputs = sum(record.category == "input" for record in records)
        outputs = sum(record.category == "output" for record in records)
        calls = verdicts.setdefault((parsed.class_name, inputs, outputs), [])
        if not calls or calls[-1]:  # one call that differs settles its class
            calls.append(_outputs_are_inputs(unit, records))
    return any(calls and all(calls) for calls in verdicts.values())


def _outputs_are_inputs(unit: Unit, records: Tuple[Record, ...]) -> bool:
    inputs = {record.suffix: record for record in records if record.category == "input"}
    outputs = [record for record in records if record.category == "output"]
    if len(outputs) < 2:
        return False  # one tensor may pass through a module that changes nothing (a scale of ones)
    for output in outputs:
        twin = inputs.get(output.suffix)
        if twin is None or (twin.shape, twin.dtype) != (output.shape, output.dtype):
            return False
        zero = True  # a tensor of zeros equals anything zero: a dummy run proves nothing
        for data, other in _blocks(unit, output, twin):
            if data != other:
                return False
            zero = zero and data.count(0) == len(data)
        if zero:
            return False
    return True


def _is_add_and_more(unit: Unit, records: Tuple[Record, ...]) -> bool:
    inputs = [record for record in records if record.category == "input" and record.dtype in _SUMMED]
    outputs = [record for record in records if record.category == "output" and record.dtype in _SUMMED]
    # A module that only adds works out of place and shows the same inputs whenever they are taken.
    for output in outputs if len(inputs) >= 2 and len(outputs) >= 2 else ():
        alike = [record for record in inputs if record.shape == output.shape and record.dtype == output.dtype]
        for left, right in _pairs(alike):
            if _is_sum(unit, output, left, right):
                return True
    return False


def _pairs(items: List[Record]) -> Iterator[Tuple[Record, Record]]:
    for at, left in enumerate(items):
        for right in items[at + 1 :]:
            yield left, right


def _is_sum(unit: Unit, output: Record, left: Record, right: Record) -> bool:
    """output == left + right, rounded once to their dtype, where neither addend is zero, over the first elements."""
    dtype, seen, elements = str(output.dtype), [False, False], 0
    for parts in _blocks(unit, left, right, output):
        a, b = (_values(data, dtype) for data in parts[:2])
        if _rounded_sum(a, b, dtype) != parts[2]:
            return False
        seen = [seen[0] or any(a), seen[1] or any(b)]
        elements += len(a)
        if elements >= _ENOUGH:
            break
    return all(seen)


def _rounded_sum(a: "array[float]", b: "array[float]", dtype: str) -> bytes:
    """The bytes of a + b in their dtype. Not by numpy: the collector has the standard library alone.

    A float64 sum of two such numbers, rounded again, is the sum rounded once (float64 has more than twice their bits).
    """
    total = array("f" if dtype != "float16" else "d", map(operator.add, a, b))
    if dtype == "float32":
        return total.tobytes()
    if dtype == "bfloat16":
        bits = array("I", total.tobytes())
        return array("H", [(one + 0x7FFF + ((one >> 16) & 1)) >> 16 & 0xFFFF for one in bits]).tobytes()
    return struct.pack("<%de" % len(total), *(math.copysign(math.inf, one) if abs(one) >= _HALF_OVERFLOWS else one for one in total))


def _values(data: bytes, dtype: str) -> "array[float]":
    """Elements as numbers, exact for the three dtypes asked for."""
    if dtype == "bfloat16":
        wide = bytearray(2 * len(data))
        wide[2::4], wide[3::4] = data[0::2], data[1::2]
        return array("f", bytes(wide))
    if dtype == "float16":
        return array("d", struct.unpack("<%de" % (len(data) // 2), data))
    return array("f", data)


def _blocks(unit: Unit, *records: Record) -> Iterator[Tuple[bytes, ...]]:
    """Blocks of tensors of one size, side by side; none where one cannot be read or is not what dump.json says.

    A file that cannot be read is no evidence; the comparison reports it as MISSING.
    """
    try:
        tensors = [pt_archive.read_header(tensor_path(unit, record)) for record in records]
    except DumpError:
        return
    sizes = {tensor.elements for tensor in tensors}
    if len(sizes) > 1 or any(tensor.dtype != record.dtype or not tensor.contiguous for tensor, record in zip(tensors, records)):
        return
    for parts in zip(*(pt_archive.blocks(tensor) for tensor in tensors)):
        yield parts
