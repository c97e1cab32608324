"""Dumps of several ranks and steps compared by the product: against torch, and against the same model on one rank.

What a row must say is computed from `toys.parallel.truth` by torch alone: how many elements of a boundary differ, when both sides are put
together by hand.
"""

import json
import re
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import diagnose
import pytest
import torch
from dump_analysis import cli
from editing import edit_json
from running import run_command
from toys.parallel import truth
from toys.parallel.jobs import CHUNK, PARTIAL, Job
from toys.parallel.pairs import Parallel
from toys.parallel.trainer import PADDED
from toys.parallel.values import Read, reader, value
from toys.switches import Switches
from toys.weights import VOCABULARY

Rows = dict[str, tuple[str, int | None]]  # boundary -> status and how many elements differ

EPS = Switches((("eps", 1),))
STALE = Switches((("updated_weight", 1),))
EXCHANGED = Switches((("kv_swapped", 1),))
TRAINER, PARTS = Job("megatron", tp=2), Job("engine", tp=2, reduces=False)
PAIRS = {
    "one rank": (Job("megatron"), Job("engine")),
    "tp2 both, parts": (TRAINER, PARTS),
    "tp2 both, reduced inside": (TRAINER, Job("engine", tp=2)),
    "tp2 trainer": (TRAINER, Job("engine")),
    "tp2 engine, parts": (Job("megatron"), PARTS),
    "tp2 engine, hf trainer": (Job("hf"), PARTS),
    "sequence parallel": (Job("megatron", tp=2, sequence=True), PARTS),
    "pp2": (Job("megatron", pp=2), Job("engine")),
    "tp2 pp2": (Job("megatron", tp=2, pp=2), PARTS),
    "tp2 trainer, no modules around q and k": (Job("megatron", tp=2, identities=False), PARTS),
    "tp2, two replicas of two prompts": (Job("megatron", tp=2, prompts=(1, 0)), PARTS),
    "tp2, two replicas of one prompt": (Job("megatron", tp=2, prompts=(0, 0)), PARTS),
    "cp2": (Job("megatron", cp=2), Job("engine")),
    "cp2, contiguous": (Job("megatron", cp=2, zigzag=False), Job("engine")),
    "cp4": (Job("megatron", cp=4), Job("engine")),
    "eps, cp4": (Job("megatron", cp=4, on=EPS), Job("engine")),
    "replicas": (Job("hf", prompts=(0, 0)), Job("engine")),
    "replicas of two prompts": (Job("hf", prompts=(1, 0)), Job("engine")),
    "fsdp2": (Job("fsdp2", prompts=(0, 0)), Job("engine")),
    "fsdp2 of two prompts": (Job("fsdp2", prompts=(0, 1)), Job("engine")),
    "chunks": (Job("hf"), Job("engine", forwards="chunks")),
    "served": (Job("hf"), Job("engine", forwards="served")),
    "two requests": (Job("hf"), Job("engine", forwards="two_requests")),
    "eps, tp2 both": (TRAINER._replace(on=EPS), PARTS),
    "eps, sequence parallel": (Job("megatron", tp=2, sequence=True, on=EPS), PARTS),
    "eps, chunks": (Job("hf"), Job("engine", forwards="chunks", on=EPS)),
    "stale weight, tp2 both": (TRAINER, PARTS._replace(on=STALE)),
    "k and v exchanged, tp2 both": (TRAINER, PARTS._replace(on=EXCHANGED)),
}
# No engine calls its head, makes logits of other tokens than the last, or records what it took from a cache.
ONE_SIDED = ("input_ids.cached_tokens", "lm_head.weight", "logits.other_tokens")


# --- what the product says ---


class Said(NamedTuple):
    """One call of diagnose: its exit code, what it printed on stderr, what it left."""

    code: int
    told: str
    rows: Rows
    mapping: dict[str, Any]
    reasons: dict[str, str]


