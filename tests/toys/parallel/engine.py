"""The toy engine on tensor-parallel ranks, with a cache of keys and values: names, modules and shapes of ``toys.engine``.

Each rank holds its heads' [q | k | v] and its [gate | up]. Row-parallel layers add their ranks' parts themselves, as vLLM's do, or hand
out the rank's own part, which the layer around them adds before the next norm, as in SGLang.
"""

import math

import torch
from torch import Tensor, nn

from toys import arithmetic, engine, switches, weights
from toys.arithmetic import rounded
from toys.switches import LAYERS
from toys.weights import VOCABULARY, WIDTH

from .jobs import CHUNK, DUMMY, Job
from .ranks import Ranks

Forward = tuple[Tensor, Tensor]  # ids and positions, int64 [tokens]


class QKVParallelLinear(engine.QKVParallelLinear):
    pass


class MergedColumnParallelLinear(engine.MergedColumnParallelLinear):
    pass


class RowParallelLinear(engine.RowParallelLinear):
    def __init__(self, weight: Tensor, ranks: Ranks, *, reduces: bool) -> None:
        super().__init__(ranks.share(weight, 1).clone())
        self.ranks, self.reduces = ranks, reduces

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        part = super().forward(x)[0]
        return self.ranks.summed(part) if self.reduces else part, None


class VocabParallelEmbedding(nn.Module):
    def __init__(self, weight: Tensor, ranks: Ranks) -> None:
        super().__init__()
        self.weight, self.ranks = nn.Parameter(ranks.share(weight).clone()), ranks

    def forward(self, ids: Tensor) -> Tensor:
        local = ids.long() - self.ranks.at * len(self.weight)
        here = (local >= 0) & (local < len(self.weight))
        rows = torch.where(here[:, None], self.weight[torch.where(here, local, 0)], torch.zeros((), dtype=torch.bfloat16))
        return self.ranks.summed(rows)


