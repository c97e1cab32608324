"""The proposed mapping: what its operands join, its weights, its order, what has no counterpart, on networks made here and on samples."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from dump_analysis import floats, sides, tensors
from dump_analysis.artefacts import io, semantic_mapping
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.mapping import declared, proposal
from dump_analysis.mapping.layer_map import layer_map
from dump_analysis.sides import Side
from dump_analysis.tensors import Files
from laying import Sample
from networks import LAYERS, Network, Recording
from running import run_command

ACROSS = ["qwen2-hf-vllm-clean", "qwen2-hf-vllm-padding", "qwen2-hf-sglang-clean", "qwen2-megatron_tp1-sglang-clean"]
ACROSS += ["qwen2-megatron_te_shaped-sglang-clean", "qwen2-vllm-onset-stale_o_proj", "qwen2-fsdp1_rank0-vllm-clean"]


def proposed(root: Path, network: Network) -> tuple[SemanticMapping, Side, Side, Recording, Recording]:
    weights = networks.weights_of(network)
    train, infer = networks.trainer(network, weights), networks.engine(network, weights)
    pair = sides.open_side("train", [train.write(root / "train")]), sides.open_side("infer", [infer.write(root / "infer")])
    return proposal.propose(*pair).mapping, *pair, train, infer


def value(side: Side, operand: Any) -> "np.ndarray[Any, Any]":
    """The elements of an operand as a gate would read them, float32 or whole numbers."""
    files = Files()
    try:
        stream = tensors.stream_of(files, operand, [tensors.header(side.by_name[source.name][0]) for source in operand.sources])
        raw = stream.read(0, tensors.elements_of(stream)).reshape(stream.shape)
        return raw.view(np.float32) if stream.dtype == "float32" else raw
    finally:
        files.close()


def pairs(rows: list[Row], train: Side, infer: Side) -> Iterator[tuple[str, Any, Any]]:
    return ((row.boundary, value(train, row.train), value(infer, row.infer)) for row in rows)


@pytest.mark.parametrize(
    "network",
    [
        Network(),
        Network(latent=True),
        Network(sandwich=True),
        Network(routed=True),
        Network(turned=True),
        Network(padded=8),
        Network(tied=True),
    ],
    ids=["plain", "latent", "sandwich", "routed", "turned", "tied", "padded"],
)
def test_what_is_joined_is_equal_where_nothing_is_wrong(tmp_path: Path, network: Network) -> None:
    """Every row and weight joins the same values: a slice of the wrong part, a matrix the other way round, would differ."""
    mapping, train, infer, *_ = proposed(tmp_path, network)
    for name, left, right in pairs([*mapping.boundaries, *mapping.weights], train, infer):
        assert left.shape == right.shape, name
        assert np.allclose(left, right, rtol=1e-3, atol=1e-4), name


@pytest.mark.parametrize(
    ("network", "stems"),
    [
        (Network(), ("q.weight", "k.weight", "v.weight", "q.bias", "k.bias", "v.bias", "gate.weight", "up.weight", "down.weight")),
        (Network(turned=True), ("q.weight", "k.weight", "v.weight", "q.bias", "k.bias", "v.bias", "o_proj.weight")),
        (Network(latent=True), ("q_a.weight", "q_a_norm.weight", "q_b.weight", "kv_a.weight", "kv_a_norm.weight", "kv_b.weight")),
        (Network(sandwich=True), ("input_norm.weight", "attn_post_norm.weight", "post_norm.weight", "mlp_post_norm.weight")),
        (Network(routed=True), ("router.weight", "experts.0.gate_up.weight", "experts.3.down.weight")),
    ],
    ids=["plain", "turned", "latent", "sandwich", "routed"],
)
def test_each_weight_has_a_row_of_its_own(tmp_path: Path, network: Network, stems: tuple[str, ...]) -> None:
    """By the name of what it makes, cut out of a fused matrix, turned or unstacked; the values are those it was made with."""
    mapping, train, infer, *_ = proposed(tmp_path, network)
    found = {row.boundary: row for row in mapping.weights}
    held = networks.weights_of(network)
    for name in (f"layers.{layer}.{stem}" for layer in range(LAYERS) for stem in stems):
        made = held[name.removesuffix(".weight")]
        assert (value(infer, found[name].infer) == made).all(), name
        assert (value(train, found[name].train) == made).all(), name
        assert "weights" in found[name].basis


def test_a_padded_vocabulary_is_cut(tmp_path: Path) -> None:
    mapping, _, infer, *_ = proposed(tmp_path, Network(padded=8))
    row = next(row for row in mapping.weights if row.boundary == "embedding.weight")
    assert value(infer, row.infer).shape == (networks.WORDS, networks.HIDDEN)


def test_a_head_that_one_side_ties_is_compared_with_the_other_sides_embedding(tmp_path: Path) -> None:
    """And one that is a matrix of its own is not: the engine records none, which says nothing of the head."""
    mapping, *_ = proposed(tmp_path / "tied", Network(tied=True))
    assert "lm_head.weight" in {row.boundary for row in mapping.weights}
    mapping, *_ = proposed(tmp_path / "own", Network())
    missing = next(row for row in mapping.evidence_missing if row.boundary == "lm_head.weight")
    assert missing.reason.kind == "not_recorded"
    assert missing.reason.values["side"] == "infer"
    assert missing.train
    assert not missing.infer


@pytest.mark.parametrize("stale", ["post_norm", "o_proj", "q", "gate", "q.bias"])
def test_a_weight_that_differs_keeps_its_row(tmp_path: Path, stale: str) -> None:
    """Rows come from the place in the computation, not from contents: a fault changes no operand of any row."""
    clean, *_ = proposed(tmp_path / "clean", Network())
    mapping, *_ = proposed(tmp_path / "stale", Network(stale=stale))
    rows, others = ({row.boundary: (row.train, row.infer) for row in [*one.boundaries, *one.weights]} for one in (clean, mapping))
    assert rows == others
    name = f"layers.1.{stale if '.' in stale else stale + '.weight'}"
    basis = {row.boundary: row.basis for row in mapping.weights}
    assert basis[name] == ["structure"]


def test_what_one_side_rotates_outside_modules_is_missing_with_the_reason(tmp_path: Path) -> None:
    """q and k after rotation stand where the engine has them, between v and the core, and bear the engine's tensor."""
    mapping, _, _, _, infer = proposed(tmp_path, Network())
    order = {row.boundary: row.order for row in [*mapping.boundaries, *mapping.evidence_missing]}
    for layer in range(LAYERS):
        for at, part in enumerate("qk"):
            row = next(row for row in mapping.evidence_missing if row.boundary == f"layers.{layer}.{part}_rope.out")
            assert row.infer == [infer.output(f"layers.{layer}.rotary", at)]
            assert row.train == []
            assert order[f"layers.{layer}.{part}.out"] < row.order < order[f"layers.{layer}.attn_core.out"]
    boundaries = [row.order for row in [*mapping.boundaries, *mapping.evidence_missing] if not row.boundary.endswith(".weight")]
    assert sorted(boundaries) == list(range(len(boundaries))), "one count over rows and gaps"


