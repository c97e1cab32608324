"""The toys on several ranks against the toys on one: every tensor, put together by hand from what the ranks recorded."""

import pytest
import torch
from toys import mapping
from toys.pairs import Toys
from toys.parallel import truth
from toys.parallel.jobs import CHUNK, DUMMY, PARTIAL, Job
from toys.parallel.pairs import Parallel
from toys.parallel.values import reader, value
from toys.switches import CLEAN, Pair, Side, Switches

LAYOUTS = {
    "one rank": Job("megatron"),
    "one rank, partial sums": Job("megatron", on=PARTIAL),
    "tp2": Job("megatron", tp=2),
    "tp2, no identities": Job("megatron", tp=2, identities=False),
    "tp2, a fault": Job("megatron", tp=2, on=Switches((("eps", 1), ("kv_swapped", 2)))),
    "sequence parallel": Job("megatron", tp=2, sequence=True),
    "pp2": Job("megatron", pp=2),
    "tp2 pp2": Job("megatron", tp=2, pp=2),
    "sequence parallel pp2": Job("megatron", tp=2, pp=2, sequence=True),
    "tp2 dp2": Job("megatron", tp=2, prompts=(1, 0)),
    "tp2 dp2 pp2": Job("megatron", tp=2, pp=2, prompts=(1, 0)),
    "cp2": Job("megatron", cp=2),
    "cp2, contiguous": Job("megatron", cp=2, zigzag=False),
    "cp4": Job("megatron", cp=4),
    "tp2 cp2": Job("megatron", tp=2, cp=2),
    "replicas": Job("hf", prompts=(0, 0)),
    "replicas of two prompts": Job("hf", prompts=(1, 0)),
    "fsdp2": Job("fsdp2", prompts=(0, 0)),
    "fsdp2 of two prompts": Job("fsdp2", prompts=(0, 1)),
    "engine, one rank": Job("engine"),
    "engine, one rank, partial sums": Job("engine", on=PARTIAL),
    "engine, tp2": Job("engine", tp=2),
    "engine, tp2, a fault": Job("engine", tp=2, on=Switches((("eps", 1), ("kv_swapped", 2)))),
    "engine, tp2, parts": Job("engine", tp=2, reduces=False),
    "chunks": Job("engine", forwards="chunks"),
    "chunks, tp2, parts": Job("engine", tp=2, reduces=False, forwards="chunks"),
    "served": Job("engine", forwards="served"),
    "two requests": Job("engine", forwards="two_requests"),
}
ROTATION = "Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.{}.output.{}"


def on_one_rank(toys: Toys, job: Job) -> dict[str, torch.Tensor]:
    """The same model on one rank, by ``toys.mapping``'s operands; q and k after the rotation come from the engine."""
    side: Side = "infer" if job.model == "engine" else "train"
    on = Switches((*job.on.on, *PARTIAL.on)) if job.tp == 2 else job.on
    dumped = {at: reader(toys.side(at, on)) for at in (side, "infer")}
    found = {}
    for row in mapping.rows(Pair(CLEAN, CLEAN)):
        sources = [{**source, "rank": 0, "dump_step": 0} for source in row[side]["sources"]]
        found[row["boundary"]] = value(dumped[side], {"sources": sources, "combine": "sum", "steps": []})
    for layer in range(3):
        for at, name in enumerate("qk"):
            found[f"layers.{layer}.{name}_rope.out"] = dumped["infer"](ROTATION.format(layer, at), 0, 0)
    return found


@pytest.mark.parametrize("job", LAYOUTS.values(), ids=LAYOUTS)
def test_the_ranks_together_hold_what_one_rank_holds(toys: Toys, parallel: Parallel, job: Job) -> None:
    """Bit for bit, rounded partial sums included: a toy of another layout than it says would prove nothing of the product."""
    read, expected, rows = reader(parallel.root(job)), on_one_rank(toys, job), truth.rows(job)
    without = {name for name in expected if "_rope" in name} if job.model in ("hf", "fsdp2") else set()  # no HF trainer records those
    assert set(rows) - {"lm_head.weight"} == set(expected) - without
    assert ("lm_head.weight" in rows) is (job.model != "engine")  # no engine calls its head
    found = {name: value(read, operand) for name, operand in rows.items()}
    wrong = [name for name, tensor in found.items() if name in expected and not same(tensor, expected[name])]
    assert wrong == []


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.double(), other.double())


def test_a_cached_prefix_leaves_the_suffix(toys: Toys, parallel: Parallel) -> None:
    """Its rows are the last ones of the whole prompt: a cache that holds the wrong keys would make other tensors."""
    job = Job("engine", forwards="prefix")
    read, expected = reader(parallel.root(job)), on_one_rank(toys, job)
    for name, operand in truth.rows(job).items():
        whole = expected[name] if name == "logits" or name.endswith((".weight", ".bias")) else expected[name][CHUNK:]
        assert same(value(read, operand), whole), name


def test_what_stands_around_the_prefill_is_no_part_of_it(parallel: Parallel) -> None:
    """A dummy forward of zeros and one decoded token lie in steps of their own, before and after."""
    read = reader(parallel.root(Job("engine", forwards="served")))
    ids = [read("Module.model.embed_tokens.VocabParallelEmbedding.forward.0.input.0", 0, step) for step in range(3)]
    assert [len(each) for each in ids] == [DUMMY, 24, 1]
    assert not ids[0].any()
    assert ids[1].all()


def test_partial_outputs_are_partial_and_replicated_ones_equal(parallel: Parallel) -> None:
    """Only the engine whose layers add outside records parts: else nothing would tell a sum from a copy."""
    trained, name = reader(parallel.root(LAYOUTS["tp2"])), "Module.decoder.layers.1.mlp.linear_fc2.RowParallelLinear.forward.0.output.0"
    assert torch.equal(trained(name, 0, 0), trained(name, 1, 0))
    name = "Module.model.layers.1.mlp.down_proj.RowParallelLinear.forward.0.output.0"
    for layout, equal in (("engine, tp2", True), ("engine, tp2, parts", False)):
        read = reader(parallel.root(LAYOUTS[layout]))
        assert torch.equal(read(name, 0, 0), read(name, 1, 0)) is equal


def test_each_replica_ran_its_prompt(toys: Toys, parallel: Parallel) -> None:
    """Rank 0 of two replicas ran another prompt than rank 1, of another length."""
    job = LAYOUTS["replicas of two prompts"]
    read = reader(parallel.root(job))
    lengths = [len(value(read, truth.replica(job, rank)["input_ids"])) for rank in (0, 1)]
    assert lengths == [20, 24]