def diagnosed(train: Path, infer: Path, folder: Path) -> Said:
    """diagnose.py, run in this process."""
    told = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()), redirect_stderr(told):
        patch.setattr(sys, "argv", ["diagnose.py", "--train", str(train), "--infer", str(infer), "--output-dir", str(folder)])
        with pytest.raises(SystemExit) as ended:
            cli.run(diagnose.main)
    assert "fault of the tool" not in told.getvalue(), told.getvalue()
    results, mapping = (folder / name for name in ("boundary_results.json", "semantic_mapping.json"))
    found = json.loads(results.read_text()) if results.exists() else {"boundaries": [], "weights": []}
    rows = [*found["boundaries"], *found["weights"]]
    counts = {row["boundary"]: (row["status"], (row["unequal"] or {}).get("count")) for row in rows}
    reasons = {row["boundary"]: row["reason"]["text"] for row in rows if row.get("reason")}
    code = ended.value.code
    assert isinstance(code, int)
    return Said(code, told.getvalue(), counts, json.loads(mapping.read_text()) if mapping.exists() else {}, reasons)


# --- what it must say ---


def expected(parallel: Parallel, train: Job, infer: Job) -> Rows:
    """By torch: every place that either side records; what one side alone does is missing evidence."""
    sides = [(reader(parallel.root(job)), truth.rows(job)) for job in (train, infer)]
    found: Rows = {}
    for name in {**sides[0][1], **sides[1][1]}:
        if not all(name in rows for _, rows in sides):
            found[name] = ("evidence_missing", None)
            continue
        one, other = (value(read, rows[name]).double() for read, rows in sides)
        assert one.shape == other.shape, name
        count = int((one != other).sum())
        found[name] = ("NOT_EXACT" if count else "EXACT", count)
    return found


def stated(rows: Rows) -> Rows:
    """An equal row counts 0; a row that was not compared counts nothing. Gaps inside a row, told beside it, are left out."""
    counts = {"EXACT": 0, "evidence_missing": None}
    return {name: (status, counts.get(status, count)) for name, (status, count) in rows.items() if name != "logits.other_tokens"}


def differing(one: Rows, other: Rows) -> dict[str, tuple[Any, Any]]:
    return {name: (one.get(name), other.get(name)) for name in {**one, **other} if one.get(name) != other.get(name)}


# --- pairs ---


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_rows_are_what_torch_says(parallel: Parallel, tmp_path: Path, pair: tuple[Job, Job]) -> None:
    """Names, statuses and counts of every row: a shard taken for the whole, joined in another order, or added where it is a copy."""
    found = diagnosed(*(parallel.root(job) for job in pair), tmp_path / "out")
    assert found.code == 0, found.told
    assert differing(stated(found.rows), expected(parallel, *pair)) == {}


CUT_TWICE = {
    "chunks": (TRAINER, PARTS._replace(forwards="chunks")),
    "context parallel": (Job("megatron", tp=2, cp=2), PARTS),
    "context parallel, contiguous": (Job("megatron", tp=2, cp=2, zigzag=False), PARTS),
}


@pytest.mark.parametrize("pair", CUT_TWICE.values(), ids=CUT_TWICE)
def test_pieces_of_shards_are_compared_once_they_are_put_together(parallel: Parallel, tmp_path: Path, pair: tuple[Job, Job]) -> None:
    """Ranks and tokens cut the same tensors: no row joins both at once; the dump that assemble_dump.py writes reads like one rank's."""
    roots = [str(parallel.root(job)) for job in pair]
    assert "assemble_dump.py" in diagnosed(Path(roots[0]), Path(roots[1]), tmp_path / "first").told
    made = tmp_path / "made"
    run_command("assemble_dump.py", "--train", roots[0], "--infer", roots[1], "--output-dir", made)
    found = diagnosed(made / "train", made / "infer", tmp_path / "out")
    assert found.code == 0, found.told
    assert differing(stated(found.rows), expected(parallel, *pair)) == {}


