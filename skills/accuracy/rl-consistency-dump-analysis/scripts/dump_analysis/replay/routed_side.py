"""Both sides of a routed sum, or of what a router chose, recomputed."""

from collections.abc import Mapping

from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.replay.formulas import FORMULAS
from dump_analysis.replay.formulas.routed_experts import ROUTED
from dump_analysis.replay.formulas.routing import ROUTED_SCALE
from dump_analysis.replay.modules import Pair, entry_of
from dump_analysis.replay.one_side import Constant, Replayed, Unreplayed
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.routed_exchange import with_experts_exchanged
from dump_analysis.replay.routed_search import replay_as, replay_routed
from dump_analysis.replay.routed_work import works_of
from dump_analysis.tensors import Files

_Side = Replayed | Unreplayed


def replay_routing(files: Files, pair: Pair, row: Row, stated: Mapping[str, Mapping[str, float]]) -> dict[str, _Side]:
    """Both sides of a row of a mixture of experts. A side that nothing explains is tried as the other one computes, and one that several
    functions explain is taken to compute what the other does."""
    train, infer = (_side(files, pair, row, label, stated.get(label, {})) for label in ("train", "infer"))
    own = {label: stated.get(label, {}) for label in ("train", "infer")}
    train, infer = _agreed(train, infer, own["train"]), _agreed(infer, train, own["infer"])
    return {"train": _like(train, infer, own["train"]), "infer": _like(infer, train, own["infer"])}


def _router_off(files: Files, pair: Pair, row: Row, label: str, stated: Mapping[str, float]) -> Replayed | None:
    """The router of a sum that does not follow from its logits, but from the shares that were recorded; None where it follows from none."""
    try:
        works = works_of(files, pair, row, label, apart=True)
    except CannotReplay:  # no shares were recorded
        return None
    if len(works) == 1:
        return None
    router, total = (replay_routed(work, stated) for work in works)
    return _joined(router, total) if total.explained else None


def _agreed(own: _Side, other: _Side, stated: Mapping[str, float]) -> _Side:
    """A side that follows, as it follows from the other's function if it does: on few tokens several may explain it."""
    if not isinstance(own, Replayed) or not isinstance(other, Replayed) or not (own.explained and other.explained):
        return own
    ways = own.best.trial, other.best.trial
    if own.work.operators != (ROUTED,) or ways[1].formula is not ways[0].formula or ways[0].variant.function == ways[1].variant.function:
        return own
    again, _ = replay_as(own.work, ways[1], stated)
    return again if again.explained else own


def _side(files: Files, pair: Pair, row: Row, label: str, stated: Mapping[str, float]) -> _Side:
    try:
        parts = [replay_routed(work, stated) for work in works_of(files, pair, row, label)]
        whole = parts[0] if len(parts) == 1 else _joined(*parts)
        return whole if whole.best.explains or whole.work.operators != (ROUTED,) else _router_off(files, pair, row, label, stated) or whole
    except CannotReplay as why:
        return Unreplayed(entry_of(row, label), why.reason)
    finally:
        files.close()


def _like(own: _Side, other: _Side, stated: Mapping[str, float]) -> _Side:
    if not isinstance(own, Replayed) or own.best.explains or not isinstance(other, Replayed) or not other.explained:
        return own
    if own.work.operators != (ROUTED,) or other.best.trial.formula.operator != ROUTED:
        return own
    again, ways = replay_as(own.work, other.best.trial, stated)
    if again.explained:
        return again
    return with_experts_exchanged(again, ways) or again


def _joined(router: Replayed, total: Replayed) -> Replayed:
    """A sum of recorded shares, and how these were made, as one: the first that is off, else the whole by the function of both."""
    if not router.explained:  # what other layers say of their whole sums vouches for it
        return router._replace(work=router.work._replace(operators=(*router.work.operators, ROUTED)))
    if not total.explained:
        return total
    own, variant = router.best.trial.variant.function, total.best.trial.variant
    whole = variant._replace(name=f"{own}+{variant.name}", function=f"{own} {variant.function}")
    best = total.best._replace(
        trial=total.best.trial._replace(formula=FORMULAS[ROUTED], variant=whole),
        **{name: getattr(router.best, name) + getattr(total.best, name) for name in ("of", "equal", "outside")},
    )
    constants = {**router.constants, ROUTED_SCALE: _together(router.constants[ROUTED_SCALE], total.constants[ROUTED_SCALE])}
    holding = frozenset(f"{own}+{name}" for name in total.holding)
    contradicted = {**total.contradicted, **router.contradicted}
    return total._replace(best=best, holding=holding, constants=constants, contradicted=contradicted)


def _together(shares: Constant, total: Constant) -> Constant:
    """One factor of two that follow each other."""
    if total.value == 1.0:
        return shares
    return total if shares.value == 1.0 else Constant(shares.value * total.value, None, False)
