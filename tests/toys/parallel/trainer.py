"""The toy as Megatron-core has it: modules, names and shapes of its GPT model without Transformer Engine, [tokens, 1, H].

q, k and v are one matrix whose rows stand group by group, gate and up are another; row-parallel layers add their ranks' parts; the
vocabulary is padded under tensor parallelism; a stage numbers its layers from 0 and gets its hidden states by a keyword.
"""

import math
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from toys import arithmetic, switches, trainer, weights
from toys.arithmetic import rounded
from toys.switches import LAYERS, Switches
from toys.weights import GROUPS, HEADS, HIDDEN, VOCABULARY, WIDTH

from .jobs import Job
from .ranks import Ranks

PADDED = 144  # rows of the padded vocabulary: 72 a rank
Pair = tuple[Tensor, None]


class Mesh(NamedTuple):
    """Where this rank stands."""

    job: Job
    tp: Ranks
    cp: Ranks
    dp: int
    stage: int

    @classmethod
    def of(cls, job: Job) -> "Mesh":
        """Makes every group of the job. Raises StopIteration where this process is no rank of it."""
        replicas, tps, cps = range(len(job.prompts)), range(job.tp), range(job.cp)
        tp = [[job.rank(tp=t, cp=c, dp=d, pp=s) for t in tps] for s in range(job.pp) for d in replicas for c in cps]
        cp = [[job.rank(tp=t, cp=c, dp=d, pp=s) for c in cps] for s in range(job.pp) for d in replicas for t in tps]
        mine = [_own([Ranks(members) for members in groups]) for groups in (tp, cp)]
        stage, rest = divmod(dist.get_rank(), job.rank(pp=1))
        return cls(job, mine[0], mine[1], rest // job.rank(dp=1), stage)


def _own(groups: list[Ranks]) -> Ranks:
    return next(group for group in groups if dist.get_rank() in group.members)


class ColumnParallelLinear(nn.Module):
    """Rows of the weight lie on the ranks. Under sequence parallelism the input is gathered inside."""

    def __init__(self, weight: Tensor, bias: Tensor | None, mesh: Mesh) -> None:
        super().__init__()
        self.weight = nn.Parameter(mesh.tp.share(weight).clone())
        self.bias = nn.Parameter(mesh.tp.share(bias).clone()) if bias is not None else None
        self.mesh = mesh

    def forward(self, x: Tensor) -> Pair:
        y = arithmetic.product(self.mesh.tp.joined(x, 0) if self.mesh.job.sequence else x, self.weight)
        return rounded(y if self.bias is None else y + self.bias.float()), None


class RowParallelLinear(nn.Module):
    """Columns of the weight lie on the ranks, each rank's part is rounded, then they are added. ``partial``: one rank does the same."""

    def __init__(self, weight: Tensor, mesh: Mesh, *, partial: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(mesh.tp.share(weight, 1).clone())
        self.mesh, self.partial = mesh, partial

    def forward(self, x: Tensor) -> Pair:
        y = (arithmetic.partial_products if self.partial else arithmetic.product)(x, self.weight)
        total = self.mesh.tp.summed(rounded(y))
        return self.mesh.tp.share(total) if self.mesh.job.sequence else total, None


class RMSNorm(trainer.Qwen2RMSNorm):
    pass


class VocabParallelEmbedding(nn.Module):
    """[1, tokens] to [1, tokens, H]; under sequence parallelism to this rank's [tokens / tp, 1, H]."""

    def __init__(self, weight: Tensor, mesh: Mesh) -> None:
        super().__init__()
        self.weight, self.mesh = nn.Parameter(mesh.tp.share(weight).clone()), mesh

    def forward(self, ids: Tensor) -> Tensor:
        local = ids - self.mesh.tp.at * len(self.weight)
        here = (local >= 0) & (local < len(self.weight))
        rows = torch.where(here[..., None], self.weight[torch.where(here, local, 0)], torch.zeros((), dtype=self.weight.dtype))
        total = self.mesh.tp.summed(rows)
        return self.mesh.tp.share(total.transpose(0, 1)) if self.mesh.job.sequence else total


class LanguageModelEmbedding(nn.Module):
    def __init__(self, weight: Tensor, mesh: Mesh) -> None:
        super().__init__()
        self.word_embeddings = VocabParallelEmbedding(weight, mesh)
        self.sequence = mesh.job.sequence

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        rows: Tensor = self.word_embeddings(input_ids)
        return rows if self.sequence else rows.transpose(0, 1).contiguous()


class RotaryEmbedding(nn.Module):
    """A length to angles, float32 [tokens of this rank, 1, 1, WIDTH]: both halves hold the same."""

    inv_freq: Tensor

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.register_buffer("inv_freq", arithmetic.inverse_frequencies(switches.ROPE_BASE, WIDTH), persistent=False)
        self.mesh = mesh

    def forward(self, tokens: int) -> Tensor:
        positions = torch.tensor(self.mesh.job.tokens_of(self.mesh.cp.at, tokens))
        angles = positions[:, None].float() * self.inv_freq
        return torch.cat([angles, angles], -1)[:, None, None]


class DotProductAttention(nn.Module):
    """q [tokens, 1, heads, WIDTH], k and v [tokens, 1, groups, WIDTH]: [tokens, 1, heads * WIDTH]. Fetches k and v of other chunks."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        self.mesh = mesh

    def forward(self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None) -> Tensor:
        job, tokens = self.mesh.job, len(query) * self.mesh.cp.count
        order = torch.tensor([token for at in range(job.cp) for token in job.tokens_of(at, tokens)]).argsort()
        k, v = (self.mesh.cp.joined(x, 0)[order] for x in (key, value))
        seen = arithmetic.visible(tokens)[job.tokens_of(self.mesh.cp.at, tokens)] if attention_mask is None else ~attention_mask[0, 0]
        q, k, v = (x[:, 0].transpose(0, 1) for x in (query, k, v))
        mixed = arithmetic.attention(q, k, v, seen, scale=1.0 / math.sqrt(WIDTH), round_probabilities=False)
        return rounded(mixed).transpose(0, 1).reshape(len(query), 1, -1)


class IdentityOp(nn.Module):
    """Where a model with norms of q and k has them."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class SelfAttention(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches, mesh: Mesh) -> None:
        super().__init__()
        fused = [_by_group([made[f"layers.{layer}.{name}.{kind}"] for name in "qkv"]) for kind in ("weight", "bias")]
        self.linear_qkv = ColumnParallelLinear(fused[0], fused[1], mesh)
        self.identities = mesh.job.identities
        if self.identities:
            self.q_layernorm, self.k_layernorm = IdentityOp(), IdentityOp()
        self.core_attention = DotProductAttention(mesh)
        self.linear_proj = RowParallelLinear(made[f"layers.{layer}.o_proj.weight"], mesh, partial=on.has("partial_sums", layer))

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None, rotary_pos_emb: Tensor) -> Pair:
        mixed = self.linear_qkv(hidden_states)[0]
        by_group = mixed.view(len(mixed), 1, -1, (HEADS // GROUPS + 2) * WIDTH)
        q, k, v = by_group.split([HEADS // GROUPS * WIDTH, WIDTH, WIDTH], -1)
        q = q.reshape(len(q), 1, -1, WIDTH)
        if self.identities:
            q, k = self.q_layernorm(q), self.k_layernorm(k)
        cos, sin = (x[:, 0, 0][None].to(torch.bfloat16) for x in arithmetic.cos_sin(rotary_pos_emb))
        q, k = (trainer.apply_rotary_pos_emb(x.permute(1, 2, 0, 3), cos, sin, switches.CLEAN).permute(2, 0, 1, 3) for x in (q, k))
        projected: Pair = self.linear_proj(self.core_attention(q, k, v, attention_mask))
        return projected


class MLP(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches, mesh: Mesh) -> None:
        super().__init__()
        gate, up = (made[f"layers.{layer}.{name}.weight"].chunk(mesh.tp.count) for name in ("gate", "up"))
        self.linear_fc1 = ColumnParallelLinear(torch.cat([part for both in zip(gate, up, strict=True) for part in both]), None, mesh)
        self.linear_fc2 = RowParallelLinear(made[f"layers.{layer}.down.weight"], mesh, partial=on.has("partial_sums", layer))

    def forward(self, hidden_states: Tensor) -> Pair:
        gate, up = self.linear_fc1(hidden_states)[0].chunk(2, -1)
        down: Pair = self.linear_fc2(rounded(rounded(arithmetic.silu(gate.float())).float() * up.float()))
        return down


class TransformerLayer(nn.Module):
    def __init__(self, made: dict[str, Tensor], layer: int, on: Switches, mesh: Mesh) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(made[f"layers.{layer}.input_norm.weight"])
        self.input_layernorm.eps = switches.FAULTY_EPS if on.has("eps", layer) else switches.EPS
        self.self_attention = SelfAttention(made, layer, on, mesh)
        self.pre_mlp_layernorm = RMSNorm(made[f"layers.{layer}.post_norm.weight"])
        self.mlp = MLP(made, layer, on, mesh)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None, rotary_pos_emb: Tensor) -> Pair:
        normed = self.input_layernorm(hidden_states)
        attended = self.self_attention(normed, attention_mask=attention_mask, rotary_pos_emb=rotary_pos_emb)[0]
        stream = rounded(hidden_states.float() + attended.float())
        return rounded(stream.float() + self.mlp(self.pre_mlp_layernorm(stream))[0].float()), None


class TransformerBlock(nn.Module):
    """The layers of one stage; a later one takes what `input_tensor` holds instead of its argument."""

    def __init__(self, made: dict[str, Tensor], on: Switches, mesh: Mesh) -> None:
        super().__init__()
        mine = [layer for layer in range(LAYERS) if mesh.job.stage_of(layer)[0] == mesh.stage]
        self.layers = nn.ModuleList(TransformerLayer(made, layer, on, mesh) for layer in mine)
        self.final_layernorm = RMSNorm(made["final_norm.weight"]) if mesh.stage == mesh.job.pp - 1 else None
        self.input_tensor: Tensor | None = None

    def forward(self, hidden_states: Tensor | None, attention_mask: Tensor | None, rotary_pos_emb: Tensor) -> Tensor:
        hidden = self.input_tensor if hidden_states is None else hidden_states
        for layer in self.layers:
            hidden = layer(hidden_states=hidden, attention_mask=attention_mask, rotary_pos_emb=rotary_pos_emb)[0]
        assert hidden is not None
        return hidden if self.final_layernorm is None else self.final_layernorm(hidden)


class GPTModel(nn.Module):
    """One stage of the model on one rank."""

    def __init__(self, mesh: Mesh) -> None:
        super().__init__()
        on, made = mesh.job.on, weights.weights(mesh.job.on)
        self.mesh = mesh
        self.embedding = LanguageModelEmbedding(padded(made["embedding.weight"], mesh), mesh) if mesh.stage == 0 else None
        self.rotary_pos_emb = RotaryEmbedding(mesh)
        self.decoder = TransformerBlock(made, on, mesh)
        last = mesh.stage == mesh.job.pp - 1
        self.output_layer = ColumnParallelLinear(padded(made["lm_head.weight"], mesh), None, mesh) if last else None

    def forward(self, input_ids: Tensor, position_ids: Tensor) -> Tensor:
        tokens = input_ids.shape[1] * self.mesh.cp.count
        hidden = None if self.embedding is None else self.embedding(input_ids=input_ids, position_ids=position_ids)
        mask = None if self.mesh.cp.count > 1 else ~arithmetic.visible(tokens)[None, None]
        angles = self.rotary_pos_emb(tokens)
        hidden = self.decoder(hidden_states=hidden, attention_mask=mask, rotary_pos_emb=angles)
        return hidden if self.output_layer is None else self.output_layer(hidden)[0]


def padded(weight: Tensor, mesh: Mesh) -> Tensor:
    """A vocabulary's rows and, under tensor parallelism, others behind them: trainers initialise the padding like the rest."""
    return weight if mesh.tp.count == 1 else torch.cat([weight, weight[: PADDED - VOCABULARY] * 0.5])


def _by_group(qkv: list[Tensor]) -> Tensor:
    """Rows of q, k and v, group by group: the heads of q that share a group, its k, its v."""
    return torch.cat([part for group in zip(*(x.chunk(GROUPS) for x in qkv), strict=True) for part in group])


def run(model: GPTModel, ids: Tensor, positions: Tensor) -> None:
    """One forward of one prompt. ids and positions int64 [tokens]; stages hand the hidden states on in float32."""
    mesh = model.mesh
    mine = mesh.job.tokens_of(mesh.cp.at, len(ids))
    between = mesh.job.rank(pp=1)
    if mesh.stage > 0:
        received = torch.empty(len(mine) // (mesh.tp.count if mesh.job.sequence else 1), 1, HIDDEN)
        dist.recv(received, dist.get_rank() - between)
        model.decoder.input_tensor = rounded(received)
    out = model(ids[mine][None], positions[mine][None])
    if mesh.stage < mesh.job.pp - 1:
        dist.send(out.float().contiguous(), dist.get_rank() + between)
