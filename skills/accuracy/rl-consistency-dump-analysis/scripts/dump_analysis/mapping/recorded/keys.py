"""64-bit keys of rows of numbers, to find equal ones among many."""

import numpy as np

from dump_analysis.floats import Array

_ODD = np.random.default_rng(1).integers(1, 1 << 62, 1 << 16, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def keys_of(rows: Array) -> Array:
    """One uint64 for each row of float32 values; equal rows have equal keys, others practically never."""
    if not len(rows):
        return np.empty(0, np.uint64)
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32).reshape(len(rows), -1).astype(np.uint64)
    count = bits.shape[1]
    odd = _ODD[:count] if count <= len(_ODD) else np.resize(_ODD, count)
    keys: Array = (bits * odd).sum(1, dtype=np.uint64)
    return keys


def places_of(keys: Array, wanted: Array) -> Array:
    """The place among ``keys`` of each wanted key (of several the first), −1 where it is absent."""
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    at = np.minimum(np.searchsorted(ordered, wanted), len(keys) - 1)
    return np.where(ordered[at] == wanted, order[at], -1)
