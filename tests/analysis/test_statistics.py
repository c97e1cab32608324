"""Dumps without tensors: what statistics and digests say, what they never say, and the mapping that they give."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis import stated_rows, statistics
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.sides import open_side
from dump_analysis.statistics import Facts, agreement, bounds_of, sums_that_may_be, together
from dump_analysis.wording import TABLE, render
from editing import edit_json, unit_of
from laying import SAMPLES, Sample
from msprobe_files.operands import parse
from running import run_command
from thinning import crc, thinned, xor

STORY = SAMPLES / "statistics/qwen2-24-layers"
KINDS = ("input_norm.out", "q.out", "k.out", "v.out", "attn_core.out", "o_proj.out", "resid_attn", "post_norm.out")
KINDS += ("gate.out", "up.out", "act_mul.out", "down.out", "resid_mlp")
# Fused on both sides, and laid out unlike: what nothing in statistics shows.
UNTOLD = {"qwen2-megatron_tp1-sglang-clean", "qwen2-megatron_tp1-sglang-rope_theta", "qwen2-megatron_te_shaped-sglang-clean"}


def norms(value: float, dtype: str = "bfloat16") -> Facts:
    return Facts(4096, dtype, None, None, None, value)


def as_bfloat16(values: "np.ndarray[Any, np.dtype[np.float64]]") -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Rounded to 8 significant bits, to nearest, ties to even: arithmetic of our own, for finite values of normal size."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


def facts(values: "np.ndarray[Any, np.dtype[np.float64]]") -> Facts:
    """What msprobe records of a bfloat16 tensor: extremes as they are, mean and norm rounded."""
    mean, norm = as_bfloat16(np.array([values.mean(), np.sqrt((values**2).sum())]))
    return Facts(values.size, "bfloat16", float(values.max()), float(values.min()), float(mean), float(norm))


# --- two records ---


@pytest.mark.parametrize(
    ("train", "infer", "agree", "resolution", "steps"),
    [(1725.05, 1728.0, "yes", 8.0, 0.37), (1723.28, 1696.0, "no", 8.0, 3.41), (538.36, 684.0, "no", 4.0, 36.41)],
)
def test_b10_statistics_have_the_resolution_of_the_dtype(train: float, infer: float, agree: str, resolution: float, steps: float) -> None:
    """Catches a percentage in place of steps: 0.17 % and 1.6 % of a norm above 1024 are nothing and a difference."""
    found = agreement(norms(train), norms(infer))
    assert (found.agree, found.resolution, round(found.apart["norm"], 2)) == (agree, resolution, steps)


@pytest.mark.parametrize(("norm", "agree"), [(1736.0, "yes"), (1744.0, "no")])
def test_one_step_is_the_most_that_rounding_leaves_of_an_average(norm: float, agree: str) -> None:
    """Both sides of the threshold: norms of real pairs without fault lie within one step."""
    assert agreement(norms(1728.0), norms(norm)).agree == agree


def test_float32_norms_may_differ_by_the_rounding_of_their_own_sums() -> None:
    """A sum of 4096 squares in float32 is no float32 fault after its seventh digit."""
    step = 2.0**-13  # of float32 from 1024 to 2048
    assert agreement(norms(1728.0, "float32"), norms(1728.0 + 60 * step, "float32")).agree == "yes"
    assert agreement(norms(1728.0, "float32"), norms(1728.0 + 70 * step, "float32")).agree == "no"


def test_a_mean_is_measured_by_the_size_of_the_values() -> None:
    """A mean near 0 has tiny steps of its own that any rounding of the values moves it by."""
    one = Facts(4096, "bfloat16", 3.0, -3.0, 1e-4, 64.0)
    assert agreement(one, one._replace(mean=2e-4)).agree == "yes"
    assert agreement(one, one._replace(mean=0.02)).agree == "no"


def test_extremes_alone_decide_nothing_of_what_is_computed() -> None:
    """One element may be many roundings away; the extremes of a weight are its elements, and no rounding moves them."""
    one = Facts(4096, "bfloat16", 3.0, -3.0, 0.0, 64.0)
    other = one._replace(largest=3.25)
    assert agreement(one, other).agree == "cannot_tell"
    assert agreement(one, other, computed=False).agree == "no"
    assert agreement(one, one._replace(norm=None, mean=None)).agree == "cannot_tell"


@pytest.mark.parametrize(
    ("train", "infer", "agree"),
    [
        (Facts(8, "int64", 9.0, 1.0, None, None), Facts(8, "int32", 9.0, 1.0, None, None), "yes"),
        (Facts(8, "int64", 9.0, 1.0, None, None), Facts(8, "int32", 8.0, 1.0, None, None), "no"),
        (Facts(8, "bfloat16", 9.0, 1.0, 3.0, 9.0), Facts(6, "bfloat16", 9.0, 1.0, 3.0, 9.0), "cannot_tell"),
        (Facts(8, "bfloat16", float("nan"), 1.0, 3.0, 9.0), Facts(8, "bfloat16", 9.0, 1.0, 3.0, 9.0), "no"),
        (Facts(8, "bfloat16", float("nan"), 1.0, 3.0, 9.0), Facts(8, "bfloat16", float("nan"), 1.0, 3.0, 9.0), "cannot_tell"),
        (Facts(8, "bfloat16", None, None, None, None), Facts(8, "bfloat16", None, None, None, None), "cannot_tell"),
    ],
)
def test_what_is_no_plain_pair_of_floats(train: Facts, infer: Facts, agree: str) -> None:
    """Integers by their extremes, other row counts not at all, NaN on one side alone is a difference."""
    assert agreement(train, infer).agree == agree


def test_the_statistics_of_a_permuted_tensor_are_the_same() -> None:
    """B09: why statistics never show equality."""
    values = as_bfloat16(np.random.default_rng(0).standard_normal((24, 64)))
    assert agreement(facts(values), facts(values[::-1])).agree == "yes"


def test_statistics_side_by_side() -> None:
    """Those of q, k and v together against those of the fused tensor, computed on the values."""
    parts = [as_bfloat16(np.random.default_rng(n).standard_normal((24, 16 * n)) * n) for n in (1, 2, 3)]
    found, whole = together([facts(part) for part in parts]), facts(np.concatenate(parts, 1))
    assert (found.largest, found.smallest, found.elements) == (whole.largest, whole.smallest, whole.elements)
    assert agreement(found, whole).agree == "yes"


def test_a_sum_is_told_from_other_tensors_by_its_mean() -> None:
    """Catches a residual stream that is followed through a tensor which is no sum of the two."""
    random = np.random.default_rng(1)
    x, y, other = (as_bfloat16(random.standard_normal((24, 64)) + shift) for shift in (0.1, 0.3, -0.2))
    addends = bounds_of([facts(x), facts(y), facts(other)])
    found = sums_that_may_be(addends, bounds_of([facts(as_bfloat16(x + y))]), x.size)
    assert found[0, 1]
    assert not found[0, 2]
    assert not found[1, 2]


# --- the user's story ---


class Answer:
    """What ``diagnose`` left, and what it printed."""

    def __init__(self, train: Path, infer: Path, out: Path) -> None:
        ran = run_command("diagnose.py", "--train", train, "--infer", infer, "--output-dir", out, "--exit-code", "--quiet")
        self.code, self.text, self.error = ran.returncode, ran.stdout, ran.stderr
        self.mapping, self.results, self.conclusion = (
            json.loads((out / name).read_text()) for name in ("semantic_mapping.json", "boundary_results.json", "conclusion.json")
        )
        self.by_name = {row["boundary"]: row for row in [*self.results["boundaries"], *self.results["weights"]]}

    def agree(self, boundary: str) -> str | None:
        found = self.by_name[boundary]["statistics"]
        return None if found is None else found["agree"]

    def statuses(self) -> set[str]:
        return {row["status"] for row in self.by_name.values()}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return Answer(STORY / "train", STORY / "infer", tmp_path_factory.mktemp("story"))


def test_the_story_is_told_without_a_hint(story: Answer) -> None:
    """24 layers, statistics alone: they agree in layers 0 to 23, and that proves nothing."""
    assert (story.code, story.conclusion["overall"], story.conclusion["consistency"]) == (3, "evidence_missing", "undecided")
    assert story.statuses() == {"evidence_missing"}
    every = [f"layers.{layer}.{kind}" for layer in range(24) for kind in KINDS]
    assert {name: story.agree(name) for name in ["input_ids", "positions", "embedding.out", *every, "final_norm.out"]} == dict.fromkeys(
        ["input_ids", "positions", "embedding.out", *every, "final_norm.out"], "yes"
    )
    _, first, second = story.text.splitlines()[:3]
    assert "layers 0 to 23" in first
    assert "none disagrees" in first
    assert "never show equality" in first
    assert "24 layers of infer return two parts" in second
    assert "return as one sum" in second


def test_a_sum_is_never_compared_with_one_of_its_parts(story: Answer) -> None:
    """The false alarm of the story: the trainer's layer output against one of the engine's two."""
    layers = {
        row["boundary"]: [source["name"] for source in row["infer"]["sources"]]
        for row in story.mapping["boundaries"]
        if any("DecoderLayer.forward.0.output" in source["name"] for source in row["train"]["sources"])
    }
    assert set(layers) == {f"layers.{layer}.resid_mlp" for layer in range(24)}
    for layer in range(24):
        following = f"layers.{layer + 1}.input_layernorm" if layer < 23 else "norm"
        assert layers[f"layers.{layer}.resid_mlp"] == [f"Module.model.{following}.RMSNorm.forward.0.output.1"]


def test_what_would_decide_names_modules_to_dump_again(story: Answer) -> None:
    (wanted,) = [item for item in story.conclusion["would_decide"] if item["kind"] == "decide_tensors"]
    assert "Module.model.layers.23.self_attn.o_proj.RowParallelLinear.forward.0" in wanted["values"]["names"]


def test_one_stale_weight_shows_from_there_on(tmp_path: Path) -> None:
    """o_proj of layer 13 is of another draw: nothing before disagrees, and what would decide names that module alone."""
    found = Answer(STORY / "train", STORY / "infer_stale_o_proj", tmp_path / "out")
    named = [row["boundary"] for row in found.results["boundaries"] if row["statistics"]]
    apart = [name for name in named if found.agree(name) == "no"]
    assert apart[0] == "layers.13.o_proj.out"
    assert {found.agree(name) for name in named[: named.index(apart[0])]} == {"yes"}
    assert {f"layers.{layer}.resid_attn" for layer in range(13, 16)} <= set(apart)
    assert (found.code, found.conclusion["overall"], found.conclusion["consistency"]) == (3, "evidence_missing", "undecided")
    assert "first at layers.13.o_proj.out" in found.text
    (wanted,) = [item for item in found.conclusion["would_decide"] if item["kind"] == "decide_tensors"]
    assert [name.split("layers.")[1].split(".")[0] for name in wanted["values"]["names"]] == ["13", "13"]


@pytest.mark.parametrize("given", ["dump.json", "construct.json"])
def test_any_one_of_the_files_finds_the_others(story: Answer, tmp_path: Path, given: str) -> None:
    """The story's first trouble: a layer map that was empty because only dump.json was handed in."""
    found = Answer(unit_of(STORY / "train") / given, unit_of(STORY / "infer") / given, tmp_path / "out")
    assert found.mapping["boundaries"] == story.mapping["boundaries"]


