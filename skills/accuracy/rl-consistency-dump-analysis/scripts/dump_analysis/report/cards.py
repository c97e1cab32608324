"""What is said of each finding: a card for a fault or an open difference, a row for a rounding point."""

from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.artefacts.common import SideName, Worded
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.replay_results import ModuleReplay, SideReplay
from dump_analysis.boundaries import is_weight, layer_of
from dump_analysis.report.deciding import decide, modules_of
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.layers import lived_in, said_layers
from dump_analysis.report.said import Voice, count, share
from dump_analysis.report.sides_told import cause_of, confirmations, side_name
from dump_analysis.report.states import State, of_finding, places_of
from dump_analysis.report.ulp_histogram import Histogram, histogram
from dump_analysis.wording import word

MOST_CARDS = 12
_OF_A_KIND = 2  # sentences of one kind that stand open; the rest is behind a summary that counts them
_SIDES: tuple[SideName, SideName] = ("train", "infer")


class Proof(NamedTuple):
    """Sentences of one kind: ``shown`` stand open, ``folded`` behind ``summary``."""

    shown: tuple[str, ...]
    folded: tuple[str, ...]
    summary: str


class Operator(NamedTuple):
    """An operator of one side; ``more``: how many others of the finding there are, in words."""

    side: str
    entry: str
    more: str


class Ruled(NamedTuple):
    cause: str
    because: str


class Card(NamedTuple):
    """A finding, told whole. ``fix``: what to do, or why nothing; ``decide``: what would decide it."""

    id: str
    state: State
    tag: str
    title: str
    facts: tuple[tuple[str, str], ...]
    speaks: tuple[Proof, ...]
    ruled_out: tuple[Ruled, ...]
    decide: tuple[str, ...]
    fix: str
    histogram: Histogram | None
    operators: tuple[Operator, ...]
    details: tuple[str, ...]


class RoundingRow(NamedTuple):
    """A rounding point. ``smaller``: per cent that is smaller on train, None where it was not counted."""

    id: str
    title: str
    unequal: str
    largest: str
    smaller: int | None
    explained: str


def card(finding: Finding, evidence: Evidence, every_layer: Sequence[int], voice: Voice) -> Card:
    """A fault, or a difference that is not decided."""
    rows = {row.boundary: row for row in [*evidence.results.boundaries, *evidence.results.weights]}
    modules = modules_of(finding, evidence)
    tag = word("tag_fault") if finding.character == "logic" else word("tag_open")
    facts = (
        (voice.say(word("fact_side")), _side(finding, voice)),
        (voice.say(word("fact_where")), _where(finding, every_layer, voice)),
        (voice.say(word("fact_size")), size(finding, voice)),
        (voice.say(word("fact_confirmed")), " · ".join(confirmations(finding, voice))),
    )
    return Card(
        id=finding.id,
        state=of_finding(finding),
        tag=voice.say(tag),
        title=cause_of(finding, voice),
        facts=facts,
        speaks=_proofs([told for told in finding.evidence if told.kind != "growth"], voice),
        ruled_out=tuple(
            Ruled(voice.say(word("card_hypothesis", cause=voice.say(one.cause))), voice.say(one.because)) for one in finding.ruled_out
        ),
        decide=decide(finding, evidence, voice),
        fix=_fix(finding, voice),
        histogram=histogram(finding, _measured(finding, rows), voice),
        operators=_operators(finding, modules, voice),
        details=_details(modules[:1], voice),
    )


def _side(finding: Finding, voice: Voice) -> str:
    if finding.side == "both":
        return voice.say(word("side_both"))
    if finding.character == "unknown" and finding.side == "unknown":
        return voice.say(word("side_unknown"))
    if finding.side == "unknown":
        return voice.say(word("side_not_decided"))
    return voice.say(word("side_proven", side=side_name(finding.side, voice)))


def _where(finding: Finding, every_layer: Sequence[int], voice: Voice) -> str:
    """Layers and places; of more than four places the first three and how many more."""
    names = dict.fromkeys([finding.boundary, *finding.boundaries])
    places = list(dict.fromkeys(name.split(".", 2)[2] if layer_of(name) is not None else name for name in names))
    told = places if len(places) <= 4 else [*places[:3], voice.say(word("detail_more", n=count(len(places) - 3)))]
    layers = lived_in(finding)
    if not layers:
        return voice.join(told)
    said = said_layers(layers, every_layer)
    if not said and len(every_layer) > 1:
        where = word("at_all_layers", n=count(len(every_layer)))
    else:
        said = said or str(layers[0])
        where = word("at_layers", layers=said) if len(layers) > 1 else word("at_layer", layers=said)
    return voice.say(word("at_places", where=where, places=voice.join(told)))


