"""The mapping proposed on toys of many architectures: against toys/arch/truth.py, with a gross fault, with random words for all names.

Tensors are read by torch.load and cut by torch's indexing: nothing of the product.
"""

import hashlib
import json
from collections.abc import Callable
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from dump_analysis import pipeline
from dump_analysis.artefacts import io
from editing import copy_side, unit_of
from torch import Tensor
from toys.arch import truth
from toys.arch.shapes import ARCHITECTURES, FAULTY_LAYER, Fault
from toys.pairs import Toys
from toys.switches import Side

Json = dict[str, Any]
Read = Callable[[str], Tensor]
SIDES: tuple[Side, Side] = ("train", "infer")
_ALIKE = 0.9  # cosine of two sides of one thing on a clean pair, at least
FAULTY: list[tuple[Fault, Side]] = [
    ("kv_swapped", "infer"),
    ("all_kv_swapped", "infer"),
    ("missing_residual", "train"),
    ("missing_residual", "infer"),
]
# The branch, and not its multiple, is lost where both sides lose the residual.
_LOST_BY_BOTH = {"multipliers": ["o_proj.out", "o_proj.weight"]}
# With nothing added the sum is the branch itself; which of the equal tensors stands there may differ.
_ELSEWHERE = {f"layers.{FAULTY_LAYER}.resid_attn", f"layers.{FAULTY_LAYER}.resid_mlp"}


@pytest.fixture(scope="module")
def clean(toys: Toys) -> Callable[[str], Json]:
    """The mapping of an architecture's clean pair."""
    return cache(lambda name: proposed(toys.architecture("train", name), toys.architecture("infer", name)))


def proposed(train: Path, infer: Path) -> Json:
    found: Json = json.loads(io.text_of(pipeline.propose_step(*pipeline.open_pair([str(train)], [str(infer)]))[0]))
    return found


def all_rows(found: Json) -> dict[str, Json]:
    return {row["boundary"]: row for row in [*found["boundaries"], *found["weights"]]}


# --- the reference ---


def reader(root: Path) -> Read:
    folder = unit_of(root) / "dump_tensor_data"
    return cache(lambda name: torch.load(folder / f"{name}.pt", map_location="cpu", weights_only=True))


def applied(tensor: Tensor, op: Json) -> Tensor:
    if op["op"] == "squeeze":
        return tensor.squeeze(op["axis"])
    if op["op"] == "reshape":
        return tensor.reshape(op["shape"])
    if op["op"] == "permute":
        return tensor.permute(op["axes"])
    if op["op"] == "take":
        picked = op.get("index") or [at for start, stop in op["runs"] for at in range(start, stop)]
        return tensor.index_select(op["axis"], torch.tensor(picked))
    if op["op"] == "slice":
        return tensor[(slice(None),) * (op["axis"] % tensor.dim()) + (slice(op.get("start"), op.get("stop")),)]
    assert op["op"] == "cast", op
    return tensor.to(getattr(torch, op["dtype"]))


def value(read: Read, operand: Json) -> Tensor:
    parts = [reduce(applied, source["steps"], read(source["name"])) for source in operand["sources"]]
    if operand["combine"] == "cat":
        return torch.cat(parts, operand["axis"])
    assert len(parts) == 1 or operand["combine"] == "sum"
    return reduce(torch.add, parts)


def both(reads: dict[str, Read], row: Json) -> tuple[Tensor, Tensor]:
    """What the row joins, element by element, float32: every recorded value is one."""
    x, y = (value(reads[side], row[side]).flatten().float() for side in SIDES)
    assert x.shape == y.shape, row["boundary"]
    return x, y


def pairs(reads: dict[str, Read], row: Json) -> Tensor:
    """The pairs of elements that the row joins, each as one number, in an order of their own."""
    x, y = (part.view(torch.int32).long() for part in both(reads, row))
    return ((x << 32) + y).sort().values


# --- other names ---


def word(text: str) -> str:
    return "".join(chr(ord("a") + int(digit, 16)) for digit in hashlib.sha256(text.encode()).hexdigest()[:9])


def other_name(text: str) -> str:
    """Of an entry or a tensor: random words for the path and for the class, the call and what follows stay."""
    path, dot, rest = text.partition(".forward.")
    return f"Module.{word(path)}.{word(path.rpartition('.')[2])}{dot}{rest}" if dot else text


def renamed(content: Any) -> Any:
    if isinstance(content, dict):
        return {other_name(key): renamed(item) for key, item in content.items()}
    if isinstance(content, list):
        return [renamed(item) for item in content]
    return other_name(content) if isinstance(content, str) else content


def renamed_side(source: Path, target: Path) -> Path:
    unit = unit_of(copy_side(source, target))
    for file in unit.glob("*.json"):
        file.write_text(json.dumps(renamed(json.loads(file.read_text()))))
    for file in list((unit / "dump_tensor_data").iterdir()):
        file.rename(file.with_name(other_name(file.name)))
    return target


