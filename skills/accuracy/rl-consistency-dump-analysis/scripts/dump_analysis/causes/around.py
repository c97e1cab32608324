"""What stands around a boundary, as signs: whether what it was made from is equal, and which weights differ."""

import re
from collections.abc import Iterator, Mapping, Sequence

from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult
from dump_analysis.artefacts.common import Worded
from dump_analysis.boundaries import is_weight, layer_of
from dump_analysis.causes.looks import Signs
from dump_analysis.replay import places
from dump_analysis.wording import word

_EXPERT = re.compile(r"experts\.\d+\.")
_NEAR = 0.02  # relative L2 of router logits behind which a choice between near equals may flip: a few roundings of 8 bits


def place_in_table(boundary: str) -> str:
    """The boundary without its layer, an expert without its number; "weight" for any weight."""
    if is_weight(boundary):
        return "weight"
    return _EXPERT.sub("experts.N.", boundary.partition(".")[2].partition(".")[2] if layer_of(boundary) is not None else boundary)


def signs_around(result: BoundaryResult, boundaries: Sequence[BoundaryResult], weights: Sequence[BoundaryResult]) -> Signs:
    """``boundaries``, ``weights``: all results, in order."""
    if is_weight(result.boundary):
        return dict(_of_weight(result, weights))
    known = {other.boundary: other for other in boundaries}
    found: Signs = {}
    for part in (_of_own_weights(result, weights), _of_sources(result, known), _of_inner(result, known)):
        found.update(part)
    return found


def _of_own_weights(result: BoundaryResult, weights: Sequence[BoundaryResult]) -> Iterator[tuple[str, Worded]]:
    module = places.module_of(result.boundary)
    own = [weight for weight in weights if weight.boundary in (f"{module}.weight", f"{module}.bias")]
    names = [weight.boundary for weight in own]
    if any(weight.status in DIVERGED for weight in own):
        yield "weights.differ", word("figure_weights", names=[weight.boundary for weight in own if weight.status in DIVERGED])
    elif own and all(weight.status == "EXACT" for weight in own):
        yield "weights.equal", word("figure_weights", names=names)
    else:
        yield "weights.unknown", word("figure_not_compared", names=names or [f"{module}.weight"])


def _of_sources(result: BoundaryResult, known: Mapping[str, BoundaryResult]) -> Iterator[tuple[str, Worded]]:
    """What a value is made from, or stands beside."""
    made = places.sources_of(result.boundary, known)
    if made is not None:
        yield from _equal("addends", made.boundaries, known)
    layer = layer_of(result.boundary)
    here = f"layers.{layer}." if layer is not None else ""
    place = place_in_table(result.boundary)
    beside = {
        "embedding.out": ("ids", "input_ids"),
        "logits": ("hidden", "final_norm.out"),
        "logprobs": ("logits", "logits"),
        "router.experts": ("router", f"{here}router.logits"),
        "router.weights": ("choice", f"{here}router.experts"),
    }
    if place in beside:
        sign, name = beside[place]
        yield from _equal(sign, (name,), known)


def _equal(sign: str, names: Sequence[str], known: Mapping[str, BoundaryResult]) -> Iterator[tuple[str, Worded]]:
    found = [known[name] for name in names if name in known]
    if any(other.status in DIVERGED for other in found):
        yield f"{sign}.differ", word("figure_boundaries", names=[other.boundary for other in found if other.status in DIVERGED])
        if sign == "router" and (found[0].rel_l2 or 0.0) <= _NEAR:
            yield "router.near", word("figure_rel", rel=found[0].rel_l2)
    elif len(found) == len(names) and all(other.status == "EXACT" for other in found):
        yield f"{sign}.equal", word("figure_boundaries", names=list(names))
    else:
        yield f"{sign}.unknown", word("figure_not_compared", names=list(names))


def _of_inner(result: BoundaryResult, known: Mapping[str, BoundaryResult]) -> Iterator[tuple[str, Worded]]:
    """Whether the rotation of queries and keys lies in what made the value: where it was not compared by itself."""
    place = place_in_table(result.boundary)
    if place in ("q_rope.out", "k_rope.out"):
        yield "rotation.here", word("figure_boundaries", names=[result.boundary])
    elif place == "attn_core.out":
        names = [f"layers.{layer_of(result.boundary)}.{name}" for name in ("q_rope.out", "k_rope.out")]
        compared = all(name in known and known[name].status == "EXACT" for name in names)
        told = word("figure_boundaries" if compared else "figure_not_compared", names=names)
        yield ("rotation.equal" if compared else "rotation.here"), told


def _of_weight(result: BoundaryResult, weights: Sequence[BoundaryResult]) -> Iterator[tuple[str, Worded]]:
    """Which weights differ beside this one."""
    differing = [weight.boundary for weight in weights if weight.status in DIVERGED]
    compared = [weight for weight in weights if weight.status in DIVERGED or weight.status == "EXACT"]
    told = word("figure_differing", differ=len(differing), of=len(compared))
    if all(".experts." in name for name in differing) and any(".experts." not in weight.boundary for weight in compared):
        yield "differing.only_experts", told
    elif all(name.startswith("lm_head.") for name in differing) and len(compared) > len(differing):
        yield "differing.only_head", told
    elif len(differing) == len(compared) > 1:
        yield "differing.all", told
    else:
        yield "differing.some", told
    rows = result.where.rows if result.where is not None else None
    if rows is not None:
        few = 2 * rows.touched <= rows.of
        yield ("rows.some" if few else "rows.most"), word("figure_rows", touched=rows.touched, of=rows.of)
