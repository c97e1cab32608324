"""What holds over a whole side: against this a module that strays is told from a kernel that nobody has written down."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from dump_analysis.replay.one_side import Constant, Replayed

_VOUCHING = 3  # modules of an operator that follow


class Norms(NamedTuple):
    """Of one side: operators of which most modules are not explained, the constants and functions of most modules, the noise of
    operators whose kernel is not in the list, operators whose kernel several modules vouch for, and what its configuration states."""

    untrusted: frozenset[str]
    constants: Mapping[tuple[str, str], float]
    functions: Mapping[str, str]
    noises: Mapping[str, float] = MappingProxyType({})
    vouched: frozenset[str] = frozenset()
    stated: Mapping[str, float] = MappingProxyType({})


def norms_of(replays: Sequence[Replayed], stated: Mapping[str, float]) -> Norms:
    """From all modules of one side, and from what is stated of it."""
    total, failed = (
        Counter(one.best.trial.formula.operator for one in replays),
        Counter(one.best.trial.formula.operator for one in replays if not one.follows and not one.best.trial.fault),
    )
    known: dict[tuple[str, str], list[Constant]] = {}
    for one in replays:
        for name, constant in one.constants.items() if one.follows else ():
            known.setdefault((one.best.trial.formula.operator, name), []).append(constant)
    untrusted = frozenset(operator for operator, count in failed.items() if 2 * count > total[operator])
    constants = {key: value for key, found in known.items() if (value := _agreed(found)) is not None}
    computed = Counter((one.best.trial.formula.operator, one.best.trial.variant.function) for one in replays if one.follows)
    functions = {operator: name for (operator, name), count in computed.items() if count > 1 and 2 * count > total[operator]}
    following = Counter(one.best.trial.formula.operator for one in replays if one.follows)
    vouched = frozenset(operator for operator, count in following.items() if count >= _VOUCHING) - untrusted
    return Norms(untrusted, constants, functions, _noises(replays), vouched, stated)


def _noises(replays: Sequence[Replayed]) -> dict[str, float]:
    """The median root mean square of what operators leave whose kernel is not in the list."""
    found: dict[str, list[float]] = {}
    for one in replays:
        if one.plausible and one.noise is not None and one.kernel is None:
            found.setdefault(one.best.trial.formula.operator, []).append(one.noise.rms)
    return {operator: statistics.median(each) for operator, each in found.items()}


def _agreed(found: Sequence[Constant]) -> float | None:
    """The value that explains more than half of the modules, and at least two; None where there is none."""
    votes = {constant.value: sum(other.holds(constant.value) for other in found) for constant in found}
    value = max(votes, key=lambda one: votes[one])
    return value if votes[value] > 1 and 2 * votes[value] > len(found) else None
