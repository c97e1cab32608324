"""Operands applied and files written by torch; the only module of the collection, beside two commands, that needs it."""

import os
from typing import Any, NamedTuple, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from .plan import Planned


class Likeness(NamedTuple):
    """How far two tensors are equal, bit for bit: elements, and shape and dtype of the first and the second."""

    equal: int
    of: int
    shapes: Tuple[Tuple[int, ...], Tuple[int, ...]]
    dtypes: Tuple[str, str]

    @property
    def same(self) -> bool:
        return self.shapes[0] == self.shapes[1] and self.dtypes[0] == self.dtypes[1] and self.equal == self.of


def torch_here() -> Any:
    """The module torch. Raises DumpError where it is not installed."""
    try:
        import torch
    except ImportError:
        raise DumpError(
            "Cannot read or write tensors: torch is not installed here. Run this where the model runs, or install torch."
        ) from None
    return torch


def write(planned: Planned, path: str) -> None:
    """Make one file's tensor and save it, contiguous, as msprobe saves its own. Raises DumpError where the disk does not take it."""
    torch = torch_here()
    made = _made(planned, torch).contiguous().clone()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        torch.save(made, path)
    except RuntimeError as error:  # what torch's zip writer raises on a full disk
        raise DumpError(
            "Cannot write %s: %s. Free the disk, or choose another --output-dir." % (path, str(error).splitlines()[0])
        ) from None


def _made(planned: Planned, torch: Any) -> Any:
    item, operand = planned.input, planned.input.operand
    if operand.combine == "zeros":
        # -0.0: adding it keeps every bit, while -0.0 + 0.0 would give +0.0
        return torch.full(item.shape, -0.0, dtype=torch.float64).to(_dtype(item.dtype, torch))
    parts = []
    for source, tensor in zip(operand.sources, planned.tensors):
        value = load(tensor.path)
        for op in source.steps or ():
            value = applied(value, op, torch)
        parts.append(value)
    if operand.combine == "cat":
        return torch.cat(parts, dim=-1 if operand.axis is None else operand.axis)
    total = parts[0]
    for part in parts[1:]:
        total = total + part  # rounded to the dtype after each addition
    return total


def applied(value: Any, op: Op, torch: Any) -> Any:
    """One op on a torch tensor; that it fits was checked on shapes."""
    if op.op == "squeeze":
        return value.squeeze(op.axis)
    if op.op == "slice":
        axis = op.axis % value.dim()
        return value[(slice(None),) * axis + (slice(op.start, op.stop),)]
    if op.op == "take":
        size = value.shape[op.axis]
        picked = torch.tensor([index % size for index in op.picked], dtype=torch.int64)
        return value.index_select(op.axis, picked)
    if op.op == "reshape":
        return value.reshape(op.shape)
    if op.op == "permute":
        return value.permute(op.axes)
    if op.op == "cast":
        return value.to(_dtype(op.dtype, torch))
    if value.dtype in (torch.bfloat16, torch.float16):
        return (value.float() + op.value).to(value.dtype)  # in the format itself torch rounds the addend first; the analysis does not
    return value + (op.value if value.is_floating_point() else int(op.value))


def _dtype(name: str, torch: Any) -> Any:
    found = getattr(torch, name, None)
    if found is None:
        raise DumpError("Cannot make a tensor of %s: torch %s does not have it. Use a newer torch." % (name, torch.__version__))
    return found


def load(path: str) -> Any:
    """One tensor on the CPU, whatever device saved it. Raises DumpError where torch cannot read it."""
    torch = torch_here()
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001  # a damaged file raises whatever its pickle or zip code raises
        why = (str(error).splitlines() or ["?"])[0]
        raise DumpError(
            "Cannot read %s: %s: %s. Copy or dump the file again." % (os.path.basename(path), type(error).__name__, why)
        ) from None
    if not isinstance(value, torch.Tensor):
        raise DumpError("Cannot read %s: it holds a %s, no tensor. Dump it again." % (os.path.basename(path), type(value).__name__))
    return value


def likeness(first: str, second: str) -> Likeness:
    """Compare two files bit for bit, so that -0.0 is not 0.0 and equal NaN are equal."""
    torch = torch_here()
    left, right = load(first), load(second)
    shapes = (tuple(left.shape), tuple(right.shape))
    dtypes = (str(left.dtype).split(".")[-1], str(right.dtype).split(".")[-1])
    of = left.numel()
    if shapes[0] != shapes[1] or dtypes[0] != dtypes[1]:
        return Likeness(0, of, shapes, dtypes)
    rows = [tensor.contiguous().reshape(-1, 1).view(torch.uint8) for tensor in (left, right)]
    return Likeness(int((rows[0] == rows[1]).all(dim=1).sum()), of, shapes, dtypes)
