"""What the replays of both sides say of one module pair: same, rounding, logic or unknown, and what proves it.

An explained record follows from its own recorded inputs and weights under a right variant: it proves nothing of whether those are the
right ones, so weights and constants of both sides are held against each other too. What no variant explains is a deviation only where
the operator is known to be computed rightly elsewhere on that side: else it may be a kernel that nobody has written down.
"""

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from dump_analysis.artefacts.common import FindingSide, SideName, Worded
from dump_analysis.artefacts.replay_results import Verdict
from dump_analysis.replay import conventions
from dump_analysis.replay.noise import GROSS
from dump_analysis.replay.one_side import Constant, Replayed, Unreplayed
from dump_analysis.wording import word

_SIDES: tuple[SideName, SideName] = ("train", "infer")
_VOUCHING = 3  # modules of an operator that follow
_NEARLY = 0.1  # gain
_FEW = 16  # tokens or columns that are listed
_ROUNDED_SUM = "add_rounded+"  # in a variant's name: the sum of two inputs is rounded first, as an addition of its own leaves it


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


class Norms(NamedTuple):
    """What holds over a whole side: operators of which most modules are not explained, the constants and functions of most
    modules, the noise of operators whose kernel is not in the list, and operators whose kernel several modules vouch for."""

    untrusted: frozenset[str]
    constants: Mapping[tuple[str, str], float]
    functions: Mapping[str, str]
    noises: Mapping[str, float] = MappingProxyType({})
    vouched: frozenset[str] = frozenset()


def norms_of(replays: Sequence[Replayed]) -> Norms:
    """From all modules of one side."""
    total, failed = (
        Counter(one.best.trial.formula.operator for one in replays),
        Counter(one.best.trial.formula.operator for one in replays if not _follows(one) and not one.best.trial.fault),
    )
    known: dict[tuple[str, str], list[Constant]] = {}
    for one in replays:
        for name, constant in one.constants.items() if _follows(one) else ():
            known.setdefault((one.best.trial.formula.operator, name), []).append(constant)
    untrusted = frozenset(operator for operator, count in failed.items() if 2 * count > total[operator])
    constants = {key: value for key, found in known.items() if (value := _agreed(found)) is not None}
    computed = Counter((one.best.trial.formula.operator, one.best.trial.variant.function) for one in replays if _follows(one))
    functions = {operator: name for (operator, name), count in computed.items() if count > 1 and 2 * count > total[operator]}
    following = Counter(one.best.trial.formula.operator for one in replays if _follows(one))
    vouched = frozenset(operator for operator, count in following.items() if count >= _VOUCHING) - untrusted
    return Norms(untrusted, constants, functions, _noises(replays), vouched)


def _follows(one: Replayed) -> bool:
    """Whether a variant explains the record, or what is left of it is rounding."""
    return one.explained or one.plausible


def _noises(replays: Sequence[Replayed]) -> dict[str, float]:
    """The median root mean square of what operators leave whose kernel is not in the list."""
    found: dict[str, list[float]] = {}
    for one in replays:
        if one.plausible and one.noise is not None:
            found.setdefault(one.best.trial.formula.operator, []).append(one.noise.rms)
    return {operator: statistics.median(each) for operator, each in found.items()}


def _agreed(found: Sequence[Constant]) -> float | None:
    """The value that explains more than half of the modules, and at least two; None where there is none."""
    votes = {constant.value: sum(other.holds(constant.value) for other in found) for constant in found}
    value = max(votes, key=lambda one: votes[one])
    return value if votes[value] > 1 and 2 * votes[value] > len(found) else None