@pytest.mark.parametrize("on", [Switches(), EPS, EXCHANGED], ids=["clean", "eps", "k and v exchanged"])
def test_results_are_those_of_one_rank(parallel: Parallel, tmp_path: Path, on: Switches) -> None:
    """The same rows in the same order, and the same first divergence, as from one rank a side that adds rounded parts."""
    one_rank = Job("megatron", on=PARTIAL), Job("engine", on=Switches((*PARTIAL.on, *on.on)))
    one = diagnosed(*(parallel.root(job) for job in one_rank), tmp_path / "one")
    several = diagnosed(parallel.root(TRAINER), parallel.root(PARTS._replace(on=on)), tmp_path / "several")
    assert (one.code, several.code) == (0, 0), one.told + several.told
    assert list(several.rows.items()) == list(one.rows.items())
    results = [json.loads((tmp_path / name / "boundary_results.json").read_text()) for name in ("one", "several")]
    assert results[1]["overall"] == results[0]["overall"]
    assert results[1]["first_divergence"] == results[0]["first_divergence"]


def test_a_cached_prefix_is_compared_by_position(parallel: Parallel, tmp_path: Path) -> None:
    """The last 8 rows of the prompt: compared with the first 8, nothing would be equal. 16 rows were not computed: so it is told."""
    found = diagnosed(parallel.root(Job("hf")), parallel.root(Job("engine", forwards="prefix")), tmp_path / "out")
    assert found.code == 0, found.told
    coverage = found.mapping["tokens"]["coverage"]
    assert (coverage["joined"], coverage["train"]) == (24 - CHUNK, 24)
    assert {status for name, (status, _) in found.rows.items() if "_rope" not in name and name not in ONE_SIDED} == {"EXACT"}


def test_rows_name_ranks_and_steps(parallel: Parallel, tmp_path: Path) -> None:
    """A row over several units says of which unit each tensor is; people could not find the files otherwise."""
    found = diagnosed(parallel.root(TRAINER), parallel.root(Job("engine", forwards="chunks")), tmp_path / "out")
    row = next(row for row in found.mapping["boundaries"] if row["boundary"] == "layers.0.q.out")
    assert {source["rank"] for source in row["train"]["sources"]} == {0, 1}
    assert [source["dump_step"] for source in row["infer"]["sources"]] == [0, 1]
    assert found.mapping["ranks"]["train"]["units"] == [{"step": 0, "rank": 0}, {"step": 0, "rank": 1}]
    assert found.mapping["ranks"]["infer"]["units"] == [{"step": 0, "rank": 0}, {"step": 1, "rank": 0}]


# --- the plan ---

