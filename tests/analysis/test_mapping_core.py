"""The pieces of the mapping from data: times, token rows, signatures, data flow, weights and layers, each on tensors made for it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis.mapping.contents import weights
from dump_analysis.mapping.recorded import dataflow, layers
from dump_analysis.mapping.recorded.columns import column_order
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Spot, Window, add
from dump_analysis.mapping.recorded.records import picked_tokens, read
from dump_analysis.mapping.recorded.signatures import FLOOR, distance, gram
from dump_analysis.mapping.recorded.times import times_of
from dump_analysis.mapping.recorded.token_rows import columns_op, matrix_ops, rows_of
from dump_analysis.tensors import Files
from dumping import Entries, entry_of, of, side_of, write_pt
from hypothesis import given
from hypothesis import strategies as st
from msprobe_files.operands import Operand, shape_after
from msprobe_files.pt_archive import read_header


def numbers(seed: int, *shape: int) -> Any:
    """Random float32 values with eight binary digits."""
    return np.round(np.random.default_rng(seed).normal(size=shape) * 64).astype(np.float32) / 64


def side_nodes(root: Path, entries: Entries, tokens: int, trace: Any = None) -> SideNodes:
    """An empty side of a unit, all of whose tokens are joined."""
    records = read(side_of(root, "train", entries, trace))
    return SideNodes(records, Window(0, tokens, tokens, 1), np.arange(tokens), Operand([]), None)


def node(sample: Any, time: float, io: str = "output") -> Node:
    return Node(np.asarray(sample, np.float32), [], None, "one", [Spot(time, f"e{time}", io, "0", True)], time)


# --- times ---


def test_times_nest_as_the_trace_says(tmp_path: Path) -> None:
    """A parent starts before and ends after its children, though dump.json lists it last; one that recorded nothing is climbed through."""
    one = of([1.0, 2.0])
    entries = {entry_of(name): {"output": [one]} for name in ("a", "b", "outer")}
    trace = {entry_of("outer"): None, entry_of("a"): entry_of("outer"), "silent": entry_of("outer"), entry_of("b"): "silent"}
    times = times_of(side_of(tmp_path, "train", entries, trace).units[0])
    start, end = times.start, times.end
    outer, a, b = (entry_of(name) for name in ("outer", "a", "b"))
    assert start[outer] < start[a] < end[a] < start[b] < end[b] == end[outer]
    assert times.leaves == {a, b}


def test_without_a_trace_the_order_of_dump_json_is_left(tmp_path: Path) -> None:
    """Nothing is nested then, and no entry is put before one that ended earlier."""
    entries = {entry_of(name): {"output": [of([1.0])]} for name in ("b", "a")}
    times = times_of(side_of(tmp_path, "train", entries).units[0])
    assert not times.traced
    assert times.end[entry_of("b")] < times.start[entry_of("a")]
    assert times.leaves == set(entries)


# --- token rows ---

HEADS, DIM = 3, 4
FORMS = {  # how [batch * tokens, HEADS * DIM] may lie; batch is 1 or 2, tokens 5
    "[T, H]": lambda x, batch: x,
    "[B, S, H]": lambda x, batch: x.reshape(batch, 5, -1),
    "[S, B, H]": lambda x, batch: x.reshape(batch, 5, -1).swapaxes(0, 1),
    "[T, heads, D]": lambda x, batch: x.reshape(-1, HEADS, DIM),
    "[B, heads, S, D]": lambda x, batch: x.reshape(batch, 5, HEADS, DIM).swapaxes(1, 2),
    "[T * heads, D]": lambda x, batch: x.reshape(-1, DIM),
}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_an_activation_gives_the_same_rows(tmp_path: Path, form: str, batch: int) -> None:
    """A form that is read along the wrong axis would give rows of other tokens."""
    wanted = numbers(1, 5 * batch, HEADS * DIM)
    tensor = read_header(write_pt(tmp_path / "t.pt", of(FORMS[form](wanted, batch))))
    steps = matrix_ops(tensor.shape, Window(0, 5 * batch, 5 * batch, batch))
    assert steps is not None
    assert shape_after(steps, tensor.shape) == wanted.shape
    picked = np.array([0, 2, 5 * batch - 1])
    np.testing.assert_array_equal(rows_of(Files(), tensor, steps, picked), wanted[picked])


@pytest.mark.parametrize("shape", [(3, 5, 5), (4, 7), (7,), (1,), (5, 0)])
def test_a_tensor_whose_rows_are_no_tokens_is_left_out(shape: tuple[int, ...]) -> None:
    """Attention scores, logits of other rows, scalars and empty tensors are no activations of five tokens."""
    assert matrix_ops(shape, Window(0, 5, 5, 1)) is None


def test_rows_far_apart_are_read_one_by_one(tmp_path: Path) -> None:
    """Of a tensor larger than a block, with what is not finite as zero, and the least number of a mask, whose square is not finite."""
    wanted = numbers(2, 900, 100)
    wanted[899, 3], wanted[1, 7], wanted[400, 5] = np.inf, np.nan, np.finfo(np.float32).min
    tensor = read_header(write_pt(tmp_path / "t.pt", of(wanted)))
    picked = np.array([1, 400, 899])
    wanted[899, 3] = wanted[1, 7] = wanted[400, 5] = 0
    np.testing.assert_array_equal(rows_of(Files(), tensor, (), picked), wanted[picked])


def test_the_last_token_is_always_sampled_and_tokens_that_differ_never() -> None:
    """Last-position logits need the last one; another token's row would dominate every distance."""
    agree = np.setdiff1d(np.arange(200), [7, 199])
    picked = picked_tokens(agree, 200, 64)
    assert len(picked) == 64
    assert picked[-1] == 199
    assert set(picked[:-1].tolist()) <= set(agree.tolist())
    assert picked_tokens(np.arange(5), 5, 64).tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True))