def judge(
    train: Replayed | Unreplayed, infer: Replayed | Unreplayed, weights: Sequence[Weight], norms: Mapping[str, Norms], *, single: bool
) -> Judged:
    """The verdict of one pair. ``single``: a module that stands in no layer, so that no other of its kind can vouch for its operator."""
    both = {"train": train, "infer": infer}
    apart = tuple(said for one in weights for said in _weight_told(one))
    stored = weights
    weights = [one for one in weights if one.faulty]
    checkpoint = tuple(word("replay_checkpoint", weight=one.name) for one in weights if one.stale == "unknown")
    if isinstance(train, Unreplayed) or isinstance(infer, Unreplayed):
        reasons = tuple(one.reason for one in both.values() if isinstance(one, Unreplayed))
        alone = {label: one for label, one in both.items() if isinstance(one, Replayed) and not _follows(one)}
        told = tuple(said for label, one in alone.items() for said in _unexplained(label, one))
        return Judged("logic" if weights else "unknown", "unknown", (*apart, *told), (*checkpoint, *_once(reasons)))
    replays = {"train": train, "infer": infer}
    off = {label: replays[label] for label in _SIDES if not _follows(replays[label])}
    unknown = [label for label, one in off.items() if _unknown_kernel(one, norms[label], single=single)]
    if unknown or (len(off) == 2 and not _named(off)):
        told = tuple(said for label, one in off.items() for said in _unexplained(label, one))
        kernels = tuple(_kernel(label, off[label]) for label in off)
        return Judged("logic" if weights else "unknown", "unknown", (*apart, *told), (*checkpoint, *kernels))
    if off:
        return _one_is_off(off, apart, checkpoint)
    return _both_follow(train, infer, norms, stored, apart, checkpoint)


def _weight_told(one: Weight) -> tuple[Worded, ...]:
    return (word("replay_weights_differ", weight=one.name, unequal=one.unequal, of=one.of), *one.told) if one.faulty else one.told


def _both_follow(
    train: Replayed, infer: Replayed, norms: Mapping[str, Norms], weights: Sequence[Weight], apart: tuple[Worded, ...],
    checkpoint: tuple[Worded, ...],
) -> Judged:  # fmt: skip
    """Both sides follow from what they were handed: do they compute the same? ``weights``: those that differ."""
    differ = any(one.faulty for one in weights)
    found = _constants_apart(train, infer, norms)
    if found is not None:
        return found._replace(evidence=(*apart, *found.evidence), would_decide=(*checkpoint, *found.would_decide))
    both: dict[SideName, Replayed] = {"train": train, "infer": infer}
    left_bias = conventions.bias_is_left(train, infer)
    if left_bias is not None:
        return Judged("logic" if differ else "unknown", "unknown", apart, (*checkpoint, left_bias))
    biased = [label for label, side in both.items() if "bias" in side.work.weights]
    if not differ and len(biased) == 1 and all(side.work.origin == "recorded" for side in both.values()):
        told = word("replay_bias_alone", side=biased[0], other="infer" if biased[0] == "train" else "train")
        return Judged("logic", "unknown", (*apart, told), (*checkpoint, word("replay_bias_decides", entry=both[biased[0]].work.entry)))
    one, two = chosen(train, infer)
    gains = conventions.gains_agree(train, infer)
    if gains is not None:
        one, two, apart = conventions.without_offset(one), conventions.without_offset(two), (*apart, gains)
    capped = [label for label in _SIDES if _is_capped(both[label])]
    if len(capped) == 1:
        left = word("replay_cap", side=capped[0], other="infer" if capped[0] == "train" else "train")
        return Judged("logic" if differ else "unknown", "unknown", apart, (*checkpoint, left))
    offset = any(weight.stores_one_more for weight in weights)
    if gains is None and not offset and conventions.function_of(train) != conventions.function_of(infer):
        stray = [label for label in _SIDES if _is_other_function(both[label], norms[label])]
        side = stray[0] if len(stray) == 1 else "unknown"
        elsewhere = (word("replay_function_elsewhere", side=side),) if side != "unknown" else ()
        meant = _side_that_its_table_bears_out(both) if not stray else None
        if meant is not None:
            side = "infer" if meant == "train" else "train"
            elsewhere = (word("replay_table_layout", side=meant),)
        told = word("replay_functions", train=_told(train, one), infer=_told(infer, two))
        return Judged("logic", side, (*apart, told, *conventions.gains_apart(train, infer), *elsewhere), checkpoint)
    noisy = tuple(_noise(label, both[label]) for label in _SIDES if both[label].plausible)
    variants = noisy or (() if one == two else (word("replay_variants", train=one, infer=two),))
    if differ:
        stale = list({one.stale: None for one in weights if one.faulty})
        every = (*apart, *conventions.gains_apart(train, infer), *variants)
        return Judged("logic", stale[0] if len(stale) == 1 else "unknown", every, checkpoint)
    if gains is None and offset:
        wrong = conventions.gains_apart(train, infer)
        return Judged("logic", wrong[0].values["side"] if wrong else "unknown", (*apart, *wrong, *variants), checkpoint)
    formats = any(weight.format_only for weight in weights)
    return Judged("rounding" if variants or formats else "same", "unknown", (*apart, *variants), ())


