"""Where inputs came from on the toys, what was altered on the way, and inputs that were recorded after the call."""

import json
from collections import Counter
from pathlib import Path

import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts import io
from dump_analysis.artefacts.replay_results import Edge, ModuleReplay, ReplayResults
from toys import mapping
from toys.late import late
from toys.pairs import Dumped, Toys
from toys.switches import LAYERS, Side, Switches

SIDES: list[Side] = ["train", "infer"]
# What is altered, in layer 1 -> where the finding stands, tokens, columns, gain.
ALTERED: dict[str, tuple[str, list[int], list[int], float | None]] = {
    "altered_token": ("layers.1.q.out", [11], [], 1.02),
    "altered_channel": ("layers.1.gate.out", [], [7], 1.02),
    "altered_stream": ("layers.1.input_norm.out", [11], [], 1.02),
    "residual_row_lost": ("layers.1.resid_attn", [11], [], None),
}


def replayed(dumped: Dumped, folder: Path, *, proposed: bool = False, stated: dict[str, float] | None = None) -> ReplayResults:
    """Stages 2 and 4; with the mapping that is written by hand, or the one that the dumps tell."""
    (folder / "rows.json").write_text(json.dumps(mapping.rows(dumped.on)))
    files = {side: folder / f"{side}.json" for side in stated or {}}
    for side, file in files.items():
        file.write_text(json.dumps({"embedding_multiplier": (stated or {})[side]}))
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    full, _ = pipeline.mapping_step(train, infer, None if proposed else folder / "rows.json")
    results, told = pipeline.replay_step(train, infer, full, "0" * 64, folder / pipeline.REPLAY, files, quiet=True)
    assert told.warnings == []
    return results


def of(results: ReplayResults, verdict: str) -> dict[str, ModuleReplay]:
    return {module.module: module for module in results.modules if module.verdict == verdict}


def altered(results: ReplayResults) -> list[Edge]:
    return [edge for edge in results.edges if edge.how == "altered"]


def to(results: ReplayResults, side: Side, entry: str) -> list[tuple[str, list[str]]]:
    """How and from what the inputs of an entry came, names without what all have in common."""
    found = [edge for edge in results.edges if edge.side == side and edge.input.startswith(f"Module.model.{entry}.forward")]
    return [(edge.how, [name.removeprefix("Module.model.").replace(".forward.0", "") for name in edge.sources]) for edge in found]


@pytest.mark.parametrize("proposed", [False, True])
def test_every_input_of_a_clean_pair_has_its_origin(toys: Toys, tmp_path: Path, proposed: bool) -> None:
    """A source that is not what the code hands on (read in trainer.py and engine.py), an input that is left out, a false alarm."""
    results = replayed(toys.both(), tmp_path, proposed=proposed)
    counts = {side: Counter(edge.how for edge in results.edges if edge.side == side) for side in SIDES}
    # What the trainer's attention hands to o_proj is recomputed from q, k and v.
    assert counts["train"] == {"copy": 3 + 6 * LAYERS, "sum": 2 * LAYERS, "product": LAYERS, "rotary_attention": LAYERS}
    assert counts["infer"] == {"copy": 1 + 11 * LAYERS, "slice": 1 + 3 * LAYERS}
    assert all(edge.unexplained == 0 for edge in results.edges if edge.how != "unknown")
    layer = "layers.1"
    attention, mlp, stream = f"{layer}.self_attn", f"{layer}.mlp", "layers.0.Qwen2DecoderLayer.output.0"
    assert to(results, "train", f"{attention}.q_proj.Linear") == [("copy", [f"{layer}.input_layernorm.Qwen2RMSNorm.output.0"])]
    mixed = to(results, "train", f"{attention}.o_proj.Linear")
    assert [(how, set(names) >= {f"{attention}.{x}_proj.Linear.output.0" for x in "qkv"}) for how, names in mixed] == [
        ("rotary_attention", True)
    ]
    summed = to(results, "train", f"{layer}.post_attention_layernorm.Qwen2RMSNorm")
    assert [(how, set(names)) for how, names in summed] == [("sum", {stream, f"{attention}.o_proj.Linear.output.0"})]
    product = to(results, "train", f"{mlp}.down_proj.Linear")
    assert [(how, set(names)) for how, names in product] == [
        ("product", {f"{mlp}.act_fn.SiLUActivation.output.0", f"{mlp}.up_proj.Linear.output.0"})
    ]
    fused = f"{attention}.qkv_proj.QKVParallelLinear.output.0"
    assert to(results, "infer", f"{attention}.attn.Attention")[2] == ("slice", [fused])
    assert to(results, "infer", f"{layer}.post_attention_layernorm.RMSNorm") == [
        ("copy", [f"{attention}.o_proj.RowParallelLinear.output.0"]),
        ("copy", [f"{layer}.input_layernorm.RMSNorm.output.1"]),
    ]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ALTERED)