def test_an_op_of_columns_takes_these_columns(columns: list[int]) -> None:
    """Runs that are merged wrongly would take others, or the same in another order."""
    op = columns_op(columns)
    taken = list(range(op.start or 0, op.stop or 0)) if op.op == "slice" else list(op.picked)
    assert taken == columns
    assert [at for start, stop in op.runs for at in range(start, stop)] in ([], columns)


# --- signatures and columns ---


@given(st.integers(0, 1000), st.integers(2, 30))
def test_a_signature_knows_no_order_of_columns(seed: int, width: int) -> None:
    """It would join a fused layout with no other."""
    draw = np.random.default_rng(seed)
    x = numbers(seed, 12, width) + 1
    turned = x[:, draw.permutation(width)]
    left, right = (gram(node(sample, 0), slice(None)) for sample in (x, turned))
    assert distance(left, right) < FLOOR
    assert distance(left, gram(node(numbers(seed + 1, 12, width), 0), slice(None))) > 10 * FLOOR


def test_a_huge_token_does_not_hide_the_others() -> None:
    """The first token's massive activations: one row in twelve a thousand times the others."""
    x, y = numbers(1, 12, 40), numbers(2, 12, 40)
    x[0] = y[0] = 1000 * numbers(3, 40)
    assert distance(gram(node(x, 0), slice(None)), gram(node(y, 0), slice(None))) > 0.5


def test_columns_are_found_by_correlation() -> None:
    """A permuted pair with noise is put in order; an unrelated pair is not, nor is one that needs a column twice."""
    x = numbers(4, 20, 30)
    order = np.random.default_rng(4).permutation(30)
    found = column_order(x, x[:, order] + numbers(5, 20, 30) / 100)
    assert found.agree
    assert found.columns is not None
    np.testing.assert_array_equal(found.columns, order)
    assert column_order(x, x + numbers(6, 20, 30) / 100) == (True, None)
    assert column_order(x, numbers(7, 20, 30)) == (False, None)


# --- data flow ---

ACTIVATIONS = {
    "silu": lambda x: x / (1 + math.exp(-x)),
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))),
}


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_which_factor_is_activated_is_told(act: str) -> None:
    """Gate and up that are exchanged give another product."""
    gate, up = 2 * numbers(1, 10, 24), 2 * numbers(2, 10, 24)
    product = np.vectorize(ACTIVATIONS[act])(gate.astype(np.float64)) * up
    assert dataflow.activated(gate, up, product) is True
    assert dataflow.activated(up, gate, product) is False
    assert dataflow.activated(gate, up, gate * up) is None


def test_a_fused_output_is_split_by_the_product_that_follows(tmp_path: Path) -> None:
    """The halves become nodes with slices of the output; a tensor of half the width that is no product splits nothing."""
    both = 2 * numbers(3, 10, 48)
    product = np.vectorize(ACTIVATIONS["silu"])(both[:, :24].astype(np.float64)) * both[:, 24:]
    side = side_nodes(tmp_path, {entry_of("a"): {"output": [of(both)]}}, 10)
    for one in (node(both, 1.0), node(numbers(5, 10, 24), 2.0), node(product, 3.0), node(numbers(4, 10, 48), 4.0)):
        add(side, one)
    dataflow.split_halves(side)
    halves = [found for found in side.nodes if found.kind == "half"]
    assert [found.spots[0].path for found in halves] == ["0[half0]", "0[half1]"]
    np.testing.assert_array_equal(np.hstack([found.sample for found in halves]), both)