class Attention(nn.Module):
    """Flat q, k, v of new tokens to what o_proj receives; keys and values of earlier ones are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[Tensor, Tensor]] = []

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        self.kept.append((key, value))
        q, k, v = (x.view(len(x), -1, WIDTH).transpose(0, 1) for x in (query, *(torch.cat(part) for part in zip(*self.kept, strict=True))))
        seen = arithmetic.visible(k.shape[1])[-len(query) :]
        mixed = arithmetic.attention(q, k, v, seen, scale=1.0 / math.sqrt(WIDTH), round_probabilities=False)
        return rounded(mixed.transpose(0, 1).reshape(query.shape))


class Qwen2Attention(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, rotary: engine.RotaryEmbedding, ranks: Ranks, *, reduces: bool) -> None:
        super().__init__()
        shards = [[ranks.share(made[f"layers.{layer}.{name}.{kind}"]) for name in "qkv"] for kind in ("weight", "bias")]
        self.sizes = [len(shard) for shard in shards[0]]
        self.qkv_proj = QKVParallelLinear(torch.cat(shards[0]), torch.cat(shards[1]))
        self.o_proj = RowParallelLinear(made[f"layers.{layer}.o_proj.weight"], ranks, reduces=reduces)
        self.rotary_emb = rotary
        self.attn = Attention()

    def forward(self, positions: Tensor, hidden_states: Tensor) -> Tensor:
        q, k, v = self.qkv_proj(hidden_states)[0].split(self.sizes, -1)
        q, k = self.rotary_emb(positions, q, k)
        projected: Tensor = self.o_proj(self.attn(q, k, v))[0]
        return projected


class SiluAndMul(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return rounded(rounded(arithmetic.silu(gate.float())).float() * up.float())


class Qwen2MLP(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, ranks: Ranks, *, reduces: bool) -> None:
        super().__init__()
        shards = [ranks.share(made[f"layers.{layer}.{name}.weight"]) for name in ("gate", "up")]
        self.gate_up_proj = MergedColumnParallelLinear(torch.cat(shards))
        self.down_proj = RowParallelLinear(made[f"layers.{layer}.down.weight"], ranks, reduces=reduces)
        self.act_fn = SiluAndMul()

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down_proj(self.act_fn(self.gate_up_proj(x)[0]))[0]
        return down


class Qwen2DecoderLayer(nn.Module):
    """Returns (hidden, residual), both the same on all ranks."""

    def __init__(self, made: dict[str, Tensor], layer: int, rotary: engine.RotaryEmbedding, ranks: Ranks, job: Job) -> None:
        super().__init__()
        self.self_attn = Qwen2Attention(made, layer, rotary, ranks, reduces=job.reduces)
        self.mlp = Qwen2MLP(made, layer, ranks, reduces=job.reduces)
        self.input_layernorm = engine.RMSNorm(made[f"layers.{layer}.input_norm.weight"])
        self.input_layernorm.eps = switches.FAULTY_EPS if job.on.has("eps", layer) else switches.EPS
        self.post_attention_layernorm = engine.RMSNorm(made[f"layers.{layer}.post_norm.weight"])
        for row_parallel in (self.self_attn.o_proj, self.mlp.down_proj):
            row_parallel.partial = job.on.has("partial_sums", layer)
        self.ranks, self.adds = ranks, not job.reduces

    def forward(self, positions: Tensor, hidden_states: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self._whole(self.self_attn(positions=positions, hidden_states=hidden_states))
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        return self._whole(self.mlp(hidden_states)), residual

    def _whole(self, part: Tensor) -> Tensor:
        return self.ranks.summed(part) if self.adds else part


class Qwen2Model(nn.Module):
    def __init__(self, made: dict[str, Tensor], ranks: Ranks, job: Job) -> None:
        super().__init__()
        self.embed_tokens = VocabParallelEmbedding(made["embedding.weight"], ranks)
        rotary = engine.RotaryEmbedding(job.on)
        self.layers = nn.ModuleList(Qwen2DecoderLayer(made, layer, rotary, ranks, job) for layer in range(LAYERS))
        self.norm = engine.RMSNorm(made["final_norm.weight"])

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        hidden_states, residual = self.embed_tokens(input_ids), None
        for layer in self.layers:
            hidden_states, residual = layer(positions, hidden_states, residual)
        normed: Tensor = self.norm(hidden_states, residual)[0]
        return normed


class LogitsProcessor(nn.Module):
    """Logits of the whole vocabulary on every rank."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self.ranks = ranks

    def forward(self, lm_head: engine.ParallelLMHead, hidden_states: Tensor) -> Tensor:
        return self.ranks.joined(rounded(arithmetic.product(hidden_states, lm_head.weight)), -1)


class Qwen2ForCausalLM(nn.Module):
    def __init__(self, job: Job) -> None:
        super().__init__()
        made, ranks = weights.weights(job.on), Ranks(list(range(job.tp)))
        self.model = Qwen2Model(made, ranks, job)
        self.lm_head = engine.ParallelLMHead(ranks.share(made["lm_head.weight"]).clone())
        self.logits_processor = LogitsProcessor(ranks)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        hidden_states: Tensor = self.model(input_ids, positions)
        return hidden_states

    def compute_logits(self, hidden_states: Tensor) -> Tensor:
        logits: Tensor = self.logits_processor(self.lm_head, hidden_states)
        return logits


def forwards(job: Job, prompt: Forward, other: Forward) -> tuple[list[Forward], list[Forward]]:
    """What is run before anything is recorded, and what is recorded, one dump step each."""
    first, second = ((prompt[0][part], prompt[1][part]) for part in (slice(CHUNK), slice(CHUNK, None)))
    if job.forwards == "chunks":
        return [], [first, second]
    if job.forwards == "prefix":
        return [first], [second]
    if job.forwards == "two_requests":
        return [], [other, prompt]
    if job.forwards == "served":
        dummy = torch.zeros(DUMMY, dtype=torch.int64), torch.zeros(DUMMY, dtype=torch.int64)
        return [], [dummy, prompt, (torch.tensor([VOCABULARY // 2]), prompt[1][-1:] + 1)]
    return [], [prompt]


def run(model: Qwen2ForCausalLM, ids: Tensor, positions: Tensor) -> None:
    """One forward; one that starts at position 0 starts a request. The model gets its ids as int32."""
    if positions[0] == 0:
        for module in model.modules():
            if isinstance(module, Attention):
                module.kept.clear()
    hidden_states = model(ids.to(torch.int32), positions)
    model.compute_logits(hidden_states[-1:])
