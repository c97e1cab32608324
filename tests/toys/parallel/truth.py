"""How each boundary's tensor is put together from what the ranks recorded, written by hand for every layout.

An operand is as in a mapping (sources with name, rank, dump_step and steps; combine and axis), but a source may be an operand again: parts
of ranks lie inside parts of chunks. Boundaries are those of ``toys.mapping``, and the rotated q and k.
"""

from typing import Any

from toys import mapping
from toys.switches import CLEAN, LAYERS, Pair
from toys.weights import GROUPS, HEADS, MIDDLE, TOKENS, VOCABULARY, WIDTH

from .jobs import Job

Operand = dict[str, Any]
Op = dict[str, Any]
_GROUP = (HEADS // GROUPS + 2) * WIDTH  # rows of one group in Megatron's linear_qkv: its heads of q, its k, its v
_OF_GROUP = {"q": (0, _GROUP - 2 * WIDTH), "k": (_GROUP - 2 * WIDTH, _GROUP - WIDTH), "v": (_GROUP - WIDTH, _GROUP)}
_WIDTHS = {"q": HEADS * WIDTH, "k": GROUPS * WIDTH, "v": GROUPS * WIDTH}


def tensor(name: str, *steps: Op, rank: int = 0, step: int = 0) -> Operand:
    """A recorded tensor, with ops."""
    return {"name": name, "rank": rank, "dump_step": step, "steps": list(steps)}


def joined(parts: list[Operand], axis: int) -> Operand:
    """Parts along an axis."""
    return parts[0] if len(parts) == 1 else {"sources": parts, "combine": "cat", "axis": axis, "steps": []}


def added(parts: list[Operand]) -> Operand:
    """Parts that are summed, rounded to their dtype after each addition."""
    return parts[0] if len(parts) == 1 else {"sources": parts, "combine": "sum", "steps": []}


def cut(operand: Operand, *steps: Op) -> Operand:
    """With ops after the others."""
    return {**operand, "steps": [*operand["steps"], *steps]}


def part(axis: int, start: int | None = None, stop: int | None = None) -> Op:
    """A slice."""
    return {"op": "slice", "axis": axis, "start": start, "stop": stop}


def shape(*sizes: int) -> Op:
    """A reshape."""
    return {"op": "reshape", "shape": list(sizes)}


def squeeze(axis: int) -> Op:
    """A squeeze."""
    return {"op": "squeeze", "axis": axis}


def rows(job: Job) -> dict[str, Operand]:
    """Boundaries and weights by name. Of replicas: those of the one that ran prompt 0."""
    if job.model == "megatron":
        return _Trainer(job).rows()
    if job.model == "engine":
        return _Engine(job).rows()
    return replica(job, job.prompts.index(0))


def replica(job: Job, rank: int) -> dict[str, Operand]:
    """What one data-parallel replica recorded; FSDP2 puts its name before a layer's class."""
    found = {}
    for row in mapping.rows(Pair(CLEAN, CLEAN)):
        (source,) = row["train"]["sources"]
        name = source["name"].replace(".Qwen2DecoderLayer", ".FSDPQwen2DecoderLayer") if job.model == "fsdp2" else source["name"]
        found[row["boundary"]] = tensor(name, *source["steps"], rank=rank)
    return found | {"lm_head.weight": tensor("Module.lm_head.Linear.forward.0.parameters.weight", rank=rank)}


class _Trainer:
    def __init__(self, job: Job) -> None:
        self.job, self.tp, self.dp = job, range(job.tp), job.prompts.index(0)

    def rows(self) -> dict[str, Operand]:
        last, embedding = self.job.pp - 1, "embedding.LanguageModelEmbedding"
        logits = self.columns("output_layer.ColumnParallelLinear", "output.0", last)
        found = {
            "input_ids": self.tokens([self.one(embedding, "kwargs.input_ids", squeeze(0), cp=cp) for cp in range(self.job.cp)]),
            "positions": self.tokens([self.one(embedding, "kwargs.position_ids", squeeze(0), cp=cp) for cp in range(self.job.cp)]),
            "embedding.out": self.stream(embedding, "output.0", 0),
            "final_norm.out": self.stream("decoder.final_layernorm.RMSNorm", "output.0", last),
            "logits": cut(logits, part(0, -1), part(1, 0, VOCABULARY)),
            "embedding.weight": cut(self.weight("embedding.word_embeddings.VocabParallelEmbedding", 0), part(0, 0, VOCABULARY)),
            "lm_head.weight": cut(self.weight("output_layer.ColumnParallelLinear", last), part(0, 0, VOCABULARY)),
            "final_norm.weight": self.one("decoder.final_layernorm.RMSNorm", "parameters.weight", pp=last),
        }
        for layer in range(LAYERS):
            stage, number = self.job.stage_of(layer)
            of_layer = self.attention(stage, f"decoder.layers.{number}") | self.mlp(stage, f"decoder.layers.{number}")
            found |= {f"layers.{layer}.{name}": operand for name, operand in of_layer.items()}
        return found

    def attention(self, stage: int, stem: str) -> dict[str, Operand]:
        inside, norm = f"{stem}.self_attention", f"{stem}.input_layernorm.RMSNorm"
        qkv, proj = f"{inside}.linear_qkv.ColumnParallelLinear", f"{inside}.linear_proj.RowParallelLinear"
        core = f"{inside}.core_attention.DotProductAttention"
        found = {
            "input_norm.weight": self.one(norm, "parameters.weight", pp=stage),
            "input_norm.out": self.stream(norm, "output.0", stage),
            "attn_core.out": self.columns(proj, "input.0", stage),
            "o_proj.out": self.stream(proj, "output.0", stage),
            "o_proj.weight": self.weight(proj, stage, axis=1),
        }
        tokens = TOKENS // self.job.cp
        for at, name in enumerate("qk"):
            found[f"{name}_rope.out"] = self.columns(core, f"input.{at}", stage, shape(tokens, -1), squeezed=False)
        for name, (start, stop) in _OF_GROUP.items():
            found[f"{name}.out"] = self.columns(qkv, "output.0", stage, shape(tokens, -1, _GROUP), part(2, start, stop), shape(tokens, -1))
            for kind, rest in (("weight", (-1, HEADS * WIDTH)), ("bias", (-1,))):
                ops = shape(-1, _GROUP, *rest[1:]), part(1, start, stop), shape(*rest)
                found[f"{name}.{kind}"] = joined([self.one(qkv, f"parameters.{kind}", *ops, tp=tp, pp=stage) for tp in self.tp], 0)
        return found

    def mlp(self, stage: int, stem: str) -> dict[str, Operand]:
        norm, down = f"{stem}.pre_mlp_layernorm.RMSNorm", f"{stem}.mlp.linear_fc2.RowParallelLinear"
        fused, width = f"{stem}.mlp.linear_fc1.ColumnParallelLinear", MIDDLE // self.job.tp
        found = {
            "resid_attn": self.stream(norm, "input.0", stage),
            "post_norm.weight": self.one(norm, "parameters.weight", pp=stage),
            "post_norm.out": self.stream(norm, "output.0", stage),
            "act_mul.out": self.columns(down, "input.0", stage),
            "down.out": self.stream(down, "output.0", stage),
            "down.weight": self.weight(down, stage, axis=1),
            "resid_mlp": self.stream(f"{stem}.TransformerLayer", "output.0", stage),
        }
        for name, start in (("gate", 0), ("up", width)):
            found[f"{name}.out"] = self.columns(fused, "output.0", stage, part(1, start, start + width))
            found[f"{name}.weight"] = self.weight(fused, stage, part(0, start, start + width))
        return found

    def one(self, entry: str, suffix: str, *ops: Op, tp: int = 0, cp: int = 0, pp: int = 0) -> Operand:
        return tensor(f"Module.{entry}.forward.0.{suffix}", *ops, rank=self.job.rank(tp=tp, cp=cp, dp=self.dp, pp=pp))

    def tokens(self, parts: list[Operand]) -> Operand:
        """Rows of the context-parallel ranks in the order of the prompt."""
        places = sorted((token, cp, row) for cp in range(self.job.cp) for row, token in enumerate(self.job.tokens_of(cp, TOKENS)))
        runs: list[list[int]] = []
        for _, cp, row in places:
            if not runs or (runs[-1][0], runs[-1][2]) != (cp, row):
                runs.append([cp, row, row])
            runs[-1][2] = row + 1
        return joined([parts[cp] if len(parts) == 1 else cut(parts[cp], part(0, start, stop)) for cp, start, stop in runs], 0)

    def stream(self, entry: str, suffix: str, stage: int) -> Operand:
        """A tensor that all ranks of a tensor-parallel group hold or, under sequence parallelism, of which each holds some rows."""
        held = self.tp if self.job.sequence else range(1)
        return self.tokens(
            [joined([self.one(entry, suffix, squeeze(1), tp=tp, cp=cp, pp=stage) for tp in held], 0) for cp in range(self.job.cp)]
        )

    def columns(self, entry: str, suffix: str, stage: int, *ops: Op, squeezed: bool = True) -> Operand:
        """A tensor of which every rank of a tensor-parallel group holds some channels, all rows."""
        ops = (squeeze(1), *ops) if squeezed else ops
        return self.tokens(
            [joined([self.one(entry, suffix, *ops, tp=tp, cp=cp, pp=stage) for tp in self.tp], 1) for cp in range(self.job.cp)]
        )

    def weight(self, entry: str, stage: int, *ops: Op, axis: int = 0) -> Operand:
        return joined([self.one(entry, "parameters.weight", *ops, tp=tp, pp=stage) for tp in self.tp], axis)


class _Engine:
    def __init__(self, job: Job) -> None:
        self.job, self.tp = job, range(job.tp)
        recorded = {"whole": [0], "chunks": [0, 1], "prefix": [0], "served": [1], "two_requests": [1]}
        self.forwards = recorded[job.forwards]

    def rows(self) -> dict[str, Operand]:
        embedding = "model.embed_tokens.VocabParallelEmbedding"
        found = {
            "input_ids": self.whole(embedding, "input.0"),
            "positions": self.whole("model.layers.0.self_attn.rotary_emb.RotaryEmbedding", "input.0"),
            "embedding.out": self.whole(embedding, "output.0"),
            "final_norm.out": self.whole("model.norm.RMSNorm", "output.0"),
            "logits": tensor("Module.logits_processor.LogitsProcessor.forward.0.output.0", step=self.forwards[-1]),
            "embedding.weight": self.weight(embedding),
            "final_norm.weight": self.parameter("model.norm.RMSNorm"),
        }
        for layer in range(LAYERS):
            found |= {f"layers.{layer}.{name}": operand for name, operand in self.of_layer(layer).items()}
        return found

    def of_layer(self, layer: int) -> dict[str, Operand]:
        stem = f"model.layers.{layer}"
        qkv, o_proj = f"{stem}.self_attn.qkv_proj.QKVParallelLinear", f"{stem}.self_attn.o_proj.RowParallelLinear"
        gate_up, down = f"{stem}.mlp.gate_up_proj.MergedColumnParallelLinear", f"{stem}.mlp.down_proj.RowParallelLinear"
        norms = {"input_norm": f"{stem}.input_layernorm.RMSNorm", "post_norm": f"{stem}.post_attention_layernorm.RMSNorm"}
        rotary = "model.layers.0.self_attn.rotary_emb.RotaryEmbedding"
        found = {f"{name}.weight": self.parameter(entry) for name, entry in norms.items()}
        found |= {f"{name}.out": self.whole(entry, "output.0") for name, entry in norms.items()}
        found |= {f"{name}_rope.out": self.columns(rotary, f"output.{at}", call=layer) for at, name in enumerate("qk")}
        for fused, widths in ((qkv, _WIDTHS), (gate_up, {"gate": MIDDLE, "up": MIDDLE})):
            start = 0
            for name, width in widths.items():
                stop = start + width // self.job.tp
                found[f"{name}.out"] = self.columns(fused, "output.0", part(1, start, stop))
                found[f"{name}.weight"] = self.weight(fused, part(0, start, stop))
                if fused == qkv:
                    found[f"{name}.bias"] = self.weight(fused, part(0, start, stop), kind="bias")
                start = stop
        for name, entry, taken in (("o_proj", o_proj, "attn_core.out"), ("down", down, "act_mul.out")):
            found[taken] = self.columns(entry, "input.0")
            found[f"{name}.out"] = self.summed(entry, "output.0")
            found[f"{name}.weight"] = self.weight(entry, axis=1)
        found["resid_attn"] = self.whole(norms["post_norm"], "output.1")
        layers = [[self.one(f"{stem}.Qwen2DecoderLayer", f"output.{at}", step) for at in (0, 1)] for step in self.forwards]
        return found | {"resid_mlp": joined([added(both) for both in layers], 0)}

    def one(self, entry: str, suffix: str, step: int, *ops: Op, tp: int = 0, call: int = 0) -> Operand:
        return tensor(f"Module.{entry}.forward.{call}.{suffix}", *ops, rank=tp, step=step)

    def whole(self, entry: str, suffix: str) -> Operand:
        """Rows of all chunks; ranks hold the same."""
        return joined([self.one(entry, suffix, step) for step in self.forwards], 0)

    def summed(self, entry: str, suffix: str) -> Operand:
        """What a row-parallel layer gives: the ranks' parts, or their sum on each."""
        held = range(1) if self.job.reduces else self.tp
        return joined([added([self.one(entry, suffix, step, tp=tp) for tp in held]) for step in self.forwards], 0)

    def columns(self, entry: str, suffix: str, *ops: Op, call: int = 0) -> Operand:
        return joined([joined([self.one(entry, suffix, step, *ops, tp=tp, call=call) for tp in self.tp], 1) for step in self.forwards], 0)

    def weight(self, entry: str, *ops: Op, axis: int = 0, kind: str = "weight") -> Operand:
        return joined([self.one(entry, f"parameters.{kind}", self.forwards[0], *ops, tp=tp) for tp in self.tp], axis)

    def parameter(self, entry: str) -> Operand:
        return self.one(entry, "parameters.weight", self.forwards[0])
