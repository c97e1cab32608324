"""Layer (c): the values of both sides' weights, compared element by element in blocks. numpy is imported where it is needed.

``matrices``  rows that lie in files: compared by bytes, read as numbers in blocks; ``values``: bytes as numbers
``scales``    what codes of 8 bits are multiplied by
``contents``  which modules hold equal rows; ``orders``: in which order a fused matrix holds q, k and v
``layouts``   orders that are right where the configurations say so: rotary pairs, gate and up by turns
``parts``     a pair of weights as the parts that are compared; ``flat``: where a flat parameter holds them
``comparing`` each part judged; ``told``: its difference in words; ``found``: the record of it
``exchanges`` rows that stand in other weights; ``previous``: rows of an earlier checkpoint; ``grouping``: weights of one cause
"""

from .comparing import compare, compare_sides
from .layouts import Stated

__all__ = ["Stated", "compare", "compare_sides"]
