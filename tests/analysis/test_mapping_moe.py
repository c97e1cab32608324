"""Places of mixture-of-experts blocks, on networks whose modules bear numbers: what each tensor is, is known by construction."""

import re
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from dump_analysis import floats, sides, tensors
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping
from dump_analysis.mapping import proposal
from dump_analysis.mapping.contents import weights
from dump_analysis.mapping.recorded.nodes import Parameter
from dump_analysis.sides import Side
from dump_analysis.tensors import Files
from dumping import entry_of, of, write_unit
from msprobe_files.operands import Operand
from networks import EXPERTS, LAYERS, Array, Network, Recording

LAYER = "layers.1."


class Proposed:
    """The mapping of a pair of networks, and what each side recorded."""

    def __init__(self, root: Path, network: Network, *, bare: bool = False) -> None:
        made = networks.weights_of(network)
        self.train, self.infer = networks.trainer(network, made), networks.engine(network, made)
        if bare:
            for record in (self.train, self.infer):
                for entry in record.entries.values():
                    entry["parameters"] = {}
        self.sides = {label: sides.open_side(label, [getattr(self, label).write(root / label)]) for label in ("train", "infer")}
        self.mapping: SemanticMapping = proposal.propose(*self.sides.values()).mapping
        self.rows: dict[str, Row] = {row.boundary: row for row in self.mapping.boundaries}
        self.gaps: dict[str, MissingRow] = {row.boundary: row for row in self.mapping.evidence_missing}

    def source(self, boundary: str, side: str) -> tuple[str, str]:
        """What a row takes of a side: the role of the entry, and which of its tensors."""
        record: Recording = getattr(self, side)
        (source,) = getattr(self.rows[boundary], side).sources
        entry, tensor = re.fullmatch(r"(.*\.forward\.0)\.(.*)", source.name).groups()  # type: ignore[union-attr]
        return next(role for role, own in record.roles.items() if own == entry), tensor

    def values(self, boundary: str, side: str) -> Array:
        return value(self.sides[side], getattr(self.rows[boundary], side))


def value(side: Side, operand: Operand) -> Array:
    """The elements of an operand as a gate would read them."""
    files = Files()
    try:
        stream = tensors.stream_of(files, operand, [tensors.header(side.by_name[source.name][0]) for source in operand.sources])
        raw = stream.read(0, tensors.elements_of(stream)).reshape(stream.shape)
        return np.asarray(floats.values(raw, stream.dtype))
    finally:
        files.close()


def recorded(record: Recording, role: str, slot: str, at: int = 0) -> Array:
    """A tensor as the network made it, without the leading axis of size 1."""
    tensor = record.entries[record.roles[role]][slot][at]
    values = tensor.storage.view({"int64": "<i8", "bool": "u1"}.get(tensor.dtype, "<f4")).reshape(tensor.shape)
    return values[0] if len(tensor.shape) > 2 else values


# --- what the router chose ---


@pytest.mark.parametrize("bare", [False, True], ids=["weights", "no weights"])
def test_chosen_experts_are_joined_by_value(tmp_path: Path, bare: bool) -> None:
    """Would catch ids that are taken for positions or left out as integers, and weights under the name of the logits."""
    found = Proposed(tmp_path, Network(routed=True, choices=("ids", "ids")), bare=bare)
    for layer in range(LAYERS):
        for part, at in (("logits", 0), ("weights", 1), ("experts", 2)):
            for side in ("train", "infer"):
                assert found.source(f"layers.{layer}.router.{part}", side) == (f"layers.{layer}.router", f"output.{at}")
    assert (found.values(LAYER + "router.experts", "train") == recorded(found.train, LAYER + "router", "output", 2)).all()
    assert found.rows[LAYER + "router.experts"].note is None
    assert "values" in found.rows[LAYER + "router.experts"].basis


def test_experts_in_another_order_are_not_compared_column_by_column(tmp_path: Path) -> None:
    """The engine sorts ids and shares by number: a row would show differences of order alone, sorting in silence would hide a fault."""
    found = Proposed(tmp_path, Network(routed=True, choices=("ids", "other order")))
    for part in ("experts", "weights"):
        gap = found.gaps[LAYER + f"router.{part}"]
        assert gap.reason.kind == "choice_order"
        assert gap.train
        assert gap.infer
        assert LAYER + f"router.{part}" not in found.rows
    moved = (recorded(found.train, LAYER + "router", "output", 2) != recorded(found.infer, LAYER + "router", "output", 2)).any(1)
    assert found.gaps[LAYER + "router.experts"].reason.values == {"n": int(moved.sum()), "of": networks.TOKENS}


