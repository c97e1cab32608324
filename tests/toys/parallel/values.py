"""Operands of ``truth`` applied by torch alone: files read by torch.load, cut by torch's indexing."""

from collections.abc import Callable
from functools import cache, reduce
from pathlib import Path

import torch
from torch import Tensor

from .truth import Op, Operand

Read = Callable[[str, int, int], Tensor]


@cache
def reader(root: Path) -> Read:
    """Tensors of a dump by name, rank and step; each is read once."""

    @cache
    def read(name: str, rank: int, step: int) -> Tensor:
        (folder,) = [*root.glob(f"step{step}/rank{rank}"), *root.glob(f"step{step}/proc*")]
        loaded: Tensor = torch.load(folder / "dump_tensor_data" / f"{name}.pt", map_location="cpu", weights_only=True)
        return loaded

    return read


def value(read: Read, operand: Operand) -> Tensor:
    """The tensor that an operand stands for."""
    if "name" in operand:
        return reduce(applied, operand["steps"], read(operand["name"], operand["rank"], operand["dump_step"]))
    parts = [value(read, source) for source in operand["sources"]]
    if operand["combine"] == "cat":
        return reduce(applied, operand["steps"], torch.cat(parts, operand["axis"]))
    return reduce(applied, operand["steps"], reduce(torch.add, parts))


def applied(tensor: Tensor, op: Op) -> Tensor:
    """One op."""
    if op["op"] == "squeeze":
        return tensor.squeeze(op["axis"])
    if op["op"] == "reshape":
        return tensor.reshape(op["shape"])
    if op["op"] == "take":
        return tensor.index_select(op["axis"], torch.tensor(op["index"]))
    if op["op"] == "permute":
        return tensor.permute(op["axes"])
    assert op["op"] == "slice", op
    return tensor[(slice(None),) * op["axis"] + (slice(op.get("start"), op.get("stop")),)]
