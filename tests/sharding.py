"""A recorded network cut into ranks, stages and dump steps, as trainers and engines cut theirs: each part is known by construction."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from dumping import Tensor, of, write_unit
from networks import HEAD, HEADS, KEYS, LAYERS, MIDDLE, TOKENS, Recording

Array = np.ndarray[Any, Any]
Cut = Callable[[str, str, int | str, Array, int], Array]  # role, slot, place, whole, rank -> what the rank holds
RANKS = 2
_Q, _FUSED = HEADS * HEAD, HEADS * HEAD + 2 * KEYS


def write_ranks(root: Path, record: Recording, cut: Cut, ranks: Sequence[int] = range(RANKS), step: int = 0) -> str:
    """One step of several ranks under ``root``: every tensor as ``cut`` says."""
    roles = {entry: role for role, entry in record.roles.items()}
    for rank in ranks:
        entries = {entry: cut_entry(roles[entry], content, cut, rank) for entry, content in record.entries.items()}
        write_unit(root, entries, step=step, rank=rank, trace=record.trace)
    return str(root)


def cut_entry(role: str, content: dict[str, Any], cut: Cut, rank: int) -> dict[str, Any]:
    """What a rank holds of an entry."""
    made: dict[str, Any] = {}
    for slot in ("input", "output"):
        made[slot] = [_of(cut(role, slot, at, values_of(tensor), rank), tensor) for at, tensor in enumerate(content[slot])]
    made["parameters"] = {name: _of(cut(role, "weight", name, values_of(t), rank), t) for name, t in content["parameters"].items()}
    return made


def values_of(tensor: Tensor) -> Array:
    """[tokens, columns] without the batch axis; weights and vectors as they are."""
    kind = {"float32": "<f4", "int64": "<i8", "bool": "?"}[tensor.dtype]
    values: Array = tensor.storage.view(kind).reshape(tensor.shape)
    return values[0] if len(tensor.shape) > 1 and tensor.shape[0] == 1 and tensor.shape[1] == TOKENS else values


def _of(values: Array, whole: Tensor) -> Tensor:
    batched = len(whole.shape) == values.ndim + 1
    return of(values[None] if batched else values, whole.dtype)


# --- tensor parallel ---


def _half(values: Array, rank: int, axis: int = -1) -> Array:
    size = values.shape[axis] // RANKS
    return values.take(range(rank * size, (rank + 1) * size), axis)


def _fused(values: Array, rank: int, edges: Sequence[int], axis: int) -> Array:
    """A rank's shard of a fused matrix: its half of every part, one after the other."""
    return np.concatenate([_half(part, rank, axis) for part in np.split(values, edges, axis)], axis)


def partial(values: Array, rank: int) -> Array:
    """Two addends whose float32 sum is exactly the whole: a coarse one and what is left."""
    coarse = (np.ascontiguousarray(values, "<f4").view("<u4") & np.uint32(0xFFFF8000)).view("<f4")
    left: Array = values - coarse
    return coarse if rank == 0 else left


def engine_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """SGLang's and vLLM's layout: [q | k | v] and [gate | up] of each rank, row-parallel results not yet summed."""
    name = role.rsplit(".", 1)[-1]
    if role == "embedding":
        return _half(values, rank, 0) if slot == "weight" else values
    if name in ("qkv", "gate_up") and slot != "input":
        edges = [_Q, _Q + KEYS] if name == "qkv" else [MIDDLE]
        return _fused(values, rank, edges, 0 if slot == "weight" else 1)
    if name == "act" and slot == "input":
        return _fused(values, rank, [MIDDLE], 1)
    if name in ("rotary", "core", "act") and values.ndim == 2:
        return _half(values, rank)
    if name in ("o_proj", "down"):
        return partial(values, rank) if slot == "output" else _half(values, rank)
    return values


