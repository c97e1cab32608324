"""Grounds of hypotheses from modules that were recomputed from their own recorded inputs and weights."""

import math
from collections import Counter
from collections.abc import Sequence

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import ConfigValue, ModuleReplay, ReplayResults
from dump_analysis.causes.ground import Ground, one_of_each_kind
from dump_analysis.replay import places
from dump_analysis.weights import WeightsCompared
from dump_analysis.wording import word

# What verdicts say where constants or functions of the two sides are not the same.
_CONFIG_APART = frozenset({"replay_constants", "replay_constant_alone", "replay_functions"})
_CONFIG_TOLD = _CONFIG_APART | {
    "replay_constant_stated",
    "replay_constant_elsewhere",
    "replay_function_elsewhere",
    "replay_function_stated",
}
_FITS = "replay_fits_"  # begins the kinds that say with which change a record would follow
_RIGHT = ("same", "rounding")
_PARTIALS = "partials_"  # in a variant's name: sums of ranks or blocks, each rounded


def follows(module: ModuleReplay) -> bool:
    """Whether both sides of a module follow from what it recorded itself."""
    return all(side.variant is not None or side.basis is not None for side in (module.train, module.infer))


def _left(modules: Sequence[ModuleReplay]) -> tuple[list[str], tuple[Worded, ...]]:
    """Names of modules that were not recomputed, and what would decide them, one sentence of each kind."""
    unknown = [module for module in modules if module.verdict == "unknown"]
    return [module.module for module in unknown], one_of_each_kind([told for module in unknown for told in module.would_decide])


# --- weights ---


def weights(replay: ReplayResults, found: WeightsCompared, by_comparison: Ground) -> Ground:
    """Kinds of what differs; where a side recorded none, whether the other side's explain its output."""
    differing = [weight for weight in replay.weights if weight.kind is not None]
    if by_comparison.state == "supported" and differing:
        kinds = Counter(str(weight.kind) for weight in differing)
        told = [word("weights_of_kind", what=kind, n=n) for kind, n in kinds.most_common()]
        names = [weight.name for weight in differing]
        return Ground("supported", word("weights_kinds", differ=len(differing), of=found.compared, kinds=told, names=names))
    if by_comparison.state != "open":
        return by_comparison
    gaps = [weight.name for weight in replay.weights if weight.status in ("MISSING", "evidence_missing")]
    borrowed = sum(map(_borrows, replay.modules))
    wrong = frozenset(module.module for module in replay.modules if _borrows_in_vain(module))
    if wrong:
        left = word("weights_borrowed_in_vain", modules=sorted(wrong))
        return Ground("open", left, by_comparison.would_decide, wrong)
    if by_comparison.because.kind == "weights_partly" and by_comparison.because.values["unmapped"]:
        return by_comparison
    if gaps and all(_covered(name, replay) for name in gaps):
        return Ground("excluded", word("weights_equal_or_borrowed", equal=found.equal, of=found.compared, borrowed=borrowed))
    return by_comparison


def explained_entries(replay: ReplayResults) -> frozenset[str]:
    """Entries of which every module follows with weights that one side alone recorded: those of the other side need no row."""
    found = {side.entry for module in replay.modules if _borrows(module) for side in (module.train, module.infer)}
    wrong = {side.entry for module in replay.modules if module.verdict not in _RIGHT for side in (module.train, module.infer)}
    return frozenset(entry for entry in found - wrong if entry is not None)


def _covered(name: str, replay: ReplayResults) -> bool:
    """Whether a weight that was not compared is explained: by its own module, or, under a fused or flat name, by all."""
    own = next((module for module in replay.modules if module.module == name.rpartition(".")[0]), None)
    return _borrows(own) if own is not None else bool(replay.modules) and all(module.verdict in _RIGHT for module in replay.modules)


def _borrows(module: ModuleReplay) -> bool:
    """Whether a side's output follows with the other side's weights: then it used equal ones."""
    return module.verdict in _RIGHT and "borrowed" in (module.train.weights, module.infer.weights)


def _borrows_in_vain(module: ModuleReplay) -> bool:
    return module.verdict == "logic" and any(side.weights == "borrowed" and side.variant is None for side in (module.train, module.infer))


# --- configuration ---


def config(replay: ReplayResults) -> Ground:
    """Constants and functions of both sides, found from what each computed with them."""
    apart = [module for module in replay.modules if any(told.kind in _CONFIG_APART for told in module.evidence) or _disagree(module)]
    if apart:
        told = [sentence for module in apart for sentence in module.evidence if sentence.kind in _CONFIG_TOLD]
        names = [module.module for module in apart]
        return Ground("supported", word("config_apart", modules=names, told=_once(told)), modules=frozenset(names))
    unused = {module.module: stated for module in replay.modules if (stated := stated_apart(module))}
    if unused:
        told = [stated_told(name, *values) for stated in unused.values() for name, values in stated.items()]
        return Ground("supported", word("config_apart", modules=list(unused), told=_once(told)), modules=frozenset(unused))
    agreed = [module for module in replay.modules if follows(module) and not _is_odd(module) and _shared(module)]
    names = sorted({name for module in agreed for name in _shared(module)})
    unknown, would_decide = _left(replay.modules)
    odd = [module.module for module in replay.modules if _is_odd(module)]
    if unknown or odd or not agreed:
        told_of = word("config_agrees_partly", names=names, n=len(agreed), left=unknown + odd)
        return Ground("open", told_of, would_decide or (word("decide_config_files"),))
    return Ground("excluded", word("config_agrees", names=names, n=len(agreed)))