def _side_that_its_table_bears_out(both: Mapping[SideName, Replayed]) -> SideName | None:
    """The one side that recorded a table laid out for the pairs that it turns; the other recorded none that says anything."""
    laid_out = {label: one.work.heads.laid_out if one.work.heads is not None else None for label, one in both.items()}
    said = [label for label in _SIDES if laid_out[label] is not None]
    return said[0] if len(said) == 1 and laid_out[said[0]] == both[said[0]].best.trial.variant.function else None


def _told(one: Replayed, variant: str) -> str:
    return f"{one.best.trial.formula.operator} {variant}"


def _is_capped(one: Replayed) -> bool:
    return one.best.trial.formula.operator == "soft_capped_linear"


def _is_other_function(one: Replayed, norms: Norms) -> bool:
    """Whether a module computes another function than most modules of its operator on its side."""
    usual = norms.functions.get(one.best.trial.formula.operator)
    return usual is not None and usual != one.best.trial.variant.function


def without_rounded_sum(variant: str) -> str:
    """A variant's name as that of one input, which somebody else may have summed and rounded."""
    return variant.replace(_ROUNDED_SUM, "")


def chosen(train: Replayed, infer: Replayed) -> tuple[str, str]:
    """The variants of both sides as they are told apart: one that explains both where there is one, with the format where that differs."""
    one, two = (without_rounded_sum(side.best.trial.variant.name) for side in (train, infer))
    held = [{without_rounded_sum(name) for name in side.holding} for side in (train, infer)]
    if one != two and one in held[1]:
        two = one
    elif one != two and two in held[0]:
        one = two
    if train.grid != infer.grid:
        return f"{one} {train.grid}", f"{two} {infer.grid}"
    return one, two


def _once(reasons: Sequence[Worded]) -> tuple[Worded, ...]:
    return tuple({reason.text: reason for reason in reasons}.values())


# --- records that nothing explains ---


def _unknown_kernel(one: Replayed, norms: Norms, *, single: bool) -> bool:
    """Whether what nothing explains may be a kernel, or a function, that nobody has written down, or a weight that is another."""
    if one.work.guessed:
        return True
    if one.best.explains:
        return False
    usual = norms.noises.get(one.best.trial.formula.operator)
    if usual is not None and (one.noise is None or one.noise.rms < GROSS * usual):
        return True
    # What comes nearest is an accident where nothing fits: a module that may be of a kind that is computed rightly elsewhere is known.
    kinds = [one.best.trial.formula.operator, *one.work.operators]
    if kinds[0] in norms.untrusted and not any(kind in norms.functions for kind in kinds[1:]):
        return True
    vouched = any(kind in norms.vouched for kind in kinds)
    return single and not _in_one_place(one) and not (vouched and _is_nearly_right(one))


def _is_nearly_right(one: Replayed) -> bool:
    """Whether a record is about what the formula makes, and no line of it: another function, a scale after it, would not be."""
    left = one.residual
    return left is not None and abs(left.gain - 1.0) < _NEARLY and left.left_over > 0.5


def _in_one_place(one: Replayed) -> bool:
    """Whether a few tokens or columns of many hold what nothing explains, and little else: no kernel errs so."""
    if one.where is None:
        return False
    tokens, columns = len(one.where.tokens), len(one.where.columns)
    few = any(touched * 4 <= of and of >= 4 for touched, of in ((tokens, one.where.of_tokens), (columns, one.where.of_columns)))
    return few and one.where.of_tokens > 1 and 2 * one.best.outside >= tokens * columns


