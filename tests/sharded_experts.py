"""Routed experts of a recorded network on several ranks: other experts on each, named from 0 again, or every expert cut."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sharding
from dumping import of, write_unit
from networks import EXPERTS, MIDDLE, Recording

Array = np.ndarray[Any, Any]
RANKS = 2
LOCAL = EXPERTS // RANKS


def named(record: Recording) -> Recording:
    """Modules called by what they are, as Megatron-core's are: a list of experts below a layer."""
    made = Recording(())
    called = {entry: f"Module.{_path(role)}.M.forward.0" for role, entry in record.roles.items()}
    made.roles = {role: called[entry] for role, entry in record.roles.items()}
    made.entries = {called[entry]: content for entry, content in record.entries.items()}
    made.trace = {called[entry]: called[parent] if parent else None for entry, parent in record.trace.items()}
    return made


def _around(record: Recording, layer: str, numbers: Sequence[int]) -> dict[str, Any]:
    """What the module around some experts of a layer records: their rows one expert after the other, and how many each has."""
    ran = [number for number in numbers if f"{layer}.experts.{number}.down" in record.roles]
    taken, returned = (
        [record.entries[record.roles[f"{layer}.experts.{number}.{role}"]][slot][0] for number in ran]
        for role, slot in (("gate_up", "input"), ("down", "output"))
    )
    rows = {number: tensor.shape[0] for number, tensor in zip(ran, taken, strict=True)}
    counts = of(np.array([rows.get(number, 0) for number in numbers]), "int64")
    together = [of(np.concatenate([sharding.values_of(tensor) for tensor in each])) for each in (taken, returned)]
    return {"input": [together[0], counts], "output": [together[1]], "parameters": {}}


def write(root: Path, record: Recording) -> str:
    """One rank with all experts."""
    made = with_lists(record, range(EXPERTS))
    return str(write_unit(root, made.entries, trace=made.trace))


def with_lists(record: Recording, numbers: Sequence[int]) -> Recording:
    """The recording of a rank that holds some of the experts, with the module around those of each layer."""
    made = Recording(())
    made.roles = dict(record.roles)
    kept = {entry: role for role, entry in record.roles.items() if (number := number_of(role)) is None or number in numbers}
    made.entries = {entry: content for entry, content in record.entries.items() if entry in kept}
    made.trace = {entry: parent for entry, parent in record.trace.items() if entry in kept}
    for layer in dict.fromkeys(role.partition(".experts.")[0] for role in record.roles if number_of(role) is not None):
        role, entry = f"{layer}.experts", f"Module.{layer}.mlp.experts.SequentialMLP.forward.0"
        inside = [one for one in made.trace if f"{layer}.mlp.experts.local_experts." in one]
        made.roles[role] = entry
        made.trace = dict(_inserted(made.trace, inside[0], entry, made.trace[inside[0]], before=True)) | dict.fromkeys(inside, entry)
        last = [one for one in made.entries if one in inside][-1]
        made.entries = dict(_inserted(made.entries, last, entry, _around(record, layer, numbers), before=False))
    return made


def _inserted(given: dict[str, Any], beside: str, key: str, value: Any, *, before: bool) -> Iterator[tuple[str, Any]]:
    for one, content in given.items():
        pair = [(one, content), (key, value)]
        yield from (pair[::-1] if before else pair) if one == beside else pair[:1]


def _path(role: str) -> str:
    parts = role.split(".")
    if "experts" in parts and parts[-1] != "experts":
        at = parts.index("experts")
        parts = [*parts[:at], "mlp", "experts", "local_experts", *parts[at + 1 :]]
    return ".".join(parts)


def number_of(role: str) -> int | None:
    """The number of the expert that a module is a part of."""
    parts = role.split(".")
    return int(parts[parts.index("experts") + 1]) if "experts" in parts and parts[-1] != "experts" else None


def write_expert_parallel(root: Path, record: Recording, cut: sharding.Cut, inside: sharding.Cut = sharding.copies, shards: int = 1) -> str:
    """Each rank, or ``shards`` of them, holds the next experts, numbered from 0 and cut as ``inside`` says; all else as ``cut`` says."""
    for rank in range(RANKS * shards):
        group, shard = divmod(rank, shards)
        made = with_lists(record, range(group * LOCAL, (group + 1) * LOCAL))
        roles = {entry: role for role, entry in made.roles.items() if entry in made.entries}
        local = {entry: _moved(entry, number_of(role), group) for entry, role in roles.items()}
        held = {}
        for entry, content in made.entries.items():
            role = roles[entry]
            routed = role.endswith(".experts") or number_of(role) is not None
            held[local[entry]] = sharding.cut_entry(role, content, inside if routed else cut, shard if routed else group)
        write_unit(root, held, rank=rank, trace={local[entry]: local[parent] if parent else None for entry, parent in made.trace.items()})
    return str(root)


def _moved(entry: str, number: int | None, rank: int) -> str:
    """An expert's entry as its rank calls it."""
    return entry if number is None else entry.replace(f".local_experts.{number}.", f".local_experts.{number - rank * LOCAL}.")


def expert_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Every expert on every rank: rows of gate and up, columns of down, whose results are not yet summed."""
    if number_of(role) is None and not role.endswith(".experts"):
        return values
    if role.endswith("gate_up") and slot != "input":
        axis = 0 if slot == "weight" else 1
        gate, up = np.split(values, [MIDDLE], axis)
        return np.concatenate([np.split(part, RANKS, axis)[rank] for part in (gate, up)], axis)
    if role.endswith(".experts") and slot == "output":
        return sharding.partial(values, rank)
    if role.endswith("down"):
        return sharding.partial(values, rank) if slot == "output" else np.split(values, RANKS, 1)[rank]
    return values


def stack_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """An engine's stacked experts under tensor parallelism: [gate shard; up shard] of each, and columns of down."""
    if slot == "weight" and at == "w13":
        return np.concatenate([np.split(part, RANKS, 1)[rank] for part in np.split(values, 2, 1)], 1)
    if slot == "weight" and at == "w2":
        return np.split(values, RANKS, 2)[rank]
    return sharding.partial(values, rank) if role.endswith(".experts") and slot == "output" else values


def stacks_apart(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """An engine's stacked experts under expert parallelism: other experts on each rank, whose results are not yet summed."""
    if slot == "weight" and at in ("w13", "w2"):
        return np.split(values, RANKS, 0)[rank]
    return sharding.partial(values, rank) if role.endswith(".experts") and slot == "output" else values
