"""Tensors that several ranks should hold alike: whether they do, bit by bit."""

from collections.abc import Iterator, Sequence

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Source

from dump_analysis import floats, tensors
from dump_analysis.artefacts.assembly_plan import Assembled, Disagreement, SidePlan
from dump_analysis.sides import Side, resolve
from dump_analysis.tensors import BLOCK_BYTES, Files, Tensor, cut_stream, elements_of


def of_plan(side: Side, plan: SidePlan) -> list[Disagreement]:
    """Where the copies that a plan names differ in a dump. A copy that is not there or cannot be read tells nothing."""
    copied = (one for one in plan.tensors if one.how in ("replicated", "replica") and len(one.order) > 1)
    return [found for one in copied for found in _of_tensor(side, one) if isinstance(found, Disagreement)]


def _of_tensor(side: Side, one: Assembled) -> Iterator[Disagreement | str]:
    held: list[tuple[int, Tensor]] = []
    for part in one.order:
        place = resolve(side, Source(part.name, part.rank, part.dump_step, None))
        try:
            held += [(part.rank, tensors.described(place))] if place is not None else []
        except DumpError:
            continue
    if len(held) > 1:
        yield from parting(one.order[0].name, held[0], held[1:])


def parting(name: str, first: tuple[int, Tensor], others: Sequence[tuple[int, Tensor]]) -> Iterator[Disagreement | str]:
    """How the copies of several ranks differ from the first one's; the name alone where one cannot be read."""
    try:
        counted = {rank: _unequal(first[1], tensor) for rank, tensor in others}
    except DumpError:
        yield name
        return
    bad = {rank: found for rank, found in counted.items() if found[0]}
    if bad:
        sizes = [largest for _, largest in bad.values()]
        most = None if None in sizes else max(size for size in sizes if size is not None)
        yield Disagreement(name, [first[0], *bad], max(count for count, _ in bad.values()), most)


def _unequal(left: Tensor, right: Tensor) -> tuple[int, float | None]:
    """How many elements differ, bit by bit, and the largest difference (None: not finite, or of another shape or dtype).

    Raises DumpError where a file cannot be read.
    """
    if left.shape != right.shape or left.dtype != right.dtype:
        return max(left.elements, right.elements), None
    files = Files()
    try:
        one, other = cut_stream(files, left, ()), cut_stream(files, right, ())
        step = BLOCK_BYTES // left.item_size
        count, most = 0, 0.0
        for at in range(0, elements_of(one), step):
            stop = min(elements_of(one), at + step)
            x, y = one.read(at, stop), other.read(at, stop)
            if x.tobytes() == y.tobytes():
                continue
            differ = x != y
            count += int(differ.sum())
            a, b = (floats.values(raw[differ], left.dtype).astype(np.float64) for raw in (x, y))
            with np.errstate(invalid="ignore"):
                most = float(np.maximum(most, np.abs(a - b).max()))  # NaN stays
        return count, most if np.isfinite(most) else None
    finally:
        files.close()