def test_without_construct_json_paths_tell_the_nesting(story: Answer, tmp_path: Path) -> None:
    """Catches a mapping that needs what ``extra_info: false`` leaves out."""
    sides = [Path(shutil.copytree(STORY / side, tmp_path / side)) for side in ("train", "infer")]
    for side in sides:
        (unit_of(side) / "construct.json").unlink()
    found = Answer(sides[0], sides[1], tmp_path / "out")
    names = [{row["boundary"] for row in one.mapping["boundaries"]} for one in (found, story)]
    assert len(names[0] & names[1]) >= 0.95 * len(names[1])


def test_names_of_modules_decide_nothing(story: Answer, tmp_path: Path) -> None:
    """Every part of every path and class of the engine replaced: the same boundaries of the same tensors."""
    words: dict[str, str] = {}

    def renamed(text: str) -> str:
        parts = text.split(".")
        kept = {"Module", "forward", "backward"}
        return ".".join(part if part in kept or part.isdigit() else words.setdefault(part, f"w{len(words)}") for part in parts)

    side = Path(shutil.copytree(STORY / "infer", tmp_path / "infer"))
    edit_json(unit_of(side) / "dump.json", lambda dump: dump.update(data={renamed(name): value for name, value in dump["data"].items()}))
    trace = {
        renamed(child): parent and renamed(parent) for child, parent in json.loads((unit_of(side) / "construct.json").read_text()).items()
    }
    (unit_of(side) / "construct.json").write_text(json.dumps(trace))
    found = Answer(STORY / "train", side, tmp_path / "out")
    back = {renamed(row["infer"]["sources"][0]["name"].rsplit(".", 2)[0]): row["boundary"] for row in story.mapping["boundaries"]}
    assert [row["boundary"] for row in found.mapping["boundaries"]] == [row["boundary"] for row in story.mapping["boundaries"]]
    assert {row["infer"]["sources"][0]["name"].rsplit(".", 2)[0] for row in found.mapping["boundaries"]} == set(back)


