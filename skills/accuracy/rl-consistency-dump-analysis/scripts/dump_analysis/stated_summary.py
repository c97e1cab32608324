"""What a comparison of statistics amounts to: where they agree and disagree, why outputs of layers differ all the same, what decides."""

from collections.abc import Sequence
from typing import NamedTuple

from .artefacts.boundary_results import GAPS, BoundaryResult, BoundaryResults
from .artefacts.common import Modules, Worded
from .artefacts.semantic_mapping import SemanticMapping
from .boundaries import layer_of
from .wording import word

_BY_DIGEST = ("digest_equal", "stats_in_place_of_file")  # of rows that are EXACT


class _Stated(NamedTuple):
    """The boundaries that were not compared but have statistics, by what these say."""

    all: list[BoundaryResult]
    yes: list[BoundaryResult]
    no: list[BoundaryResult]


def _stated(results: BoundaryResults) -> _Stated:
    rows = [row for row in results.boundaries if row.status in GAPS and row.statistics is not None]
    return _Stated(rows, *([row for row in rows if agrees(row) == wanted] for wanted in ("yes", "no")))


def agrees(row: BoundaryResult) -> str | None:
    """What the statistics of a row say: yes, no or cannot_tell; None where there are none."""
    found = row.statistics.get("agree") if row.statistics is not None else None
    return found if isinstance(found, str) else None


def _is_blind(row: BoundaryResult) -> bool:
    """Whether equal digests are known that any order of the values has."""
    return row.reason is not None and row.reason.kind == "digest_blind"


def of_equal(results: BoundaryResults, cut_short: Sequence[str], gaps: int, weights: int) -> Worded | None:
    """The sentence of a comparison in which all that was compared is equal, some of it by digests; None where none is by them.

    ``gaps``, ``weights``: how many boundaries and weights were not compared.
    """
    equal = [row for row in results.boundaries if row.status == "EXACT"]
    stated = sum(row.reason is not None and row.reason.kind in _BY_DIGEST for row in equal)
    if not stated:
        return None
    if results.overall != "exact":
        return word("sum_digest_gaps", n=len(equal), digests=stated, gaps=gaps, weights=weights)
    if cut_short:
        return word("sum_digest_cut", n=len(equal), digests=stated, sides=list(cut_short))
    return word("sum_digest", n=len(equal), digests=stated)


def verdict(results: BoundaryResults) -> Worded | None:
    """The sentence that opens a conclusion which rests on statistics alone; None for any other."""
    found, blind = _stated(results), [row for row in results.boundaries if _is_blind(row)]
    if results.overall != "evidence_missing" or not (found.all or blind):
        return None
    if not found.all:
        return word("sum_blind", n=len(blind), of=len(results.boundaries))
    if found.no:
        first = found.no[0]
        return word("sum_stats_disagree", n=len(found.no), of=len(found.all), first=first.boundary, what=first.reason)
    layers = sorted({layer for row in found.yes if (layer := layer_of(row.boundary)) is not None})
    told = word("sum_stats_layers", first=layers[0], last=layers[-1]) if layers else word("sum_stats_no_layers")
    return word("sum_stats_agree", n=len(found.yes), of=len(found.all), untold=len(found.all) - len(found.yes), layers=told)


def second(results: BoundaryResults, mapping: SemanticMapping | None) -> Worded | None:
    """Where statistics begin to disagree, else why the outputs of layers are not compared one by one; None where neither is to be said."""
    found = _stated(results)
    if results.overall != "evidence_missing" or not found.all:
        return None
    if found.no:
        first = found.no[0]
        before, after = (
            [row for row in found.all if (row.order < first.order) == earlier and row is not first] for earlier in (True, False)
        )
        yes, no = (sum(agrees(row) == wanted for row in rows) for rows, wanted in ((before, "yes"), (after, "no")))
        return word("sum_stats_before", n=yes, first=first.boundary, later=no, left=len(after))
    remarks = mapping.tokens.remarks if mapping is not None and mapping.tokens is not None else []
    return next((remark for remark in remarks if remark.kind == "returns_parts"), None)


def wanted(gaps: Sequence[BoundaryResult], modules: dict[str, Modules]) -> tuple[Worded | None, list[BoundaryResult]]:
    """What would decide the rows that statistics alone are known of: dumping tensors of the modules where they disagree first, else
    of all; and the other gaps."""
    stated = [row for row in gaps if row.statistics is not None or _is_blind(row)]
    others = [row for row in gaps if row not in stated]
    if not stated:
        return None, others
    apart = [row for row in stated if agrees(row) == "no" and row.boundary in modules][:1]
    entries = [
        entry
        for row in (apart or stated)
        for entry in ((modules[row.boundary].train, modules[row.boundary].infer) if row.boundary in modules else ())
        if entry is not None
    ]
    return word("decide_tensors", names=list(dict.fromkeys(entries)) or [row.boundary for row in stated]), others
