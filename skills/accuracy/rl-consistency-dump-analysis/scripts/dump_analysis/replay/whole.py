"""A pair of dumps replayed: every mapped module of both sides, and the verdicts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
from msprobe_files import release
from msprobe_files.pt_archive import PtTensor

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import Basis, Calibration, ConfigValue, Edge, ModuleReplay, SideReplay, Span, WeightReplay
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.pairs import keep_freed_memory
from dump_analysis.replay import (
    attention_work,
    calibration,
    conventions,
    norm_chain,
    places,
    routed_work,
    search,
    verdict,
    weights_compared,
)
from dump_analysis.replay.assembled import Whole, whole_pair
from dump_analysis.replay.attention_side import replay_attentions, values_of
from dump_analysis.replay.between import inputs_of, with_inputs
from dump_analysis.replay.edges import Stated
from dump_analysis.replay.emulate import FORMATS
from dump_analysis.replay.formulas.rotary import THETA
from dump_analysis.replay.local import local_of
from dump_analysis.replay.log_prob_work import log_prob_work
from dump_analysis.replay.modules import Pair, entry_of, pair_of, rows_of, work_of
from dump_analysis.replay.naming import named
from dump_analysis.replay.one_side import Constant, Replayed, Unreplayed, replay
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.routed_side import replay_routing
from dump_analysis.replay.routed_told import flips, flips_told
from dump_analysis.replay.tied_head import or_tied
from dump_analysis.replay.usual import norms_of
from dump_analysis.replay.verdict import Weight
from dump_analysis.sides import Side
from dump_analysis.tensors import Files

_SIDES = ("train", "infer")
_REUSED_BYTES = 31 << 20  # of what a block needs at a time


class _Pair(NamedTuple):
    """A boundary as both sides make it; ``files``: where their works are read from."""

    row: Row
    sides: dict[str, Replayed | Unreplayed]
    files: Files


class Replay(NamedTuple):
    """Modules in the mapping's order, weights, the counts of each operator, and where inputs came from, or why that is not known."""

    modules: list[ModuleReplay]
    weights: list[WeightReplay]
    calibration: dict[str, dict[str, Calibration]]
    edges: list[Edge]
    untraced: str | None


def replay_pair(
    mapping: SemanticMapping,
    train: Side,
    infer: Side,
    stated: Stated,
    advance: Callable[[], object] = lambda: None,
    previous: Mapping[str, PtTensor] | None = None,
) -> Replay:
    """Every row of the mapping replayed. ``stated``: constants by side; ``previous``: weights of an earlier checkpoint."""
    keep_freed_memory(_REUSED_BYTES)
    whole = whole_pair(mapping, train, infer)
    pair = pair_of(whole.mapping, whole.train, whole.infer)
    weights = weights_compared.compared(whole.mapping, pair, previous)
    found, before = [], dict[str, dict[str, dict[str, float]]]()
    for row in rows_of(mapping):
        made = _both_sides(whole, pair, row, stated, before.get(place_of(row.boundary), {}))
        before[place_of(row.boundary)] = {label: values_of(side) for label, side in made.sides.items()}
        found.append(made)
        advance()
    found = _calibrated(found, stated)
    inputs = inputs_of(pair, [(one.row, one.sides) for one in found], stated)
    replayed = {label: [side for one in found if isinstance(side := one.sides[label], Replayed)] for label in _SIDES}
    norms = {label: norms_of(sides, stated.get(label, {})) for label, sides in replayed.items()}
    modules = []
    for one in found:
        names = _weights_of(pair, one.row, one.sides)
        own = [_weight_of(each) for each in weights if (each.unequal or each.stores_one_more) and each.result.name in names]
        single = layer_of(one.row.boundary) is None
        judged = verdict.judge(one.sides["train"], one.sides["infer"], own, norms, single=single)
        modules.append(_module(one, judged, whole.recorded, attention_work.span_of(one.row, pair) or routed_work.span_of(one.row, pair)))
        one.files.close()
    calibration = {label: _calibration([one.sides[label] for one in found]) for label in _SIDES}
    modules = flips_told(_without_behind_bias(modules))
    return Replay(with_inputs(modules, inputs), [one.result for one in weights], calibration, inputs.edges.edges, inputs.untraced)


