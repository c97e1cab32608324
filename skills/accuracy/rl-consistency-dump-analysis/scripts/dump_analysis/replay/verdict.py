"""What the replays of both sides say of one module pair: same, rounding, logic or unknown, and what proves it.

An explained record follows from its own recorded inputs and weights under a right variant: it proves nothing of whether those are the
right ones, so weights and constants of both sides are held against each other too. What no variant explains is a deviation only where
the operator is known to be computed rightly elsewhere on that side: else it may be a kernel that nobody has written down.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dump_analysis.artefacts.common import FindingSide, SideName, Worded
from dump_analysis.artefacts.replay_results import Verdict
from dump_analysis.replay import conventions, unexplained
from dump_analysis.replay.formulas.rotary import FREQUENCY, THETA
from dump_analysis.replay.one_side import Constant, Replayed, Unreplayed
from dump_analysis.replay.routed_told import contradicted, function_told
from dump_analysis.replay.search import rounded_to_usual
from dump_analysis.replay.stated import FUNCTION
from dump_analysis.replay.usual import Norms
from dump_analysis.wording import word

_SIDES: tuple[SideName, SideName] = ("train", "infer")
_Both = Mapping[SideName, Replayed]
_ACTIVATIONS = frozenset({"activation", "gated_activation"})
# Operators that a program may compute one of instead of another; of others it is the mapping that joins two values.
_ALIKE = (
    _ACTIVATIONS,
    frozenset({"rms_norm", "layer_norm"}),
    frozenset({"linear", "norm_linear", "soft_capped_linear", "scaled_linear"}),
    frozenset({"rotary", "rotary_attention", "attention"}),
    frozenset({"log_softmax", "log_prob"}),
)
# What is done to logits: its constant, and how it is told of one side alone, and where the other states it.
_ENDS = {
    "soft_capped_linear": ("soft_cap", "replay_soft_cap", "replay_soft_cap_stated"),
    "scaled_linear": ("logits_scale", "replay_logits_scale", "replay_logits_scale_stated"),
}


class Judged(NamedTuple):
    """``side`` is named only where it is proven."""

    verdict: Verdict
    side: FindingSide
    evidence: tuple[Worded, ...]
    would_decide: tuple[Worded, ...]


class Weight(NamedTuple):
    """A weight of a module that differs between the sides. ``told``: how; ``format_only``: one side keeps it in a coarser format.

    ``stale``: the side that holds an earlier checkpoint's.  ``stores_one_more``: the one that stores 1 + w where the other stores w.
    """

    name: str
    unequal: int
    of: int
    told: tuple[Worded, ...] = ()
    format_only: bool = False
    stale: FindingSide = "unknown"
    stores_one_more: str = ""

    @property
    def faulty(self) -> bool:
        """Whether the module computes with another weight on each side."""
        return not self.format_only and not self.stores_one_more


def judge(
    train: Replayed | Unreplayed, infer: Replayed | Unreplayed, weights: Sequence[Weight], norms: Mapping[str, Norms], *, single: bool
) -> Judged:
    """The verdict of one pair. ``single``: a module that stands in no layer, so that no other of its kind can vouch for its operator."""
    apart = tuple(said for one in weights for said in _weight_told(one))
    differ = any(one.faulty for one in weights)
    checkpoint = tuple(word("replay_checkpoint", weight=one.name) for one in weights if one.faulty and one.stale == "unknown")
    if isinstance(train, Unreplayed) or isinstance(infer, Unreplayed):
        found = _not_replayed({"train": train, "infer": infer})
    else:
        found = _replayed({"train": train, "infer": infer}, weights, norms, single=single)
    verdict: Verdict = "logic" if differ else found.verdict
    # What is not known of the kernel is no second cause beside the weights.
    own = () if differ and found.verdict == "unknown" else found.evidence
    return Judged(verdict, found.side, (*apart, *own), (*checkpoint, *found.would_decide))


def _weight_told(one: Weight) -> tuple[Worded, ...]:
    return (word("replay_weights_differ", weight=one.name, unequal=one.unequal, of=one.of), *one.told) if one.faulty else one.told


def _not_replayed(both: Mapping[SideName, Replayed | Unreplayed]) -> Judged:
    reasons = {one.reason.text: one.reason for one in both.values() if isinstance(one, Unreplayed)}
    alone = {label: one for label, one in both.items() if isinstance(one, Replayed) and not one.follows}
    told = tuple(said for label, one in alone.items() for said in unexplained.told(label, one))
    return Judged("unknown", "unknown", told, tuple(reasons.values()))


def _replayed(both: _Both, weights: Sequence[Weight], norms: Mapping[str, Norms], *, single: bool) -> Judged:
    off = {label: one for label, one in both.items() if not one.follows}
    unknown = [label for label, one in off.items() if unexplained.unknown_kernel(one, norms[label], single=single)]
    deviates = {label: one for label, one in off.items() if label not in unknown}
    if len(unknown) == len(deviates) == 1 and unexplained.errs_as_others(off[unknown[0]]):
        return _off(deviates)
    beside = _beside_unknown(both, unknown, norms) if unknown else None
    if beside is not None:
        return beside
    if unknown or (len(off) == 2 and not all(one.best.explains for one in off.values())):  # two named mistakes are known
        told = tuple(said for label, one in off.items() for said in unexplained.told(label, one))
        return Judged("unknown", "unknown", told, tuple(unexplained.would_decide(label, one) for label, one in off.items()))
    return _off(off) if off else _both_follow(both, norms, weights)


def _beside_unknown(both: _Both, unknown: Sequence[SideName], norms: Mapping[str, Norms]) -> Judged | None:
    """Constants that are known although a kernel is not: of what comes before it, and of the other side, which follows from its own."""
    apart = _constants_apart(both, norms)
    if apart is not None or len(unknown) > 1 or not unexplained.errs_as_others(both[unknown[0]]):
        return apart
    side = _other(unknown[0])
    if not both[side].follows:
        return None
    for name, constant in sorted(both[side].constants.items()):
        why = _stray(name, constant, norms[side], both[side], side)
        if why is not None:
            told = word("replay_constant_alone", side=side, name=_called(name), value=_short(constant))
            return Judged("logic", side, (told, why), ())
    return None


def _off(off: _Both) -> Judged:
    """At least one side deviates, the operator being known there."""
    told = tuple(said for label, one in off.items() for said in unexplained.told(label, one))
    own = tuple(word("replay_borrowed", side=label) for label, one in off.items() if one.work.origin == "borrowed")
    side: FindingSide = "unknown" if own else "both" if len(off) == 2 else next(iter(off))
    return Judged("logic", side, (*told, *own), ())


# --- both follow from what they were handed: do they compute the same? ---


def _both_follow(both: _Both, norms: Mapping[str, Norms], weights: Sequence[Weight]) -> Judged:
    """``weights``: those that differ."""
    differ, stored_less_one = any(one.faulty for one in weights), any(one.stores_one_more for one in weights)
    found = _constants_apart(both, norms) or _bias_apart(both, differ=differ) or _logits_apart(both, norms)
    if found is not None:
        return found
    train, infer = both["train"], both["infer"]
    gains = conventions.gains_agree(train, infer)
    if gains is None and not stored_less_one and conventions.function_of(train) != conventions.function_of(infer):
        return _functions_apart(both, norms)
    one, two = conventions.chosen(train, infer)
    if gains is not None:
        one, two = conventions.without_offset(one), conventions.without_offset(two)
    noisy = tuple(_noise(label, side) for label, side in both.items() if side.plausible)
    variants = noisy or (() if one == two else (word("replay_variants", train=one, infer=two),))
    told = (gains, *variants) if gains is not None else variants
    wrong = conventions.gains_apart(train, infer) if differ or (gains is None and stored_less_one) else ()
    if differ:
        stale = {one.stale for one in weights if one.faulty}
        return Judged("logic", stale.pop() if len(stale) == 1 else "unknown", (*wrong, *told), ())
    if gains is None and stored_less_one:
        return Judged("logic", wrong[0].values["side"] if wrong else "unknown", (*wrong, *told), ())
    formats = any(weight.format_only for weight in weights)
    return Judged("rounding" if variants or formats else "same", "unknown", told, ())


def _bias_apart(both: _Both, *, differ: bool) -> Judged | None:
    """One side alone adds a bias, or hands it on."""
    left = conventions.bias_is_left(both["train"], both["infer"])
    if left is not None:
        return Judged("unknown", "unknown", (), (left,))
    biased = [label for label, side in both.items() if "bias" in side.work.weights]
    if differ or len(biased) != 1 or any(side.work.origin != "recorded" for side in both.values()):
        return None
    decides = word("replay_bias_decides", entry=both[biased[0]].work.entry)
    return Judged("logic", "unknown", (word("replay_bias_alone", side=biased[0], other=_other(biased[0])),), (decides,))


def _logits_apart(both: _Both, norms: Mapping[str, Norms]) -> Judged | None:
    """One side bounds or scales its logits in the module that hands them out; the other may do so after it, where nothing is recorded:
    it does where its configuration states the same constant."""
    operators = {label: side.best.trial.formula.operator for label, side in both.items()}
    ended = [label for label in _SIDES if operators[label] in _ENDS]
    if not ended or operators["train"] == operators["infer"]:
        return None
    if len(ended) == 2:
        decides = tuple(word("replay_config_decides", name=_ENDS[operator][0]) for operator in operators.values())
        return Judged("logic", "unknown", (word("replay_functions", train=operators["train"], infer=operators["infer"]),), decides)
    label, other = ended[0], _other(ended[0])
    name, alone, same = _ENDS[operators[label]]
    value = norms[other].stated.get(name)
    if value is None or not both[label].constants[name].holds(value):
        return Judged("unknown", "unknown", (), (word(alone, side=label, other=other),))
    return Judged("same", "unknown", (word(same, side=label, other=other, value=value),), ())


def _functions_apart(both: _Both, norms: Mapping[str, Norms]) -> Judged:
    train, infer = both["train"], both["infer"]
    one, two = conventions.chosen(train, infer)
    told = word("replay_functions", train=_function_told(train, one), infer=_function_told(infer, two))
    operators = {side.best.trial.formula.operator for side in both.values()}
    if len(operators) > 1 and not any(operators <= alike for alike in _ALIKE):
        return Judged("unknown", "unknown", (told,), (word("replay_joined_wrongly"),))
    strays = {label: why for label in _SIDES if (why := _other_function(both[label], norms[label], label)) is not None}
    meant = _side_that_its_table_bears_out(both) if not strays else None
    if meant is not None:
        strays = {_other(meant): word("replay_table_layout", side=meant)}
    side: FindingSide = next(iter(strays)) if len(strays) == 1 else "unknown"
    proof = tuple(strays.values()) if len(strays) == 1 else ()
    decides = () if side != "unknown" else (word("replay_function_decides", operators=sorted(operators)),)
    return Judged("logic", side, (told, *conventions.gains_apart(train, infer), *proof), decides)


def _other(side: SideName) -> SideName:
    return "infer" if side == "train" else "train"


def _side_that_its_table_bears_out(both: _Both) -> SideName | None:
    """The one side that recorded a table laid out for the pairs that it turns; the other recorded none that says anything."""
    laid_out = {label: one.work.heads.laid_out if one.work.heads is not None else None for label, one in both.items()}
    said = [label for label in _SIDES if laid_out[label] is not None]
    return said[0] if len(said) == 1 and laid_out[said[0]] == both[said[0]].best.trial.variant.function else None


def _other_function(one: Replayed, norms: Norms, label: str) -> Worded | None:
    """Why a module computes the wrong function: another is stated, or most modules of its operator on its side compute another."""
    operator, own = conventions.function_of(one)
    if (told := contradicted(one, norms.stated, label)) is not None:
        return told
    stated = [name.removeprefix(FUNCTION) for name in norms.stated if name.startswith(FUNCTION) and operator in _ACTIVATIONS]
    if stated and own not in stated:
        return word("replay_function_stated", side=label, name=stated[0])
    usual = norms.functions.get(operator)
    return word("replay_function_elsewhere", side=label) if not stated and usual is not None and usual != own else None


def _function_told(one: Replayed, variant: str) -> Worded | str:
    return function_told(one) or f"{one.best.trial.formula.operator} {variant}"


def _noise(label: str, one: Replayed) -> Worded:
    noise = one.noise
    assert noise is not None
    if one.kernel is not None:
        return word(
            "replay_bound", side=label, operator=one.best.trial.formula.operator, scale=float(f"{one.kernel.scale:.3g}"),
            usual=float(f"{one.kernel.usual:.3g}"), rms=round(noise.rms, 2), gain=round(noise.gain, 1),
        )  # fmt: skip
    return word("replay_noise", side=label, operator=one.best.trial.formula.operator, rms=round(noise.rms, 2), gain=round(noise.gain, 1))


# --- constants ---


def _constants_apart(both: _Both, norms: Mapping[str, Norms]) -> Judged | None:
    """Both sides follow from their constants, but not from the same, or not from those that are stated or hold in all other layers."""
    for name in sorted(both["train"].constants.keys() & both["infer"].constants.keys()):
        pair = {label: side.constants[name] for label, side in both.items()}
        if _overlap(pair["train"], pair["infer"]):
            continue
        told = word("replay_constants", name=_called(name), train=_short(pair["train"]), infer=_short(pair["infer"]))
        strays = {label: stray for label in _SIDES if (stray := _stray(name, pair[label], norms[label], both[label], label)) is not None}
        if len(strays) == 1:
            side, why = next(iter(strays.items()))
            return Judged("logic", side, (told, why), ())
        decides = "replay_sampling_decides" if name == "temperature" else "replay_config_decides"
        return Judged("logic", "unknown", (told,), (word(decides, name=_called(name)),))
    return None


def _said(value: float) -> float | Worded:
    """A constant in a sentence; a window or a cap that is infinite is none."""
    return value if math.isfinite(value) else word("replay_none")


def _short(constant: Constant) -> float | Worded:
    """The shortest number that explains a record as well, where an interval is known."""
    low, high = constant.interval or (constant.value, constant.value)
    short = rounded_to_usual(constant.value, low, high) if math.isfinite(low) and math.isfinite(high) else constant.value
    return _said(constant.value if constant.stated else short)


def _called(name: str) -> str:
    """A frequency by the number of its pair."""
    return f"{FREQUENCY}.{int(name.rpartition('.')[2])}" if name.startswith(f"{THETA}.") else name


def _overlap(one: Constant, two: Constant) -> bool:
    (low, high), (other_low, other_high) = (constant.interval or (constant.value, constant.value) for constant in (one, two))
    return low <= other_high and other_low <= high


def _stray(name: str, constant: Constant, norms: Norms, side: Replayed, label: str) -> Worded | None:
    """Why a constant is the wrong one on its side: another was stated, or holds in most other layers; None where it is not."""
    if name in side.contradicted:
        return word("replay_constant_stated", side=label, name=_called(name), value=_said(side.contradicted[name]))
    usual = norms.constants.get((side.best.trial.formula.operator, name))
    if usual is None or constant.holds(usual):
        return None
    return word("replay_constant_elsewhere", side=label, name=name, value=_said(usual))
