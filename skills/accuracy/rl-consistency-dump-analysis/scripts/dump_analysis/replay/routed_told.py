"""What is said of mixtures of experts: the function of a router, and tokens whose choice hung on a near tie."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import ModuleReplay
from dump_analysis.floats import Array, shown
from dump_analysis.replay.formulas.expert_choice import CHOICE
from dump_analysis.replay.formulas.routed_experts import ROUTED, WEIGHTED
from dump_analysis.replay.formulas.routing import ROUTERS, TOP_K, choice_of_all, chosen, margins
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.recorded import Matrix
from dump_analysis.replay.stated import NORMALISED
from dump_analysis.wording import word

_ROUTERS = {
    "softmax_normalised": "routed_softmax_normalised",
    "softmax_of_all": "routed_softmax_of_all",
    "sigmoid_normalised": "routed_sigmoid_normalised",
    "sigmoid": "routed_sigmoid",
}
_FEW, _DIGITS = 16, 3  # tokens that are listed; digits of margins


def function_told(one: Replayed) -> Worded | None:
    """The function of a router in words; None for another module."""
    router = one.best.trial.variant.function.partition(" ")[0]
    return word(_ROUTERS[router]) if router in _ROUTERS else None


def contradicted(one: Replayed, stated: Mapping[str, float], label: str) -> Worded | None:
    """That a side's configuration states of its router what it does not compute; None where it does not."""
    router = next((own for own in ROUTERS if own.name == one.best.trial.variant.function.partition(" ")[0]), None)
    if router is None or NORMALISED not in stated or bool(stated[NORMALISED]) == router.normalised:
        return None
    return word("replay_router_stated" if stated[NORMALISED] else "replay_router_stated_open", side=label)


def flips(train: Replayed, infer: Replayed) -> Worded | None:
    """The tokens for which both sides, each as its own logits say, choose other experts: near ties, which rounding decides.

    Their margins: by how much the last chosen logit lies above the first that is not, the smaller of both sides'. None where all choices
    agree, or where a side is not explained. Logits that lie on two sides of a tie differ by at least its margin.
    """
    both = train, infer
    operators = {one.best.trial.formula.operator for one in both}
    if not all(one.explained for one in both) or operators not in ({ROUTED}, {CHOICE}):
        return None
    counts = {int(one.constants[TOP_K].value) for one in both}
    if len(counts) != 1 or train.work.output.rows != infer.work.output.rows:
        return None
    count = counts.pop()
    apart = np.flatnonzero((_choice(train, count) != _choice(infer, count)).any(axis=1))
    known = [margins(logits.read(0, logits.rows), count) for one in both if (logits := _logits(one)) is not None]
    if not len(apart) or not known:
        return None
    least = np.min(known, axis=0)
    return word(
        "replay_flips", n=len(apart), of=len(least), tokens=apart[:_FEW].tolist(),
        margins=[shown(float(margin), _DIGITS) for margin in least[apart[:_FEW]]],
        most=shown(float(least[apart].max()), _DIGITS), usual=shown(float(np.median(least)), _DIGITS),
    )  # fmt: skip


def experts_hit(label: str, one: Replayed) -> tuple[Worded, ...]:
    """The few experts whose tokens are those that do not follow, and all of theirs: () where no such experts are."""
    if one.where is None or one.work.operators not in ((ROUTED,), (WEIGHTED,)) or one.work.experts is None:
        return ()
    experts = _choice(one, int(one.best.trial.config.get(TOP_K, 1)))
    touched = np.zeros(len(experts), bool)
    touched[list(one.where.tokens)] = True
    found, left = list[int](), touched.copy()
    while left.any():
        whole = [expert for expert in np.unique(experts[left]).tolist() if touched[(experts == expert).any(axis=1)].all()]
        if not whole:
            return ()
        found.append(max(whole, key=lambda expert: int((experts[left] == expert).sum())))
        left &= ~(experts == found[-1]).any(axis=1)
    if touched.all() or 4 * len(found) > len(np.unique(experts)):
        return ()
    return (word("replay_only_experts", side=label, experts=sorted(found), of=len(one.work.experts.last)),)


def flips_told(modules: Sequence[ModuleReplay]) -> list[ModuleReplay]:
    """The modules, in order, with flips told as what they are: where something before is no rounding, that may have flipped them; where
    all of it is, they are rounding, amplified, though the module itself computes the same on both sides."""
    made: list[ModuleReplay] = []
    for one in modules:
        rounded = all(before.verdict in ("same", "rounding") for before in made)
        if any(told.kind == "replay_flips" for told in one.evidence):
            if rounded and one.verdict == "same":
                one = msgspec.structs.replace(one, verdict="rounding")
            elif not rounded:
                told = [word("replay_flips_after", **told.values) if told.kind == "replay_flips" else told for told in one.evidence]
                one = msgspec.structs.replace(one, evidence=told)
        made.append(one)
    return made


def _logits(one: Replayed) -> Matrix | None:
    """What was recorded of a router's logits."""
    if one.work.operators == (ROUTED,):
        return one.work.inputs[1]
    return one.work.inputs[0] if one.work.operators == (CHOICE,) and not one.work.weights else None


def _choice(one: Replayed, count: int) -> Array:
    """The experts of each token [T, k], counting up."""
    if one.work.operators == (CHOICE,):
        numbers: Array = np.sort(one.work.output.read(0, one.work.output.rows).astype(np.int64), axis=1)
        return numbers
    taken = one.work.inputs[3] if len(one.work.inputs) == 4 else None
    if taken is not None:
        found: Array = taken.read(0, taken.rows).astype(np.int64)
        return found
    given = one.work.inputs[1].read(0, one.work.inputs[1].rows)
    return chosen(given, count) if one.work.operators == (ROUTED,) else choice_of_all(given).experts
