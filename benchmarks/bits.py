"""bfloat16 values as bits: drawn, changed by one ULP at known places, widened, rounded and added."""

from typing import Any, NamedTuple

import numpy as np

Bits = np.ndarray[Any, np.dtype[Any]]  # uint16: bfloat16 bits
Floats = np.ndarray[Any, np.dtype[np.float32]]
_SPARSE_BELOW = 3277  # of 65536: 5 % of a value's elements
_DENSE_BELOW = 43691  # two thirds


class Made(NamedTuple):
    """The bits of a value on one side; of a pair also its two parts. ``planted``: how many elements differ from the train side."""

    whole: Bits
    parts: dict[str, Bits]
    planted: int


def draw(lot: np.random.Generator, shape: tuple[int, ...]) -> Bits:
    """Random bfloat16 bits: any sign and mantissa, exponents 120 to 127."""
    found = lot.integers(0, 1 << 16, shape, np.uint16)
    found &= 0x83FF
    found |= 0x3C00
    return found


def plant(lots: np.random.Generator, bits: Bits, *, dense: bool) -> tuple[Bits, Bits]:
    """Where elements change, and the changed bits: up by one ULP (sparse), or up or down by one (dense); zeros stay."""
    lot = lots.integers(0, 1 << 16, bits.shape, np.uint16)
    planted = (lot < (_DENSE_BELOW if dense else _SPARSE_BELOW)) & (bits & 0x7FFF != 0)
    away = lot & 1 if dense else bits < 0x8000  # away from zero: upwards for positive numbers
    step = away.astype(np.uint16) * np.uint16(2) - np.uint16(1)  # 1, or 65535: one less, modulo 65536
    step *= planted
    return planted, bits + step


def wide(bits: Bits) -> Floats:
    """bfloat16 bits as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def nearest(values: Floats) -> Bits:
    """float32 numbers rounded to the nearest bfloat16, ties to even."""
    codes = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((codes + ((codes >> 16) & 1) + np.uint32(0x7FFF)) >> 16).astype(np.uint16)


def rounded_sum(left: Bits, right: Bits) -> Bits:
    """bfloat16 sums as engines form them: added in float32, then rounded."""
    return nearest(wide(left) + wide(right))
