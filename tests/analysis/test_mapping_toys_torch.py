"""The mapping proposed on the toy pair, with every fault and rounding on either side: against toys/mapping.py, written by hand.

Tensors are read by torch.load and cut by torch's indexing: nothing of the product.
"""

import json
from collections.abc import Callable
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from dump_analysis import pipeline
from dump_analysis.artefacts import io
from torch import Tensor
from toys import mapping
from toys.pairs import Dumped, Toys
from toys.switches import FAULTS, ROUNDINGS, Side, Switches

Json = dict[str, Any]
SIDES: list[Side] = ["train", "infer"]
CASES = [(name, side) for name in [*FAULTS, *ROUNDINGS] for side in SIDES]
_KV = {f"layers.1.{x}" for x in ("k.out", "v.out", "k.weight", "v.weight")}
# Rows that say in their note that what they join is exchanged.
SAID = {("kv_swapped", "train"): _KV, ("kv_swapped", "infer"): _KV}
# The trainer calls up before gate there, and rows stand in the order of its calls.
UP_FIRST = ("gate_up_order", "train")
# Other operands than on the clean pair: the fused norm alone records the sum.
ELSEWHERE = {"fused_add_unrounded": {"layers.1.resid_attn"}}
# What one layer hands out and the next takes in are two values there, and either is the row's.
ELSEWHERE |= {"altered_stream": {"layers.0.resid_mlp"}}
ELSEWHERE |= {"gelu": {"layers.1.act_mul.out"}}  # a module of another class
TWO_VALUES = {"altered_stream": {"layers.0.resid_mlp"}}


@pytest.fixture(scope="module")
def clean(toys: Toys) -> dict[str, Json]:
    """The rows of the clean pair by name."""
    return all_rows(proposed(toys.both()))


def proposed(dumped: Dumped) -> Json:
    found, _ = pipeline.propose_step(*pipeline.open_pair([str(dumped.train)], [str(dumped.infer)]))
    return json.loads(io.text_of(found))


def all_rows(found: Json) -> dict[str, Json]:
    return {row["boundary"]: row for row in [*found["boundaries"], *found["weights"]]}


# --- the reference ---


def reader(root: Path) -> Callable[[str], Tensor]:
    (folder,) = root.glob("step0/proc*/dump_tensor_data")
    return cache(lambda name: torch.load(folder / f"{name}.pt", map_location="cpu", weights_only=True))


def applied(tensor: Tensor, op: Json) -> Tensor:
    if op["op"] == "squeeze":
        return tensor.squeeze(op["axis"])
    if op["op"] == "reshape":
        return tensor.reshape(op["shape"])
    if op["op"] == "permute":
        return tensor.permute(op["axes"])
    if op["op"] == "slice":
        return tensor[(slice(None),) * (op["axis"] % tensor.dim()) + (slice(op.get("start"), op.get("stop")),)]
    assert op["op"] == "cast", op
    return tensor.to(getattr(torch, op["dtype"]))


def value(read: Callable[[str], Tensor], operand: Json) -> Tensor:
    parts = [reduce(applied, source["steps"], read(source["name"])) for source in operand["sources"]]
    if len(parts) == 1:
        return parts[0]
    assert operand["combine"] == "sum"
    return parts[0] + parts[1]


def differing(dumped: Dumped, rows: dict[str, Json], others: dict[str, Json]) -> set[str]:
    """Rows, of the same names, that do not join the same elements."""
    read = {"train": reader(dumped.train), "infer": reader(dumped.infer)}
    found = set()
    for name, row in rows.items():
        for side in SIDES:
            one, other = value(read[side], row[side]), value(read[side], others[name][side])
            if one.shape != other.shape or not torch.equal(one.double(), other.double()):
                found.add(name)
    return found


def by_hand(dumped: Dumped) -> dict[str, Json]:
    return {row["boundary"]: row for row in mapping.rows(dumped.on)}


def uncut(operand: Json) -> list[Any]:
    """An operand without what says how many tokens there are, and without an exact cast."""
    kept = [[source["name"], [op for op in source["steps"] if op["op"] == "slice" and op["axis"] != 0]] for source in operand["sources"]]
    return [kept, operand["combine"]]


# --- the tests ---


def test_the_clean_pair_is_mapped_whole(toys: Toys) -> None:
    """Every row written by hand, none more, and as missing what one side alone records: a row lost, invented, or of other elements."""
    found = proposed(toys.both())
    rows, expected = all_rows(found), by_hand(toys.both())
    assert list(rows) == list(expected)
    assert differing(toys.both(), rows, expected) == set()
    alone = {row["boundary"] for row in mapping.with_gaps(toys.both().on)["evidence_missing"]}
    assert {row["boundary"] for row in found["evidence_missing"]} == alone | {"logits.other_tokens"}  # the engine has the last row


@pytest.mark.parametrize(("name", "side"), CASES)
def test_a_fault_moves_no_row(toys: Toys, clean: dict[str, Json], name: str, side: Side) -> None:
    """Rows go by what a tensor is, not by how alike it is: a fault that drags its row to a better likeness would hide itself."""
    dumped = toys.pair(name, side)
    rows, expected = all_rows(proposed(dumped)), by_hand(dumped)
    assert (set(rows) == set(expected)) if (name, side) == UP_FIRST else (list(rows) == list(expected))
    assert differing(dumped, rows, expected) == TWO_VALUES.get(name, set())
    moved = {one for one in rows for at in SIDES if uncut(rows[one][at]) != uncut(clean[one][at])}
    assert moved <= ELSEWHERE.get(name, set())
    assert {one for one in rows if "exchange" in str(rows[one]["note"]) or "elsewhere" in str(rows[one]["note"])} == SAID.get(
        (name, side), set()
    )


@pytest.mark.parametrize("padded", [("train",), ("infer",), ("train", "infer")], ids="+".join)
def test_padding_is_cut_off(toys: Toys, padded: tuple[Side, ...]) -> None:
    """Masked padding before the prompt, on one side or both: a row of the wrong token, or padding compared with padding."""
    on = {side: Switches((("padded", 1),)) if side in padded else Switches() for side in SIDES}
    dumped = toys.both(on["train"], on["infer"])
    rows, expected = all_rows(proposed(dumped)), by_hand(dumped)
    assert list(rows) == list(expected)
    assert differing(dumped, rows, expected) == set()


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("name", ["kv_swapped", "missing_residual"])
def test_a_fault_in_the_first_or_last_layer_moves_no_row(toys: Toys, name: str, layer: int) -> None:
    """The outermost layers have no neighbour on one side to take a row from, or to lend one."""
    dumped = toys.pair(name, "infer", layer)
    rows, expected = all_rows(proposed(dumped)), by_hand(dumped)
    assert list(rows) == list(expected)
    assert differing(dumped, rows, expected) == set()