def test_exchanged_ids_whose_shares_stay_are_compared_and_noted(tmp_path: Path) -> None:
    """A fault, not a habit: only the ids of one layer change places. Hiding that as another order would lose it."""
    found = Proposed(tmp_path, Network(routed=True, choices=("ids", "ids"), fault="ids exchanged"))
    row = found.rows[LAYER + "router.experts"]
    assert row.note is not None
    assert row.note.startswith(f"{networks.TOKENS} of {networks.TOKENS} tokens")
    assert (found.values(LAYER + "router.experts", "train") == found.values(LAYER + "router.experts", "infer")[:, ::-1]).all()
    assert found.rows["layers.0.router.experts"].note is None


@pytest.mark.parametrize("apart", [False, True], ids=["fused", "apart"])
def test_a_map_on_one_side_and_ids_on_the_other_are_no_row(tmp_path: Path, apart: bool) -> None:
    """The trainer records shares and a map over all experts: neither is the engine's ids, nor its logits."""
    found = Proposed(tmp_path, Network(routed=True, choices=("map", "ids"), apart=apart))
    assert not {LAYER + "router.experts", LAYER + "router.logits"} & found.rows.keys()
    assert found.gaps[LAYER + "router.experts"].reason.kind == "choice_as_map"
    logits = found.gaps[LAYER + "router.logits"]
    assert (logits.train, logits.infer) == ([], [found.infer.output(LAYER + "router")])
    assert logits.reason.values["side"] == "train"


def test_maps_on_both_sides_are_compared(tmp_path: Path) -> None:
    """Truth values of all experts on both sides say the same thing; the shares beside them are weights, not logits."""
    found = Proposed(tmp_path, Network(routed=True, choices=("map", "map")))
    assert found.source(LAYER + "router.experts", "infer") == (LAYER + "router", "output.1")
    assert found.source(LAYER + "router.weights", "train") == (LAYER + "router", "output.0")
    assert LAYER + "router.logits" not in found.rows
    assert LAYER + "router.weight" in {row.boundary for row in found.mapping.weights}


def test_a_choice_that_one_side_records_is_missing_with_the_reason(tmp_path: Path) -> None:
    """Nothing is said of what neither side has."""
    found = Proposed(tmp_path / "one", Network(routed=True, choices=("", "ids")))
    assert found.gaps[LAYER + "router.experts"].reason.values == {"side": "train", "what": LAYER + "router.experts"}
    none = Proposed(tmp_path / "none", Network(routed=True))
    assert not {name for name in none.gaps if ".router." in name}


# --- experts that run one by one ---


@pytest.mark.parametrize("bare", [False, True], ids=["weights", "no weights"])
def test_rows_of_experts_are_joined_by_token(tmp_path: Path, bare: bool) -> None:
    """The trainer's experts take their tokens as they come, the engine's those of the first choice first: only a take joins them."""
    found = Proposed(tmp_path, Network(routed=True, choices=("ids", "ids"), apart=True), bare=bare)
    ids = recorded(found.infer, LAYER + "router", "output", 2)
    for expert in range(EXPERTS):
        tokens = np.flatnonzero((ids == expert).any(1))
        for part, role, slot in (("gate_up.out", "gate_up", "output"), ("act_mul.out", "down", "input"), ("out", "down", "output")):
            name = f"{LAYER}experts.{expert}.{part}"
            left, right = (found.values(name, side) for side in ("train", "infer"))
            assert found.source(name, "train") == (f"{LAYER}experts.{expert}.{role}", f"{slot}.0")
            assert len(left) == len(tokens)
            assert (left == recorded(found.train, f"{LAYER}experts.{expert}.{role}", slot)).all()
            np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4)
    assert not [name for name in found.gaps if ".experts." in name and not name.endswith("weight")]
    assert any(op.op == "take" for row in found.rows.values() if ".experts." in row.boundary for op in row.infer.sources[0].steps or ())


