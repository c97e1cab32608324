"""The toy as an inference engine has it: modules, names and shapes of vLLM's Qwen2, flat tensors [tokens, H], fused weights.

Add and norm are one module that changes its inputs in place, all layers share one rotation, logits are made of the last row alone.
"""

import torch
from torch import Tensor, nn

from . import arithmetic, switches, weights
from .arithmetic import rounded
from .log_probs import call, log_probs_of
from .switches import Switches
from .weights import GROUPS, HEADS, KEY, MIDDLE, QUERY, WIDTH


class _Linear(nn.Module):
    """Returns (y, None), as parallel layers do whose bias may be left to the caller."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias) if bias is not None else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        y = self.multiply(x)
        return rounded(y if self.bias is None else y + self.bias.float()), None

    def multiply(self, x: Tensor) -> Tensor:
        return arithmetic.product(x, self.weight)


class QKVParallelLinear(_Linear):
    with_bias, hands_on = True, False

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.with_bias and not self.hands_on:
            return super().forward(x)
        return rounded(self.multiply(x)), self.bias if self.hands_on else None


class MergedColumnParallelLinear(_Linear):
    pass


class RowParallelLinear(_Linear):
    """``channel``, ``token``: the one column or row of the result that is 1.02 times what it should be."""

    partial = False
    channel: int | None = None
    token: int | None = None

    def multiply(self, x: Tensor) -> Tensor:
        y = arithmetic.partial_products(x, self.weight) if self.partial else arithmetic.product(x, self.weight)
        if self.channel is not None:
            y[:, self.channel] = y[:, self.channel] * 1.02
        if self.token is not None:
            y[self.token] = y[self.token] * 1.02
        return y


class VocabParallelEmbedding(nn.Module):
    def __init__(self, weight: Tensor, multiplier: float | None) -> None:
        super().__init__()
        self.weight, self.multiplier = nn.Parameter(weight), multiplier

    def forward(self, ids: Tensor) -> Tensor:
        rows = self.weight[ids.long()]
        return rows if self.multiplier is None else rounded(rows.float() * self.multiplier)


class ParallelLMHead(nn.Module):
    """Holds the weight of the head; never called, so never dumped."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)