def size(finding: Finding, voice: Voice) -> str:
    """How much the finding changes by itself: counts over totals, never a share alone."""
    of = finding.size
    if not of.unequal or not of.of:
        return voice.say(word("size_unknown"))
    told = [word("size_unequal", n=count(of.unequal), of=count(of.of), share=share(of.unequal, of.of))]
    if finding.confirmed_by == ["weights"] or is_weight(finding.boundary):
        told.append(word("size_weight"))
    if of.ulp_max is not None:
        told.append(word("size_ulp", n=count(of.ulp_max)))
    if of.unequal > 1 and of.smaller is not None and of.larger is not None and 0 in (of.smaller, of.larger):
        told.append(word("size_one_way"))
    return voice.join(map(voice.say, told))


def _proofs(told: Sequence[Worded], voice: Voice) -> tuple[Proof, ...]:
    """Evidence by kind, in its own order; what repeats in many layers is folded and counted."""
    by_kind: dict[str, list[str]] = {}
    for sentence in told:
        said = voice.say(sentence)
        if said not in by_kind.setdefault(sentence.kind, []):
            by_kind[sentence.kind].append(said)
    return tuple(
        Proof(tuple(said[:_OF_A_KIND]), tuple(said[_OF_A_KIND:]), voice.say(word("more_of_kind", n=count(len(said) - _OF_A_KIND))))
        for said in by_kind.values()
    )


def _fix(finding: Finding, voice: Voice) -> str:
    if finding.fix is not None:
        return voice.say(word("fix_expect", action=voice.say(finding.fix.action), expect=voice.say(finding.fix.expect)))
    if finding.side in ("train", "infer") and finding.resolvable != "no":
        return voice.say(word("fix_at", action=voice.say(word("act_mend_at", boundary=finding.boundary))))
    return voice.say(word("fix_none") if finding.resolvable == "no" else word("fix_not_known"))


def _measured(finding: Finding, rows: dict[str, BoundaryResult]) -> BoundaryResult | None:
    """The first place of the finding whose distances in ULP were counted."""
    named = [rows[name] for name in dict.fromkeys([finding.boundary, *finding.boundaries, *places_of(finding)]) if name in rows]
    return next((row for row in named if row.ulp is not None), None)


def _operators(finding: Finding, modules: Sequence[ModuleReplay], voice: Voice) -> tuple[Operator, ...]:
    found = []
    for side in _SIDES:
        entries = [entry for module in modules if (entry := getattr(module, side).entry)]
        own = getattr(finding.module, side)
        entries = list(dict.fromkeys([own, *entries] if own else entries))
        if entries:
            more = voice.say(word("detail_more", n=count(len(entries) - 1))) if len(entries) > 1 else ""
            found.append(Operator(side_name(side, voice), entries[0], more))
    return tuple(found)


def _details(modules: Sequence[ModuleReplay], voice: Voice) -> tuple[str, ...]:
    """Variant, constants and what explains each side of the finding's first module."""
    told: list[str] = []
    for module in modules:
        for side in _SIDES:
            found: SideReplay = getattr(module, side)
            name = side_name(side, voice)
            if found.variant is None:
                told.append(voice.say(word("detail_no_variant", side=name)))
            else:
                basis = _basis(found, voice)
                n, of = count(found.unexplained or 0), count(found.of)
                told.append(voice.say(word("detail_variant", side=name, variant=found.variant, n=n, of=of, basis=basis)))
            sources = {"dump": word("source_dump"), "config": word("source_config"), "inferred": word("source_inferred")}
            told += [
                voice.say(word("detail_constant", side=name, name=key, value=value.value, source=sources[value.source]))
                for key, value in found.config.items()
            ]
    return tuple(told)


def _basis(side: SideReplay, voice: Voice) -> str:
    told = {
        "variant": word("basis_variant"),
        "bound": word("basis_bound"),
        "noise_model": word("basis_noise_model"),
        None: word("basis_none"),
    }
    return voice.say(told[side.basis])


# --- rounding ---


def rounding_row(finding: Finding, evidence: Evidence, voice: Voice) -> RoundingRow:
    """A rounding point in one row."""
    of = finding.size
    unequal = "–" if not of.of or of.unequal is None else voice.say(word("share_of", share=share(of.unequal, of.of), of=count(of.of)))
    smaller = _per_cent(of.smaller or 0, (of.smaller or 0) + (of.larger or 0))
    modules = modules_of(finding, evidence)
    bases = list(dict.fromkeys(_basis(side, voice) for module in modules for side in (module.train, module.infer) if side.basis))
    return RoundingRow(
        finding.id,
        voice.say(finding.cause),
        unequal,
        f"{count(of.ulp_max)} ULP" if of.ulp_max is not None else "–",
        smaller,
        voice.join(bases) or "–",
    )


def _per_cent(part: int, of: int) -> int | None:
    """A whole number of per cent that is 0 or 100 only where nothing or all is; None of nothing."""
    if not of:
        return None
    return {0: 0, of: 100}.get(part, min(99, max(1, round(100 * part / of))))
