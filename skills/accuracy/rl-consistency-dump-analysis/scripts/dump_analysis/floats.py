"""Number formats of torch in numpy: raw elements, exact values, rounding back, non-finite elements.

An element travels as *raw bits* in an unsigned (or the integer's own) numpy type, so that formats
numpy lacks (bfloat16, float8) are handled like the others.  float8 tables: OCP 8-bit floating point
specification (E4M3, E5M2) and torch ``c10/util/Float8_*.h`` (fnuz variants, e8m0fnu).
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


DIGITS = 14  # of what is right to 1e-12; the last two of float64 depend on the order of summation
FEW_DIGITS = 6  # of estimates
_LARGEST = float(np.finfo(np.float64).max)


class Format(NamedTuple):
    """How a dtype is stored. ``kind``: float, int, bool or complex; ``raw``: numpy type of one stored element."""

    kind: str
    raw: "np.dtype[Any]"


def _format(kind: str, raw: str) -> Format:
    return Format(kind, np.dtype(raw))


FORMATS = {
    "float64": _format("float", "<u8"), "float32": _format("float", "<u4"),
    "float16": _format("float", "<u2"), "bfloat16": _format("float", "<u2"),
    "float8_e4m3fn": _format("float", "u1"), "float8_e5m2": _format("float", "u1"),
    "float8_e4m3fnuz": _format("float", "u1"), "float8_e5m2fnuz": _format("float", "u1"),
    "float8_e8m0fnu": _format("float", "u1"),
    "int64": _format("int", "<i8"), "int32": _format("int", "<i4"), "int16": _format("int", "<i2"), "int8": _format("int", "i1"),
    "uint64": _format("int", "<u8"), "uint32": _format("int", "<u4"), "uint16": _format("int", "<u2"), "uint8": _format("int", "u1"),
    "bool": _format("bool", "u1"), "complex64": _format("complex", "<u8"), "complex128": _format("complex", "<c16"),
}  # fmt: skip
_NUMPY_FLOATS = {"float64": "<f8", "float32": "<f4", "float16": "<f2"}
# Bits of +infinity of the formats whose exponent is all ones for non-finite elements only.
_INFINITY = {"float64": 0x7FF0 << 48, "float32": 0x7F80 << 16, "float16": 0x7C00, "bfloat16": 0x7F80, "float8_e5m2": 0x7C}
# name -> (exponent bits, mantissa bits, bias, what the largest exponents or codes mean)
_FLOAT8 = {
    "float8_e4m3fn": (4, 3, 7, "fn"), "float8_e5m2": (5, 2, 15, "ieee"),
    "float8_e4m3fnuz": (4, 3, 8, "fnuz"), "float8_e5m2fnuz": (5, 2, 16, "fnuz"),
}  # fmt: skip


def finite(value: Array | float) -> float:
    """A float64 that JSON can hold: what is beyond its range becomes its largest number."""
    return max(-_LARGEST, min(float(value), _LARGEST))


def shown(value: Array | float, digits: int = DIGITS) -> float:
    """A finite float64 with so many significant digits."""
    return float(f"{finite(value):.{digits}g}")


def is_integer(dtype: str | None) -> bool:
    """True for integers and bool: compared by value, whatever their width."""
    return dtype in FORMATS and FORMATS[dtype].kind in ("int", "bool")


def zeros(raw: Array, dtype: str) -> Array:
    """Which raw elements are zero, of either sign. Complex elements are handed in as their `parts`."""
    if dtype == "float8_e8m0fnu":  # has no zero
        return np.zeros(raw.shape, bool)
    signed = FORMATS[dtype].kind == "float" and not dtype.endswith("fnuz")
    found: Array = (raw << raw.dtype.type(1) if signed else raw) == 0
    return found


def values(raw: Array, dtype: str) -> Array:
    """Exact values of raw elements: float64 as it is, every other float as float32, integers as they are.

    Complex elements are handed in as their `parts`.
    """
    if dtype == "bfloat16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in _NUMPY_FLOATS:
        typed = raw.view(_NUMPY_FLOATS[dtype])
        return typed.astype(np.float32) if dtype == "float16" else typed
    if FORMATS[dtype].kind == "float":
        return _table(dtype)[raw]
    return raw


def parts(raw: Array, dtype: str) -> tuple[Array, str, int]:
    """A complex block as its real and imaginary parts, one after the other, their dtype and how many make an element."""
    if FORMATS[dtype].kind != "complex":
        return raw, dtype, 1
    part = "float32" if dtype == "complex64" else "float64"
    return raw.view(FORMATS[part].raw), part, 2


def nonfinite(raw: Array, dtype: str) -> Array | None:
    """Which raw elements are NaN or infinite; None where the format has none or the block holds none."""
    kind = FORMATS[dtype].kind
    if kind in ("int", "bool"):
        return None
    if dtype in _INFINITY:
        limit = _INFINITY[dtype]
        signed = raw.view(np.dtype(f"i{raw.dtype.itemsize}"))
        # Two reductions without a temporary: the largest bits as signed (positive) and as unsigned (negative) numbers.
        top = 1 << (8 * raw.dtype.itemsize - 1)
        if raw.size == 0 or (np.maximum.reduce(signed) < limit and np.maximum.reduce(raw) < limit + top):
            return None
        return (raw & np.array(limit, raw.dtype)) == limit
    found = ~np.isfinite(values(raw, dtype))
    return found if found.any() else None


def rounded(numbers: Array, dtype: str) -> Array:
    """Raw elements of ``dtype`` nearest to ``numbers``, ties to even, as torch casts: through float32 to 16 bits.

    Raises ValueError for a format that nothing is cast to here (float8, complex).
    Source: torch 2.13 ``c10/util/BFloat16.h`` (round_to_nearest_even) and ``Half.h``.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # torch casts what does not fit without a word, too
        return _rounded(numbers, dtype)