class RMSNorm(nn.Module):
    """Without a residual stream: the norm of x. With one: both are overwritten, by the norm of the sum and by the sum."""

    def __init__(self, weight: Tensor, on: Switches = switches.CLEAN, layer: int | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.eps, self.gain_offset = switches.EPS, float(on.has("gain_less_one"))
        self.normalised = arithmetic.normalised_stepwise if layer is not None and on.has("norms_bfloat16", layer) else arithmetic.normalised
        self.rounds_sum, self.rounds_before_gain, self.loses_residual = True, True, False

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        if residual is None:
            return self._norm(x.float())
        if self.loses_residual:
            residual.zero_()
        total = x.float() + residual.float()
        residual.copy_(rounded(total))
        x.copy_(self._norm(residual.float() if self.rounds_sum else total))
        return x, residual

    def _norm(self, x: Tensor) -> Tensor:
        y = self.normalised(x, self.eps)
        if self.rounds_before_gain:
            y = arithmetic.through_stored(y)
        return rounded(y * (self.weight.float() + self.gain_offset))


class RotaryEmbedding(nn.Module):
    """Rotates q and k, flat [tokens, heads * WIDTH]; cos and sin stand side by side in a table that is not dumped."""

    cos_sin_cache: Tensor

    def __init__(self, on: Switches) -> None:
        super().__init__()
        base = switches.FAULTY_ROPE_BASE if on.has("rope_base") else switches.ROPE_BASE
        angles = torch.arange(64)[:, None].float() * arithmetic.inverse_frequencies(base, WIDTH)
        if on.has("angles_bf16"):
            angles = arithmetic.through_bfloat16(angles)
        self.register_buffer("cos_sin_cache", rounded(torch.cat(arithmetic.cos_sin(angles), -1)), persistent=False)
        self.stepwise, self.interleaved = on.has("rope_stepwise"), on.has("interleaved_rotation")

    def forward(self, positions: Tensor, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.cos_sin_cache[positions].float().chunk(2, -1)
        return self._rotated(query, cos, sin), self._rotated(key, cos, sin)

    def _rotated(self, flat: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        heads = flat.view(len(flat), -1, WIDTH).float()
        left, right = (heads[..., ::2], heads[..., 1::2]) if self.interleaved else heads.chunk(2, -1)
        cos, sin = cos[:, None], sin[:, None]
        parts = [left * cos, right * sin, right * cos, left * sin]
        if self.stepwise:
            parts = [arithmetic.through_stored(part) for part in parts]
        turned = [parts[0] - parts[1], parts[2] + parts[3]]
        return rounded(torch.stack(turned, -1) if self.interleaved else torch.cat(turned, -1)).view(flat.shape)


class Attention(nn.Module):
    """Flat q, k, v to what o_proj receives; which keys are seen is known from the engine's own state, not from an argument."""

    def __init__(self, layer: int, on: Switches) -> None:
        super().__init__()
        self.layer, self.on = layer, on
        self.scale = weights.attention_scale(on, layer)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        tokens = len(query)
        q, k, v = (x.view(tokens, heads, WIDTH).transpose(0, 1) for x, heads in ((query, HEADS), (key, GROUPS), (value, GROUPS)))
        seen = weights.attention_mask(tokens, self.on, self.layer)
        mixed = weights.attention(self.on, self.layer, q, k, v, seen, self.scale)
        return rounded(mixed.transpose(0, 1).reshape(tokens, QUERY))


class Qwen2Attention(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches, rotary: RotaryEmbedding) -> None:
        super().__init__()
        fused = {kind: torch.cat([made[f"layers.{layer}.{name}.{kind}"] for name in ("q", "k", "v")]) for kind in ("weight", "bias")}
        self.qkv_proj = QKVParallelLinear(fused["weight"], fused["bias"])
        self.qkv_proj.with_bias = not on.has("missing_bias", layer)
        self.qkv_proj.hands_on = on.has("bias_handed_on", layer)
        self.o_proj = RowParallelLinear(made[f"layers.{layer}.o_proj.weight"])
        self.o_proj.partial = on.has("partial_sums", layer)
        self.o_proj.channel = 7 if on.has("one_channel", layer) else None
        self.rotary_emb = rotary
        self.attn = Attention(layer, on)

    def forward(self, positions: Tensor, hidden_states: Tensor) -> Tensor:
        qkv, bias = self.qkv_proj(hidden_states)
        q, k, v = (qkv if bias is None else rounded(qkv.float() + bias.float())).split([QUERY, KEY, KEY], -1)
        q, k = self.rotary_emb(positions, q, k)
        projected: Tensor = self.o_proj(self.attn(q, k, v))[0]
        return projected


class SiluAndMul(nn.Module):
    exchanged, fused = False, False
    function = staticmethod(arithmetic.silu)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = x[:, :MIDDLE], x[:, MIDDLE:]
        if self.exchanged:
            gate, up = up, gate
        activated = self.function(gate.float())
        return rounded((activated if self.fused else arithmetic.through_stored(activated)) * up.float())


class GeluAndMul(SiluAndMul):
    function = staticmethod(arithmetic.gelu)


class Qwen2MLP(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches) -> None:
        super().__init__()
        self.gate_up_proj = MergedColumnParallelLinear(torch.cat([made[f"layers.{layer}.{name}.weight"] for name in ("gate", "up")]))
        self.down_proj = RowParallelLinear(made[f"layers.{layer}.down.weight"])
        self.down_proj.partial = on.has("partial_sums", layer)
        self.down_proj.token = on.padding + 11 if on.has("one_token", layer) else None
        self.act_fn = GeluAndMul() if on.has("gelu", layer) else SiluAndMul()
        self.act_fn.exchanged, self.act_fn.fused = on.has("gate_up_order", layer), on.has("fused_activation", layer)

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down_proj(self.act_fn(self.gate_up_proj(x)[0]))[0]
        return down


class Qwen2DecoderLayer(nn.Module):
    """Returns (hidden, residual): the stream is their sum, which the next norm makes."""

    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches, rotary: RotaryEmbedding) -> None:
        super().__init__()
        self.self_attn, self.mlp = Qwen2Attention(made, layer, on, rotary), Qwen2MLP(made, layer, on)
        self.input_layernorm = RMSNorm(made[f"layers.{layer}.input_norm.weight"], on, layer)
        self.input_layernorm.eps = switches.FAULTY_EPS if on.has("eps", layer) else switches.EPS
        self.input_layernorm.gain_offset = weights.gain_offset(on, layer)
        self.input_layernorm.rounds_before_gain = not on.has("norm_cast_order", layer)
        self.post_attention_layernorm = RMSNorm(made[f"layers.{layer}.post_norm.weight"], on, layer)
        self.post_attention_layernorm.rounds_sum = not on.has("fused_add_unrounded", layer)
        self.post_attention_layernorm.loses_residual = on.has("missing_residual", layer)
        self.layer, self.on, self.token = layer, on, on.padding + 11

    def forward(self, positions: Tensor, hidden_states: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.on.has("altered_stream", self.layer):
            hidden_states = arithmetic.altered(hidden_states, token=self.token)
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        normed = hidden_states.clone()
        if self.on.has("residual_of_norm", self.layer):
            residual = normed
        if self.on.has("altered_token", self.layer):
            hidden_states = arithmetic.altered(hidden_states, token=self.token)
        hidden_states = self.self_attn(positions=positions, hidden_states=hidden_states)
        if self.on.has("residual_row_lost", self.layer):
            residual = arithmetic.altered(residual, token=self.token, factor=0.0)
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        if self.on.has("altered_channel", self.layer):
            hidden_states = arithmetic.altered(hidden_states, channel=7)
        if self.on.has("other_norm", self.layer):
            hidden_states = normed
        return self.mlp(hidden_states), residual


class Qwen2Model(nn.Module):
    def __init__(self, made: dict[str, Tensor], on: Switches) -> None:
        super().__init__()
        self.embed_tokens = VocabParallelEmbedding(made["embedding.weight"], weights.embedding_multiplier(on))
        rotary = RotaryEmbedding(on)
        self.layers = nn.ModuleList(Qwen2DecoderLayer(made, layer, on, rotary) for layer in range(on.layers))
        self.norm = RMSNorm(made["final_norm.weight"], on)
        self.on = on

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        hidden_states, residual = weights.scaled(self.embed_tokens(input_ids), self.on), None
        for layer in self.layers:
            hidden_states, residual = layer(positions, hidden_states, residual)
        normed: Tensor = self.norm(hidden_states, residual)[0]
        return normed


class LogitsProcessor(nn.Module):
    rounds = True

    def forward(self, lm_head: ParallelLMHead, hidden_states: Tensor) -> Tensor:
        logits = arithmetic.product(hidden_states, lm_head.weight)
        return rounded(logits) if self.rounds else logits


class Qwen2ForCausalLM(nn.Module):
    def __init__(self, on: Switches) -> None:
        super().__init__()
        made = weights.weights(on)
        self.model = Qwen2Model(made, on)
        self.lm_head = ParallelLMHead(made["lm_head.weight"])
        self.logits_processor = LogitsProcessor()
        self.logits_processor.rounds = not on.has("head_fp32")
        self.on, self.log_probs = on, log_probs_of(on)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        hidden_states: Tensor = self.model(input_ids, positions)
        return hidden_states

    def compute_logits(self, hidden_states: Tensor) -> Tensor:
        logits: Tensor = self.logits_processor(self.lm_head, hidden_states)
        return logits


def run(model: Qwen2ForCausalLM, ids: Tensor, positions: Tensor) -> None:
    """One prefill of one request. ids and positions int64 [tokens]; the model gets its ids as int32."""
    hidden_states = model(ids.to(torch.int32), positions)
    model.compute_logits(hidden_states[-1:])
    if model.log_probs is not None:  # asked for log-probabilities of the prompt, it makes the other tokens' logits by another call
        call(model.log_probs, model.on, model.compute_logits(hidden_states), ids)
