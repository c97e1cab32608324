"""The toy as a trainer has it: modules, names and shapes of transformers' Qwen2, tensors [1, tokens, H], residual sums in the layer."""

import torch
from torch import Tensor, nn

from . import arithmetic, switches, weights
from .arithmetic import rounded
from .log_probs import call, log_probs_of
from .switches import Switches
from .weights import GROUPS, HEADS, QUERY, WIDTH


class Linear(nn.Module):
    """y = x W^T + b, rounded once; ``rounds`` False: not at all; ``hands_on``: (x W^T, b), for the caller to add."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias) if bias is not None else None
        self.with_bias, self.partial, self.rounds, self.hands_on = True, False, True, False
        self.channel: int | None = None
        self.token: int | None = None

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor | None]:
        y = (arithmetic.partial_products if self.partial else arithmetic.product)(x, self.weight)
        if self.hands_on:
            return rounded(y), self.bias
        if self.bias is not None and self.with_bias:
            y = y + self.bias.float()
        if self.channel is not None:
            y[..., self.channel] = y[..., self.channel] * 1.02
        if self.token is not None:
            y[..., self.token, :] = y[..., self.token, :] * 1.02
        return rounded(y) if self.rounds else y


def _with_bias(made: Tensor | tuple[Tensor, Tensor]) -> Tensor:
    """What a linear made, with the bias that it may have handed on."""
    return made if isinstance(made, Tensor) else rounded(made[0].float() + made[1].float())


class Embedding(nn.Module):
    def __init__(self, weight: Tensor, multiplier: float | None) -> None:
        super().__init__()
        self.weight, self.multiplier = nn.Parameter(weight), multiplier

    def forward(self, ids: Tensor) -> Tensor:
        rows = self.weight[ids]
        return rows if self.multiplier is None else rounded(rows.float() * self.multiplier)


class Qwen2RMSNorm(nn.Module):
    """Given a residual stream, it adds first and returns the sum as well, as a fused kernel that trainers patch in does."""

    def __init__(self, weight: Tensor, on: Switches = switches.CLEAN, layer: int | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.eps, self.gain_offset, self.rounds_before_gain = switches.EPS, float(on.has("gain_less_one")), True
        self.normalised = arithmetic.normalised_stepwise if layer is not None and on.has("norms_bfloat16", layer) else arithmetic.normalised

    def forward(self, hidden_states: Tensor, residual: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        x = hidden_states.float()
        if residual is not None:
            x = x + residual.float()
        y = self.normalised(x, self.eps)
        gain = self.weight.float() + self.gain_offset
        y = rounded((rounded(y).float() if self.rounds_before_gain else y) * gain)
        return y if residual is None else (y, rounded(x))


class Qwen2RotaryEmbedding(nn.Module):
    """cos and sin, as x is stored, [1, tokens, WIDTH]: both halves hold the same angles."""

    inv_freq: Tensor

    def __init__(self, on: Switches) -> None:
        super().__init__()
        base = switches.FAULTY_ROPE_BASE if on.has("rope_base") else switches.ROPE_BASE
        self.register_buffer("inv_freq", arithmetic.inverse_frequencies(base, WIDTH), persistent=False)
        self.rounds_angles = on.has("angles_bf16")

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        angles = position_ids[:, :, None].float() * self.inv_freq
        if self.rounds_angles:
            angles = arithmetic.through_bfloat16(angles)
        cos, sin = arithmetic.cos_sin(torch.cat([angles, angles], -1))
        return cos.to(x.dtype), sin.to(x.dtype)


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


def rotate_neighbours(x: Tensor) -> Tensor:
    return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)


def apply_rotary_pos_emb(x: Tensor, cos: Tensor, sin: Tensor, on: Switches) -> Tensor:
    """x [1, heads, tokens, WIDTH], cos and sin [1, tokens, WIDTH]."""
    turn = rotate_half
    if on.has("interleaved_rotation"):
        half = WIDTH // 2
        cos, sin, turn = cos[..., :half].repeat_interleave(2, -1), sin[..., :half].repeat_interleave(2, -1), rotate_neighbours
    first, second = x.float() * cos[:, None].float(), turn(x).float() * sin[:, None].float()
    if on.has("rope_stepwise"):
        first, second = arithmetic.through_stored(first), arithmetic.through_stored(second)
    return rounded(first + second)


class Qwen2Attention(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches) -> None:
        super().__init__()
        stem = f"layers.{layer}"
        self.q_proj, self.k_proj, self.v_proj = (
            Linear(made[f"{stem}.{name}.weight"], made[f"{stem}.{name}.bias"]) for name in ("q", "k", "v")
        )
        for projection in (self.q_proj, self.k_proj, self.v_proj):
            projection.with_bias = not on.has("missing_bias", layer)
            projection.hands_on = on.has("bias_handed_on", layer)
        self.linear_qkv = Linear(*weights.fused_qkv(made, layer, on)) if on.has("fused_in_groups") else None
        self.o_proj = Linear(made[f"{stem}.o_proj.weight"])
        self.o_proj.partial = on.has("partial_sums", layer)
        self.o_proj.channel = 7 if on.has("one_channel", layer) else None
        self.layer, self.on = layer, on
        self.scaling = weights.attention_scale(on, layer)

    def forward(self, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], attention_mask: Tensor) -> tuple[Tensor, None]:
        shape = (*hidden_states.shape[:-1], -1, WIDTH)
        q, k, v = (one.reshape(shape).transpose(1, 2) for one in self._projected(hidden_states))
        q, k = (apply_rotary_pos_emb(x, *position_embeddings, self.on) for x in (q, k))
        mixed = weights.attention(self.on, self.layer, q[0], k[0], v[0], attention_mask[0, 0], self.scaling)
        mixed = rounded(mixed).transpose(0, 1).reshape(*hidden_states.shape[:-1], HEADS * WIDTH)
        return self.o_proj(mixed), None

    def _projected(self, hidden_states: Tensor) -> list[Tensor]:
        if self.linear_qkv is None:
            return [_with_bias(project(hidden_states)) for project in (self.q_proj, self.k_proj, self.v_proj)]
        groups = self.linear_qkv(hidden_states).unflatten(-1, (GROUPS, -1))
        return list(groups.split_with_sizes([QUERY // GROUPS, WIDTH, WIDTH], -1))


class SiLUActivation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return rounded(arithmetic.silu(x.float()))


class NewGELUActivation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return rounded(arithmetic.gelu(x.float()))


class Qwen2MLP(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (Linear(made[f"layers.{layer}.{name}.weight"]) for name in ("gate", "up", "down"))
        self.down_proj.partial = on.has("partial_sums", layer)
        self.down_proj.token = on.padding + 11 if on.has("one_token", layer) else None
        self.act_fn = NewGELUActivation() if on.has("gelu", layer) else SiLUActivation()
        self.exchanged, self.fused = on.has("gate_up_order", layer), on.has("fused_activation", layer)

    def forward(self, x: Tensor) -> Tensor:
        left, right = (self.up_proj, self.gate_proj) if self.exchanged else (self.gate_proj, self.up_proj)
        gate, up = left(x), right(x)
        activated = arithmetic.silu(gate.float()) if self.fused else self.act_fn(gate).float()
        down: Tensor = self.down_proj(rounded(activated * up.float()))
        return down


class Qwen2DecoderLayer(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches) -> None:
        super().__init__()
        self.self_attn, self.mlp = Qwen2Attention(made, layer, on), Qwen2MLP(made, layer, on)
        self.input_layernorm = Qwen2RMSNorm(made[f"layers.{layer}.input_norm.weight"], on, layer)
        self.input_layernorm.eps = switches.FAULTY_EPS if on.has("eps", layer) else switches.EPS
        self.input_layernorm.gain_offset = weights.gain_offset(on, layer)
        self.input_layernorm.rounds_before_gain = not on.has("norm_cast_order", layer)
        self.post_attention_layernorm = Qwen2RMSNorm(made[f"layers.{layer}.post_norm.weight"], on, layer)
        self.fused, self.loses_residual = on.has("fused_add_unrounded", layer), on.has("missing_residual", layer)
        self.layer, self.on, self.token = layer, on, on.padding + 11

    def forward(self, hidden_states: Tensor, attention_mask: Tensor, position_embeddings: tuple[Tensor, Tensor]) -> Tensor:
        if self.on.has("altered_stream", self.layer):
            hidden_states = arithmetic.altered(hidden_states, token=self.token)
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        normed = hidden_states
        if self.on.has("residual_of_norm", self.layer):
            residual = normed
        if self.on.has("altered_token", self.layer):
            hidden_states = arithmetic.altered(hidden_states, token=self.token)
        hidden_states, _ = self.self_attn(
            hidden_states=hidden_states, position_embeddings=position_embeddings, attention_mask=attention_mask
        )
        if self.loses_residual:
            residual = torch.zeros_like(residual)
        if self.on.has("residual_row_lost", self.layer):
            residual = arithmetic.altered(residual, token=self.token, factor=0.0)
        if self.fused:
            hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        else:
            residual = rounded(residual.float() + hidden_states.float())
            hidden_states = self.post_attention_layernorm(residual)
        if self.on.has("altered_channel", self.layer):
            hidden_states = arithmetic.altered(hidden_states, channel=7)
        if self.on.has("other_norm", self.layer):
            hidden_states = normed
        return rounded(residual.float() + self.mlp(hidden_states).float())


class Qwen2Model(nn.Module):
    def __init__(self, made: dict[str, Tensor], on: Switches) -> None:
        super().__init__()
        self.embed_tokens = Embedding(made["embedding.weight"], weights.embedding_multiplier(on))
        self.layers = nn.ModuleList(Qwen2DecoderLayer(made, layer, on) for layer in range(on.layers))
        self.norm = Qwen2RMSNorm(made["final_norm.weight"], on)
        self.rotary_emb = Qwen2RotaryEmbedding(on)
        self.on = on

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> dict[str, Tensor]:
        hidden_states = weights.scaled(self.embed_tokens(input_ids), self.on)
        position_embeddings = self.rotary_emb(hidden_states, position_ids)
        for at, layer in enumerate(self.layers):
            mask = weights.attention_mask(input_ids.shape[1], self.on, at)[None, None]
            hidden_states = layer(hidden_states, attention_mask=mask, position_embeddings=position_embeddings)
        return {"last_hidden_state": self.norm(hidden_states)}


class Qwen2ForCausalLM(nn.Module):
    """Logits of every token, as a trainer needs them for its log-probabilities."""

    def __init__(self, on: Switches) -> None:
        super().__init__()
        made = weights.weights(on)
        self.model = Qwen2Model(made, on)
        self.lm_head = Linear(made["lm_head.weight"])
        self.lm_head.rounds = not on.has("head_fp32")
        self.on, self.log_probs = on, log_probs_of(on)

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        logits: Tensor = self.lm_head(self.model(input_ids=input_ids, position_ids=position_ids)["last_hidden_state"])
        if self.log_probs is not None:
            call(self.log_probs, self.on, logits, input_ids)
        return logits


def run(model: Qwen2ForCausalLM, ids: Tensor, positions: Tensor) -> None:
    """One prefill. ids and positions int64 [tokens]."""
    model(ids[None], positions[None])