def test_weights_of_experts_on_both_sides_are_named_by_number(tmp_path: Path) -> None:
    """Matrices of single experts on both sides: a stale one keeps its row, as the router beside them does."""
    found = Proposed(tmp_path, Network(routed=True, choices=("map", "ids"), apart=True, stale="experts.1.down"))
    rows = {row.boundary: row for row in found.mapping.weights}
    for expert in range(EXPERTS):
        for kind in ("gate_up", "down"):
            row = rows[f"{LAYER}experts.{expert}.{kind}.weight"]
            assert row.train.sources[0].name.startswith(found.train.roles[f"{LAYER}experts.{expert}.{kind}"])
            assert row.infer.sources[0].name.startswith(found.infer.roles[f"{LAYER}experts.{expert}.{kind}"])
    assert rows[LAYER + "experts.1.down.weight"].confidence < 0.9
    assert LAYER + "router.weight" in rows


def test_rows_that_hold_the_shares_are_another_quantity(tmp_path: Path) -> None:
    """The trainer multiplies inside its experts: what comes before is compared, what comes after is not, and it is said why."""
    found = Proposed(tmp_path, Network(routed=True, choices=("map", "ids"), apart=True, weighted=True))
    assert LAYER + "experts.0.gate_up.out" in found.rows
    assert not [name for name in found.rows if re.search(r"experts\.\d\.(act_mul\.)?out", name)]
    for kind in ("act_mul.out", "out"):
        gap = found.gaps[LAYER + "experts.N." + kind]
        assert gap.reason.kind == "experts_weighted"
        assert gap.reason.values == {"side": "train"}
        assert len(gap.train) == EXPERTS


def test_experts_that_one_side_runs_at_once_are_one_gap_a_layer(tmp_path: Path) -> None:
    """Hundreds of experts must not be hundreds of lines."""
    found = Proposed(tmp_path, Network(routed=True))
    gaps = [gap for name, gap in found.gaps.items() if ".experts." in name and not name.endswith("weight")]
    assert [gap.boundary for gap in gaps] == [f"layers.{layer}.experts.N.out" for layer in range(LAYERS)]
    assert all(gap.reason.values == {"side": "infer"} and not gap.infer for gap in gaps)
    assert found.train.output(LAYER + "experts.2.down") in gaps[1].train


def test_experts_that_no_token_reached_shift_no_number(tmp_path: Path) -> None:
    """Modules that did not run are not recorded: counting the others would call the second expert the first. One row is no logits."""
    found = Proposed(tmp_path, Network(routed=True, choices=("ids", "ids"), shared="gated", apart=True))
    shares = {layer: recorded(found.train, f"layers.{layer}.router", "output", 2) for layer in range(LAYERS)}
    reached = {layer: set(ids.reshape(-1).tolist()) for layer, ids in shares.items()}
    assert {len(experts) for experts in reached.values()} != {EXPERTS}, "all experts ran: this network shows nothing"
    assert 1 in {(ids == expert).sum() for ids in shares.values() for expert in range(EXPERTS)}, "no expert of one token: likewise"
    for layer in range(LAYERS):
        ran = {int(name.split(".")[3]) for name in found.rows if re.fullmatch(rf"layers\.{layer}\.experts\.\d+\.out", name)}
        assert ran == reached[layer]
        for expert in ran:
            assert found.source(f"layers.{layer}.experts.{expert}.out", "infer")[0] == f"layers.{layer}.experts.{expert}.down"
        named = {row.boundary: row for row in found.mapping.weights if row.boundary.startswith(f"layers.{layer}.experts.")}
        assert {int(name.split(".")[3]) for name in named} == reached[layer]
    assert found.source("logits", "train")[0] == found.source("logits", "infer")[0] == "lm_head"
    assert {f"layers.{layer}.shared_expert.down.out" for layer in range(LAYERS)} <= found.rows.keys()


# --- the shared expert ---


