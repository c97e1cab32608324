"""The toy pair, dumped by the real msprobe: what the gate says of every switch, against tensors read and cut by torch alone."""

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from dump_analysis import pipeline
from dump_analysis.artefacts.boundary_results import BoundaryResults
from running import run_command
from torch import Tensor
from toys import arithmetic, mapping
from toys.pairs import Dumped, Toys
from toys.switches import FAULTS, LAYERS, ROUNDINGS, SWITCHES, Side, Switches

# Over name, dtype, shape and bytes of every tensor of a clean dump. Other bits on another machine are a fault of toys/arithmetic.py.
CLEAN_BITS = {
    "train": "1462da22dd2c1920d76d5229927e1dbac9799e87717e6135a56fc89d1cae52be",
    "infer": "a6ae22569743020b3c7ccede4f7e12b6e9b8d38b9e3c47446ac08060bb6bbf8e",
}
SIDES: list[Side] = ["train", "infer"]
CASES = [(name, side) for name in [*FAULTS, *ROUNDINGS] for side in SIDES]
ROTATION = "Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.{}.output.{}"
HEADS, WIDTH, Q, K, MIDDLE = 4, 16, 64, 32, 96


# --- the reference: files read by torch.load, cut by torch's indexing, nothing of the product or of toys/mapping.py ---


class Both(NamedTuple):
    """The value of one boundary or weight on both sides."""

    name: str
    train: Tensor
    infer: Tensor

    @property
    def unequal(self) -> int:
        return int((self.train != self.infer).sum())


def reader(root: Path) -> Any:
    """Tensors of a dump by what follows ``Module.model.`` in their names."""
    (folder,) = root.glob("step0/proc*/dump_tensor_data")

    def read(name: str, prefix: str = "Module.model.") -> Tensor:
        return torch.load(folder / f"{prefix}{name}.pt", map_location="cpu", weights_only=True)

    return read


def boundaries(dumped: Dumped) -> Iterator[Both]:
    """In the order in which a prefill makes them."""
    train, infer, on = reader(dumped.train), reader(dumped.infer), dumped.on
    left, right = on.train.padding, on.infer.padding
    embedding = "embed_tokens.Embedding.forward.0", "embed_tokens.VocabParallelEmbedding.forward.0"
    yield Both("input_ids", train(f"{embedding[0]}.input.0")[0, left:], infer(f"{embedding[1]}.input.0")[right:])
    rotary = "layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.0.input.0"
    yield Both("positions", train("rotary_emb.Qwen2RotaryEmbedding.forward.0.input.1")[0, left:], infer(rotary)[right:])
    yield Both("embedding.out", train(f"{embedding[0]}.output.0")[0, left:], infer(f"{embedding[1]}.output.0")[right:])
    for layer in range(LAYERS):
        fused = on.train.has("fused_add_unrounded", layer)
        yield from of_layer(layer, lambda name: train(name)[0, left:], lambda name: infer(name)[right:], fused=fused)
    normed = train("norm.Qwen2RMSNorm.forward.0.output.0")[0, left:], infer("norm.RMSNorm.forward.0.output.0")[right:]
    yield Both("final_norm.out", *normed)
    logits = train("lm_head.Linear.forward.0.output.0", "Module."), infer("logits_processor.LogitsProcessor.forward.0.output.0", "Module.")
    yield Both("logits", logits[0][0, -1:].float(), logits[1].float())


