"""One side's rotation and attention recomputed: its works one by one, joined to one record."""

from collections.abc import Mapping, Sequence
from itertools import product

from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.replay import attention_work, fused_reading
from dump_analysis.replay.attention_search import Found, found_for
from dump_analysis.replay.attention_stretch import stretch_of, turn_of
from dump_analysis.replay.formulas import FORMULAS, Formula, Variant
from dump_analysis.replay.modules import Pair, Work, entry_of
from dump_analysis.replay.one_side import Replayed, Unreplayed
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.residual import residual_of, where_of
from dump_analysis.replay.stated_attention import with_window
from dump_analysis.replay.stated_rotation import at_length, at_other_length
from dump_analysis.replay.trials import Trial, Tried
from dump_analysis.tensors import Files

Config = Mapping[str, float]


def replay_attentions(
    files: Files, pair: Pair, row: Row, stated: Mapping[str, Config], before: Mapping[str, Config]
) -> dict[str, Replayed | Unreplayed]:
    """Both sides of a row of rotation or attention. ``before``: constants that explained the row of a layer before, by side.

    Those are tried first where the usual ones fail, and the constants that explain one side are tried on the other.
    """
    own = {label: before.get(label, {}) for label in ("train", "infer")}
    train = _side(files, pair, row, "train", stated.get("train", {}), own["train"])
    infer = _side(files, pair, row, "infer", stated.get("infer", {}), values_of(train), own["infer"])
    if values_of(infer) and not values_of(train):
        train = _side(files, pair, row, "train", stated.get("train", {}), values_of(infer))
    found = {"train": train, "infer": infer}
    return {
        label: _or_read_otherwise(files, pair, row, label, found[label], found["infer" if label == "train" else "train"], stated)
        for label in found
    }


def _or_read_otherwise(
    files: Files, pair: Pair, row: Row, label: str, own: Replayed | Unreplayed, other: Replayed | Unreplayed, stated: Mapping[str, Config]
) -> Replayed | Unreplayed:
    """A side that nothing explains, as one that reads its fused q, k and v in another order, if that explains it."""
    if not isinstance(own, Replayed) or own.follows or own.best.explains:
        return own
    if not isinstance(other, Replayed) or not other.follows or other.work.heads is None:
        return own
    layer = row.boundary.removesuffix(attention_work.CORE)
    for groups, read in fused_reading.orders(pair, layer, label, other.work.heads.width) if layer != row.boundary else ():
        again = _side(files, read, row, label, stated.get(label, {}), values_of(other))
        if isinstance(again, Replayed) and again.explained:
            mistaken = again.best._replace(trial=again.best.trial._replace(fault=True))
            return own._replace(best=mistaken, residual=None, where=None, noise=None, read_in=groups)
    return own


def values_of(one: Replayed | Unreplayed) -> dict[str, float]:
    """The constants that explain a side."""
    return {name: found.value for name, found in one.constants.items()} if isinstance(one, Replayed) and one.follows else {}


def _side(files: Files, pair: Pair, row: Row, label: str, stated: Config, *hints: Config) -> Replayed | Unreplayed:
    stated = with_window(stated, row.boundary.split(".")[1])
    try:
        works = attention_work.works_of(files, pair, row, label, stated)
        tokens = _longest(works)
        stated, other = at_length(stated, tokens), at_other_length(stated, tokens)
        as_one = len(works) > 1 and attention_work.span_of(row, pair) is not None
        given = (*hints, other) if other else hints
        parts = [without_other_length(replayed(found_for(work, stated, *given)), other) for work in works]
        return _joined(parts, "rotary_attention" if as_one else works[-1].operators[0])
    except CannotReplay as why:
        return Unreplayed(entry_of(row, label), why.reason)
    finally:
        files.close()


def _longest(works: Sequence[Work]) -> int:
    """How many tokens the longest sequence has, by its last position; 0 where no work follows from positions."""
    roles = [("position",) if work.heads is None else work.heads.roles for work in works]
    given = [one for work, own in zip(works, roles, strict=True) for one, role in zip(work.inputs, own, strict=True) if role == "position"]
    return int(max((one.read(0, one.rows).max(initial=-1) for one in given), default=-1)) + 1


def without_other_length(one: Replayed, other: Config) -> Replayed:
    """Frequencies that are stated for other lengths contradict no configuration: what picks them is stated elsewhere."""
    names = one.contradicted.keys() & other.keys()
    if not names or not all(one.constants[name].holds(other[name]) for name in names):
        return one
    return one._replace(contradicted={name: value for name, value in one.contradicted.items() if name not in names})


def replayed(found: Found) -> Replayed:
    """What was found of one work, as what recomputing a side shows."""
    best = found.best
    explained = best.explains and not best.trial.fault
    follows = best.explains or (found.noise is not None and found.noise.is_rounding)
    where = where_of(best.touched) if not follows and best.touched is not None else None
    residual = None if explained else residual_of(found.work, best.trial, found.grid)
    return Replayed(found.work, found.grid, best, found.holding, found.constants, found.contradicted, residual, where, found.noise)


def _joined(parts: Sequence[Replayed], operator: str) -> Replayed:
    """What is written of several works as one: their elements together, and of what is off the first."""
    last, tables = parts[-1], ("rotary_table", "rotary_angles")
    turns = [part for part in parts[:-1] if part.best.trial.formula.operator not in tables]
    off = next((part for part in parts if not part.explained), None)
    names = _names(turns, last)
    told = off.best.trial if off is not None else Trial(FORMULAS[operator], _named(names[0], FORMULAS[operator]), {})
    of, equal, outside = (sum(getattr(part.best, name) for part in parts) for name in ("of", "equal", "outside"))
    function = next((part.best.trial.variant.function for part in [*turns, last] if part.best.trial.variant.function), "")
    trial = Trial(FORMULAS[operator], told.variant._replace(function=function), last.best.trial.config, told.fault)
    constants = {name: constant for part in parts for name, constant in part.constants.items()}
    contradicted = {name: value for part in parts for name, value in part.contradicted.items()}
    tried = Tried(trial, of, equal, off.best.outside if off is not None else outside)
    residual, where = (off.residual, off.where) if off is not None else (None, None)
    holding = frozenset(names) if off is None else frozenset()
    work = off.work if off is not None and not off.best.explains else _whole(turns, last)
    noise = off.noise if off is not None else None
    return Replayed(work, last.grid, tried, holding, constants, contradicted, residual, where, noise)


def _whole(turns: Sequence[Replayed], last: Replayed) -> Work:
    """The last work with what stands before it taken in, so that it runs as one formula."""
    if len(turns) == 2:
        return stretch_of(turns, last.work)
    return turn_of(last) if last.work.operators == ("rotary",) else last.work


def _names(turns: Sequence[Replayed], last: Replayed) -> list[str]:
    """Names of the stretch, as one formula names it: those of a turn that holds for q and k, and of a kernel."""
    kernels = [last.best.trial.variant.name, *sorted(last.holding)]
    if not turns:
        return list(dict.fromkeys(kernels))
    both = frozenset.intersection(*(turn.holding for turn in turns))
    first = [*([turns[0].best.trial.variant.name] if turns[0].best.trial.variant.name in both else []), *sorted(both)]
    return list(dict.fromkeys(f"{turn}+{kernel}" for turn, kernel in product(first, kernels)))


def _named(name: str, formula: Formula) -> Variant:
    return next(variant for variant in formula.variants if variant.name == name)
