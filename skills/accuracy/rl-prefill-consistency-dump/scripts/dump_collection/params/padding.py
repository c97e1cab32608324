"""Rows that fill a vocabulary up to a whole multiple, so that ranks have equal shares; no word is theirs."""

PADDED_TO = 64  # rows: vLLM pads a vocabulary to multiples of 64, Megatron-Core to 128 times the tensor-parallel size
_UNITS = tuple(PADDED_TO << power for power in range(8))  # up to 128 times 64


def pads(more: int, fewer: int) -> bool:
    """Whether a vocabulary of ``more`` rows may be one of ``fewer`` with its padding."""
    return any(more % unit == 0 and 0 < more - fewer < unit for unit in _UNITS)