def stated_apart(module: ModuleReplay) -> dict[str, tuple[float | str, float | str]]:
    """Constants of which both configurations state another value, and what was recorded follows from either."""
    if module.verdict not in _RIGHT:
        return {}
    pairs = {name: (module.train.config[name], module.infer.config[name]) for name in _shared(module)}
    return {
        name: (one.value, two.value)
        for name, (one, two) in pairs.items()
        if one.source == two.source == "config" and one.value != two.value
        if isinstance(one.value, (float, str)) and isinstance(two.value, (float, str))
    }


def stated_told(name: str, train: float | str, infer: float | str) -> Worded:
    """A window that no token sees past has no effect; what else was recorded does not depend on the constant."""
    kind = "stated_windows_apart" if name == "attention_window" else "stated_constants_apart"
    return word(kind, name=name, train=train, infer=infer)


def _is_odd(module: ModuleReplay) -> bool:
    """Whether a side does not follow, or only by something that is no right program: a switch may be behind it."""
    named = any(told.kind == "replay_mistake" or told.kind.startswith(_FITS) for told in module.evidence)
    return module.verdict == "logic" and (named or not follows(module))


def _shared(module: ModuleReplay) -> list[str]:
    """The constants that are known of both sides."""
    return sorted(module.train.config.keys() & module.infer.config.keys())


def _disagree(module: ModuleReplay) -> bool:
    """Whether no value of some constant explains both sides; one that the record does not depend on convicts nobody."""
    if module.verdict != "logic":
        return False
    return any(not _overlap(module.train.config[name], module.infer.config[name]) for name in _shared(module))


def _overlap(one: ConfigValue, two: ConfigValue) -> bool:
    """Whether some value would explain both sides; without intervals only equal values do."""
    if not one.interval or not two.interval:
        return one.value == two.value
    (low, high), (other_low, other_high) = (_ends(value.interval) for value in (one, two) if value.interval)
    return low <= other_high and other_low <= high


def _ends(interval: Sequence[float]) -> tuple[float, float]:
    """Of an interval with one end, such as that of a window that none of the tokens reaches, the other is infinite."""
    return interval[0], interval[1] if len(interval) > 1 else math.inf


def _once(sentences: Sequence[Worded]) -> list[Worded]:
    return list({sentence.text: sentence for sentence in sentences}.values())


# --- layout, order, randomness ---


def layout(replay: ReplayResults, by_comparison: Ground) -> Ground:
    """Excluded where every module follows from whole inputs without sums of parts: what ranks did is then in no difference."""
    summed = {label: [one.module for one in replay.modules if _sums_parts(one, label)] for label in ("train", "infer")}
    if set(summed["train"]) != set(summed["infer"]):
        side = max(summed, key=lambda label: len(summed[label]))
        told = word("layout_partials", side=side, modules=summed[side])
        return Ground("supported", told, modules=frozenset(summed["train"]) ^ frozenset(summed["infer"]))
    if replay.modules and all(module.verdict in _RIGHT for module in replay.modules):
        return Ground("excluded", word("layout_follows", n=len(replay.modules)))
    unknown, would_decide = _left(replay.modules)
    return by_comparison._replace(would_decide=(*would_decide, *by_comparison.would_decide)) if unknown else by_comparison


def _sums_parts(module: ModuleReplay, label: str) -> bool:
    return _PARTIALS in ((module.train if label == "train" else module.infer).variant or "")


def kernel_order(replay: ReplayResults) -> Ground:
    """Which modules round at other points on the two sides."""
    rounding = [module for module in replay.modules if module.verdict == "rounding"]
    unknown, would_decide = _left(replay.modules)
    if rounding:
        names = frozenset(module.module for module in rounding)
        told = _once([sentence for module in rounding for sentence in module.evidence])
        return Ground("supported", word("order_of_modules", n=len(rounding), told=told, modules=sorted(names)), modules=names)
    if replay.modules and all(module.verdict == "same" for module in replay.modules):
        return Ground("excluded", word("order_same", n=len(replay.modules)))
    odd = [module.module for module in replay.modules if module.verdict == "logic" and not follows(module)]
    if not unknown and not odd:
        return Ground("excluded", word("order_nowhere", n=len(replay.modules)))
    return Ground("open", word("order_left", left=unknown + odd), would_decide or (word("decide_by_round"),))


def randomness(replay: ReplayResults, boundaries: Sequence[BoundaryResult]) -> Ground:
    """Excluded where every value follows from recorded inputs, or is equal on both sides: dropout would do neither."""
    exact = {places.module_of(result.boundary) for result in boundaries if result.status == "EXACT"}
    left = [module for module in replay.modules if not follows(module) and module.module not in exact]
    if replay.modules and not left:
        return Ground("excluded", word("follows_everywhere", n=len(replay.modules)))
    _, would_decide = _left(left)
    return Ground("open", word("follows_not", left=[module.module for module in left]), (*would_decide, word("decide_repeat")))
