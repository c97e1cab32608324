"""Layer (c): the values of both sides' weights, compared element by element in blocks. numpy is imported where it is needed."""

from .comparing import compare, compare_sides

__all__ = ["compare", "compare_sides"]