ENGINE_WHOLE = Job("engine", on=PARTIAL)
PLANS = {
    "tp2": ("train", TRAINER, Job("megatron", on=PARTIAL)),
    "sequence parallel": ("train", Job("megatron", tp=2, sequence=True), Job("megatron", on=PARTIAL)),
    "pp2": ("train", Job("megatron", pp=2), Job("megatron")),
    "tp2 pp2": ("train", Job("megatron", tp=2, pp=2), Job("megatron", on=PARTIAL)),
    "sequence parallel pp2": ("train", Job("megatron", tp=2, pp=2, sequence=True), Job("megatron", on=PARTIAL)),
    "engine, parts": ("infer", PARTS, ENGINE_WHOLE),
    "engine, reduced inside": ("infer", Job("engine", tp=2), ENGINE_WHOLE),
    "chunks": ("infer", Job("engine", forwards="chunks"), Job("engine")),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_the_plan_makes_the_tensors_of_one_rank(parallel: Parallel, tmp_path: Path, plan: tuple[str, Job, Job]) -> None:
    """Every tensor that one rank records, those that are no boundary too, bit for bit.

    Vocabularies go without their padding; channels of a fused q, k and v may stand in another order; the block of layers is one on each
    stage.
    """
    label, several, one = plan
    roots = [parallel.root(job) for job in ((several, Job("engine")) if label == "train" else (Job("megatron"), several))]
    made = {each["name"]: each for each in diagnosed(*roots, tmp_path / "out").mapping["ranks"][label]["tensors"]}
    folder = parallel.root(one) / "step0/rank0/dump_tensor_data"
    names = {path.name.removesuffix(".pt") for path in folder.glob("*.pt")}
    names -= {name for name in names if several.pp > 1 and ".TransformerBlock." in name}
    assert names - set(made) == set()
    read, whole = reader(parallel.root(several)), reader(parallel.root(one))
    assert [name for name in sorted(names) if not holds(put_together(read, made[name]), whole(name, 0, 0), name)] == []


def put_together(read: Read, tensor: dict[str, Any]) -> torch.Tensor:
    """A tensor of the plan."""
    operand = {
        "sources": [{**part, "steps": part.get("steps", [])} for part in tensor["order"]],
        "combine": "sum" if tensor["how"] == "sum" else "cat",
        "axis": tensor["axis"],
        "steps": tensor.get("steps", []),
    }
    return value(read, operand if tensor["how"] in ("cat", "sum", "chunk") else operand["sources"][0])


def holds(made: torch.Tensor, whole: torch.Tensor, name: str) -> bool:
    """Whether a tensor of the plan is the one of one rank, as its docstring above says."""
    if made.numel() * VOCABULARY == whole.numel() * PADDED:
        made = made[:VOCABULARY] if name.endswith("weight") else made[..., :VOCABULARY]
    if "linear_qkv" in name and ".input." not in name:
        made, whole = (x.reshape(len(x), -1) if ".parameters." in name else x.reshape(-1, x.shape[-1]).T for x in (made, whole))
        made, whole = (torch.stack(sorted(x.double(), key=torch.Tensor.tolist)) for x in (made, whole))
    return made.numel() == whole.numel() and torch.equal(made.reshape(-1).double(), whole.reshape(-1).double())


# --- what does not belong together ---


def copied(parallel: Parallel, job: Job, folder: Path) -> Path:
    return Path(shutil.copytree(parallel.root(job), folder))


def one_clear_answer(found: Said, about: str, undecided: set[str]) -> None:
    """Either one line that says what is wrong and exit 2, or an answer in which these rows are missing evidence, with the reason."""
    if found.code == 2:
        lines = [line for line in found.told.splitlines() if line.startswith("Cannot")]
        assert len(lines) == 1, found.told
        assert ".json" not in lines[0], lines[0]  # the fault is the dump's, not an artefact's
        assert re.search(about, lines[0]), lines[0]
        return
    assert found.code == 0
    assert re.search(about, found.told + " ".join(found.reasons.values())), found.told
    # What one side alone has under another name has no row; it is among what stands before the divergence uncompared.
    assert {name for name in undecided if found.rows.get(name, ("evidence_missing", None)) != ("evidence_missing", None)} == set()
    assert undecided & set(found.reasons) or not undecided


SHARDED_OF_LAYER = ("q.out", "v.out", "gate.out", "up.out", "act_mul.out", "down.weight")
SHARDED = {f"layers.{layer}.{name}" for layer in range(3) for name in SHARDED_OF_LAYER}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_missing_rank_is_told(parallel: Parallel, tmp_path: Path, rank: int) -> None:
    """Half of the channels are no whole tensor, and are never called equal to one."""
    root = copied(parallel, TRAINER, tmp_path / "train")
    shutil.rmtree(root / f"step0/rank{rank}")
    found = diagnosed(root, parallel.root(Job("engine")), tmp_path / "out")
    one_clear_answer(found, "rank|shard|part", SHARDED)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_missing_stage_is_told(parallel: Parallel, tmp_path: Path, rank: int) -> None:
    """The layers of the other stage are compared, those of this one are not made up."""
    root = copied(parallel, Job("megatron", pp=2), tmp_path / "train")
    shutil.rmtree(root / f"step0/rank{rank}")
    found = diagnosed(root, parallel.root(Job("engine")), tmp_path / "out")
    lost = {f"layers.{layer}.{name}" for layer in ([2] if rank else [0, 1]) for name in ("q.out", "o_proj.out", "resid_mlp")}
    one_clear_answer(found, "rank|stage|layer|token", lost)


def test_a_rank_of_another_step_is_told(parallel: Parallel, tmp_path: Path) -> None:
    """Rank 1 was recorded a training step later, with other weights: its shards are not put to rank 0's in silence."""
    root = copied(parallel, TRAINER, tmp_path / "train")
    later = copied(parallel, TRAINER._replace(on=STALE), tmp_path / "later")
    shutil.rmtree(root / "step0/rank1")
    (root / "step1").mkdir()
    (later / "step0/rank1").rename(root / "step1/rank1")
    found = diagnosed(root, parallel.root(Job("engine")), tmp_path / "out")
    one_clear_answer(found, "rank|step", SHARDED)


def test_a_rank_that_disagrees_is_a_finding(parallel: Parallel, tmp_path: Path) -> None:
    """Rank 1 ran with another weight in layer 1: what both ranks must hold alike differs from there on, and the plan says so."""
    root = copied(parallel, TRAINER, tmp_path / "train")
    other = copied(parallel, TRAINER._replace(on=STALE), tmp_path / "other")
    shutil.rmtree(root / "step0/rank1")
    (other / "step0/rank1").rename(root / "step0/rank1")
    found = diagnosed(root, parallel.root(PARTS), tmp_path / "out")
    assert found.code == 0, found.told
    disagree = {each["name"]: each for each in found.mapping["ranks"]["train"]["disagree"]}
    first = "Module.decoder.layers.1.mlp.linear_fc2.RowParallelLinear.forward.0.output.0"
    assert first in disagree
    reads = [reader(parallel.root(job)) for job in (TRAINER, TRAINER._replace(on=STALE))]
    one, two = (read(first, rank, 0) for rank, read in enumerate(reads))
    assert disagree[first]["unequal"] == int((one != two).sum())
    assert not any("layers.0." in name for name in disagree)


def test_ranks_of_two_prompts_are_told(parallel: Parallel, tmp_path: Path) -> None:
    """Two tensor-parallel ranks whose tokens differ are no two halves of one forward."""
    root = copied(parallel, TRAINER, tmp_path / "train")
    other = copied(parallel, TRAINER._replace(prompts=(1,)), tmp_path / "other")
    shutil.rmtree(root / "step0/rank1")
    (other / "step0/rank1").rename(root / "step0/rank1")
    found = diagnosed(root, parallel.root(Job("engine")), tmp_path / "out")
    one_clear_answer(found, "rank|token|prompt", SHARDED)


def test_replicas_that_all_ran_another_prompt_are_told(parallel: Parallel, tmp_path: Path) -> None:
    """No replica ran the engine's prompt: nothing is compared."""
    found = diagnosed(parallel.root(Job("hf", prompts=(1, 2))), parallel.root(Job("engine")), tmp_path / "out")
    assert found.code == 2
    one_clear_answer(found, "token|prompt", set())


def test_a_shard_that_fits_nowhere_is_left_out(parallel: Parallel, tmp_path: Path) -> None:
    """Rank 1's part of down_proj's input in layer 1 was cut to another width: that row alone is not decided."""
    root = copied(parallel, TRAINER, tmp_path / "train")
    name = "Module.decoder.layers.1.mlp.linear_fc2.RowParallelLinear.forward.0.input.0"
    file = root / f"step0/rank1/dump_tensor_data/{name}.pt"
    torch.save(torch.load(file)[..., :40].clone(), file)

    def narrow(dump: Any) -> None:
        dump["data"][name.removesuffix(".input.0")]["input_args"][0]["shape"][-1] = 40

    edit_json(root / "step0/rank1/dump.json", narrow)
    found = diagnosed(root, parallel.root(PARTS), tmp_path / "out")
    one_clear_answer(found, "rank|shard|part|wid|shape|fit", {"layers.1.act_mul.out"})
    if found.code == 0:
        wrong = differing(stated(found.rows), expected(parallel, TRAINER, PARTS))
        assert {name for name in wrong if not re.match(r"layers\.1\.(gate|up|act_mul|down)\.|.*\.1\.mlp\.", name)} == set()
        assert "NOT_EXACT" not in {status for status, _ in found.rows.values()}
