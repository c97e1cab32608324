"""The first divergence: which boundary it is, and what lies before it uncompared. Also the verdict over all rows."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import dumping
import numpy as np
import pytest
from dump_analysis import divergence, gate, sides
from dump_analysis.artefacts.boundary_results import BoundaryResult, FirstDivergence, Status
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping
from dump_analysis.wording import word
from dumping import Tensor, cut, entry_of, of, output_of, outputs, row_of

STATUSES = get_args(Status)
NOTHING = word("sum_nothing")


def number(value: float) -> Tensor:
    """A tensor that equals no other of another number."""
    return of([value, value + 1, value + 3])


SAME = {name: number(10.0 * at) for at, name in enumerate("abcdef")}
OTHER = number(99.0)


def found(
    root: Path,
    rows: Sequence[Row],
    *,
    train: Mapping[str, Any] = SAME,
    infer: Mapping[str, Any] = SAME,
    missing: Sequence[MissingRow] = (),
    trace: Any = None,
) -> FirstDivergence | None:
    """The first divergence of two dumps, given as outputs by module name or as whole entries."""
    made = [entries if any("." in name for name in entries) else outputs(entries) for entries in (train, infer)]
    pair = dumping.side_of(root, "train", made[0], trace), dumping.side_of(root, "infer", made[1], trace)
    mapping = SemanticMapping(boundaries=list(rows), evidence_missing=list(missing))
    results, _ = gate.compare(rows, missing, *pair)
    return divergence.first_divergence(results, mapping, *pair)


def changed(*names: str, value: Tensor = OTHER) -> dict[str, Tensor]:
    return {**SAME, **dict.fromkeys(names, value)}


def rows_of(names: str) -> list[Row]:
    return [row_of(name, at) for at, name in enumerate(names)]


# --- which boundary ---


def test_nothing_differs(tmp_path: Path) -> None:
    assert found(tmp_path, rows_of("abcdef")) is None


def test_the_first_of_several(tmp_path: Path) -> None:
    first = found(tmp_path, rows_of("abcdef"), infer=changed("c", "e"))
    assert first == FirstDivergence("c", 2, True, [])


@pytest.mark.parametrize(
    "value",
    [of([1.0, 2.0]), of([20.0, 21.0, 23.0], "bfloat16"), of([float("nan"), 21.0, 23.0])],
    ids=["SHAPE_DIFF", "DTYPE_DIFF", "NONFINITE"],
)
def test_every_kind_of_difference_counts(tmp_path: Path, value: Tensor) -> None:
    """Before a NOT_EXACT: a comparator that looks at unequal values alone names the later one."""
    first = found(tmp_path, rows_of("abcdef"), infer={**changed("d"), "c": value})
    assert first is not None
    assert (first.boundary, first.predecessors_complete) == ("c", True)


def test_order_decides_not_the_place_in_the_file(tmp_path: Path) -> None:
    rows = [row_of("e", 0), row_of("a", 1), row_of("c", 2)]
    first = found(tmp_path, rows[::-1], infer=changed("c", "e"))
    assert first is not None
    assert (first.boundary, first.order) == ("e", 0)


# --- gaps ---


def test_gaps_before_it_are_named_in_order(tmp_path: Path) -> None:
    """MISSING, and what the mapping calls missing; gaps after it are nothing to it."""
    rows = [row_of("a", 0), row_of("gone", 2), *[row_of(name, at + 3) for at, name in enumerate("bcdef")], row_of("late", 20)]
    gaps = [MissingRow("told", 1, NOTHING, [], []), MissingRow("after", 19, NOTHING, [], [])]
    first = found(tmp_path, rows, infer=changed("d"), missing=gaps)
    assert first == FirstDivergence("d", 5, False, ["told", "gone"])


def test_gaps_and_equal_rows_are_no_divergence(tmp_path: Path) -> None:
    assert found(tmp_path, [row_of("a", 0), row_of("gone", 1)]) is None


# --- D11: outputs that the mapping says nothing about ---


def test_d11_three_unmapped_outputs_between_are_listed(tmp_path: Path) -> None:
    """D11: "between a and e", by tensor name and on both sides; nothing before a and after e is listed."""
    first = found(tmp_path, [row_of("b", 0), row_of("f", 1)], infer=changed("f"))
    names = [output_of(name) for name in "cde"]
    assert first == FirstDivergence("f", 1, False, names + names)


def test_d11_one_side_may_run_more_in_between(tmp_path: Path) -> None:
    """A fused engine has fewer modules than the trainer: only what was recorded is listed."""
    infer = {name: tensor for name, tensor in changed("f").items() if name in "abf"}
    first = found(tmp_path, [row_of("b", 0), row_of("f", 1)], infer=infer)
    assert first is not None
    assert first.uncompared_before == [output_of(name) for name in "cde"]


def test_d11_outputs_that_are_named_or_equal_a_named_tensor_are_known(tmp_path: Path) -> None:
    """c equals b (a wrapper returns it once more, in another shape), d is named by a gap, e by a row of the weights' kind."""
    wide = of([SAME["b"].storage.view("<f4").tolist()])
    train = {**SAME, "c": wide}
    rows = [row_of("a", 0), row_of("b", 1), row_of("f", 4)]
    gap = MissingRow("d", 2, NOTHING, [output_of("d")], [output_of("d")])
    mapping = SemanticMapping(boundaries=rows, weights=[row_of("e", 0)], evidence_missing=[gap])
    left, right = (
        dumping.side_of(tmp_path, label, outputs(train if label == "train" else {**train, "f": OTHER})) for label in ("train", "infer")
    )
    results, _ = gate.compare(rows, [gap], left, right)
    assert divergence.first_divergence(results, mapping, left, right) == FirstDivergence("f", 4, False, ["d"])