def _calibrated(found: Sequence[_Pair], stated: Stated) -> list[_Pair]:
    sides = {}
    for label in _SIDES:
        recorded = [calibration.Recorded(one.row.boundary, one.sides[label], one.files) for one in found]
        sides[label] = calibration.calibrated(recorded, stated.get(label, {}))
    return [one._replace(sides={label: sides[label][at] for label in _SIDES}) for at, one in enumerate(found)]


def _without_behind_bias(modules: Sequence[ModuleReplay]) -> list[ModuleReplay]:
    """Attention that was recomputed from values to which a bias is added after their modules handed it on: nothing is known of it."""
    left = {one.module: told for one in modules for told in one.would_decide if told.kind == "replay_bias_left"}
    found = []
    for one in modules:
        sources = [places.module_of(name) for name in one.span.start] if one.span is not None else []
        why = next((left[name] for name in sources if name in left), None)
        if why is not None and one.verdict == "logic":
            one = msgspec.structs.replace(one, verdict="unknown", side="unknown", evidence=[], would_decide=[why])
        found.append(one)
    return found


def _weight_of(one: weights_compared.Compared) -> Weight:
    """A weight as the verdict takes it."""
    result = one.result
    return Weight(result.name, one.unequal, one.of, tuple(result.evidence), result.format_only, result.side, one.stores_one_more)


def _both_sides(whole: Whole, pair: Pair, row: Row, stated: Stated, before: Stated) -> _Pair:
    """``before``: constants that explained the same place of the layer before."""
    files = Files()  # what it closes it opens again where it is asked
    said = pair.rows.get(row.boundary)
    if said is None:
        why = whole.left_out[row.boundary]
        return _Pair(row, {label: Unreplayed(entry_of(row, label), why) for label in _SIDES}, files)
    if attention_work.is_attention(said):
        return _Pair(said, replay_attentions(files, pair, said, stated, before), files)
    if routed_work.is_routed(said):
        return _Pair(said, replay_routing(files, pair, said, stated), files)
    return _Pair(said, {label: _one_side(files, pair, said, label, stated.get(label, {})) for label in _SIDES}, files)


def _weights_of(pair: Pair, row: Row, both: Mapping[str, Replayed | Unreplayed]) -> set[str]:
    """The boundaries of the weights that make a row's value."""
    stem = places.module_of(row.boundary)
    train, infer = both["train"], both["infer"]
    known = [one for one in (train, infer) if isinstance(one, Replayed)]
    inside = set[str]().union(*(norm_chain.weights_inside(pair, one.work) for one in known))
    names = {f"{stem}.weight", f"{stem}.bias", *inside, *routed_work.weights_of(pair, row)}
    if isinstance(train, Replayed) and isinstance(infer, Replayed) and conventions.gains_agree(train, infer) is not None:
        names -= inside or {f"{stem}.weight"}
    return names


def _one_side(files: Files, pair: Pair, row: Row, label: str, stated: Mapping[str, float]) -> Replayed | Unreplayed:
    try:
        work = log_prob_work(files, pair, row, label) or norm_chain.with_its_norm(files, pair, row, label, work_of(files, pair, row, label))
        return or_tied(files, pair, label, replay(work, stated), stated)
    except CannotReplay as why:
        return Unreplayed(entry_of(row, label), why.reason)
    finally:
        files.close()


