"""Which way magnitudes moved, told in the words that evidence allows.

Sizes: measured on single causes (torch 2.13, bfloat16): roundings lean to one side by up to 0.07 of their elements however
clear that is statistically, softcap and GELU faults by 0.34, constants by 1.
"""

from typing import Literal

Way = Literal["few", "one_sided", "leaning", "two_sided"]
_FEW = 16  # elements; a fair coin falls so often on one side once in 30,000 tries
_LEAN = 0.2  # of the elements
_CLEAR = 10  # standard errors


def way_of(smaller: int, larger: int) -> Way:
    """``leaning``: both a large and a statistically clear part of what differs; neither is enough alone."""
    both, more = smaller + larger, abs(smaller - larger)
    if both < _FEW:
        return "few"
    if more == both:
        return "one_sided"
    return "leaning" if more > _LEAN * both and more > _CLEAR * both**0.5 else "two_sided"