def test_d11_an_output_that_a_row_cuts_out_of_another_is_known(tmp_path: Path) -> None:
    """The rows take b's second half, which is all that c is."""
    half = {"op": "slice", "axis": 0, "start": 2}
    whole = {**SAME, "b": of([1.0, 2.0, 3.0, 4.0]), "c": of([3.0, 4.0])}
    rows = [row_of("b", 0, cut("b", half), cut("b", half)), row_of("d", 1)]
    assert found(tmp_path, rows, train=whole, infer={**whole, "d": OTHER}) == FirstDivergence("d", 1, True, [])


def test_d11_an_output_that_differs_in_its_last_element_is_not_known(tmp_path: Path) -> None:
    values = np.arange(300_000, dtype="<f4")
    other = values.copy()
    other[-1] = -1
    train = {**SAME, "b": of(values), "c": of(other)}
    first = found(tmp_path, [row_of("b", 0), row_of("d", 1)], train=train, infer={**train, "d": OTHER})
    assert first is not None
    assert first.uncompared_before == [output_of("c")] * 2


def test_without_an_exact_boundary_all_that_ended_before_it_is_listed(tmp_path: Path) -> None:
    first = found(tmp_path, [row_of("c", 0)], infer=changed("c"))
    names = [output_of("a"), output_of("b")]
    assert first == FirstDivergence("c", 0, False, names + names)


def test_the_last_exact_boundary_counts_not_an_earlier_one(tmp_path: Path) -> None:
    first = found(tmp_path, [row_of("a", 0), row_of("d", 1), row_of("f", 2)], infer=changed("f"))
    assert first is not None
    assert first.uncompared_before == [output_of("e")] * 2


