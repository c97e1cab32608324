"""The source folder on real pairs, against torch code of its own: a decoder layer's and a leaf's inputs in each direction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from collection.instructions import instruction, module, operand, replace, write
from laying import lay_out
from running import run_collection
from torch import Tensor

SQUEEZE, FIRST = {"op": "squeeze", "axis": 0}, {"op": "reshape", "shape": [1, 14, -1]}
LAYER = "Module.model.layers.1.Qwen2DecoderLayer.forward.0"
EARLIER = "Module.model.layers.0.Qwen2DecoderLayer.forward.0.output"

Truth = Callable[[Callable[[str], Tensor]], Tensor]


def bits(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def check(tmp_path: Path, sample: str, value: dict[str, Any], truth: dict[str, Truth]) -> None:
    """Apply the instruction to a sample; every file equals what ``truth`` makes of the source's tensors, and there is no other."""
    pair = lay_out(sample, tmp_path)
    source, target = (getattr(pair, value[f"{role}_side"]) for role in ("source", "target"))
    ran = run_collection(
        "apply_stub_instruction.py", "--instruction", write(tmp_path, value), "--source-dump", source, "--target-dump", target,
        "--output-dir", tmp_path / "round1",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    folder = tmp_path / "round1/stub_source_round1"
    made = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert sorted(made) == sorted(f"step0/rank0/dump_tensor_data/{name}.pt" for name in truth)

    def recorded(name: str) -> Tensor:
        return torch.load(next(source.glob(f"step0/rank0/dump_tensor_data/{name}.pt")), weights_only=True)

    for name, make in truth.items():
        got, wanted = torch.load(made[f"step0/rank0/dump_tensor_data/{name}.pt"], weights_only=True), make(recorded)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), name
        assert got.is_contiguous()
        assert torch.equal(bits(got), bits(wanted)), name
    outcome = json.loads((tmp_path / "round1/stub_outcome.json").read_text())
    assert [item["file"] for item in outcome["prepared"]] == [f"step0/rank0/dump_tensor_data/{name}.pt" for name in truth]
    assert (outcome["effective"], outcome["new_dump"]) == (False, None)


def test_a_trainer_into_vllm(tmp_path: Path) -> None:
    """The stream of the trainer as hidden states, -0.0 as residual; the product of its activation for down_proj."""
    down, act, up = (f"Module.model.layers.1.mlp.{name}.forward.0" for name in
                     ("down_proj.RowParallelLinear", "act_fn.SiLUActivation", "up_proj.Linear"))  # fmt: skip
    qkv, norm = (f"Module.model.layers.1.{name}.forward.0" for name in
                 ("self_attn.qkv_proj.QKVParallelLinear", "input_layernorm.Qwen2RMSNorm"))  # fmt: skip
    attn = "Module.model.layers.1.self_attn.attn.Attention.forward.0"
    names = [f"Module.model.layers.1.self_attn.{part}_proj.Linear.forward.0.output.0" for part in "qkv"]
    fused = "Module.model.layers.1.mlp.act_fn.SiluAndMul.forward.0"
    gate = "Module.model.layers.1.mlp.gate_proj.Linear.forward.0"
    value = instruction(
        "train",
        "infer",
        module(
            LAYER,
            replace(1, operand((f"{EARLIER}.0", SQUEEZE)), [14, 64]),
            replace(2, operand((f"{EARLIER}.0", SQUEEZE), combine="zeros"), [14, 64]),
        ),
        module(qkv, replace(0, operand((f"{norm}.output.0", {"op": "reshape", "shape": [14, -1]})), [14, 64])),
        module(attn, replace(0, operand((names[0], SQUEEZE)), [14, 64]), replace(2, operand((names[2], SQUEEZE)), [14, 32])),
        module(
            fused,
            replace(0, operand((f"{gate}.output.0", SQUEEZE), (f"{up}.output.0", SQUEEZE), combine="cat", axis=1), [14, 192]),
        ),
        module(down, replace(0, operand((f"{act}.output.0", SQUEEZE)), [14, 96])),
    )
    check(
        tmp_path,
        "qwen2-hf-vllm-clean",
        value,
        {
            f"{LAYER}.input.1": lambda of: of(f"{EARLIER}.0")[0],
            f"{LAYER}.input.2": lambda of: -torch.zeros(14, 64, dtype=torch.bfloat16),
            f"{qkv}.input.0": lambda of: of(f"{norm}.output.0").flatten(0, 1),
            f"{attn}.input.0": lambda of: of(names[0])[0],
            f"{attn}.input.2": lambda of: of(names[2])[0],
            f"{fused}.input.0": lambda of: torch.hstack([of(f"{gate}.output.0")[0], of(f"{up}.output.0")[0]]),
            f"{down}.input.0": lambda of: of(f"{act}.output.0")[0],
        },
    )


