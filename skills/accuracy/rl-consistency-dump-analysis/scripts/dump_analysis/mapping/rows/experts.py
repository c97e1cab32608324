"""Mapping rows of routed experts' weights: one matrix an expert on one side, stacked or not on the other."""

from collections.abc import Sequence
from typing import NamedTuple

from msprobe_files.operands import Op

from .cuts import cut_op
from .nodes import Parameter, SideNodes
from .weight_rows import WeightRow
from .weight_samples import Cut, agree

_KINDS = {2: ("gate_up", "down"), 3: ("gate", "up", "down")}
_TRANSPOSE = Op("permute", axes=(1, 0))


class Expert(NamedTuple):
    """The matrices of one expert, each with the ops that cut it out of a stack, in the order in which they work."""

    matrices: tuple[tuple[Parameter, tuple[Op, ...]], ...]


def expert_rows(prefix: str, train: Sequence[Expert], infer: Sequence[Expert]) -> list[WeightRow]:
    """Rows ``<prefix>experts.N.<kind>.weight``: experts by number where both sides have as many, else by contents."""
    rows: list[WeightRow] = []
    for at, other in _numbers(train, infer):
        left, right = _alike(train[at].matrices, infer[other].matrices)
        for kind, (one, its), (two, their) in zip(_KINDS.get(len(left), ()), left, right, strict=False):
            name = f"{prefix}experts.{other if len(infer) >= len(train) else at}.{kind}.weight"
            rows.append(_row(name, one, its, two, their))
    return rows


def _row(name: str, left: Parameter, left_steps: tuple[Op, ...], right: Parameter, right_steps: tuple[Op, ...]) -> WeightRow:
    ends = Cut(left.tensor, left_steps), Cut(right.tensor, right_steps)
    turned = Cut(left.tensor, (*left_steps, _TRANSPOSE))
    if not agree(*ends) and agree(turned, ends[1]):
        return WeightRow(name, left, right, turned.steps, right_steps, True, False, 0.99)
    equal = agree(*ends)
    return WeightRow(name, left, right, left_steps, right_steps, equal, False, 0.99 if equal else 0.5)


def _numbers(train: Sequence[Expert], infer: Sequence[Expert]) -> list[tuple[int, int]]:
    """Which expert of infer each expert of train is. Experts that no token reached may be missing on a side that calls them one by one."""
    if len(train) == len(infer):
        return [(at, at) for at in range(len(train))]
    found: list[tuple[int, int]] = []
    free = list(range(len(infer)))
    for at, expert in enumerate(train):
        left = Cut(expert.matrices[-1][0].tensor, expert.matrices[-1][1])
        for other in free:
            part = infer[other].matrices[-1]
            if agree(left, Cut(part[0].tensor, part[1])):
                found.append((at, other))
                free.remove(other)
                break
    return found


def _alike(
    left: tuple[tuple[Parameter, tuple[Op, ...]], ...], right: tuple[tuple[Parameter, tuple[Op, ...]], ...]
) -> tuple[tuple[tuple[Parameter, tuple[Op, ...]], ...], tuple[tuple[Parameter, tuple[Op, ...]], ...]]:
    """Both with the same number of matrices: where one holds gate and up in one, it is cut in two halves."""
    if len(left) == len(right):
        return left, right
    if (len(left), len(right)) == (2, 3):
        return (*_halves(*left[0]), left[1]), right
    if (len(left), len(right)) == (3, 2):
        return left, (*_halves(*right[0]), right[1])
    return (), ()


def _halves(parameter: Parameter, steps: tuple[Op, ...]) -> tuple[tuple[Parameter, tuple[Op, ...]], ...]:
    rows = parameter.tensor.shape[-2]
    return tuple((parameter, (*steps, cut_op(0, range(low, low + rows // 2)))) for low in (0, rows // 2))


def experts_of(side: SideNodes, parameters: Sequence[Parameter], count: int) -> list[Expert]:
    """The experts among parameters that no row holds: stacks of ``count`` matrices, or as many groups of matrices one after the other."""
    start = side.records.times.start
    ordered = sorted(parameters, key=lambda parameter: start[parameter.entry])
    stacks = [parameter for parameter in ordered if len(parameter.tensor.shape) == 3 and parameter.tensor.shape[0] == count]
    if len(stacks) in _KINDS:
        return [
            Expert(tuple((stack, (Op("slice", axis=0, start=at, stop=at + 1), Op("squeeze", axis=0))) for stack in stacks))
            for at in range(count)
        ]
    single = [parameter for parameter in ordered if len(parameter.tensor.shape) == 2]
    fitting = [size for size in _KINDS if _repeats(single, size)]
    each = next((size for size in fitting if len(single) == size * count), fitting[0] if fitting else None)
    if each is None:
        return []
    return [Expert(tuple((parameter, ()) for parameter in single[at : at + each])) for at in range(0, len(single), each)]


def _repeats(matrices: Sequence[Parameter], each: int) -> bool:
    shapes = [parameter.tensor.shape for parameter in matrices]
    return len(shapes) % each == 0 and all(shape == shapes[at % each] for at, shape in enumerate(shapes)) and len(shapes) > each
