"""A process that runs a small model under the real msprobe, once for each configuration named, each in a fork of its own.

``debugged.py CONFIG …``: of each configuration a line of JSON on stdout, ``{"error": null, "loss": [bits]}`` or what msprobe raised.
The model is named and built as transformers builds Llama: modules, arguments, fused attention, norms in float32.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import traceback
from typing import Any

import torch
from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

SHAPES: dict[str, dict[str, Any]] = {
    "dense": {"hidden_size": 192, "num_hidden_layers": 2, "intermediate_size": 384, "num_attention_heads": 4, "num_key_value_heads": 2,
              "vocab_size": 1000, "torch_dtype": "bfloat16", "tokens": 96},
    "short": {"hidden_size": 256, "num_hidden_layers": 3, "intermediate_size": 512, "num_attention_heads": 2, "num_key_value_heads": 2,
              "vocab_size": 4000, "torch_dtype": "float32", "tokens": 5},
    "moe": {"hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 512, "num_attention_heads": 2, "num_key_value_heads": 1,
            "vocab_size": 500, "torch_dtype": "bfloat16", "tokens": 64,
            "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 96},
}  # fmt: skip


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(hidden_states.dtype)


class Rotary(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 1e4 ** (-torch.arange(0, width, 2) / width), persistent=False)

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        angles = position_ids[..., None].float() * self.inv_freq
        both = torch.cat((angles, angles), -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return (x * cos) + (torch.cat((-right, left), -1) * sin)


class Attention(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        hidden, self.head = shape["hidden_size"], shape["hidden_size"] // shape["num_attention_heads"]
        keys = shape["num_key_value_heads"] * self.head
        self.q_proj, self.k_proj = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, keys, bias=False)
        self.v_proj, self.o_proj = nn.Linear(hidden, keys, bias=False), nn.Linear(hidden, hidden, bias=False)

    def forward(self, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor]) -> Tensor:
        b, n, _ = hidden_states.shape
        q, k, v = (p(hidden_states).view(b, n, -1, self.head).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = _rotated(q, *position_embeddings), _rotated(k, *position_embeddings)
        core = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(core.transpose(1, 2).reshape(b, n, -1))


class MLP(nn.Module):
    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(hidden, width, bias=False), nn.Linear(hidden, width, bias=False)
        self.down_proj, self.act_fn = nn.Linear(width, hidden, bias=False), nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class SparseMLP(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.top = shape["num_experts_per_tok"]
        self.gate = nn.Linear(shape["hidden_size"], shape["num_experts"], bias=False)
        self.experts = nn.ModuleList(MLP(shape["hidden_size"], shape["moe_intermediate_size"]) for _ in range(shape["num_experts"]))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = self.gate(rows).softmax(-1).topk(self.top, -1)
        out = torch.zeros_like(rows)
        for at, expert in enumerate(self.experts):
            row, place = torch.where(chosen == at)
            out = out.index_add(0, row, expert(rows[row]) * weights[row, place, None])
        return out.view_as(x)


class DecoderLayer(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        hidden = shape["hidden_size"]
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(hidden), RMSNorm(hidden)
        self.self_attn = Attention(shape)
        self.mlp = SparseMLP(shape) if "num_experts" in shape else MLP(hidden, shape["intermediate_size"])

    def forward(self, hidden_states: Tensor, position_ids: Tensor, position_embeddings: tuple[Tensor, Tensor]) -> Tensor:
        x = hidden_states + self.self_attn(self.input_layernorm(hidden_states), position_embeddings=position_embeddings)
        return x + self.mlp(self.post_attention_layernorm(x))


class Inner(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape["vocab_size"], shape["hidden_size"])
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape["num_hidden_layers"]))
        self.norm = RMSNorm(shape["hidden_size"])
        self.rotary_emb = Rotary(shape["hidden_size"] // shape["num_attention_heads"])

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        x = self.embed_tokens(input_ids)
        embeddings = self.rotary_emb(x, position_ids)
        for layer in self.layers:
            x = layer(x, position_ids=position_ids, position_embeddings=embeddings)
        return self.norm(x)


class CausalLM(nn.Module):
    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        self.model = Inner(shape)
        self.lm_head = nn.Linear(shape["hidden_size"], shape["vocab_size"], bias=False)

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        return self.lm_head(self.model(input_ids, position_ids))


def _run(config: str) -> list[int]:
    """``<shape>[-<seed>[-grad]]:name.json``: which model, which weights; two steps. Returns the bits of the losses."""
    kind, seed, *grad = [*os.path.basename(config).partition(":")[0].split("-"), "1"][:3]
    shape = SHAPES[kind]
    torch.manual_seed(int(seed))
    model = CausalLM(shape).to(getattr(torch, shape["torch_dtype"]))
    ids = torch.randint(0, shape["vocab_size"], (1, shape["tokens"]), generator=torch.Generator().manual_seed(7))
    debugger = PrecisionDebugger(config_path=config)
    losses = []
    for _ in range(2):
        debugger.start(model=model)
        with torch.set_grad_enabled(bool(grad and grad[0] == "grad")):
            loss = model(ids, torch.arange(shape["tokens"])[None]).float().square().mean()
            if loss.requires_grad:
                loss.backward()
        debugger.stop()
        debugger.step()
        losses.append(loss.detach().view(torch.int32).item())
    return losses


def main() -> None:
    torch.set_num_threads(1)
    answer_to = os.dup(1)
    os.dup2(2, 1)  # what msprobe prints must not stand between the answers
    for config in sys.argv[1:]:
        child = os.fork()
        if child == 0:
            answer: dict[str, Any] = {"error": None, "loss": None}
            try:
                answer["loss"] = _run(config)
                atexit._run_exitfuncs()  # msprobe closes its files there
            except BaseException:  # noqa: BLE001  # the parent hands it on
                answer["error"] = traceback.format_exc()
            os.write(answer_to, json.dumps(answer).encode() + b"\n")
            os._exit(0)
        os.waitpid(child, 0)
    os._exit(0)  # no second is spent on taking torch apart


if __name__ == "__main__":
    main()
