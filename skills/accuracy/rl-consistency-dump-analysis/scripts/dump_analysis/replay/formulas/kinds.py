"""What a formula is, and what it is given. A formula knows nothing of sides, files or verdicts.

Every array is float64 and holds numbers exactly as they were recorded; a number format is a torch name ("bfloat16", "float16",
"float32"). Rows are tokens.
"""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated

__all__ = ["Emulated", "Experts", "Formula", "Given", "Variant", "always"]


class Experts(NamedTuple):
    """The experts of a mixture: ``matrices`` gives those of one by its number, gate over up [2 I, H] and down [H, I], float64.

    ``made``: what was made of them on this part of a module, so that variants that run an expert alike run it once.
    """

    matrices: Callable[[int], tuple[Array, Array]]
    made: dict[Any, Emulated]


class Given(NamedTuple):
    """Inputs [tokens, columns], weights by parameter name, the dtype of the output, and constants by name (nominal values).

    ``config`` lacks what nobody knows; a formula's ``config`` says what it needs, and the caller searches for it. ``experts``: those of a
    mixture, whose matrices are read one by one.
    """

    inputs: tuple[Array, ...]
    weights: dict[str, Array]
    dtype: str
    config: dict[str, float]
    experts: Experts | None = None


def always(_given: Given) -> bool:
    """A variant that runs on whatever its formula runs on."""
    return True


class Variant(NamedTuple):
    """One way to evaluate a formula in low precision: ``run`` gives one `Emulated` an output, in the order of the outputs.

    ``source``: what computes like this, and where that was read or measured. ``applies``: whether it can run on what is given.
    ``function``: "" or the name of the real function where the formula has several (silu, gelu_erf, "1+w"): two sides that are
    explained by variants of different functions differ by logic, not by rounding. ``nominal``: its truth, None: the formula's.
    ``compared``: what is said of the first output recorded, without the emulation of all of it (None: there is no such way): which
    elements are bit equal, and which lie outside their interval. Its numbers may be float32.
    """

    name: str
    source: str
    run: Callable[[Given], tuple[Emulated, ...]]
    applies: Callable[[Given], bool] = always
    function: str = ""
    nominal: Callable[[Given], tuple[Array, ...]] | None = None
    compared: Callable[[Given, Array], tuple[Array, Array]] | None = None


class Formula(NamedTuple):
    """An operator: what it computes in truth, and the variants in which right programs compute it, the usual ones first.

    ``config``: constants that must be in `Given.config`. ``parameters``: weights that it can use. ``faults``: variants that compute
    something else, named after the mistake; they name a fault and never acquit. ``by_weight_rows``: row n of every weight makes column n
    of the output and nothing else, so that weights can be handed in by blocks of rows; otherwise by blocks of tokens. ``whole``: the
    parameters that are handed in whole all the same.
    """

    operator: str
    variants: tuple[Variant, ...]
    nominal: Callable[[Given], tuple[Array, ...]]
    config: tuple[str, ...] = ()
    parameters: frozenset[str] = frozenset()
    faults: tuple[Variant, ...] = ()
    by_weight_rows: bool = False
    whole: frozenset[str] = frozenset()

    def consumes(self, weights: Collection[str]) -> bool:
        """Whether the formula uses every one of these parameters."""
        return self.parameters.issuperset(weights)

    def fitting(self, given: Given) -> tuple[Variant, ...]:
        """The variants that can run on what is given."""
        return tuple(variant for variant in self.variants if variant.applies(given))

    def truth(self, given: Given, variant: Variant | None = None) -> tuple[Array, ...]:
        """The outputs in float64, of the variant's function if it has one of its own."""
        return (variant.nominal if variant and variant.nominal else self.nominal)(given)
