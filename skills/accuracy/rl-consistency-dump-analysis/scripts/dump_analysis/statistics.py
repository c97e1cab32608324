"""What dump.json says of a tensor beside its file: maximum, minimum, mean, norm and digest, and what two such records tell.

msprobe makes the statistics in the tensor's own type unless ``precision`` is ``high``: norms of bfloat16 tensors have
steps of 8 above 1024.  They are the same for every order of a tensor's elements, so they never show equality.
``summary_mode: md5`` adds a CRC-32 of the elements' bytes; ``xor`` puts the exclusive or of all 8-byte words in its
place, which is blind to their order too.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from msprobe_files.units import Record

from . import floats, ulps
from .floats import Array

Agree = Literal["yes", "no", "cannot_tell"]
_NARROW = 11  # significant bits of the widest format whose sums torch makes in a wider one
_EXTREME = 4.0  # steps: an extreme is one element, whose roundings do not average out (three deviations of sixteen of them)


class Facts(NamedTuple):
    """The statistics of one tensor; None for what is not recorded. ``digest``: as recorded.

    ``elements``: 0 where the shape is not recorded, for msprobe states nothing of tensors without any.
    """

    elements: int
    dtype: str | None
    largest: float | None
    smallest: float | None
    mean: float | None
    norm: float | None
    digest: str | None = None

    @property
    def numbers(self) -> tuple[float | None, ...]:
        """Maximum, minimum, mean, norm."""
        return self.largest, self.smallest, self.mean, self.norm

    @property
    def known(self) -> bool:
        """Whether any statistic is recorded."""
        return any(number is not None for number in self.numbers)

    def as_json(self) -> dict[str, float | str | None]:
        """As artefacts hold them: what JSON cannot hold is a word."""
        return dict(zip(("max", "min", "mean", "norm"), map(_in_json, self.numbers), strict=True))


def _in_json(number: float | None) -> float | str | None:
    return number if number is None or math.isfinite(number) else str(number)


def facts_of(record: Record) -> Facts:
    """The facts of a recorded tensor."""
    elements = math.prod(record.shape) if record.shape is not None else 0
    largest, smallest, mean, norm = (_number(record.statistics.get(key)) for key in ("Max", "Min", "Mean", "Norm"))
    return Facts(elements, record.dtype, largest, smallest, mean, norm, record.digest)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def is_order_blind(digest: str) -> bool:
    """Whether a digest is the exclusive or of the words, which any order of them leaves as it is."""
    return digest.startswith("0x")


# --- of several tensors ---


def together(parts: Sequence[Facts]) -> Facts:
    """The facts of tensors side by side: exact but for the resolution of the parts."""
    elements = sum(part.elements for part in parts) if all(part.elements for part in parts) else 0
    dtypes = {part.dtype for part in parts}
    largest, smallest, norms = ([part.numbers[at] for part in parts] for at in (0, 1, 3))
    weighted = [None if part.mean is None or not elements else part.mean * part.elements for part in parts]
    return Facts(
        elements,
        dtypes.pop() if len(dtypes) == 1 else None,
        _if_all(largest, max),
        _if_all(smallest, min),
        _if_all(weighted, lambda values: math.fsum(values) / elements),
        _if_all(norms, lambda values: math.hypot(*values)),
    )


def _if_all(values: Sequence[float | None], made: Any) -> float | None:
    known = [value for value in values if value is not None]
    return float(made(known)) if len(known) == len(values) and known else None


def added(parts: Sequence[Facts]) -> Facts:
    """What is known of a sum: its mean alone."""
    total = _if_all([part.mean for part in parts], math.fsum)
    dtypes = {part.dtype for part in parts}
    return Facts(parts[0].elements, dtypes.pop() if len(dtypes) == 1 else None, None, None, total, None)


class Bounds(NamedTuple):
    """Maximum, minimum, mean and norm of several tensors of one size, with half a step of each: float64 [tensors, 4]."""

    numbers: Array
    half: Array


def bounds_of(parts: Sequence[Facts]) -> Bounds:
    """The bounds of tensors; NaN where a statistic is missing or not finite, or the dtype is no real float."""
    numbers = np.array([[np.nan if number is None else number for number in part.numbers] for part in parts], np.float64).reshape(-1, 4)
    numbers[~np.isfinite(numbers)] = np.nan
    half = np.full_like(numbers, np.nan)
    for dtype in {part.dtype for part in parts} & set(ulps.PRECISION):
        rows = [at for at, part in enumerate(parts) if part.dtype == dtype]
        half[rows] = np.where(np.isnan(numbers[rows]), np.nan, ulps.spacing(np.nan_to_num(numbers[rows]), str(dtype)) / 2)
    return Bounds(numbers, half)


def sums_that_may_be(addends: Bounds, total: Bounds, elements: int) -> Array:
    """bool [n, n]: where nothing speaks against the first tensor of ``total`` being the sum of addends i and j.

    Means add up, within the resolution of what is recorded and the rounding of ``elements`` results; extremes and norms
    obey the triangle inequality.  False where a statistic is missing: then nothing speaks for it either.
    """
    (largest, smallest, mean, norm), slack = addends.numbers.T, addends.half.T
    wanted, own = total.numbers[0], total.half[0]
    slacks = [slack[at][:, None] + slack[at][None, :] + own[at] for at in range(4)]
    root = math.sqrt(max(1, elements))
    rounding = 8 * own[3] / root / root  # of n roundings, none over half a step at the root mean square
    crossed = largest[:, None] + smallest[None, :]
    with np.errstate(invalid="ignore"):
        fits = np.abs(wanted[2] - mean[:, None] - mean[None, :]) <= slacks[2] + rounding
        fits &= wanted[0] <= largest[:, None] + largest[None, :] + slacks[0]
        fits &= wanted[0] >= np.maximum(crossed, crossed.T) - slacks[0]
        fits &= wanted[1] >= smallest[:, None] + smallest[None, :] - slacks[1]
        fits &= wanted[1] <= np.minimum(crossed, crossed.T) + slacks[1]
        fits &= np.abs(norm[:, None] - norm[None, :]) - slacks[3] <= wanted[3]
        fits &= wanted[3] <= norm[:, None] + norm[None, :] + slacks[3]
    return fits


# --- of two sides ---


class Agreement(NamedTuple):
    """Whether the statistics of two sides can be told apart.

    ``resolution``: the step of the coarser format at the norm (of integers None).  ``apart``: statistic -> distance in
    steps: of the norm and the extremes at their own size, of the mean at the root mean square.  ``steps``: statistic -> that step.
    """

    agree: Agree
    resolution: float | None
    apart: dict[str, float]
    steps: dict[str, float]


def step(value: float, dtype: str) -> float:
    """The distance between neighbouring numbers of a real float format at a value: 8 for bfloat16 from 1024 to 2048."""
    return float(ulps.spacing(np.float64(value), dtype))


def agreement(train: Facts, infer: Facts, *, computed: bool = True) -> Agreement:
    """Compare two records of as many elements, if it is known how many. ``computed``: False for weights, whose extremes no rounding moves.

    *yes*: norm and mean lie within one step of the coarser format (of wider ones, which sum in their own, within √n),
    and extremes within four, or integers have equal extremes.  *no*: norm or mean lie further apart, or integers have
    others, or one side alone is not finite.  Else it cannot be told: an extreme is one element.
    """
    if train.elements != infer.elements or not train.elements:
        return Agreement("cannot_tell", None, {}, {})
    if floats.is_integer(train.dtype) and floats.is_integer(infer.dtype):
        return _of_integers(train, infer)
    coarse = ulps.coarser([train.dtype, infer.dtype])
    pairs = {name: pair for name, pair in _pairs(train, infer) if None not in pair}
    if coarse is None or not pairs:
        return Agreement("cannot_tell", None, {}, {})
    finite = [[math.isfinite(value) for value in pair] for pair in pairs.values()]
    if not all(all(both) for both in finite):
        return Agreement("cannot_tell" if all(both[0] == both[1] for both in finite) else "no", None, {}, {})
    sizes = {name: max(abs(one), abs(other)) for name, (one, other) in pairs.items()}
    norms = [abs(norm) for norm in (train.norm, infer.norm) if norm is not None and math.isfinite(norm)]
    scale = max(norms or sizes.values())
    sizes["mean"] = scale / math.sqrt(train.elements) if norms else scale
    steps = {name: step(sizes[name], coarse) for name in pairs}
    apart = {name: abs(one - other) / steps[name] for name, (one, other) in pairs.items()}
    judged = _judged(apart, coarse, train.elements)
    moved = not computed and train.dtype == infer.dtype and any(apart.get(name) for name in ("max", "min"))
    return Agreement("no" if moved else judged, step(scale, coarse), apart, steps)


def may_be_reordered(train: Facts, infer: Facts) -> bool:
    """Whether two tensors of one dtype may hold the same elements in another order, by all that is recorded beside their digests.

    Then their statistics are equal, but for the rounding of sums that a wide format makes in itself.
    """
    if agreement(train, infer, computed=False).agree != "yes":
        return False
    sums_in_itself = train.dtype in ulps.PRECISION and ulps.PRECISION[train.dtype][0] > _NARROW
    return sums_in_itself or train.numbers == infer.numbers


def _pairs(train: Facts, infer: Facts) -> Iterable[tuple[str, tuple[Any, Any]]]:
    return zip(("max", "min", "mean", "norm"), zip(train.numbers, infer.numbers, strict=True), strict=True)


def _of_integers(train: Facts, infer: Facts) -> Agreement:
    pairs = [(train.largest, infer.largest), (train.smallest, infer.smallest)]
    if any(None in pair for pair in pairs):
        return Agreement("cannot_tell", None, {}, {})
    return Agreement("yes" if all(one == other for one, other in pairs) else "no", None, {}, {})


def _judged(apart: dict[str, float], coarse: str, elements: int) -> Agree:
    allowed = 1.0 if ulps.PRECISION[coarse][0] <= _NARROW else math.sqrt(max(1, elements))
    averages = [apart[name] for name in ("norm", "mean") if name in apart]
    if any(steps > allowed for steps in averages):
        return "no"
    extremes = [apart[name] for name in ("max", "min") if name in apart]
    if not averages or any(steps > _EXTREME * allowed for steps in extremes):
        return "cannot_tell"
    return "yes"