def of_layer(layer: int, train: Any, infer: Any, *, fused: bool) -> Iterator[Both]:
    """``train``, ``infer``: the prompt's rows of a tensor by name. ``fused``: the trainer's norm after attention adds."""
    a, b = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
    post = f"layers.{layer}.post_attention_layernorm"
    qkv, gate_up = (
        infer(f"{a}.qkv_proj.QKVParallelLinear.forward.0.output.0"),
        infer(f"{b}.gate_up_proj.MergedColumnParallelLinear.forward.0.output.0"),
    )
    stream = train(f"{post}.Qwen2RMSNorm.forward.0.{'output.1' if fused else 'input.0'}")
    hidden, residual = (infer(f"layers.{layer}.Qwen2DecoderLayer.forward.0.output.{at}") for at in (0, 1))
    norm = f"layers.{layer}.input_layernorm"
    for name, left, right in (
        ("input_norm.out", train(f"{norm}.Qwen2RMSNorm.forward.0.output.0"), infer(f"{norm}.RMSNorm.forward.0.output.0")),
        ("q.out", train(f"{a}.q_proj.Linear.forward.0.output.0"), qkv[:, :Q]),
        ("k.out", train(f"{a}.k_proj.Linear.forward.0.output.0"), qkv[:, Q : Q + K]),
        ("v.out", train(f"{a}.v_proj.Linear.forward.0.output.0"), qkv[:, Q + K :]),
        ("attn_core.out", train(f"{a}.o_proj.Linear.forward.0.input.0"), infer(f"{a}.o_proj.RowParallelLinear.forward.0.input.0")),
        ("o_proj.out", train(f"{a}.o_proj.Linear.forward.0.output.0"), infer(f"{a}.o_proj.RowParallelLinear.forward.0.output.0")),
        ("resid_attn", stream, infer(f"{post}.RMSNorm.forward.0.output.1")),
        ("post_norm.out", train(f"{post}.Qwen2RMSNorm.forward.0.output.0"), infer(f"{post}.RMSNorm.forward.0.output.0")),
        ("gate.out", train(f"{b}.gate_proj.Linear.forward.0.output.0"), gate_up[:, :MIDDLE]),
        ("up.out", train(f"{b}.up_proj.Linear.forward.0.output.0"), gate_up[:, MIDDLE:]),
        ("act_mul.out", train(f"{b}.down_proj.Linear.forward.0.input.0"), infer(f"{b}.down_proj.RowParallelLinear.forward.0.input.0")),
        ("down.out", train(f"{b}.down_proj.Linear.forward.0.output.0"), infer(f"{b}.down_proj.RowParallelLinear.forward.0.output.0")),
        ("resid_mlp", train(f"layers.{layer}.Qwen2DecoderLayer.forward.0.output.0"), hidden + residual),
    ):
        yield Both(f"layers.{layer}.{name}", left, right)


def parameters(dumped: Dumped) -> Iterator[Both]:
    """Every weight that both sides record."""
    train, infer = reader(dumped.train), reader(dumped.infer)
    entries = [
        ("embedding", "embed_tokens.Embedding", "embed_tokens.VocabParallelEmbedding"),
        ("final_norm", "norm.Qwen2RMSNorm", "norm.RMSNorm"),
    ]
    for layer in range(LAYERS):
        stem = f"layers.{layer}"
        for name, module in (("input_norm", "input_layernorm"), ("post_norm", "post_attention_layernorm")):
            entries.append((f"{stem}.{name}", f"{stem}.{module}.Qwen2RMSNorm", f"{stem}.{module}.RMSNorm"))
        for name, module in (("o_proj", "self_attn.o_proj"), ("down", "mlp.down_proj")):
            entries.append((f"{stem}.{name}", f"{stem}.{module}.Linear", f"{stem}.{module}.RowParallelLinear"))
        for kind in ("weight", "bias"):
            fused = infer(f"{stem}.self_attn.qkv_proj.QKVParallelLinear.forward.0.parameters.{kind}").split([Q, K, K])
            for name, part in zip("qkv", fused, strict=True):
                yield Both(f"{stem}.{name}.{kind}", train(f"{stem}.self_attn.{name}_proj.Linear.forward.0.parameters.{kind}"), part)
        fused = infer(f"{stem}.mlp.gate_up_proj.MergedColumnParallelLinear.forward.0.parameters.weight").split(MIDDLE)
        for name, part in zip(("gate", "up"), fused, strict=True):
            yield Both(f"{stem}.{name}.weight", train(f"{stem}.mlp.{name}_proj.Linear.forward.0.parameters.weight"), part)
    for name, left, right in entries:
        yield Both(f"{name}.weight", train(f"{left}.forward.0.parameters.weight"), infer(f"{right}.forward.0.parameters.weight"))


# --- the product ---


def gate(dumped: Dumped, folder: Path, rows: Any = None) -> BoundaryResults:
    """Stages 2 and 3 on a pair; ``rows`` None: those of toys/mapping.py."""
    (folder / "rows.json").write_text(json.dumps(mapping.rows(dumped.on) if rows is None else rows))
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    full, mapped = pipeline.mapping_step(train, infer, folder / "rows.json")
    results, gated = pipeline.gate_step(train, infer, full, "0" * 64, folder / pipeline.RESULTS, quiet=True)
    assert mapped.warnings + gated.warnings + gated.errors == []
    return results