def _module(one: _Pair, judged: verdict.Judged, recorded: Mapping[str, Mapping[str, str]], span: Span | None) -> ModuleReplay:
    train, infer = one.sides["train"], one.sides["infer"]
    names = {"train": "", "infer": ""}
    if isinstance(train, Replayed) and isinstance(infer, Replayed) and train.explained and infer.explained:
        names["train"], names["infer"] = conventions.chosen(train, infer)
    operator = next((side.best.trial.formula.operator for side in one.sides.values() if isinstance(side, Replayed)), None)
    added, evidence = None, list(judged.evidence)
    if isinstance(train, Replayed) and isinstance(infer, Replayed) and judged.verdict in ("rounding", "logic"):
        added = local_of(train, infer)
    flipped = flips(train, infer) if isinstance(train, Replayed) and isinstance(infer, Replayed) else None
    if flipped is not None:
        evidence.append(flipped)
    if judged.verdict == "logic":
        evidence += _named(one)
    return ModuleReplay(
        places.module_of(one.row.boundary), span, operator, judged.verdict,
        _written(train, names["train"], recorded.get("train", {})), _written(infer, names["infer"], recorded.get("infer", {})),
        None, evidence, list(judged.would_decide), judged.side, added,
    )  # fmt: skip


def _named(one: _Pair) -> Iterator[Worded]:
    """What would make the records follow that nothing explains, where there is such a thing."""
    for label, side in one.sides.items():
        if isinstance(side, Replayed) and side.where is not None and side.work.output.dtype in FORMATS:
            told = named(side.work, side.best.trial, side.grid, side.where, label)
            if told is not None:
                yield told


def _written(one: Replayed | Unreplayed, name: str, recorded: Mapping[str, str]) -> SideReplay:
    """``name``: the variant as the verdict names it, "" for the one that was found on this side alone.

    ``recorded``: what the units of an assembled side call its entries.
    """
    if isinstance(one, Unreplayed):
        entry = recorded.get(one.entry, one.entry) if one.entry is not None else None
        return SideReplay(entry, [], None, None, None, None, 0, None, {}, "absent", None, "unknown")
    best, work = one.best, one.work
    constants = _config({key: found for key, found in one.constants.items() if found.value != search.UNITS.get(key)})
    return SideReplay(
        recorded.get(work.entry, work.entry), [recorded.get(entry, entry) for entry in work.via],
        (name or best.trial.variant.name) if best.explains else None,
        best.equal / best.of, 1 - best.outside / best.of, best.outside, best.of, _basis(one),
        constants, "borrowed" if work.origin == "tied" else work.origin, one.residual, _inputs_are(work.inputs_are),
    )  # fmt: skip


def _basis(one: Replayed) -> Basis | None:
    if one.plausible:
        return "bound" if one.kernel is not None else "noise_model"
    return "variant" if one.best.explains else None


def _config(constants: Mapping[str, Constant]) -> dict[str, ConfigValue]:
    """The constants; frequencies of a rotation as one list, where no base gives them."""
    each = {key: found for key, found in constants.items() if key.startswith(f"{THETA}.")}
    named = {key: _config_value(found) for key, found in constants.items() if key not in each}
    if not each or THETA in named:
        return named
    return {**named, "rope_frequencies": ConfigValue([found.value for _, found in sorted(each.items())], None, "inferred")}


def _config_value(found: Constant) -> ConfigValue:
    """A window or a cap that is none is written as "none", without an interval: JSON holds no infinity."""
    value = found.value if math.isfinite(found.value) else "none"
    interval = list(found.interval) if found.interval and all(map(math.isfinite, found.interval)) else None
    return ConfigValue(value, interval, "config" if found.stated else "inferred")


def _inputs_are(told: str) -> Literal["pre_call", "post_call", "unknown"]:
    return "pre_call" if told == release.PRE_CALL else "post_call" if told == release.POST_CALL else "unknown"


def _calibration(sides: Sequence[Replayed | Unreplayed]) -> dict[str, Calibration]:
    found: dict[str, list[Replayed]] = {}
    for one in sides:
        if isinstance(one, Replayed):
            found.setdefault(one.best.trial.formula.operator, []).append(one)
    return {
        operator: Calibration(
            len(ones), sum(one.best.of for one in ones), sum(one.best.outside for one in ones), calibration.scale_of(ones)
        )
        for operator, ones in found.items()
    }