def test_the_second_output_of_the_last_exact_module_is_uncompared(tmp_path: Path) -> None:
    """A fused norm returns the normed value and the residual: one of them equal says nothing of the other."""
    train = {entry_of("n"): {"output": [number(1.0), number(2.0)]}, entry_of("m"): {"output": [number(3.0)]}}
    infer = {entry_of("n"): {"output": [number(1.0), number(7.0)]}, entry_of("m"): {"output": [number(4.0)]}}
    first = found(tmp_path, rows_of("nm"), train=train, infer=infer)
    assert first is not None
    assert first.uncompared_before == [f"{entry_of('n')}.output.1"] * 2


def test_the_second_output_of_the_diverging_module_is_not_before_it(tmp_path: Path) -> None:
    train = {entry_of("n"): {"output": [number(1.0)]}, entry_of("m"): {"output": [number(3.0), number(6.0)]}}
    infer = {**train, entry_of("m"): {"output": [number(4.0), number(6.0)]}}
    assert found(tmp_path, rows_of("nm"), train=train, infer=infer) == FirstDivergence("m", 1, True, [])


def test_what_runs_backward_or_holds_nothing_is_not_listed(tmp_path: Path) -> None:
    """Gradients come after; outputs without elements have no value."""
    entries: dict[str, Any] = {
        entry_of("a"): {"output": [number(1.0)]},
        "Module.g.M.backward.0": {"output": [number(2.0)]},
        entry_of("empty"): {"output": [of(np.zeros((0, 3)))]},
        entry_of("none"): {"output": [None]},
        entry_of("b"): {"input": [number(6.0)], "output": [number(5.0)]},
    }
    infer = {**entries, entry_of("b"): {"input": [number(6.0)], "output": [OTHER]}}
    assert found(tmp_path, rows_of("ab"), train=entries, infer=infer) == FirstDivergence("b", 1, True, [])


# --- inputs: made before their entry started ---

INNER, OUTER, API = "Module.layer.inner.M.forward.0", "Module.layer.L.forward.0", "Functional.softmax.0.forward"


def nested(outer_input: Tensor) -> dict[str, Any]:
    """a; then a layer in which a module and an operator run: entries stand in the order of their ends."""
    return {
        entry_of("a"): {"output": [number(1.0)]},
        API: {"output": [number(2.0)]},
        INNER: {"output": [number(3.0)]},
        OUTER: {"input": [outer_input], "output": [number(4.0)]},
        entry_of("z"): {"output": [number(5.0)]},
    }


TRACE = {entry_of("a"): None, OUTER: None, INNER: OUTER, API: INNER, entry_of("z"): None}


def test_what_ran_inside_an_entry_did_not_end_before_its_input(tmp_path: Path) -> None:
    """With construct.json: the operator inside the layer is known to be inside, though its name says nothing."""
    rows = [row_of("a", 0), row_of("in", 1, f"{OUTER}.input.0", f"{OUTER}.input.0")]
    first = found(tmp_path, rows, train=nested(number(7.0)), infer=nested(number(8.0)), trace=TRACE)
    assert first == FirstDivergence("in", 1, True, [])


def test_without_construct_json_the_paths_tell_what_is_inside(tmp_path: Path) -> None:
    """The operator has no path: it may have run before the layer, and is listed."""
    rows = [row_of("a", 0), row_of("in", 1, f"{OUTER}.input.0", f"{OUTER}.input.0")]
    first = found(tmp_path, rows, train=nested(number(7.0)), infer=nested(number(8.0)))
    assert first == FirstDivergence("in", 1, False, [f"{API}.output.0"] * 2)


def test_after_an_equal_input_the_inside_of_its_entry_is_uncompared(tmp_path: Path) -> None:
    rows = [row_of("in", 0, f"{OUTER}.input.0", f"{OUTER}.input.0"), row_of("out", 1, f"{OUTER}.output.0", f"{OUTER}.output.0")]
    infer = {**nested(number(7.0)), OUTER: {"input": [number(7.0)], "output": [OTHER]}}
    first = found(tmp_path, rows, train=nested(number(7.0)), infer=infer, trace=TRACE)
    assert first == FirstDivergence("out", 1, False, [f"{API}.output.0", f"{INNER}.output.0"] * 2)