def _rounded(numbers: Array, dtype: str) -> Array:
    fmt = FORMATS[dtype]
    if fmt.kind == "int":
        return numbers.astype(fmt.raw)
    if fmt.kind == "bool":
        return (numbers != 0).astype(fmt.raw)
    if dtype == "bfloat16":
        bits = numbers.astype(np.float32).view(np.uint32)
        nearest = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)
        quiet = np.isnan(numbers)
        return np.where(quiet, (bits >> np.uint32(16)) | np.uint32(0x40), nearest).astype(np.uint16)
    if dtype == "float16":
        return numbers.astype(np.float32).astype(np.float16).view(fmt.raw)
    if dtype in _NUMPY_FLOATS:
        return numbers.astype(_NUMPY_FLOATS[dtype]).view(fmt.raw)
    raise ValueError(f"no rounding to {dtype}")


@cache
def _table(dtype: str) -> Array:
    """The 256 values of a float8 format as float32 (all of them are exact there)."""
    codes = np.arange(256, dtype=np.int64)
    if dtype == "float8_e8m0fnu":
        with np.errstate(over="ignore"):
            table = np.ldexp(np.float64(1.0), codes - 127).astype(np.float32)
        table[255] = np.nan
        return table
    exponent_bits, mantissa_bits, bias, ending = _FLOAT8[dtype]
    sign = np.where(codes >> 7, -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = codes & ((1 << mantissa_bits) - 1)
    fraction = np.where(exponent > 0, 1.0, 0.0) + mantissa / (1 << mantissa_bits)
    table = sign * np.ldexp(fraction, np.maximum(exponent, 1) - bias)
    if ending == "fn":
        table[(codes & 0x7F) == 0x7F] = np.nan
    elif ending == "fnuz":
        table[0x80] = np.nan
    else:
        top = exponent == (1 << exponent_bits) - 1
        table[top & (mantissa == 0)] *= np.inf
        table[top & (mantissa != 0)] = np.nan
    return table.astype(np.float32)
