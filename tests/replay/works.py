"""Modules that are held in memory, as replay reads those that were recorded."""

from collections.abc import Sequence

import numpy as np
from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import Matrix
from dump_analysis.tensors import Stream


class Held:
    """Raw elements in memory; ``reads`` counts those that were asked for."""

    pitch = 1
    addends: Sequence[Stream] = ()

    def __init__(self, dtype: str, raw: Array) -> None:
        self.dtype, self.shape, self.raw, self.reads = dtype, raw.shape, raw.reshape(-1), 0

    def read(self, start: int, stop: int) -> Array:
        self.reads += stop - start
        found: Array = self.raw[start:stop]
        return found


def matrix(name: str, numbers: Array, dtype: str) -> Matrix:
    """Numbers [rows, columns] on the grid of a format; integers as they are."""
    raw = numbers if dtype == "int64" else floats.rounded(numbers, dtype)
    return Matrix(name, dtype, *numbers.shape, Held(dtype, raw))


def work(operators: tuple[str, ...], output: Array, inputs: Sequence[Array], weights: dict[str, Array], dtype: str = "bfloat16") -> Work:
    """A module that recorded these; weights are matrices, a vector being one row; integer inputs are ids."""
    given = tuple(matrix(str(at), made, "int64" if made.dtype == np.int64 else dtype) for at, made in enumerate(inputs))
    own = {name: matrix(name, made.reshape(-1, made.shape[-1]), dtype) for name, made in weights.items()}
    return Work("Module.m.M.forward.0", (), operators, matrix("out", output, dtype), given, own, "recorded", (), "pre_call")