def test_vllm_into_a_trainer(tmp_path: Path) -> None:
    """The two parts of the engine's stream, added in bfloat16, as the trainer's one; slices of its fused product as leaves."""
    up, norm, mlp = (f"Module.model.layers.1.{name}.forward.0" for name in
                     ("mlp.up_proj.Linear", "post_attention_layernorm.RMSNorm", "mlp.down_proj.Linear"))  # fmt: skip
    act = "Module.model.layers.1.mlp.act_fn.SiLUActivation.forward.0"
    fused = "Module.model.layers.1.mlp.gate_up_proj.MergedColumnParallelLinear.forward.0.output.0"
    half = {"op": "slice", "axis": 1, "start": None, "stop": 96}
    swiglu = "Module.model.layers.1.mlp.act_fn.SiluAndMul.forward.0.output.0"
    attention = "Module.model.layers.1.self_attn.Qwen2Attention.forward.0"
    normed = "Module.model.layers.1.input_layernorm.RMSNorm.forward.0.output.0"
    value = instruction(
        "infer",
        "train",
        module(LAYER, replace(0, operand((f"{EARLIER}.0", FIRST), (f"{EARLIER}.1", FIRST), combine="sum"), [1, 14, 64])),
        module(attention, replace("hidden_states", operand((normed, FIRST)), [1, 14, 64])),
        module(up, replace(0, operand((f"{norm}.output.0", FIRST)), [1, 14, 64])),
        module(act, replace(0, operand((fused, half, FIRST)), [1, 14, 96])),
        module(mlp, replace(0, operand((swiglu, FIRST)), [1, 14, 96])),
    )

    def stream(of: Callable[[str], Tensor]) -> Tensor:
        return (of(f"{EARLIER}.0").double() + of(f"{EARLIER}.1").double()).bfloat16().unsqueeze(0)

    check(
        tmp_path,
        "qwen2-hf-vllm-clean",
        value,
        {
            f"{LAYER}.input.0": stream,
            f"{attention}.kwargs.hidden_states": lambda of: of(normed)[None],
            f"{up}.input.0": lambda of: of(f"{norm}.output.0")[None],
            f"{act}.input.0": lambda of: of(fused).tensor_split(2, dim=1)[0][None],
            f"{mlp}.input.0": lambda of: of(swiglu)[None],
        },
    )


def test_megatron_into_sglang(tmp_path: Path) -> None:
    """[tokens, 1, H] becomes [tokens, H]; q out of the product that interleaves q, k, v in each group of heads."""
    stream = "Module.decoder.layers.0.TransformerLayer.forward.0.output.0"
    product = "Module.decoder.layers.1.self_attention.linear_qkv.ColumnParallelLinear.forward.0.output.0"
    norm, attn, down = (f"Module.model.layers.1.{name}.forward.0" for name in (
        "input_layernorm.RMSNorm", "self_attn.attn.RadixAttention", "mlp.down_proj.RowParallelLinear"))  # fmt: skip
    fc2 = "Module.decoder.layers.1.mlp.linear_fc2.RowParallelLinear.forward.0.input.0"
    one = {"op": "squeeze", "axis": 1}
    groups = {"op": "reshape", "shape": [14, 2, 4, 8]}
    columns = [*range(24, 32), *range(56, 64)]
    value = instruction(
        "train",
        "infer",
        module(LAYER, replace(1, operand((stream, one)), [14, 32])),
        module(norm, replace(0, operand((stream, one)), [14, 32]), replace(1, operand(combine="zeros"), [14, 32])),
        module(
            attn,
            replace(
                0,
                operand((product, groups, {"op": "slice", "axis": 2, "start": 0, "stop": -2}, {"op": "reshape", "shape": [14, 32]})),
                [14, 32],
            ),
            replace(
                1,
                operand((product, groups, {"op": "take", "axis": -2, "index": [2]}, {"op": "permute", "axes": [1, 0, 2, 3]},
                         {"op": "permute", "axes": [1, 2, 0, 3]}, {"op": "reshape", "shape": [14, 16]})),
                [14, 16],
            ),
            replace(2, operand((product, one, {"op": "take", "axis": 1, "runs": [[24, 32], [56, 64]]})), [14, 16]),
        ),
        module(down, replace(0, operand((fc2, one, {"op": "cast", "dtype": "float32"}, {"op": "add", "value": 0.5},
                                         {"op": "cast", "dtype": "bfloat16"})), [14, 64])),
    )  # fmt: skip

    def heads(of: Callable[[str], Tensor], first: int, last: int) -> Tensor:
        grouped = of(product).squeeze(1).unflatten(-1, (2, 32))
        return torch.cat([grouped[:, group, first * 8 : last * 8] for group in range(2)], -1)

    check(
        tmp_path,
        "qwen2-megatron_tp1-sglang-clean",
        value,
        {
            f"{LAYER}.input.1": lambda of: of(stream)[:, 0],
            f"{norm}.input.0": lambda of: of(stream)[:, 0],
            f"{norm}.input.1": lambda of: -torch.zeros(14, 32, dtype=torch.bfloat16),
            f"{attn}.input.0": lambda of: heads(of, 0, 2),
            f"{attn}.input.1": lambda of: heads(of, 2, 3),
            f"{attn}.input.2": lambda of: of(product)[:, 0][:, columns],
            f"{down}.input.0": lambda of: (of(fc2)[:, 0].double() + 0.5).bfloat16(),
        },
    )