def test_a_sum_is_that_of_its_own_addends(tmp_path: Path) -> None:
    """With a massive channel every small tensor seems to be an addend; rounded to bfloat16, the right one is still told."""
    stream, out, other = numbers(1, 10, 16), numbers(2, 10, 16) / 8, numbers(3, 10, 16) / 8
    stream[:, 0] = 1000
    total = ((stream + out).view(np.uint32) + 0x8000 & 0xFFFF0000).view(np.float32)
    side = side_nodes(tmp_path, {entry_of("a"): {"output": [of([1.0])]}}, 10)
    made = [add(side, node(sample, at)) for at, sample in enumerate((stream, other, out, total))]
    dataflow.find_sums(side)
    assert side.sums == {id(made[3]): (made[0], made[2])}
    assert made[3] is not None
    assert made[3].ready == pytest.approx(2.2)


# --- weights ---


@pytest.mark.parametrize("rows", [40, 1600])
def test_parts_of_a_fused_matrix_are_cut_by_content(tmp_path: Path, rows: int) -> None:
    """q, k, v of one fused matrix, all rows keyed and two in sixteen: each module's columns, and no others."""
    counts = {"q": rows, "k": rows // 2, "v": rows // 2}
    parts = {name: numbers(at, count, 24) for at, (name, count) in enumerate(counts.items())}
    apart = {entry_of(name): {"parameters": {"weight": of(part)}} for name, part in parts.items()}
    whole = numbers(9, 5, 2 * rows)
    fused = {entry_of("f"): {"parameters": {"weight": of(np.vstack(list(parts.values())))}, "output": [of(whole)]}}
    train, infer = read(side_of(tmp_path, "train", apart)), side_nodes(tmp_path / "i", fused, 5)
    add(infer, Node(whole, [], None, "one", [Spot(1.0, entry_of("f"), "output", "0", True)], 1.0))
    keys = weights.keyed(train.parameters), weights.keyed(infer.parameters)
    joins = weights.join_modules(*keys)
    assert joins == {(entry_of(name), entry_of("f")): (1.0, "rows") for name in counts}
    made = weights.cut_fused(infer, keys[1], keys[0], [(fused_one, one, share) for (one, fused_one), (share, _) in joins.items()])
    widths = {entry: part.width for entry, part in made}
    assert widths == {entry_of(name): count for name, count in counts.items()}
    for entry, start in ((entry_of("q"), 0), (entry_of("k"), rows), (entry_of("v"), rows + rows // 2)):
        part = dict(made)[entry]
        np.testing.assert_array_equal(part.sample, whole[:, start : start + part.width])


def test_norms_are_joined_by_their_gains_unless_these_are_constant(tmp_path: Path) -> None:
    """Gains that are all ones would join every norm with every other."""
    gains = {"a": numbers(1, 8), "b": np.ones(8, np.float32), "c": np.ones(8, np.float32)}
    records = read(side_of(tmp_path, "train", {entry_of(name): {"parameters": {"w": of(gain)}} for name, gain in gains.items()}))
    keys = weights.keyed(records.parameters)
    assert weights.join_modules(keys, keys) == {(entry_of("a"), entry_of("a")): (1.0, "vec")}


# --- layers ---


def test_the_shortest_block_that_repeats_is_the_layer(tmp_path: Path) -> None:
    """Four layers of four modules between an embedding and a norm and head: not two layers of eight, and the last norm is the
    fifth layer's first module; the words that modules bear say nothing."""
    widths = [("norm", 8, 8), ("in", 8, 12), ("out", 12, 8), ("last", 8, 6)]
    order = [("emb", 1, 8), *widths * 4, ("norm", 8, 8), ("head", 8, 20)]
    entries = {
        f"Module.w{at * 7 % 11}.x{at}.C.forward.0": {"input": [of(numbers(at, 5, wide))], "output": [of(numbers(at + 50, 5, out))]}
        for at, (_, wide, out) in enumerate(order)
    }
    side = side_nodes(tmp_path, entries, 5, dict.fromkeys(entries))
    places = list(layers.label(side).leaves.values())
    assert [(place.layer, place.module) for place in places] == [(layer, float(at)) for layer in range(4) for at in range(4)] + [(4, 0.0)]
    assert side.layers == 4