def unequal_counts(results: BoundaryResults) -> dict[str, int]:
    """Every boundary and weight, all of them compared; EXACT goes with no unequal element and with nothing else."""
    counts = {}
    for row in [*results.boundaries, *results.weights]:
        assert row.unequal is not None, row
        assert row.status == ("NOT_EXACT" if row.unequal.count else "EXACT")
        counts[row.boundary] = row.unequal.count
    return counts


def agreed(dumped: Dumped, folder: Path) -> tuple[BoundaryResults, list[Both], list[Both]]:
    """What the product says, and the reference, after their counts of unequal elements were found to be the same everywhere."""
    results, values, weights = gate(dumped, folder), list(boundaries(dumped)), list(parameters(dumped))
    assert unequal_counts(results) == {both.name: both.unequal for both in [*values, *weights]}
    assert [row.boundary for row in results.boundaries] == [both.name for both in values]
    return results, values, weights


def test_the_clean_pair_is_exact(toys: Toys, tmp_path: Path) -> None:
    """Fused against separate, in place against not, a pair against a sum: any slice, sum or token row that the product gets wrong."""
    results, values, weights = agreed(toys.both(), tmp_path)
    assert all(torch.equal(both.train, both.infer) for both in weights)
    assert all(torch.equal(both.train.long(), both.infer.long()) for both in values[:2])
    assert all(torch.equal(both.train, both.infer) for both in values[2:])
    assert (len(values), len(weights)) == (3 + 13 * LAYERS + 2, 2 + 12 * LAYERS)
    assert (results.overall, results.first_divergence) == ("exact", None)


