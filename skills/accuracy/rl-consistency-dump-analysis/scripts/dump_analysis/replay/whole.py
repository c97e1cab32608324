"""A pair of dumps replayed: every mapped module of both sides, and the verdicts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msprobe_files import release

from dump_analysis.artefacts.replay_results import Calibration, ConfigValue, ModuleReplay, SideReplay, WeightReplay
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.boundaries import layer_of
from dump_analysis.replay import places, verdict, weights_compared
from dump_analysis.replay.local import local_of
from dump_analysis.replay.modules import Pair, entry_of, pair_of, rows_of, work_of
from dump_analysis.replay.one_side import Replayed, Unreplayed, replay
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.verdict import Weight, chosen
from dump_analysis.sides import Side
from dump_analysis.tensors import Files

Sided = dict[str, Replayed | Unreplayed]
_SIDES = ("train", "infer")


def replay_pair(
    mapping: SemanticMapping,
    train: Side,
    infer: Side,
    stated: Mapping[str, Mapping[str, float]],
    advance: Callable[[], object] = lambda: None,
) -> tuple[list[ModuleReplay], list[WeightReplay], dict[str, dict[str, Calibration]]]:
    """Modules in the mapping's order, weights, and the counts of each operator. ``stated``: constants by side."""
    pair = pair_of(mapping, train, infer)
    weights = weights_compared.compared(mapping, pair)
    found: list[tuple[Row, Sided, Files]] = []
    for row in rows_of(mapping):
        files = Files()  # what it closes it opens again where it is asked
        found.append((row, {label: _one_side(files, pair, row, label, stated.get(label, {})) for label in _SIDES}, files))
        advance()
    norms = {label: verdict.norms_of([one for _, both, _ in found if isinstance(one := both[label], Replayed)]) for label in _SIDES}
    differing = {one.result.name: one for one in weights if one.unequal}
    modules = []
    for row, both, files in found:
        stem = places.module_of(row.boundary)
        own = [Weight(name, one.unequal, one.of) for name, one in differing.items() if name in (f"{stem}.weight", f"{stem}.bias")]
        modules.append(_module(row, both, verdict.judge(both["train"], both["infer"], own, norms, single=layer_of(row.boundary) is None)))
        files.close()
    return modules, [one.result for one in weights], {label: _calibration([both[label] for _, both, _ in found]) for label in _SIDES}


def _one_side(files: Files, pair: Pair, row: Row, label: str, stated: Mapping[str, float]) -> Replayed | Unreplayed:
    try:
        return replay(work_of(files, pair, row, label), stated)
    except CannotReplay as why:
        return Unreplayed(entry_of(row, label), why.reason)
    finally:
        files.close()


def _module(row: Row, both: Sided, judged: verdict.Judged) -> ModuleReplay:
    train, infer = both["train"], both["infer"]
    names = {"train": "", "infer": ""}
    if isinstance(train, Replayed) and isinstance(infer, Replayed) and train.explained and infer.explained:
        names["train"], names["infer"] = chosen(train, infer)
    operator = next((one.best.trial.formula.operator for one in both.values() if isinstance(one, Replayed)), None)
    added = None
    if isinstance(train, Replayed) and isinstance(infer, Replayed) and judged.verdict in ("rounding", "logic"):
        added = local_of(train, infer)
    return ModuleReplay(
        places.module_of(row.boundary), None, operator, judged.verdict,
        _written(train, names["train"]), _written(infer, names["infer"]),
        None, list(judged.evidence), list(judged.would_decide), judged.side, added,
    )  # fmt: skip


def _written(one: Replayed | Unreplayed, name: str) -> SideReplay:
    """``name``: the variant as the verdict names it, "" for the one that was found on this side alone."""
    if isinstance(one, Unreplayed):
        return SideReplay(one.entry, [], None, None, None, None, 0, None, {}, "absent", None, "unknown")
    best, work = one.best, one.work
    constants = {
        key: ConfigValue(found.value, list(found.interval) if found.interval else None, "config" if found.stated else "inferred")
        for key, found in one.constants.items()
    }
    return SideReplay(
        work.entry, list(work.via), (name or best.trial.variant.name) if best.explains else None,
        best.equal / best.of, 1 - best.outside / best.of, best.outside, best.of, "variant" if best.explains else None,
        constants, work.origin, one.residual, _inputs_are(work.inputs_are),
    )  # fmt: skip


def _inputs_are(told: str) -> Literal["pre_call", "post_call", "unknown"]:
    return "pre_call" if told == release.PRE_CALL else "post_call" if told == release.POST_CALL else "unknown"


def _calibration(sides: Sequence[Replayed | Unreplayed]) -> dict[str, Calibration]:
    found: dict[str, list[Replayed]] = {}
    for one in sides:
        if isinstance(one, Replayed):
            found.setdefault(one.best.trial.formula.operator, []).append(one)
    return {
        operator: Calibration(len(ones), sum(one.best.of for one in ones), sum(one.best.outside for one in ones), None)
        for operator, ones in found.items()
    }