def test_rows_stand_in_the_trainers_order_inputs_first(tmp_path: Path) -> None:
    mapping, *_ = proposed(tmp_path, Network())
    names = [row.boundary for row in mapping.boundaries]
    assert names[:3] == ["input_ids", "positions", "embedding.out"]
    layer = ["input_norm.out", "q.out", "k.out", "v.out", "attn_core.out", "o_proj.out", "resid_attn", "post_norm.out"]
    layer += ["gate.out", "up.out", "act_mul.out", "down.out", "resid_mlp"]
    assert names[3:] == [*(f"layers.{at}.{part}" for at in range(LAYERS) for part in layer), "final_norm.out", "logits"]


@pytest.mark.parametrize("network", [Network(), Network(sandwich=True), Network(routed=True)], ids=["plain", "sandwich", "routed"])
def test_without_construct_json_the_rows_are_the_same_and_it_is_said(tmp_path: Path, network: Network) -> None:
    """dump.json alone tells ends, not starts and nesting: a module around others must not be taken for one that computes."""
    traced, *_ = proposed(tmp_path / "traced", network)
    weights = networks.weights_of(network)
    train = networks.trainer(network, weights).write(tmp_path / "train", traced=False)
    infer = networks.engine(network, weights).write(tmp_path / "infer", traced=False)
    found = proposal.propose(sides.open_side("train", [train]), sides.open_side("infer", [infer]))
    rows, others = ({row.boundary: row.infer for row in [*one.boundaries, *one.weights]} for one in (traced, found.mapping))
    assert rows.pop("positions") and others.pop("positions")  # noqa: PT018  # recorded in several places, of which either is right
    assert rows == others
    assert [(remark.kind, remark.values["side"]) for remark in found.remarks] == [("untraced", "train"), ("untraced", "infer")]


def test_modules_are_those_that_make_the_value(tmp_path: Path) -> None:
    """The core is made inside the trainer's attention, where no module returns it, and by a module of the engine's."""
    mapping, _, _, train, infer = proposed(tmp_path, Network())
    modules = {row.boundary: row.module for row in mapping.boundaries}
    core, q, ids = modules["layers.1.attn_core.out"], modules["layers.1.q.out"], modules["input_ids"]
    assert core is not None and (core.train, core.infer) == (train.roles["layers.1.attention"], infer.roles["layers.1.core"])  # noqa: PT018
    assert q is not None and (q.train, q.infer) == (train.roles["layers.1.q"], infer.roles["layers.1.qkv"])  # noqa: PT018
    assert ids is not None and ids.train is None and ids.infer is None  # noqa: PT018


# --- samples ---