# --- the mapping that tensors give ---


@pytest.mark.parametrize(
    "name",
    [
        "qwen2-hf-vllm-clean", "qwen2-hf-vllm-kv_swapped", "qwen2-hf-vllm-rms_eps", "qwen2-fsdp1_rank0-vllm-clean", "qwen2-hf-sglang-clean",
        "qwen2-hf-sglang512-clean", "qwen2-megatron_tp1-sglang-clean", "qwen2-megatron_te_shaped-sglang-clean", "qwen2-toy-26.2.0",
    ],
)  # fmt: skip
def test_real_pairs_are_mapped_as_by_hand(name: str, sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """The declared rows of a sample by its dump.json files alone: each name, with tensors of the statistics of the declared ones."""
    given = sample(name)
    sides = [thinned(getattr(given, side), tmp_path / side) for side in ("train", "infer")]
    found = Answer(*sides, tmp_path / "out")
    records = [{record.name: record for unit in open_side("train", [str(side)]).units for record in unit.records()} for side in sides]
    proposed = {row["boundary"]: row for row in found.mapping["boundaries"]}
    declared = {row["boundary"]: row for row in json.loads(given.mapping.read_text())["boundaries"]}
    assert not {boundary for boundary in declared if boundary not in proposed}
    for boundary, row in declared.items():
        for at, side in enumerate(("train", "infer")):
            want, got = (one[side]["sources"] for one in (row, proposed[boundary]))
            if len(want) == len(got) == 1 and not _cuts(want[0]) and not _cuts(got[0]):
                assert records[at][got[0]["name"]].statistics == records[at][want[0]["name"]].statistics, (boundary, side)


def _cuts(source: dict[str, Any]) -> bool:
    return any(op["op"] in ("slice", "take") for op in source.get("steps") or [])


def test_real_rounding_is_no_disagreement(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Hugging Face against vLLM without a fault: nearly every boundary differs in bits, no statistics do."""
    given = sample("qwen2-hf-vllm-clean")
    found = Answer(*(thinned(getattr(given, side), tmp_path / side) for side in ("train", "infer")), tmp_path / "out")
    seen = Counter(found.agree(name) for name in found.by_name)
    assert seen["yes"] > 75
    assert seen["no"] == 0


def test_unequal_token_rows_are_not_compared(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Padding left in on one side: statistics of other tokens say nothing, and no row claims that they are the same."""
    given = sample("qwen2-hf-vllm-padding")
    found = Answer(*(thinned(getattr(given, side), tmp_path / side) for side in ("train", "infer")), tmp_path / "out")
    assert found.mapping["boundaries"] == []
    assert {row["reason"]["kind"] for row in found.mapping["evidence_missing"] if row["boundary"].endswith("q.out")} == {"token_rows_apart"}
    assert any(found.agree(name) == "yes" for name in found.by_name if name.endswith(".weight"))


def test_one_side_with_tensors(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Cuts of the side that saved tensors are measured: q, k and v of a fused tensor each by itself."""
    given = sample("qwen2-hf-vllm-clean")
    found = Answer(thinned(given.train, tmp_path / "train"), given.infer, tmp_path / "out")
    assert found.agree("layers.1.gate.out") == "yes"
    assert "together" not in found.by_name["layers.1.gate.out"]["reason"]["text"]
    assert found.statuses() == {"evidence_missing"}


# --- digests ---


def test_equal_digests_are_exact(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """vLLM against a copy: every whole tensor is EXACT by its digest."""
    given = sample("qwen2-vllm-onset-kv_swapped")
    found = Answer(thinned(given.train, tmp_path / "train", crc), thinned(given.train, tmp_path / "infer", crc), tmp_path / "out")
    assert found.statuses() == {"EXACT"}
    assert found.by_name["layers.1.o_proj.out"]["reason"]["kind"] == "digest_equal"
    assert (found.code, found.conclusion["overall"], found.conclusion["consistency"]) == (0, "exact", "consistent")


@pytest.mark.parametrize("name", ["qwen2-vllm-onset-kv_swapped", "qwen2-vllm-onset-stale_o_proj"])
def test_digests_part_where_tensors_do(name: str, sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """The first boundary that is not equal, and the weights that differ, as the sample's expected.json says of the tensors."""
    given = sample(name)
    sides = [thinned(getattr(given, side), tmp_path / side, crc) for side in ("train", "infer")]
    found = Answer(*sides, tmp_path / "out")
    records = [
        {record.name: record.digest for unit in open_side("train", [str(side)]).units for record in unit.records()} for side in sides
    ]
    unequal = {name for name in records[0] if records[0][name] != records[1][name]}
    for row in [*found.mapping["boundaries"], *found.mapping["weights"]]:
        (source,), status = row["train"]["sources"], found.by_name[row["boundary"]]["status"]
        apart = "evidence_missing" if _cuts(source) else "NOT_EXACT"  # which part of a fused tensor differs, its digest does not say
        assert status == (apart if source["name"] in unequal else "EXACT"), row["boundary"]
    logic = [finding["cause"]["kind"] for finding in found.conclusion["findings"] if finding["character"] == "logic"]
    if name.endswith("stale_o_proj"):
        assert (found.code, found.conclusion["overall"], found.conclusion["consistency"]) == (1, "nonzero", "inconsistent")
        assert logic == ["weight_digests_differ"]
    else:  # rows of a matrix that both sides fuse: nothing says how they lie, so a difference may be of their order
        assert (found.code, found.conclusion["overall"], found.conclusion["consistency"]) == (3, "nonzero", "undecided")
        assert found.by_name["layers.1.qkv.weight"]["reason"]["kind"] == "layout_untold"


def test_an_exclusive_or_shows_a_difference_and_no_equality(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Rows in another order have the same: equal ones stay evidence_missing and undecided."""
    given = sample("qwen2-vllm-onset-stale_o_proj")
    same = [thinned(given.train, tmp_path / side, xor, statistics=False) for side in ("train", "infer")]
    found = Answer(same[0], same[1], tmp_path / "out")
    assert found.statuses() == {"evidence_missing"}
    assert {found.by_name[name]["reason"]["kind"] for name in ("layers.1.o_proj.out", "embedding.out")} == {"digest_blind"}
    assert (found.code, found.conclusion["consistency"]) == (3, "undecided")
    other = Answer(same[0], thinned(given.infer, tmp_path / "stale", xor, statistics=False), tmp_path / "two")
    assert "NOT_EXACT" in other.statuses()
    assert "EXACT" not in other.statuses()


def _pair_of_digests(
    tmp_path: Path, train: dict[str, Any], infer: dict[str, Any], folders: tuple[str, str] = ("rank0", "rank0")
) -> list[Any]:
    sides = []
    for label, record, folder in (("train", train, folders[0]), ("infer", infer, folders[1])):
        unit = tmp_path / label / "step0" / folder
        unit.mkdir(parents=True)
        tensor = {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4, 8], "md5": "0badcafe", **record}
        entry = {"input_args": [], "input_kwargs": {}, "output": [tensor]}
        (unit / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L0", "data": {"Module.m.M.forward.0": entry}}))
        sides.append(open_side(label, [str(tmp_path / label)]))
    return sides


NAME = "Module.m.M.forward.0.output.0"


@pytest.mark.parametrize(
    ("infer", "steps", "status", "kind"),
    [
        ({}, [], "EXACT", "digest_equal"),
        ({"shape": [1, 4, 8]}, [{"op": "squeeze", "axis": 0}], "EXACT", "digest_equal"),
        ({"md5": "0badcaff"}, [], "NOT_EXACT", "digest_differs"),
        ({"md5": "0badcaff"}, [{"op": "permute", "axes": [0, 1]}], "evidence_missing", "digest_no_rows"),
        ({"dtype": "torch.float32"}, [], "evidence_missing", "digest_no_rows"),
        ({"shape": [8, 4]}, [], "evidence_missing", "digest_no_rows"),
        ({"md5": "0x000000000badcafe"}, [], "evidence_missing", "digest_no_rows"),
    ],
)
def test_a_digest_is_of_whole_tensors_of_one_dtype(
    tmp_path: Path, infer: dict[str, Any], steps: list[dict[str, Any]], status: str, kind: str
) -> None:
    """Only where the bytes are the same on both sides do digests decide; axes of size 1 leave them as they are."""
    sides = _pair_of_digests(tmp_path, {}, infer)
    row = Row("m.out", 0, parse({"sources": [{"name": NAME, "steps": []}]}), parse({"sources": [{"name": NAME, "steps": steps}]}))
    (found,) = stated_rows.results([row], *sides)
    assert (found.status, found.reason and found.reason.kind) == (status, kind)


def test_digests_of_old_releases_are_of_other_bytes(tmp_path: Path) -> None:
    """msprobe 8.1 digests bfloat16 as float32: against a newer one a difference says nothing."""
    sides = _pair_of_digests(tmp_path, {"md5": "00000001"}, {"md5": "00000002"}, ("rank", "rank0"))
    operand = parse({"sources": [{"name": NAME, "steps": []}]})
    (found,) = stated_rows.results([Row("m.out", 0, operand, operand)], *sides)
    assert (found.status, found.reason and found.reason.kind) == ("evidence_missing", "digest_releases")


def test_parts_that_do_not_make_up_the_whole_are_not_compared(tmp_path: Path) -> None:
    """Two thirds of a fused tensor's columns: its statistics are not theirs."""
    numbers = {"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 4.0}
    sides = _pair_of_digests(tmp_path, {"md5": None, **numbers}, {"md5": None, **numbers})

    def cut(start: int, stop: int) -> Any:
        return parse({"sources": [{"name": NAME, "steps": [{"op": "slice", "axis": 1, "start": start, "stop": stop}]}]})

    rows = [Row("a.out", 0, cut(0, 3), cut(0, 3)), Row("b.out", 1, cut(3, 6), cut(3, 6))]
    assert {row.statistics and row.statistics["agree"] for row in stated_rows.results(rows, *sides)} <= {None, "cannot_tell"}
    rows.append(Row("c.out", 2, cut(6, 8), cut(6, 8)))
    assert {row.statistics and row.statistics["agree"] for row in stated_rows.results(rows, *sides)} == {"yes"}


def test_every_kind_of_this_subject_is_worded_in_both_languages() -> None:
    """A sentence without its Chinese, or with a value that only one language names."""
    for kind in [kind for kind in TABLE if kind.startswith(("stats_", "sum_stats", "sum_digest", "digest_"))]:
        english, chinese = TABLE[kind]
        values = dict.fromkeys(
            ("what", "why", "train", "infer", "name", "names", "steps", "step", "side", "sides", "digest", "damaged"), "x"
        )
        values |= dict.fromkeys(("n", "of", "untold", "layers", "first", "last", "later", "left", "digests", "gaps", "weights"), "1")
        assert render(kind, values, "en") == english.format(**values)
        assert render(kind, values, "zh-CN") == chinese.format(**values)


def test_a_step_is_the_distance_of_neighbours() -> None:
    """Against numpy's own spacing where it has the format."""
    for value in (0.0, 1.0, 1.5, 1023.5, 1024.0, 1e-9, 6e-8):
        assert statistics.step(value, "float32") == float(np.spacing(np.float32(value)))
        assert statistics.step(value, "float16") == float(np.spacing(np.float16(value)))
    assert [statistics.step(value, "bfloat16") for value in (1.0, 1024.0, 2047.0)] == [2.0**-7, 8.0, 8.0]
