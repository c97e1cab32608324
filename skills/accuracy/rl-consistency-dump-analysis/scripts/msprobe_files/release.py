"""Which msprobe release made a unit, and whether it recorded module inputs before or after the call.

dump.json has no version field.  Measured on dumps of 8.1.2, 8.3.3, 26.0.0, 26.1.0.post1 and 26.2.0:
every release before 26.2.0 stores the inputs of a *module* after it ran, so a module that works in
place (the fused add + norm of vLLM and SGLang) shows its results there.
"""

import json
import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import names, pt_archive
from .errors import DumpError
from .units import Record, Unit, tensor_path

PRE_CALL, POST_CALL, UNKNOWN = "pre_call", "post_call", "unknown"
_HEAD = 4096  # bytes
_SUMMED = {"bfloat16", "float16", "float32"}
_LARGEST_SUM = 1 << 22  # elements; one hit proves the rule, so larger tensors are not needed for it


def inputs_are(unit: Unit) -> str:
    """``pre_call``, ``post_call`` or ``unknown``: when this unit took its module inputs.

    stack.json's top frame decides where it is there.  Else the data: ``post_call`` where some class
    that owns parameters has, in every call with as many tensors (an engine's first norm gets no
    residual), each ``output.i`` bit-equal to ``input.i``; ``pre_call`` where some ``output.j`` is the
    rounded sum of two inputs of its entry (add + norm).
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
    if not outputs:
        return False
    for output in outputs:
        twin = inputs.get(output.suffix)
        if twin is None or (twin.shape, twin.dtype) != (output.shape, output.dtype):
            return False
        if _bytes(unit, output, _HEAD) != _bytes(unit, twin, _HEAD):
            return False  # most unequal tensors part at once
        data = _bytes(unit, output)
        # A tensor of zeros equals anything zero: a dummy run proves nothing.
        if data is None or data.count(0) == len(data) or data != _bytes(unit, twin):
            return False
    return True


def _is_add_and_more(unit: Unit, records: Tuple[Record, ...]) -> bool:
    inputs = [record for record in records if record.category == "input" and record.dtype in _SUMMED]
    outputs = [record for record in records if record.category == "output" and record.dtype in _SUMMED]
    for output in outputs if len(inputs) >= 2 else ():
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
    """output == left + right, rounded once to their dtype, where neither addend is zero."""
    count = 1
    for size in output.shape or ():
        count *= size
    if not 0 < count <= _LARGEST_SUM:
        return False
    a, b, wanted = (_values(unit, record) for record in (left, right, output))
    if a is None or b is None or wanted is None or not (a.any() and b.any()):
        return False
    import numpy as np

    if not a.shape == b.shape == wanted.shape:
        return False  # a file that does not hold what dump.json says
    with np.errstate(all="ignore"):
        return bool(np.array_equal(_rounded_sum(a, b, str(output.dtype)), wanted))


def _rounded_sum(a: Any, b: Any, dtype: str) -> Any:
    import numpy as np

    total = a + b
    if dtype == "bfloat16":
        bits = total.view(np.uint32)
        bits = (bits + (((bits >> 16) & 1) + 0x7FFF)) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return total.astype(np.float16).astype(np.float32) if dtype == "float16" else total


def _values(unit: Unit, record: Record) -> Any:
    """A tensor as float32 (exact for the three dtypes asked for), None where it cannot be read."""
    data = _bytes(unit, record)
    if data is None:
        return None
    import numpy as np

    if record.dtype == "bfloat16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, "<f2" if record.dtype == "float16" else "<f4").astype(np.float32)


def _bytes(unit: Unit, record: Record, most: Optional[int] = None) -> Optional[bytes]:
    try:
        tensor = pt_archive.read_header(tensor_path(unit, record))
        return pt_archive.read_bytes(tensor, most) if tensor.dtype == record.dtype else None
    except DumpError:
        return None  # a file that cannot be read is no evidence; the comparison reports it as MISSING
