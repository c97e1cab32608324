"""Elements of weights as numbers: raw bytes of any float format as float64, exactly."""

from typing import Any

from msprobe_files.errors import DumpError
from msprobe_files.weight_grids import FORMATS

_RAW = {1: "u1", 2: "<u2", 4: "<u4", 8: "<u8"}
_INTEGERS = {
    "int64": "<i8", "int32": "<i4", "int16": "<i2", "int8": "i1", "uint64": "<u8", "uint32": "<u4", "uint16": "<u2", "uint8": "u1",
    "bool": "u1",
}  # fmt: skip
_IEEE = {"float64": "<f8", "float32": "<f4", "float16": "<f2"}


def raw_type(dtype: str, item: int) -> str:
    """numpy's type for the stored elements of a dtype of ``item`` bytes."""
    return _IEEE.get(dtype) or _INTEGERS.get(dtype) or _RAW[item]


def numbers(raw: Any, dtype: str) -> Any:
    """float64 of stored elements; integers as float64, too. Raises DumpError for formats that hold no real numbers."""
    import numpy as np

    if dtype in _IEEE or dtype in _INTEGERS:
        return raw.astype(np.float64)
    if dtype == "bfloat16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if dtype in ("float8_e4m3fn", "float8_e5m2"):
        return _float8(dtype)[raw]
    raise DumpError("Cannot compare values of %s: no numbers of it are known here. Hand a checkpoint in a float format." % dtype)


def _float8(dtype: str) -> Any:
    """The 256 numbers of an 8-bit format. Source: OCP 8-bit floating point specification."""
    import numpy as np

    bits, smallest, _ = FORMATS[dtype]
    codes = np.arange(256)
    exponent, mantissa = (codes & 0x7F) >> bits, codes & ((1 << bits) - 1)
    table = np.ldexp((exponent > 0) + mantissa / (1 << bits), np.maximum(exponent, 1) - 1 + smallest) * np.where(codes >> 7, -1.0, 1.0)
    if dtype == "float8_e4m3fn":
        table[(codes & 0x7F) == 0x7F] = np.nan
    else:
        table[(exponent == 31) & (mantissa == 0)] *= np.inf
        table[(exponent == 31) & (mantissa != 0)] = np.nan
    return table