def test_the_clean_pair_is_consistent(toys: Toys, tmp_path: Path) -> None:
    """The whole command on a pair that msprobe wrote just now."""
    dumped = toys.both()
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps(mapping.rows(dumped.on)))
    arguments = ["--train", dumped.train, "--infer", dumped.infer, "--mapping", rows, "--output-dir", tmp_path, "--exit-code"]
    ran = run_command("diagnose.py", *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    conclusion = json.loads((tmp_path / "conclusion.json").read_text())
    assert (conclusion["overall"], conclusion["consistency"]) == ("exact", "consistent")


def test_places_that_one_side_records_are_no_evidence(toys: Toys, tmp_path: Path) -> None:
    """The full form: the rotation and the head's weight are listed as not compared, and nothing is called exact over them."""
    dumped = toys.both()
    results = gate(dumped, tmp_path, mapping.with_gaps(dumped.on))
    gaps = [row.boundary for row in [*results.boundaries, *results.weights] if row.status == "evidence_missing"]
    assert gaps == [*(f"layers.{layer}.{x}_rope.out" for layer in range(LAYERS) for x in "qk"), "lm_head.weight"]
    assert results.overall == "evidence_missing"


@pytest.mark.parametrize("side", SIDES)
def test_the_bits_of_the_clean_pair(toys: Toys, side: Side) -> None:
    """Every number in these tests stands on the same bits everywhere: a kernel whose order or rounding is the machine's."""
    (folder,) = toys.side(side).glob("step0/proc*/dump_tensor_data")
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        tensor = torch.load(path, map_location="cpu", weights_only=True)
        found.update(f"{path.stem} {tensor.dtype} {list(tensor.shape)}\n".encode())
        found.update(tensor.contiguous().view(torch.uint8).numpy().tobytes())
    assert found.hexdigest() == CLEAN_BITS[side]


@pytest.mark.parametrize(("name", "side"), CASES)
def test_a_switch_is_seen_where_it_acts(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """The first divergence, what is EXACT before it, what was not compared before it, the counts, the weights."""
    dumped, switch = toys.pair(name, side), SWITCHES[name].of_layer(1)
    results, values, weights = agreed(dumped, tmp_path)
    first = next((both for both in values if both.unequal), None)
    assert first is not None, "the switch changes nothing"
    assert first.name == switch.seen
    assert results.first_divergence is not None
    assert results.first_divergence.boundary == first.name
    if first.name != "layers.1.act_mul.out":  # the trainer's activation, which no row names, may end before up.out does
        rotated = [ROTATION.format(first.name.split(".")[1], at) for at in (0, 1)] if first.name.endswith("attn_core.out") else []
        assert results.first_divergence.uncompared_before == rotated
        assert results.first_divergence.predecessors_complete == (not rotated)
    assert [both.name for both in weights if both.unequal] == sorted(switch.weights, key=[both.name for both in weights].index)
    assert results.overall == "nonzero"


@pytest.mark.parametrize("name", ["padded", "window", "embedding_scaled"])
def test_a_setting_changes_nothing_between_the_sides(toys: Toys, tmp_path: Path, name: str) -> None:
    """What a fault is seen against is itself exact; padding also where one side alone has it."""
    on = Switches(((name, 1),))
    assert gate(toys.both(on, on), tmp_path).overall == "exact"
    for one_sided in (toys.both(train=on), toys.both(infer=on)):
        assert gate(one_sided, tmp_path).overall == ("exact" if name == "padded" else "nonzero")


@pytest.mark.parametrize("layer", [0, 2])
def test_a_switch_acts_in_the_layer_that_it_is_given(toys: Toys, tmp_path: Path, layer: int) -> None:
    """A first divergence in the first and in the last layer."""
    results, values, _ = agreed(toys.pair("missing_residual", "infer", layer), tmp_path)
    assert results.first_divergence is not None
    assert results.first_divergence.boundary == next(both.name for both in values if both.unequal) == f"layers.{layer}.resid_attn"


def test_several_switches_on_both_sides(toys: Toys, tmp_path: Path) -> None:
    """The earliest of three is the first divergence, whichever side it is on; the weight behind it is found all the same."""
    dumped = toys.both(train=Switches((("updated_weight", 2),)), infer=Switches((("one_channel", 1), ("eps", 2))))
    results, values, weights = agreed(dumped, tmp_path)
    assert results.first_divergence is not None
    assert results.first_divergence.boundary == next(both.name for both in values if both.unequal) == "layers.1.o_proj.out"
    assert [both.name for both in weights if both.unequal] == ["layers.2.down.weight"]


# --- the arithmetic, against torch's in float64 ---


def test_functions_are_those_of_their_names() -> None:
    """Own polynomials against the library: one unit in the last place of float32 at most, and the library's own rounding nearly always."""
    x = torch.linspace(-80.0, 80.0, 10_007)
    angles = torch.linspace(-100.0, 3000.0, 10_007)
    cosine, sine = arithmetic.cos_sin(angles)
    positive = torch.rand(1000, generator=torch.Generator().manual_seed(1)) + 1e-6
    for found, expected in (
        (arithmetic.exp(x), x.double().exp()),
        (cosine, angles.double().cos()),
        (sine, angles.double().sin()),
        (arithmetic.silu(x), torch.nn.functional.silu(x.double())),
        (arithmetic.inverse_root(positive), positive.double().rsqrt()),
    ):
        torch.testing.assert_close(found.double(), expected, rtol=2.5e-7, atol=1e-10)
    expected = 10_000.0 ** (-torch.arange(0, WIDTH, 2).double() / WIDTH)
    torch.testing.assert_close(arithmetic.inverse_frequencies(10_000.0, WIDTH).double(), expected, rtol=1e-7, atol=0.0)


def test_products_and_attention_are_those_of_torch() -> None:
    """Heads that share keys, causal rows, the scale: against torch's attention in float64."""
    random = torch.Generator().manual_seed(2)
    x, weight = torch.randn(5, 96, generator=random), torch.randn(7, 96, generator=random)
    torch.testing.assert_close(arithmetic.product(x, weight).double(), x.double() @ weight.double().T, rtol=1e-5, atol=1e-5)
    q, k, v = (torch.randn(heads, 24, WIDTH, generator=random) for heads in (HEADS, HEADS // 2, HEADS // 2))
    found = arithmetic.attention(q, k, v, arithmetic.visible(24), scale=1.0 / math.sqrt(WIDTH), round_probabilities=False)
    wide = [x.double()[None] for x in (q, k, v)]
    expected = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=True, enable_gqa=True)[0]
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)


def test_masks_by_hand() -> None:
    """Causal, one further, a window of two, one padding token."""
    masks = [arithmetic.visible(3), arithmetic.visible(3, ahead=1), arithmetic.visible(3, window=2), arithmetic.visible(3, padding=1)]
    assert [mask.int().tolist() for mask in masks] == [
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]],
        [[1, 1, 0], [1, 1, 1], [1, 1, 1]],
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]],
        [[1, 0, 0], [0, 1, 0], [0, 1, 1]],
    ]