@pytest.mark.parametrize("bare", [False, True], ids=["weights", "no weights"])
@pytest.mark.parametrize("shared", ["plain", "gated"])
def test_the_shared_expert_has_names(tmp_path: Path, shared: str, bare: bool) -> None:
    """A second MLP in one block: neither the router nor the dense MLP may lend it their names."""
    found = Proposed(tmp_path, Network(routed=True, choices=("ids", "ids"), shared=shared), bare=bare)
    out = "out" if shared == "plain" else "down.out"
    for part, own in (("gate.out", "gate"), ("up.out", "up"), (out, "down")):
        assert found.source(f"{LAYER}shared_expert.{part}", "train") == (f"{LAYER}shared.{own}", "output.0")
    assert found.source(LAYER + "shared_expert.act_mul.out", "infer") == (LAYER + "shared.act", "output.0")
    assert found.source(LAYER + "router.logits", "train") == (LAYER + "router", "output.0")
    assert found.source(LAYER + "moe.out", "train") == (LAYER + "mlp", "output.0")
    assert not [name for name in found.rows if re.search(r"layers\.\d\.(gate|up|act_mul|down)\.out", name)]
    if not bare:
        named = {row.boundary for row in found.mapping.weights}
        assert {f"{LAYER}shared_expert.{part}.weight" for part in ("gate", "up", "down")} <= named


# --- faults ---

FAULTS = [{"fault": kind} for kind in ("not normalised", "ids exchanged", "other expert")]
FAULTS += [{"stale": kind} for kind in ("experts.1.down", "router", "shared.up")]


def operands(found: Proposed) -> dict[str, Any]:
    """What each row joins; the rows of single experts hold the tokens that went there, which a router's fault changes."""
    rows = {name: row for name, row in found.rows.items() if ".experts." not in name}
    return {
        name: [[(source.name, source.steps) for source in side.sources] for side in (row.train, row.infer)] for name, row in rows.items()
    }


def names(found: Proposed) -> set[str]:
    return found.rows.keys() | found.gaps.keys()


@pytest.mark.parametrize("choices", [("ids", "ids"), ("ids", "other order"), ("map", "ids")], ids="-".join)
@pytest.mark.parametrize("shared", ["", "plain"])
@pytest.mark.parametrize("apart", [False, True], ids=["fused", "apart"])
def test_a_fault_of_the_router_or_an_expert_changes_no_row(tmp_path: Path, choices: tuple[str, str], shared: str, apart: bool) -> None:
    """Boundary for boundary: a mapping that follows the fault would hide it."""
    network = Network(routed=True, choices=choices, shared=shared, apart=apart, weighted=choices[0] == "map")
    clean = Proposed(tmp_path / "clean", network)
    for at, fault in enumerate(fault for fault in FAULTS if shared or fault.get("stale") != "shared.up"):
        if choices[1] == "other order" and fault.get("fault") == "ids exchanged":
            continue  # that order is the fault
        found = Proposed(tmp_path / str(at), network._replace(**fault))
        assert operands(found) == operands(clean), fault
        assert names(found) == names(clean), fault


# --- weights ---


def test_columns_of_stacked_experts_are_joined(tmp_path: Path) -> None:
    """A shard of the columns of all experts against the whole stack, and against the matrices of single experts."""
    whole = np.random.default_rng(3).standard_normal((EXPERTS, 32, 48)).astype(np.float32)
    stacks = {"whole": {"w2": of(whole)}, "shard": {"w2": of(whole[:, :, 16:32])}}
    stacks |= {f"single{at}": {"weight": of(whole[at])} for at in range(EXPERTS)}
    entries = {entry_of(name): {"input": [of(np.zeros((4, 3)))], "output": [], "parameters": held} for name, held in stacks.items()}
    side = sides.open_side("train", [str(write_unit(tmp_path, entries))])
    (unit,) = side.units
    keys = {}
    for name in stacks:
        (record,) = [one for one in unit.entries[entry_of(name)] if one.category == "parameters"]
        parameter = Parameter(name, record.suffix, record, tensors.header(side.by_name[record.name][0]))
        keys |= weights.keyed([parameter])
    shard = {"shard": keys["shard"]}
    assert weights.join_modules({"whole": keys["whole"]}, shard) == {("whole", "shard"): (1.0, "cols")}
    for at in range(EXPERTS):
        assert weights.join_modules({"single": keys[f"single{at}"]}, shard)["single", "shard"] == (pytest.approx(1 / 3, abs=0.1), "cols")
