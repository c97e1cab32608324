"""Operands drawn at random over tensors of every format, each with what numpy makes of it where numpy knows the format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from dumping import DTYPES, Tensor, of_bits, output_of

FLOATS = ("float64", "float32", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
ONLY_MOVED = ("float8_e4m3fn", "float8_e5m2", "bool", "complex64")  # ops that change values are refused for them
ADDENDS = (1.0, -3.0, 0.1, 1e-3, 65504.0)


class Drawn(NamedTuple):
    """``sources``: tensors by name, each recorded as that module's output; ``operand``: as JSON; and what it must make."""

    name: str
    sources: dict[str, Tensor]
    operand: dict[str, Any]
    shape: tuple[int, ...]
    dtype: str


def drawn(count: int, seed: int) -> Iterator[Drawn]:
    """Operands of one source with up to five ops, sums and cats of up to three."""
    random = np.random.default_rng(seed)
    for at in range(count):
        dtype = str(random.choice([*FLOATS, *FLOATS, *INTEGERS, *ONLY_MOVED]))
        shape = tuple(int(size) for size in random.integers(1, 6, random.integers(1, 5)))
        combine = [None, None, "sum", "cat"][random.integers(4)] if dtype != "bool" else None
        if combine == "sum" and dtype in ONLY_MOVED:
            combine = "cat"
        parts = 1 if combine is None else int(random.integers(2, 4))
        names = [f"m{at}.{part}" for part in range(parts)]
        sources = {name: _tensor(random, shape, dtype) for name in names}
        steps, after, kind = _steps(random, shape, dtype)
        operand = {"sources": [{"name": output_of(name), "steps": steps} for name in names], "combine": combine}
        if combine == "cat":
            axis = int(random.integers(-len(after), len(after))) if after else 0
            operand["axis"] = axis
            after = tuple(size * parts if at == axis % len(after) else size for at, size in enumerate(after))
        if after:
            yield Drawn(f"m{at}", sources, operand, after, kind)


def _tensor(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Any bits (NaN, infinities, signed zeros and subnormals among them) or ordinary numbers; contiguous, or with its axes turned."""
    raw = np.dtype(DTYPES[dtype][0])
    drawn = random.integers(0, 256, (*shape, raw.itemsize), dtype=np.uint8)
    if dtype == "bool":
        drawn &= 1
    bits = np.ascontiguousarray(drawn).view(raw).reshape(shape)
    if dtype in FLOATS and random.integers(3):
        numbers = random.normal(size=shape)
        bits = (numbers.astype("<f4").view("<u4") >> 16).astype(raw) if dtype == "bfloat16" else numbers.astype(dtype).view(raw)
    if random.integers(2):
        return of_bits(bits, dtype)
    turned = of_bits(bits.T, dtype)
    strides = [math.prod(shape[:at]) for at in range(len(shape))]
    return Tensor(turned.storage, dtype, shape, tuple(strides))


def _steps(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> tuple[list[dict[str, Any]], tuple[int, ...], str]:
    steps: list[dict[str, Any]] = []
    for _ in range(random.integers(0, 6)):
        kind = str(random.choice(["squeeze", "slice", "take", "runs", "reshape", "permute", "cast", "add"]))
        axis = int(random.integers(-len(shape), len(shape))) if shape else 0
        size = shape[axis] if shape else 0
        if kind == "squeeze" and 1 in shape and len(shape) > 1:
            axis = shape.index(1)
            steps.append({"op": "squeeze", "axis": axis - int(random.integers(2)) * len(shape)})
            shape = shape[:axis] + shape[axis + 1 :]
        elif kind == "slice" and size:
            start = int(random.integers(0, size))
            stop = int(random.integers(start + 1, size + 1))
            steps.append({"op": "slice", "axis": axis, "start": start, "stop": stop})
            shape = _replaced(shape, axis, stop - start)
        elif kind == "take" and size:
            index = [int(one) for one in random.integers(-size, size, random.integers(1, 5))]
            steps.append({"op": "take", "axis": axis, "index": index})
            shape = _replaced(shape, axis, len(index))
        elif kind == "runs" and size > 1:
            middle = int(random.integers(1, size))
            steps.append({"op": "take", "axis": axis, "runs": [[middle, size], [0, middle]]})
        elif kind == "reshape":
            shape = [(math.prod(shape),), (1, *shape), (*shape[:-2], math.prod(shape[-2:]))][random.integers(3)]
            steps.append({"op": "reshape", "shape": list(shape)})
        elif kind == "permute" and len(shape) > 1:
            axes = [int(one) for one in random.permutation(len(shape))]
            steps.append({"op": "permute", "axes": axes})
            shape = tuple(shape[axis] for axis in axes)
        elif kind == "cast" and dtype in FLOATS:
            dtype = str(random.choice(FLOATS))
            steps.append({"op": "cast", "dtype": dtype})
        elif kind == "cast" and dtype in INTEGERS[1:4]:
            dtype = "int64"
            steps.append({"op": "cast", "dtype": dtype})
        elif kind == "add" and dtype in FLOATS:
            steps.append({"op": "add", "value": float(random.choice(ADDENDS))})
        elif kind == "add" and dtype in INTEGERS:
            steps.append({"op": "add", "value": float(random.integers(0, 4))})
    return steps, shape, dtype


def _replaced(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    at = axis % len(shape)
    return (*shape[:at], size, *shape[at + 1 :])