def four_engine_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Four ranks and two heads of k and v: each rank has a head of q, and each head of k and v lies on two ranks."""
    name = role.rsplit(".", 1)[-1]
    axis = 0 if slot == "weight" else 1
    if name == "qkv" and slot != "input":
        q, k, v = np.split(values, [_Q, _Q + KEYS], axis)
        return np.concatenate([np.split(q, 4, axis)[rank], _half(k, rank // 2, axis), _half(v, rank // 2, axis)], axis)
    if name in ("rotary", "core") and values.ndim == 2:
        return np.split(values, 4, 1)[rank] if values.shape[1] == _Q else _half(values, rank // 2)
    if name == "gate_up" and slot != "input":
        return np.concatenate([np.split(part, 4, axis)[rank] for part in np.split(values, 2, axis)], axis)
    if name == "act" and slot == "input":
        return np.concatenate([np.split(part, 4, 1)[rank] for part in np.split(values, 2, 1)], 1)
    if (name in ("o_proj", "down") and slot != "output") or (name == "act" and slot == "output"):
        return np.split(values, 4, -1)[rank]
    if name in ("o_proj", "down"):
        return partial(partial(values, rank // 2), rank % 2)
    return np.split(values, 4, 0)[rank] if (role, slot) == ("embedding", "weight") else values


def without_weights(cut: Cut) -> Cut:
    """Matrices that were freed or packed before the dump: recorded with no elements, as vLLM does."""

    def changed(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
        made = cut(role, slot, at, values, rank)
        return made[:0].reshape(-1) if slot == "weight" and made.ndim > 1 else made

    return changed


def trainer_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Megatron's layout with matrices of their own: column-parallel q, k, v, gate, up, words; row-parallel results summed inside."""
    name = role.rsplit(".", 1)[-1]
    if role in ("embedding", "lm_head"):
        return _half(values, rank, 0) if slot == "weight" else _half(values, rank) if (role, slot) == ("lm_head", "output") else values
    if name in ("q", "k", "v", "gate", "up") and slot != "input":
        return _half(values, rank, 0 if slot == "weight" else 1)
    if name == "act":
        return _half(values, rank)
    if name in ("o_proj", "down") and slot != "output":
        return _half(values, rank)
    return values


def sequence_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Megatron's sequence parallel on top: norms, residual stream and what enters column-parallel modules hold half of the tokens."""
    values = trainer_shards(role, slot, at, values, rank)
    name = role.rsplit(".", 1)[-1]
    in_stream = name.isdigit() or "norm" in name or name in ("attention", "mlp") or (role == "embedding" and slot == "output")
    enters = name in ("q", "k", "v", "gate", "up", "lm_head") and slot == "input"
    leaves = name in ("o_proj", "down") and slot == "output"
    return _half(values, rank, 0) if slot != "weight" and (in_stream or enters or leaves) else values


def zigzag_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Context parallel: rank 0 holds the first and the last quarter of the tokens, rank 1 what is between."""
    if slot == "weight" or values.shape[0] != TOKENS:
        return values
    quarter = TOKENS // 4
    first, last = rank * quarter, (3 - rank) * quarter
    return np.concatenate([values[first : first + quarter], values[last : last + quarter]])


def gathered_shards(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Column-parallel q, k, v, gate and up whose results each rank gathers: matrices and biases are cut, what they return is whole."""
    name = role.rsplit(".", 1)[-1]
    return _half(values, rank, 0) if slot == "weight" and name in ("q", "k", "v", "gate", "up") else values


def copies(role: str, slot: str, at: int | str, values: Array, rank: int) -> Array:
    """Data parallel or FSDP: every rank ran the same."""
    return values


# --- stages and steps ---


def write_stages(root: Path, record: Recording, ranks: Sequence[int] = (0, 1)) -> str:
    """Pipeline parallel: the last layer, the final norm and the head on the second rank, whose layer bears the names of the first one's.

    ``ranks``: the numbers of the two.
    """
    last = f"layers.{LAYERS - 1}"
    later = {role: entry for role, entry in record.roles.items() if role == last or role.startswith((f"{last}.", "final_norm", "lm_head"))}
    called = {entry: record.roles.get(role.replace(last, "layers.0", 1), entry) for role, entry in later.items()}
    for stage, rank in enumerate(ranks):
        own = {entry: content for entry, content in record.entries.items() if (entry in called) == bool(stage)}
        trace = {entry: parent for entry, parent in record.trace.items() if entry in own}
        named = called if stage else {}
        write_unit(
            root,
            {named.get(entry, entry): content for entry, content in own.items()},
            rank=rank,
            trace={named.get(entry, entry): named.get(parent, parent) if parent else None for entry, parent in trace.items()},
        )
    return str(root)


def write_chunks(root: Path, record: Recording, edges: Sequence[int], cut: Cut | None = None) -> str:
    """One prompt in several dump steps: step n holds the tokens between two edges, of each rank where ``cut`` makes ranks."""
    for step, (start, stop) in enumerate(itertools.pairwise(edges)):

        def rows(role: str, slot: str, at: int | str, values: Array, rank: int, start: int = start, stop: int = stop) -> Array:
            whole = values if cut is None else cut(role, slot, at, values, rank)
            return whole[start:stop] if slot != "weight" and whole.shape[0] == TOKENS else whole

        write_ranks(root, record, rows, range(RANKS if cut is not None else 1), step)
    return str(root)