def _named(off: Mapping[SideName, Replayed]) -> bool:
    """Whether every record that is off is explained by a named mistake."""
    return all(one.best.explains for one in off.values())


def _one_is_off(off: Mapping[SideName, Replayed], apart: tuple[Worded, ...], checkpoint: tuple[Worded, ...]) -> Judged:
    """At least one side deviates, the operator being known there."""
    told = tuple(said for label, one in off.items() for said in _unexplained(label, one))
    borrowed = any(one.work.origin == "borrowed" for one in off.values())
    side = "unknown" if borrowed else "both" if len(off) == 2 else next(iter(off))
    own = tuple(word("replay_borrowed", side=label) for label, one in off.items() if one.work.origin == "borrowed")
    return Judged("logic", side, (*apart, *told, *own), checkpoint)


def _unexplained(label: str, one: Replayed) -> tuple[Worded, ...]:
    best = one.best
    if best.explains:
        return (word("replay_mistake", side=label, variant=best.trial.variant.name, of=best.of),)
    told = word(
        "replay_unexplained", side=label, unexplained=best.outside, of=best.of, operator=best.trial.formula.operator,
        variant=best.trial.variant.name,
    )  # fmt: skip
    if one.where is None:
        return (told,)
    tokens, columns = one.where.tokens, one.where.columns
    if len(tokens) < one.where.of_tokens and len(tokens) <= _FEW:
        return told, word("replay_only_tokens", side=label, tokens=list(tokens), of=one.where.of_tokens)
    if len(columns) < one.where.of_columns and len(columns) <= _FEW:
        return told, word("replay_only_columns", side=label, columns=list(columns), of=one.where.of_columns)
    return (told,)


def _noise(label: str, one: Replayed) -> Worded:
    noise = one.noise
    assert noise is not None
    return word("replay_noise", side=label, operator=one.best.trial.formula.operator, rms=round(noise.rms, 2), gain=round(noise.gain, 1))


def _kernel(label: str, one: Replayed) -> Worded:
    if one.work.guessed:
        return word("replay_guessed", side=label, entry=one.work.entry)
    return word("replay_kernel", side=label, operator=one.best.trial.formula.operator)


# --- constants ---


def _constants_apart(train: Replayed, infer: Replayed, norms: Mapping[str, Norms]) -> Judged | None:
    """Both sides follow from their constants, but not from the same, or not from those that are stated or hold in all other layers."""
    both = {"train": train, "infer": infer}
    for name in sorted(train.constants.keys() & infer.constants.keys()):
        pair = {"train": train.constants[name], "infer": infer.constants[name]}
        if _overlap(pair["train"], pair["infer"]):
            continue
        told = word("replay_constants", name=name, train=_said(pair["train"].value), infer=_said(pair["infer"].value))
        strays = {label: stray for label in _SIDES if (stray := _stray(name, pair[label], norms[label], both[label], label)) is not None}
        if len(strays) == 1:
            side, why = next(iter(strays.items()))
            return Judged("logic", side, (told, why), ())
        decides = "replay_sampling_decides" if name == "temperature" else "replay_config_decides"
        return Judged("logic", "unknown", (told,), (word(decides, name=name),))
    return None


def _said(value: float) -> float | Worded:
    """A constant in a sentence; a window or a cap that is infinite is none."""
    return value if math.isfinite(value) else word("replay_none")


def _overlap(one: Constant, two: Constant) -> bool:
    (low, high), (other_low, other_high) = (constant.interval or (constant.value, constant.value) for constant in (one, two))
    return low <= other_high and other_low <= high


def _stray(name: str, constant: Constant, norms: Norms, side: Replayed, label: str) -> Worded | None:
    """Why a constant is the wrong one on its side: another was stated, or holds in most other layers; None where it is not."""
    if name in side.contradicted:
        return word("replay_constant_stated", side=label, name=name, value=_said(side.contradicted[name]))
    usual = norms.constants.get((side.best.trial.formula.operator, name))
    if usual is None or constant.holds(usual):
        return None
    return word("replay_constant_elsewhere", side=label, name=name, value=_said(usual))