# --- the tests ---


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_place_that_both_record_is_joined_under_its_name(toys: Toys, clean: Callable[[str], Json], name: str) -> None:
    """Each element of the trainer with its own of the engine: a row lost, of another tensor, of other columns, under another name."""
    reads = {side: reader(toys.architecture(side, name)) for side in SIDES}
    rows = all_rows(clean(name))
    expected = {row.boundary: row._asdict() for row in truth.rows(ARCHITECTURES[name])}
    assert expected.keys() - rows.keys() == set()
    assert [one for one in expected if not torch.equal(pairs(reads, rows[one]), pairs(reads, expected[one]))] == []


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_no_row_joins_two_things(toys: Toys, clean: Callable[[str], Json], name: str) -> None:
    """Rows beyond the truth too: unequal weights, activations that are not alike, a product that its weights did not help to join."""
    reads = {side: reader(toys.architecture(side, name)) for side in SIDES}
    found = clean(name)
    joined = {row["boundary"]: both(reads, row) for row in [*found["boundaries"], *found["weights"]]}
    assert [one for one, (x, y) in joined.items() if torch.cosine_similarity(x, y, dim=0) < _ALIKE] == []
    assert [row["boundary"] for row in found["weights"] if not torch.equal(*joined[row["boundary"]])] == []
    assert [row["boundary"] for row in found["weights"] if "weights" not in row["basis"]] == []
    products = [row for row in found["boundaries"] if row["boundary"].endswith((".o_proj.out", ".down.out"))]
    assert [row["boundary"] for row in products if "weights" not in row["basis"]] == []


@pytest.mark.parametrize(("fault", "side"), FAULTY)
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_gross_fault_moves_no_row(toys: Toys, clean: Callable[[str], Json], name: str, fault: Fault, side: Side) -> None:
    """K and v exchanged in one layer or in all, a residual lost: a row that leaves with the fault, or takes another tensor."""
    roots = {at: toys.architecture(at, name, fault if at == side else None) for at in SIDES}
    rows, known = all_rows(proposed(roots["train"], roots["infer"])), all_rows(clean(name))
    assert list(rows) == list(known)
    reads = {at: reader(root) for at, root in roots.items()}
    moved = [one for one in rows if any(rows[one][at] != known[one][at] for at in SIDES)]
    assert [one for one in moved if one not in _ELSEWHERE or not torch.equal(pairs(reads, rows[one]), pairs(reads, known[one]))] == []
    exchanged = {"layers.0.k.out", "layers.0.v.out"} if fault == "all_kv_swapped" and not ARCHITECTURES[name].latent else set()
    assert {one for one in exchanged if "exchange" not in str(rows[one]["note"])} == set()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_residual_that_both_sides_lose_loses_its_own_name_alone(toys: Toys, clean: Callable[[str], Json], name: str) -> None:
    """The branch is the stream from there on: names that stop at the layer, or that count the layers anew."""
    rows = all_rows(proposed(*(toys.architecture(side, name, "missing_residual") for side in SIDES)))
    lost = {f"layers.{FAULTY_LAYER}.{place}" for place in _LOST_BY_BOTH.get(name, ["resid_attn"])}
    assert all_rows(clean(name)).keys() - rows.keys() <= lost


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_activations_alone_join_the_same_places(toys: Toys, clean: Callable[[str], Json], tmp_path: Path, name: str) -> None:
    """An engine that recorded no weights: each boundary joins the elements that it joins with them."""
    roots = {side: toys.architecture(side, name) for side in SIDES}
    copy = copy_side(roots["infer"], tmp_path / "infer")
    recorded = json.loads((unit_of(copy) / "dump.json").read_text())
    for entry in recorded["data"].values():
        entry.pop("parameters", None)
    (unit_of(copy) / "dump.json").write_text(json.dumps(recorded))
    reads = {side: reader(roots[side]) for side in SIDES}
    rows, known = all_rows(proposed(roots["train"], copy)), clean(name)["boundaries"]
    assert {row["boundary"] for row in known} - rows.keys() == set()
    assert [row["boundary"] for row in known if not torch.equal(pairs(reads, rows[row["boundary"]]), pairs(reads, row))] == []


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_names_decide_nothing(toys: Toys, clean: Callable[[str], Json], tmp_path: Path, name: str) -> None:
    """Random words for all modules and classes of both sides: the same rows, and the order of the same."""
    roots = [renamed_side(toys.architecture(side, name), tmp_path / side) for side in SIDES]
    found = proposed(*roots)
    for part in ("boundaries", "weights"):
        expected = [{**row, **{side: renamed(row[side]) for side in SIDES}} for row in clean(name)[part]]
        assert [(row["train"], row["infer"]) for row in found[part]] == [(row["train"], row["infer"]) for row in expected]
        assert [row["boundary"] for row in found[part]] == [other_name(row["boundary"]) for row in expected]


def test_a_layer_that_calls_up_before_gate_reads_as_exchanged_where_names_say_nothing(toys: Toys, tmp_path: Path) -> None:
    """Exchanged weights record the same; the other toys' test holds that names which repeat from layer to layer tell it apart."""
    dumped = toys.pair("gate_up_order", "train")
    rows = all_rows(proposed(renamed_side(dumped.train, tmp_path / "train"), dumped.infer))
    said = {one for one, row in rows.items() if "exchange" in str(row["note"]) or "elsewhere" in str(row["note"])}
    assert said == {f"layers.1.{place}" for place in ("gate.out", "up.out", "gate.weight", "up.weight")}
    assert rows["layers.1.gate.out"]["infer"]["sources"][0]["steps"] == [{"op": "slice", "axis": 1, "start": 0, "stop": 96}]
