"""Where inputs came from in dumps of real frameworks: each edge is checked by torch on the files that it names."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import Edge, ReplayResults
from laying import Sample
from torch import Tensor

PAIRS = ["qwen2-hf-vllm-clean", "qwen2-hf-sglang-clean", "qwen2-megatron_tp1-sglang-clean", "qwen3_moe-megatron_tp1-sglang-clean"]
PAIRS += ["qwen2-megatron_te_shaped-sglang-clean", "qwen2-fsdp1_rank0-vllm-clean", "qwen2-hf-vllm-padding", "qwen2-hf-vllm-kv_swapped"]
SEVERAL = ["qwen3-megatron_tp2-sglang_tp2-clean", "qwen2-megatron_pp2-hf-clean", "qwen2-hf-vllm_no_weights-chunked"]
SEVERAL += ["qwen2-hf-sglang-cached_prefix"]
# What only attention, routing or an operation between modules can have made, by the last names of the module and of the input.
MADE_BY_NO_MODULE = {
    "o_proj", "linear_proj", "linear_fc2", "scale_mask_softmax", "attention_dropout", "core_attention", "down_proj", "experts", "router",
}  # fmt: skip


def replayed(pair: Sample, folder: Path) -> ReplayResults:
    """Stages 2 and 4 with the mapping that the dumps tell."""
    train, infer = pipeline.open_pair([str(pair.train)], [str(pair.infer)])
    mapping, _ = pipeline.mapping_step(train, infer, None)
    results, told = pipeline.replay_step(train, infer, mapping, "0" * 64, folder / pipeline.REPLAY, {}, quiet=True)
    assert told.warnings == []
    return results


def loaded(root: Path, name: str) -> Tensor:
    (path,) = root.glob(f"**/dump_tensor_data/{name}.pt")
    tensor: Tensor = torch.load(path, map_location="cpu", weights_only=True)
    return tensor


def holds(root: Path, edge: Edge) -> bool:
    """Whether torch makes the input of what the edge names."""
    made, sources = loaded(root, edge.input), [loaded(root, name) for name in edge.sources]
    if edge.how == "slice":
        return in_rows(made, sources[0]) or in_columns(made, sources[0])
    flat = [one.reshape(-1) for one in sources]
    if edge.how == "copy":
        expected = flat[0]
    elif edge.how == "product" and len(sources) == 1:  # an activation of one half times the other; how that rounds is replay's to say
        gate, up = sources[0].float().reshape(-1, sources[0].shape[-1]).chunk(2, -1)
        return torch.allclose((torch.nn.functional.silu(gate) * up).reshape(-1), made.float().reshape(-1), rtol=0.02, atol=1e-6)
    else:
        expected = flat[0] + flat[1] if edge.how == "sum" else flat[0] * flat[1]
    return bool((expected == made.reshape(-1)).all())


def in_rows(made: Tensor, whole: Tensor) -> bool:
    """Whether every row is one of another tensor's."""
    rows = {tuple(row.tolist()) for row in whole.reshape(-1, whole.shape[-1])}
    return all(tuple(row.tolist()) in rows for row in made.reshape(-1, made.shape[-1]))


def in_columns(made: Tensor, whole: Tensor) -> bool:
    """Whether every column, of all tokens, is one of another tensor's."""
    tokens = whole.numel() // whole.shape[-1]
    columns = {tuple(column.tolist()) for column in whole.reshape(tokens, -1).T}
    return all(tuple(column.tolist()) in columns for column in made.reshape(tokens, -1).T)


def leaf_inputs(root: Path) -> set[str]:
    """The floating inputs of modules without modules inside, from dump.json and construct.json."""
    (path,) = root.glob("**/dump.json")
    data = json.loads(path.read_text())["data"]
    above = json.loads((path.parent / "construct.json").read_text()).values()
    parents = {one[0] if isinstance(one, list) else one for one in above}  # Megatron's come with their micro step
    names = {file.stem for file in path.parent.glob("dump_tensor_data/*.pt")}
    wanted = {name for name in names if ".input." in name or ".kwargs." in name}
    leaves = [entry for entry in data if entry not in parents]
    found = {name for name in wanted for entry in leaves if name.startswith((f"{entry}.input.", f"{entry}.kwargs."))}
    return {name for name in found if loaded(root, name).is_floating_point()}


@pytest.mark.parametrize("name", PAIRS)
def test_torch_makes_every_input_of_what_the_edge_names(sample: Callable[[str], Sample], tmp_path: Path, name: str) -> None:
    """A source that is not the source, an input that is left out, an alteration that is none."""
    pair = sample(name)
    results = replayed(pair, tmp_path)
    for side, root in (("train", pair.train), ("infer", pair.infer)):
        edges = [edge for edge in results.edges if edge.side == side]
        assert {edge.input for edge in edges} == leaf_inputs(root)
        explained = [edge for edge in edges if edge.how != "unknown"]
        assert len(explained) >= 0.6 * len(edges)
        for edge in explained:
            assert edge.unexplained == 0
            assert edge.how == "rotary_attention" or holds(root, edge), edge  # attention is tested where it is recomputed
        assert {edge.input.split(".forward.")[0].split(".")[-2] for edge in edges if edge.how == "unknown"} <= MADE_BY_NO_MODULE
    assert not [module.module for module in results.modules for told in module.evidence if told.kind == "replay_altered"]


@pytest.mark.parametrize("name", SEVERAL)
def test_several_ranks_stages_and_steps_are_put_together(sample: Callable[[str], Sample], tmp_path: Path, name: str) -> None:
    """An alteration where ranks meet: an all-reduce, a stage's first input, chunks, a cached prefix."""
    results = replayed(sample(f"several/{name}"), tmp_path)
    assert results.edges
    counts = Counter((edge.side, edge.how) for edge in results.edges)
    for side in ("train", "infer"):
        assert counts[side, "altered"] == 0
        assert counts[side, "copy"] + counts[side, "slice"] + counts[side, "sum"] >= 0.6 * sum(
            n for (of, _), n in counts.items() if of == side
        )
    assert [edge.unexplained for edge in results.edges if edge.how != "unknown"].count(0) > 10
