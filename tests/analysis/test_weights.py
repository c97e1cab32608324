"""Weights compared: which count as equal, which differ, and one place in several layers taken together."""

import pytest
from dump_analysis.artefacts.boundary_results import BoundaryResult, SidesShape, Status, Unequal
from dump_analysis.boundaries import layer_of, made_by
from dump_analysis.weights import compared


def result(boundary: str, status: Status, unequal: int | None = 0, shape: tuple[int, ...] | SidesShape | None = (2, 5)) -> BoundaryResult:
    counted = None if unequal is None else Unequal(unequal, unequal / 10)
    return BoundaryResult(boundary, 0, status, shape=list(shape) if isinstance(shape, tuple) else shape, unequal=counted)


def test_nothing_compared() -> None:
    found = compared([])
    assert (found.equal, found.differing, found.gaps, found.compared) == (0, (), 0, 0)


def test_equal_differing_and_gaps_are_counted_apart() -> None:
    found = compared(
        [
            result("embedding.weight", "EXACT"),
            result("lm_head.weight", "NOT_EXACT", 3),
            result("final_norm.weight", "MISSING", None, None),
            result("layers.0.q.weight", "evidence_missing", None, None),
        ]
    )
    assert (found.equal, found.gaps, found.compared) == (1, 2, 2)
    (lm_head,) = found.differing
    assert (lm_head.place, lm_head.layers, lm_head.unequal, lm_head.of) == ("lm_head.weight", (), 3, 10)


def test_one_place_in_several_layers_is_one_weight() -> None:
    """Not its neighbour of another name, nor the same name outside the layers."""
    rows = [
        result("layers.0.q.weight", "NOT_EXACT", 1),
        result("layers.0.k.weight", "NOT_EXACT", 2),
        result("layers.10.q.weight", "NOT_EXACT", 3),
        result("layers.2.q.weight", "EXACT"),
        result("q.weight", "NOT_EXACT", 4),
    ]
    found = {weight.place: weight for weight in compared(rows).differing}
    assert list(found) == ["layers.N.q.weight", "layers.N.k.weight", "q.weight"]
    query = found["layers.N.q.weight"]
    assert (query.layers, query.unequal, query.of) == ((0, 10), 4, 20)
    assert [row.boundary for row in query.results] == ["layers.0.q.weight", "layers.10.q.weight"]


@pytest.mark.parametrize(
    ("row", "equal"),
    [
        (result("w", "DTYPE_DIFF", 0), True),
        (result("w", "DTYPE_DIFF", 1), False),
        (result("w", "SHAPE_DIFF", None, SidesShape([2], [3])), False),
        (result("w", "NONFINITE", 1), False),
        (result("w", "NONFINITE", 0), True),  # the same NaN at the same places
        (result("w", "EXACT", 0), True),
    ],
)
def test_what_counts_as_an_equal_weight(row: BoundaryResult, equal: bool) -> None:
    """The same values in a wider format are one weight; another shape or a NaN, even on both sides, is not."""
    found = compared([row])
    assert (found.equal, len(found.differing)) == (int(equal), int(not equal))


def test_a_weight_of_another_shape_has_no_elements_compared() -> None:
    (found,) = compared([result("w", "SHAPE_DIFF", None, SidesShape([2], [3]))]).differing
    assert (found.unequal, found.of) == (0, 0)


@pytest.mark.parametrize(
    ("boundary", "layer"),
    [
        ("layers.0.q.out", 0),
        ("layers.31.experts.7.out", 31),
        ("embedding.out", None),
        ("logits", None),
        ("experts.layers.1.q", None),
        ("layers.x.q", None),
    ],
)
def test_the_layer_in_a_name(boundary: str, layer: int | None) -> None:
    assert layer_of(boundary) == layer


@pytest.mark.parametrize(
    ("weight", "boundary"),
    [
        ("embedding.weight", "embedding.out"),
        ("layers.3.q.weight", "layers.3.q.out"),
        ("layers.3.q.bias", "layers.3.q.out"),
        ("layers.0.input_norm.weight", "layers.0.input_norm.out"),
        ("layers.0.router.weight", "layers.0.router.logits"),
        ("layers.0.router.bias", "layers.0.router.logits"),
        ("final_norm.weight", "final_norm.out"),
        ("lm_head.weight", "logits"),
    ],
)
def test_the_boundary_that_a_weight_makes(weight: str, boundary: str) -> None:
    """Where a finding about a weight stands in the order: names by hand, from the list of boundary names."""
    assert made_by(weight) == boundary