@pytest.mark.parametrize("name", ACROSS)
def test_samples_are_mapped_as_they_were_by_hand(sample: Callable[[str], Sample], name: str) -> None:
    """Each boundary that people joined is joined, and to the same elements on both sides."""
    pair = sample(name)
    train, infer = sides.open_side("train", [str(pair.train)]), sides.open_side("infer", [str(pair.infer)])
    found = {row.boundary: row for row in proposal.propose(train, infer).mapping.boundaries}
    by_hand = semantic_mapping.read(pair.mapping)
    for row in declared.complete(by_hand, train, infer).boundaries:
        for side, operand, other in ((train, found[row.boundary].train, row.train), (infer, found[row.boundary].infer, row.infer)):
            left, right = (np.sort(np.abs(numbers(side, one)).reshape(-1)) for one in (operand, other))
            assert left.shape == right.shape, row.boundary
            assert np.allclose(left, right, rtol=2**-7), row.boundary


def numbers(side: Side, operand: Any) -> "np.ndarray[Any, Any]":
    files = Files()
    try:
        stream = tensors.stream_of(files, operand, [tensors.header(side.by_name[source.name][0]) for source in operand.sources])
        return floats.values(stream.read(0, tensors.elements_of(stream)), stream.dtype).astype(np.float64)
    finally:
        files.close()


def test_exchanged_weights_are_reported_not_mapped_away(sample: Callable[[str], Sample]) -> None:
    """k and v exchanged in one layer of the engine: rows by place, the exchange said, the weights' rows told to lie elsewhere."""
    clean, faulty = (
        [str(path) for path in (pair.train, pair.infer)] for pair in map(sample, ("qwen2-hf-vllm-clean", "qwen2-hf-vllm-kv_swapped"))
    )
    made = [proposal.propose(sides.open_side("train", [one]), sides.open_side("infer", [other])) for one, other in (clean, faulty)]
    operands = [{row.boundary: (row.train, row.infer) for row in [*one.mapping.boundaries, *one.mapping.weights]} for one in made]
    assert operands[0] == operands[1]
    assert not made[0].remarks
    assert {"weight_elsewhere"} <= {remark.kind for remark in made[1].remarks}
    notes = {row.boundary for row in made[1].mapping.weights if row.note}
    assert notes == {"layers.1.k.weight", "layers.1.v.weight"}


# --- the command ---


def test_the_command_leaves_the_mapping_and_tables(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair = sample("qwen2-hf-vllm-clean")
    output = tmp_path / "work" / "semantic_mapping.json"
    ran = run_command("propose_mapping.py", "--train", pair.train, "--infer", pair.infer, "--output", output)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("next: ")
    mapping = semantic_mapping.read(output)
    assert io.text_of(mapping) == output.read_text()
    assert len(mapping.boundaries) == 44
    assert mapping.unmapped is not None
    shown = (output.parent / "layer_map.md").read_text()
    assert shown == layer_map(mapping, "en")
    for row in [*mapping.boundaries, *mapping.weights, *mapping.evidence_missing]:
        assert f"| {row.boundary} |" in shown


def test_the_tables_are_worded_in_both_languages(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """A heading that one language lacks, or a reason left in English, would stand out."""
    pair = sample("qwen2-hf-vllm-clean")
    mapping = proposal.propose(sides.open_side("train", [str(pair.train)]), sides.open_side("infer", [str(pair.infer)])).mapping
    english, chinese = (layer_map(mapping, language).splitlines() for language in ("en", "zh-CN"))
    assert len(english) == len(chinese)
    assert [line for line in chinese if line.startswith("#")][:3] == ["# 层映射", "## 输入与嵌入", "## 第 0 层"]
    assert not [line for line in chinese if "not compared" in line or "data flow" in line]


def test_diagnose_needs_no_mapping(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Its answer is that of a mapping by hand; one that is handed is used as before, and no table of another run is left."""
    pair = sample("qwen2-hf-vllm-kv_swapped")
    arguments = ("--train", pair.train, "--infer", pair.infer, "--output-dir", tmp_path)
    ran = run_command("diagnose.py", *arguments, "--exit-code")
    assert ran.returncode == 1, ran.stderr
    concluded = json.loads((tmp_path / "conclusion.json").read_text())
    assert {finding["boundary"] for finding in concluded["findings"] if finding["character"] == "logic"} >= {"layers.1.k.weight"}
    assert "layers.1.k.out and layers.1.v.out" in ran.stderr
    assert (tmp_path / "layer_map.md").exists()
    again = run_command("diagnose.py", *arguments, "--mapping", pair.mapping)
    assert again.returncode == 0, again.stderr
    assert not (tmp_path / "layer_map.md").exists()


def test_without_a_common_prompt_there_is_one_line_and_nothing_left(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair = sample("mini_tensor-26.1-against-26.2")
    output = tmp_path / "semantic_mapping.json"
    other = sample("qwen2-hf-vllm-clean")
    assert run_command("propose_mapping.py", "--train", other.train, "--infer", other.infer, "--output", output).returncode == 0
    ran = run_command("propose_mapping.py", "--train", pair.train, "--infer", pair.infer, "--output", output)
    assert ran.returncode == 2
    assert ran.stderr.startswith("Cannot propose a mapping: ")
    assert len(ran.stderr.splitlines()) == 1
    assert not output.exists()
