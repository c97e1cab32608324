"""Mapping rows of routed experts' weights: one matrix an expert on one side, stacked or not on the other."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msprobe_files.operands import Op

from dump_analysis.mapping.contents.weight_samples import Cut, agree
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.recorded.nodes import Parameter, SideNodes
from dump_analysis.mapping.rows.weight_rows import WeightRow

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


def router_row(prefix: str, train: Sequence[Parameter], infer: Sequence[Parameter], experts: int) -> list[WeightRow]:
    """The row ``<prefix>router.weight``: the first matrix of each side with a row an expert."""
    ends = [next((p for p in side if len(p.tensor.shape) == 2 and p.tensor.shape[0] == experts), None) for side in (train, infer)]
    left, right = ends
    if left is None or right is None or left.tensor.shape != right.tensor.shape:
        return []
    return [_row(f"{prefix}router.weight", left, (), right, ())]


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
    left = [_cuts(_alike(expert.matrices, infer[0].matrices)[0]) for expert in train] if infer else []
    right = [_cuts(_alike(train[0].matrices, expert.matrices)[1]) for expert in infer] if train else []
    found: list[tuple[int, int]] = []
    free = list(range(len(right)))
    for at, cuts in enumerate(left):
        other = next((other for other in free if any(agree(*pair) for pair in zip(cuts, right[other], strict=True))), None)
        if other is not None:  # one matrix is enough: another may be stale
            found.append((at, other))
            free.remove(other)
    return found


def _cuts(matrices: Sequence[tuple[Parameter, tuple[Op, ...]]]) -> list[Cut]:
    return [Cut(parameter.tensor, steps) for parameter, steps in matrices]


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
    shapes = Counter(parameter.tensor.shape for parameter in ordered)
    single = [p for p in ordered if len(p.tensor.shape) == 2 and shapes[p.tensor.shape] > 1]  # a router stands there once
    fitting = [size for size in _KINDS if _repeats(single, size)]
    each = next((size for size in fitting if len(single) == size * count), fitting[0] if fitting else None)
    if each is None:
        return []
    return [Expert(tuple((parameter, ()) for parameter in single[at : at + each])) for at in range(0, len(single), each)]


def _repeats(matrices: Sequence[Parameter], each: int) -> bool:
    shapes = [parameter.tensor.shape for parameter in matrices]
    return len(shapes) % each == 0 and all(shape == shapes[at % each] for at, shape in enumerate(shapes)) and len(shapes) > each
