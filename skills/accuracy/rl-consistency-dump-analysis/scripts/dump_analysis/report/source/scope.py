"""Scope, provenance and prompt alignment of a report source: what was compared with what."""

from dump_analysis.artefacts.assembly_plan import SidePlan
from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.report_source import (
    Comparison,
    Count,
    Layout,
    Provenance,
    ProvenanceSide,
    Scope,
    Topology,
    Unknown,
)
from dump_analysis.boundaries import is_weight, layer_of
from dump_analysis.wording import word

from .facts import Facts
from .rows import logit_rows, one_slice

UNKNOWN: Unknown = "unknown"


def scope(facts: Facts) -> Scope:
    """What was compared, by which evidence, on what."""
    return Scope(
        "prefill",
        model(facts),
        coverage(facts),
        _software(facts, ("train", "framework"), ("train", "version"), ("train", "backend")),
        _software(facts, ("infer", "engine"), ("infer", "version")),
        facts.stated("hardware") or UNKNOWN,
        _evidence(facts),
        Topology(_layout(facts, "train"), _layout(facts, "infer")),
    )


def model(facts: Facts) -> str:
    """Its name where the task card tells it, and what the dumps tell: layers, width, format."""
    name = facts.stated("model") or UNKNOWN
    rows = facts.results.boundaries if facts.results else []
    layers = {layer for layer in (layer_of(row.boundary) for row in rows) if layer is not None}
    streams = [row for row in rows if row.boundary == "embedding.out" and isinstance(row.shape, list) and row.shape and row.dtype]
    if not layers or not streams:
        return name
    found = streams[0]
    width = found.shape[-1] if isinstance(found.shape, list) else None
    formats = sorted({str(one) for one in (found.dtype.train, found.dtype.infer)}) if found.dtype else []
    told = {"layers": len(layers), "width": width, "formats": formats}
    return facts.say(word("report_model_unnamed", **told) if name == UNKNOWN else word("report_model", name=name, **told))


def coverage(facts: Facts) -> str:
    """How many boundaries were compared, and how many of the others recomputing covers."""
    rows = facts.results.boundaries if facts.results else []
    gaps = [one for one in facts.conclusion.evidence_missing if not is_weight(one.boundary)]
    compared = word("report_compared", compared=len(rows) - len(gaps), all=len(rows))
    if not gaps:
        return facts.say(compared)
    covered = sum(one.covered_by is not None for one in gaps)
    return facts.say(word("report_compared_but", compared=compared, gaps=len(gaps), covered=covered))


def provenance(facts: Facts) -> Provenance:
    """Both dumps by label and digest, with the versions that are known."""
    return Provenance(_side(facts, "train", ("train", "framework")), _side(facts, "infer", ("infer", "engine")))


def comparison(facts: Facts) -> Comparison:
    """How the prompts of the two sides lie beside each other, as far as the mapping tells."""
    tokens = facts.mapping.tokens if facts.mapping else None
    prompt = facts.stated("sample", "prompt_length")
    counts: tuple[Count, Count, Count] = (UNKNOWN, UNKNOWN, UNKNOWN)
    if tokens is not None:
        counts = (tokens.coverage.joined, tokens.coverage.train, tokens.coverage.infer)
    rows, shift = logit_rows(facts)
    return Comparison(
        int(prompt) if prompt is not None and prompt.isdecimal() else counts[0],
        counts[1],
        counts[2],
        one_slice(tokens.train) if tokens is not None else UNKNOWN,
        shift,
        rows,
    )


def _software(facts: Facts, *fields: tuple[str, str]) -> str:
    """Name and version, as the task card states them."""
    known = [stated for stated in (facts.stated(*field) for field in fields) if stated is not None]
    return " ".join(known) if facts.stated(*fields[0]) is not None else UNKNOWN


def _evidence(facts: Facts) -> str:
    """What recorded the dumps: release, task and level of each side."""
    told = {side: _recorded(facts, side) for side in ("train", "infer")}
    if None in told.values():
        return UNKNOWN
    if told["train"] == told["infer"]:
        return str(told["train"])
    return facts.say(word("report_each", train=told["train"], infer=told["infer"]))


def _recorded(facts: Facts, side: str) -> str | None:
    known = getattr(facts.probe, side) if facts.probe else None
    if known is None or not known.units:
        return None
    parts = ([f"msprobe {unit.msprobe}", unit.task, unit.level] for unit in known.units)
    return "; ".join(dict.fromkeys(", ".join(part for part in one if part) for one in parts))


def _layout(facts: Facts, side: SideName) -> Layout:
    """As the assembled dump shows it; where one unit is the whole dump, as the task card states it."""
    plan: SidePlan | None = getattr(facts.mapping.ranks, side) if facts.mapping and facts.mapping.ranks else None
    if plan is not None:
        shown = plan.parallel
        return Layout(shown.tp, shown.pp, shown.ep, shown.cp, shown.dp)
    stated = {kind: facts.stated("parallel", side, kind) for kind in ("tp", "pp", "ep", "cp", "dp")}
    counts: dict[str, Count] = {kind: int(one) if one is not None and one.isdecimal() else UNKNOWN for kind, one in stated.items()}
    return Layout(**counts)


def _side(facts: Facts, side: SideName, software: tuple[str, str]) -> ProvenanceSide:
    """The versions of a side: its software by the task card, msprobe by the dump."""
    digest = next((one.digest for one in facts.conclusion.inputs if one.label == side), UNKNOWN)
    name, version = facts.stated(*software), facts.stated(side, "version")
    versions = {name: version} if name is not None and version is not None else {}
    known = getattr(facts.probe, side) if facts.probe else None
    releases = sorted({unit.msprobe for unit in known.units if unit.msprobe != UNKNOWN}) if known is not None else []
    return ProvenanceSide(side, digest, versions | ({"msprobe": ", ".join(releases)} if releases else {}))