def test_what_is_altered_between_modules_is_found(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """Another place, side, token or column; more than one finding for one change."""
    results = replayed(toys.pair(name, side), tmp_path)
    boundary, tokens, columns, gain = ALTERED[name]
    (edge,) = altered(results)
    assert edge.side == side
    assert edge.altered is not None
    assert (edge.altered.boundary, edge.altered.tokens, edge.altered.columns) == (boundary, tokens, columns)
    if gain is not None:
        assert edge.altered.gain == gain  # as it was written, of all that the elements allow
    written, warnings = io.read(tmp_path / pipeline.REPLAY, ReplayResults)
    assert (written.edges, warnings) == (results.edges, [])
    (module,) = of(results, "logic").values()
    assert (module.module, module.side) == (boundary.removesuffix(".out"), side)
    assert module.evidence[0].kind == "replay_altered"
    assert (module.evidence[0].values["side"], module.evidence[0].values["input"]) == (side, edge.input)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ALTERED)
def test_it_is_found_with_the_mapping_that_the_dumps_tell(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """A mapping that takes the altered value for the boundary."""
    results = replayed(toys.pair(name, side), tmp_path, proposed=True)
    (edge,) = altered(results)
    (module,) = of(results, "logic").values()
    assert (edge.side, module.side) == (side, side)
    expected = {ALTERED[name][0]} | ({"layers.0.resid_mlp"} if name == "altered_stream" else set())
    assert edge.altered is not None
    assert edge.altered.boundary in expected


@pytest.mark.parametrize("name", ["altered_token", "altered_channel", "altered_stream"])
def test_what_both_sides_do_belongs_to_the_model(toys: Toys, tmp_path: Path, name: str) -> None:
    """An operation between modules that nobody has written down is no fault where both sides do the same."""
    on = Switches(((name, 1),))
    results = replayed(toys.both(on, on), tmp_path)
    assert altered(results) == []
    assert not of(results, "logic")
    assert any(edge.how == "unknown" and edge.sources for edge in results.edges)


def test_two_changes_on_two_sides_are_two_findings(toys: Toys, tmp_path: Path) -> None:
    """Beside a fault inside a module."""
    dumped = toys.both(train=Switches((("altered_token", 0), ("one_channel", 2))), infer=Switches((("altered_channel", 1),)))
    results = replayed(dumped, tmp_path)
    found = {module.module: module.side for module in of(results, "logic").values()}
    assert found == {"layers.0.q": "train", "layers.1.gate": "infer", "layers.2.o_proj": "train"}


@pytest.mark.parametrize("side", SIDES)
def test_a_residual_of_another_place_says_which(toys: Toys, tmp_path: Path, side: Side) -> None:
    """The sum is right, but not of what it should be of."""
    results = replayed(toys.pair("residual_of_norm", side), tmp_path)
    assert altered(results) == []
    (module,) = of(results, "logic").values()
    made = [told.values["sources"] for told in module.evidence if told.kind == "replay_made_of"]
    assert len(made) == 1
    assert any(".layers.1.input_layernorm." in name for name in made[0])


@pytest.mark.parametrize("side", SIDES)
def test_a_module_that_takes_another_value_is_found(toys: Toys, tmp_path: Path, side: Side) -> None:
    """Every module and every edge is right by itself: only the other layers and the other side tell."""
    (module,) = of(replayed(toys.pair("other_norm", side), tmp_path), "logic").values()
    assert (module.module, module.side) == ("layers.1.gate", side)
    told = next(one for one in module.evidence if one.kind == "replay_elsewhere")
    assert (told.values["held"], told.values["usual"]) == ("layers.1.input_norm.out", "layers.1.post_norm.out")


@pytest.mark.parametrize("name", [*ALTERED, "other_norm"])
def test_the_conclusion_has_one_finding_for_it(toys: Toys, tmp_path: Path, name: str) -> None:
    """A finding more for what the change leads to, or none because every module is right."""
    dumped = toys.pair(name, "train")
    (tmp_path / "rows.json").write_text(json.dumps(mapping.rows(dumped.on)))
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    full, _ = pipeline.mapping_step(train, infer, tmp_path / "rows.json")
    digest = pipeline.write_mapping(tmp_path / pipeline.MAPPING, full, "en", None)
    pipeline.gate_step(train, infer, full, digest, tmp_path / pipeline.RESULTS, quiet=True)
    pipeline.replay_step(train, infer, full, digest, tmp_path / pipeline.REPLAY, {}, quiet=True)
    found, _ = pipeline.conclude_step(tmp_path, tmp_path / pipeline.CONCLUSION, {})
    (finding,) = [one for one in found.findings if one.character == "logic"]
    boundary = "layers.1.gate.out" if name == "other_norm" else ALTERED[name][0]
    assert (finding.boundary, finding.side) == (boundary, "train")
    assert found.consistency == "inconsistent"


# --- inputs recorded after the call ---


@pytest.mark.parametrize("proposed", [False, True])
def test_overwritten_inputs_are_taken_from_what_was_handed_on(toys: Toys, tmp_path: Path, proposed: bool) -> None:
    """A norm that is convicted, or called unknown, because its inputs show its outputs."""
    dumped = toys.both()
    results = replayed(dumped._replace(infer=late(dumped.infer, tmp_path / "late")), tmp_path, proposed=proposed)
    assert not of(results, "logic")
    assert not of(results, "unknown")
    told = {module.module: told.values["names"] for module in results.modules for told in module.evidence}
    norms = [f"layers.{layer}.{name}" for layer in range(LAYERS) for name in ("input_norm", "post_norm")][1:]
    assert sorted(told) == sorted([*norms, "final_norm"])
    for module in results.modules:
        if module.module in told:
            assert (module.infer.inputs_are, module.infer.unexplained) == ("post_call", 0)
    assert told["layers.1.post_norm"] == [
        "Module.model.layers.1.input_layernorm.RMSNorm.forward.0.output.1",
        "Module.model.layers.1.self_attn.o_proj.RowParallelLinear.forward.0.output.0",
    ]
    assert altered(results) == []


@pytest.mark.parametrize("name", ["eps", "norm_gain_twice", "one_channel", "altered_token"])
def test_faults_are_found_in_a_late_dump(toys: Toys, tmp_path: Path, name: str) -> None:
    """A norm whose inputs are gone acquits whatever it does."""
    dumped = toys.pair(name, "infer")
    results = replayed(dumped._replace(infer=late(dumped.infer, tmp_path / "late")), tmp_path)
    (module,) = of(results, "logic").values()
    expected = {"one_channel": "o_proj", "altered_token": "q"}.get(name, "input_norm")
    assert (module.module, module.side) == (f"layers.1.{expected}", "infer")


def test_one_input_that_was_overwritten_is_looked_for_among_the_values_before(toys: Toys, tmp_path: Path) -> None:
    """A norm in place without a residual stream: of what was there, only its true input makes its output."""
    dumped = toys.both()
    root = late(dumped.infer, tmp_path / "late")
    (unit,) = root.glob("step0/*")
    norm = "Module.model.layers.0.input_layernorm.RMSNorm.forward.0"
    folder = unit / "dump_tensor_data"
    (folder / f"{norm}.input.0.pt").write_bytes((folder / f"{norm}.output.0.pt").read_bytes())
    results = replayed(dumped._replace(infer=root), tmp_path)
    module = next(module for module in results.modules if module.module == "layers.0.input_norm")
    assert (module.verdict, module.infer.unexplained) == ("same", 0)
    assert [told.values["names"] for told in module.evidence] == [["Module.model.embed_tokens.VocabParallelEmbedding.forward.0.output.0"]]
    assert not of(results, "logic")


def test_inputs_that_are_nowhere_are_said_to_be_missing(toys: Toys, tmp_path: Path) -> None:
    """Nothing that is recorded adds up to what a norm returned: no verdict, the reason and what to do."""
    dumped = toys.both()
    root = late(dumped.infer, tmp_path / "late")
    (unit,) = root.glob("step0/*")
    for handed_on in ("mlp.Qwen2MLP", "mlp.down_proj.RowParallelLinear", "Qwen2DecoderLayer"):  # what the next norm adds
        (unit / "dump_tensor_data" / f"Module.model.layers.1.{handed_on}.forward.0.output.0.pt").unlink()
    results = replayed(dumped._replace(infer=root), tmp_path)
    module = next(module for module in results.modules if module.module == "layers.2.input_norm")
    assert module.verdict == "unknown"
    assert [(told.kind, told.values["side"]) for told in module.would_decide] == [("replay_overwritten", "infer")]
    assert "in-place update" in module.would_decide[0].text
    assert not of(results, "logic")


@pytest.mark.parametrize("scaling", SIDES)
@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        ({"train": 7.0625, "infer": 7.0625}, "other"),
        ({"train": 1.0, "infer": 1.0}, "own"),
        ({}, "unknown"),
        ({"train": 7.0625, "infer": 1.0}, "unknown"),  # each as it states, or each against it
    ],
    ids=["both state it", "neither has it", "nothing is stated", "two are stated"],
)
def test_embeddings_that_one_side_alone_scales_before_its_first_layer(
    toys: Toys, tmp_path: Path, scaling: Side, stated: dict[str, float], wrong: str
) -> None:
    """Neither side's modules are wrong: its own configuration says which side hands on what it should not."""
    on = Switches((("stream_scaled", 0),))
    dumped = toys.both(train=on) if scaling == "train" else toys.both(infer=on)
    other = "infer" if scaling == "train" else "train"
    logic = of(replayed(dumped, tmp_path, stated=stated), "logic")
    assert set(logic) == {"layers.0.input_norm"}
    assert logic["layers.0.input_norm"].side == {"other": other, "own": scaling}.get(wrong, "unknown")


@pytest.mark.parametrize("proposed", [False, True])
def test_embeddings_that_both_sides_scale_are_no_finding(toys: Toys, tmp_path: Path, proposed: bool) -> None:
    on = Switches((("stream_scaled", 0),))
    results = replayed(toys.both(on, on), tmp_path, proposed=proposed, stated={"train": 7.0625, "infer": 7.0625})
    assert of(results, "logic") == {}
    assert altered(results) == []