def test_a_sum_is_made_when_its_last_source_is(tmp_path: Path) -> None:
    """b + e differ: c and d ended before e did."""
    both = {"sources": [{"name": output_of("b")}, {"name": output_of("e")}], "combine": "sum"}
    first = found(tmp_path, [row_of("a", 0), row_of("b", 1), row_of("s", 2, both, both)], infer=changed("e"))
    assert first is not None
    assert first.uncompared_before == [output_of("c"), output_of("d")] * 2


# --- what the dumps do not tell ---


def test_without_dump_json_the_order_is_not_known(tmp_path: Path) -> None:
    """Never "everything before it was compared"."""
    unit = dumping.write_unit(tmp_path / "files", outputs(changed("b")), listed=False)
    train, infer = dumping.side_of(tmp_path, "train", outputs(SAME)), sides.open_side("infer", [str(unit)])
    rows = rows_of("abcdef")
    results, _ = gate.compare(rows, [], train, infer)
    first = divergence.first_divergence(results, SemanticMapping(boundaries=rows), train, infer)
    assert first == FirstDivergence("b", 1, False, [])


def test_outputs_of_another_rank_are_not_said_to_lie_between(tmp_path: Path) -> None:
    """What rank 1 did meanwhile is not known, and that is said; its tensors are not listed as if it were."""
    for label, tensors in (("train", SAME), ("infer", changed("c"))):
        dumping.write_unit(tmp_path / label, outputs(tensors))
        dumping.write_unit(tmp_path / label, outputs({"x": number(50.0)}), rank=1)
    train, infer = (sides.open_side(label, [str(tmp_path / label)]) for label in ("train", "infer"))
    rows = [row_of("a", 0), row_of("b", 1), row_of("c", 2)]
    results, _ = gate.compare(rows, [], train, infer)
    first = divergence.first_divergence(results, SemanticMapping(boundaries=rows), train, infer)
    assert first is not None
    assert (first.boundary, first.uncompared_before) == ("c", [])


# --- over all rows ---


def results_of(statuses: Sequence[Status]) -> list[BoundaryResult]:
    return [BoundaryResult(f"b{at}", at, status) for at, status in enumerate(statuses)]


def test_the_verdict_over_all_rows() -> None:
    """Every combination of statuses, in both orders. Truth: the four sentences of the contract."""
    for statuses in (chosen for size in range(len(STATUSES) + 1) for chosen in combinations(STATUSES, size)):
        if not statuses or set(statuses) == {"MISSING"}:
            wanted = "not_run"
        elif any(status not in ("EXACT", "MISSING", "evidence_missing") for status in statuses):
            wanted = "nonzero"
        else:
            wanted = "exact" if statuses == ("EXACT",) else "evidence_missing"
        for order in (statuses, statuses[::-1], statuses * 2):
            assert divergence.overall(results_of(order), []) == wanted, order


@pytest.mark.parametrize(
    ("boundaries", "weights", "wanted"),
    [
        (["EXACT"], ["EXACT"], "exact"),
        (["EXACT"], ["NOT_EXACT"], "nonzero"),
        (["EXACT"], ["MISSING"], "evidence_missing"),
        (["MISSING"], ["MISSING"], "not_run"),
        ([], ["MISSING"], "not_run"),
        (["MISSING"], ["EXACT"], "evidence_missing"),
        ([], ["EXACT"], "evidence_missing"),
        ([], ["DTYPE_DIFF"], "nonzero"),
    ],
)
def test_weights_count_in_the_verdict_and_are_no_boundaries(boundaries: list[Status], weights: list[Status], wanted: str) -> None:
    """Equal weights alone say nothing of what is computed with them; one that differs is a difference."""
    assert divergence.overall(results_of(boundaries), results_of(weights)) == wanted
