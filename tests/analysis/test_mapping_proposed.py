"""The mapping that two recorded dumps tell: against mappings by hand, with other names, with less recorded, and again.

The reference reads files with the standard library's pickle and cuts them with numpy alone: nothing of the product.
"""

import json
import pickle
import random
import re
import zipfile
from collections.abc import Callable
from functools import reduce
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts import io
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from editing import copy_side, unit_of
from laying import SAMPLES, Sample
from running import run_command

Array = np.ndarray[Any, Any]
Json = dict[str, Any]

# In this one no token joins the sides: test_proposal.py holds the line that says so.
SINGLE = sorted({path.parent.name for path in SAMPLES.glob("*/pair.json")} - {"mini_tensor-26.1-against-26.2"})
PAIRS = SINGLE + sorted(f"several/{path.parent.name}" for path in SAMPLES.glob("several/*/pair.json"))
FLAT = "qwen2-fsdp1_rank0-vllm-clean"
ONE_ENGINE = ["qwen2-vllm-onset-kv_swapped", "qwen2-vllm-onset-stale_o_proj"]
KINDS = [
    "qwen2-hf-vllm-clean", "qwen2-hf-sglang-clean", "qwen2-megatron_tp1-sglang-clean", FLAT, "qwen2-toy-26.2.0",
    "qwen2-hf-vllm_no_weights-two_requests", "qwen3_moe-megatron_tp1-sglang-clean",
]  # fmt: skip
# Every pair with both sides changed; of the kinds of pairs also each side alone.
CHANGED = [(name, "train+infer") for name in PAIRS] + [(name, side) for name in KINDS for side in ("train", "infer")]


# --- the reference: a reader of .pt files and of operands ---

_TYPES = {"BFloat16Storage": "<u2", "FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8", "IntStorage": "<i4"}


class _Reader(pickle.Unpickler):
    """data.pkl of a torch archive, with numpy in place of torch."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        (member,) = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        super().__init__(BytesIO(archive.read(member)))
        self._archive, self._folder = archive, member.removesuffix("data.pkl")

    def find_class(self, module: str, name: str) -> Any:
        known = {"_rebuild_tensor_v2": _cut, "_rebuild_parameter": lambda data, *_: data, "OrderedDict": dict}
        return known.get(name, name)

    def persistent_load(self, key: Any) -> Array:
        _, kind, name, *_ = key
        raw = np.frombuffer(self._archive.read(f"{self._folder}data/{name}"), _TYPES[kind])
        wide = (raw.astype("<u4") << 16).view("<f4") if kind == "BFloat16Storage" else raw
        return wide.astype(np.float64)


def _cut(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Array:
    return np.lib.stride_tricks.as_strided(storage[offset:], size, [step * storage.itemsize for step in stride])


def units_of(side: Path) -> list[Path]:
    return sorted(file.parent for file in side.rglob("dump.json"))


def recorded(side: Path, source: Json) -> Array:
    """A recorded tensor; of several units that of the source's step and rank, 0 where it names none."""
    units = units_of(side)
    unit = units[0] if len(units) == 1 else side / f"step{source.get('dump_step', 0)}" / f"rank{source.get('rank', 0)}"
    with zipfile.ZipFile(unit / "dump_tensor_data" / f"{source['name']}.pt") as archive:
        found: Array = _Reader(archive).load()
    return found


def applied(values: Array, op: Json) -> Array:
    if op["op"] == "squeeze":
        return values.squeeze(op["axis"])
    if op["op"] == "reshape":
        return values.reshape(op["shape"])
    if op["op"] == "permute":
        return values.transpose(op["axes"])
    if op["op"] == "slice":
        return values[(slice(None),) * (op["axis"] % values.ndim) + (slice(op.get("start"), op.get("stop")),)]
    if op["op"] == "take":
        runs = [at for start, stop in op.get("runs", ()) for at in range(start, stop)]
        return values.take(op.get("index") or runs, op["axis"])
    assert op["op"] == "cast", op  # to a wider type: the numbers stay
    return values


def value(side: Path, operand: Json) -> Array:
    """The numbers of an operand; a sum of bfloat16 tensors is rounded as one of them."""
    parts = [reduce(applied, source["steps"], recorded(side, source)) for source in operand["sources"]]
    if operand["combine"] == "cat":
        return np.concatenate(parts, operand["axis"])
    assert len(parts) == 1 or all(np.array_equal(part, in_bfloat16(part)) for part in parts)
    return in_bfloat16(sum(parts[1:], parts[0])) if len(parts) > 1 else parts[0]


def in_bfloat16(values: Array) -> Array:
    """Rounded to the nearest, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32).astype(np.float64)


def pairs(pair: Sample, row: Json) -> Array:
    """[elements, 2]: what the row joins, element by element, in an order of its own."""
    both = [value(pair.train, row["train"]).reshape(-1), value(pair.infer, row["infer"]).reshape(-1)]
    assert both[0].shape == both[1].shape, row["boundary"]
    return np.stack(both, 1)[np.lexsort((both[1], both[0]))] + 0.0


# --- the product ---


def proposed(train: Path, infer: Path) -> SemanticMapping:
    return pipeline.propose_step(*pipeline.open_pair([str(train)], [str(infer)]))[0]


def as_json(mapping: SemanticMapping) -> Any:
    return json.loads(io.text_of(mapping))


@pytest.fixture(scope="module")
def of_sample(sample: Callable[[str], Sample]) -> Callable[[str], Json]:
    """The mapping proposed on a sample, each once; not to be changed."""
    made: dict[str, Json] = {}

    def by_name(name: str) -> Json:
        if name not in made:
            made[name] = as_json(proposed(sample(name).train, sample(name).infer))
        return made[name]

    return by_name


def all_rows(mapping: Json) -> list[Json]:
    return [*mapping["boundaries"], *mapping["weights"]]


# --- against mappings by hand ---


@pytest.mark.parametrize("name", PAIRS)
def test_what_was_joined_by_hand_is_joined_under_the_same_name(
    sample: Callable[[str], Sample], of_sample: Callable[[str], Json], name: str
) -> None:
    """Each element of the trainer with its own element of the engine: k joined with v, rows of another token, a wrong slice are seen."""
    pair, found = sample(name), of_sample(name)
    joined = {row["boundary"]: pairs(pair, row) for row in all_rows(found)}
    gaps = {row["boundary"] for row in found["evidence_missing"]}
    by_hand = json.loads(pair.mapping.read_text())
    for row in by_hand["boundaries"] + ([] if name == FLAT else by_hand["weights"]):
        expected = pairs(pair, row)
        same = [boundary for boundary, values in joined.items() if np.array_equal(values, expected)]
        assert row["boundary"] in same, same or [row["boundary"] in joined, row["boundary"] in gaps]


@pytest.mark.parametrize("name", ONE_ENGINE)
def test_between_two_dumps_of_one_engine_every_tensor_meets_its_namesake(of_sample: Callable[[str], Json], name: str) -> None:
    """No row more than that, with a fault in layer 1: rows that no mapping by hand holds are seen too."""
    for row in all_rows(of_sample(name)):
        assert row["train"] == row["infer"], row["boundary"]


def test_weights_in_flat_parameters_are_cut_out_as_by_hand(sample: Callable[[str], Sample], of_sample: Callable[[str], Json]) -> None:
    """FSDP1: none forgotten, none cut at another place."""
    found = of_sample(FLAT)
    by_hand = json.loads(sample(FLAT).mapping.read_text())["weights"]

    def stretches(rows: list[Json]) -> dict[str, tuple[str, int, int]]:
        sources = {row["boundary"]: row["train"]["sources"][0] for row in rows}
        return {name: (one["name"], one["steps"][0]["start"], one["steps"][0]["stop"]) for name, one in sources.items()}

    cut = stretches(found["weights"])
    assert stretches(by_hand).items() <= cut.items()
    assert set(cut) - {row["boundary"] for row in by_hand} == {
        "embedding.weight",
        "final_norm.weight",
    }  # in the root's, without a row by hand
    assert {row["basis"][0] for row in found["weights"]} == {"weights"}


# --- other names ---


class Renaming:
    """Another word for each part of a module's path and for its class, the same for the same part; numbers too."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words: dict[str, str] = {"Module": "Module"}

    def text(self, text: str) -> str:
        found = re.fullmatch(r"(Module\..+)(\.forward\.\d+.*)", text, re.DOTALL)
        return text if found is None else ".".join(map(self._word, found[1].split("."))) + found[2]

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def side(self, source: Path, target: Path) -> Path:
        for unit in units_of(copy_side(source, target)):
            for file in [unit / "dump.json", unit / "construct.json", unit / "stack.json"]:
                if file.exists():
                    file.write_text(json.dumps(self.value(json.loads(file.read_text()))))
            for file in sorted((unit / "dump_tensor_data").iterdir()):
                file.rename(file.with_name(self.text(file.name)))
        return target

    def row(self, row: Json, side: str) -> Json:
        """A row, or a gap, with the other names on one side; the trainer's also where they stand for a boundary."""
        changed = {**row, side: self.value(row[side])}
        if "module" in row:
            changed["module"] = {**row["module"], side: self.value(row["module"][side])}
        if side == "train":
            changed["boundary"] = self.text(row["boundary"])
        changed.pop("reason", None)  # a sentence with names in it
        return changed

    def _word(self, part: str) -> str:
        if part not in self._words:
            self._words[part] = "".join(self._random.choices("bcdfghjklmnpqrstvwxz", k=8)).capitalize()
        return self._words[part]


@pytest.mark.parametrize(("name", "renamed"), CHANGED)
def test_names_decide_nothing(
    sample: Callable[[str], Sample], of_sample: Callable[[str], Json], tmp_path: Path, name: str, renamed: str
) -> None:
    """Random words for all modules and classes: any keyword or any ``layers.0`` that is read would change a row, its order or its name."""
    pair = sample(name)
    words = {side: Renaming(seed) for seed, side in enumerate(renamed.split("+"))}
    places = {"train": pair.train, "infer": pair.infer}
    places.update({side: renaming.side(places[side], tmp_path / side) for side, renaming in words.items()})
    before, after = of_sample(name), as_json(proposed(places["train"], places["infer"]))
    for part in ("boundaries", "weights", "evidence_missing"):
        expected = before[part]
        for side, renaming in words.items():
            expected = [renaming.row(row, side) for row in expected]
        assert [{key: item for key, item in row.items() if key != "reason"} for row in after[part]] == expected
    assert after["tokens"] == before["tokens"]
    for row in all_rows(after):
        entries = [source["name"].split(".forward.")[0] for side in words for source in row[side]["sources"]]
        assert not re.search(r"layer|embed|proj|norm|Linear|\.\d", " ".join(entries))


# --- less recorded ---


def without(files: tuple[str, ...], source: Path, target: Path) -> Path:
    for unit in units_of(copy_side(source, target)):
        for name in files:
            (unit / name).unlink(missing_ok=True)
    return target


def assert_same_joins(changed: Sample, found: Json, pair: Sample, expected: Json) -> None:
    """The same boundaries and weights by name, each with the same elements; which of several equal recordings stands there may differ."""
    values = [{row["boundary"]: pairs(place, row) for row in all_rows(mapping)} for place, mapping in ((changed, found), (pair, expected))]
    assert sorted(values[0]) == sorted(values[1])
    assert [name for name in values[0] if not np.array_equal(values[0][name], values[1][name])] == []


@pytest.mark.parametrize(("name", "sides"), CHANGED)
def test_the_order_of_dump_json_alone_joins_the_same(
    sample: Callable[[str], Sample], of_sample: Callable[[str], Json], tmp_path: Path, name: str, sides: str
) -> None:
    """Without construct.json and stack.json: no boundary is lost, none is gained, none joins other elements.

    Weaker may be: the module that makes a value, basis and confidence, the names of gaps; and it is said of the side.
    """
    pair = sample(name)
    less = {"train": pair.train, "infer": pair.infer}
    less.update({side: without(("construct.json", "stack.json"), less[side], tmp_path / side) for side in sides.split("+")})
    found, told = pipeline.propose_step(*pipeline.open_pair([str(less["train"])], [str(less["infer"])]))
    assert_same_joins(pair, as_json(found), pair, of_sample(name))
    assert {side for side in less if any("construct.json" in line and side in line for line in told.warnings)} == set(sides.split("+"))


@pytest.mark.parametrize("side", ["train", "infer"])
def test_a_replica_changes_no_row(sample: Callable[[str], Sample], of_sample: Callable[[str], Json], tmp_path: Path, side: str) -> None:
    """A second rank that is a copy of the first: catches rows that put both together or join the one with the other."""
    pair = sample("qwen2-hf-vllm-clean")
    unit = unit_of(copy_side(getattr(pair, side), tmp_path / "dump"))
    copy_side(unit, unit.parent / "rank1")
    changed = pair._replace(**{side: tmp_path / "dump"})
    assert_same_joins(changed, as_json(proposed(changed.train, changed.infer)), pair, of_sample(pair.name))


def test_stack_json_is_not_needed(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """The samples that have one: not a byte of the mapping rests on it."""
    pair = sample("qwen2-hf-vllm-clean")
    bare = [without(("stack.json",), side, tmp_path / side.name) for side in (pair.train, pair.infer)]
    assert (unit_of(pair.train) / "stack.json").exists()
    assert io.text_of(proposed(*bare)) == io.text_of(proposed(pair.train, pair.infer))


# --- the command ---


@pytest.mark.parametrize("name", KINDS)
def test_the_same_dumps_give_the_same_bytes(
    sample: Callable[[str], Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Two processes with other hash seeds, on copies under other paths: the order of a set or of a folder, a path, a time."""
    pair = sample(name)
    written: list[list[bytes]] = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        train, infer = (copy_side(side, tmp_path / seed / label) for side, label in ((pair.train, "train"), (pair.infer, "infer")))
        output = tmp_path / f"out{seed}" / "semantic_mapping.json"
        ran = run_command("propose_mapping.py", "--train", train, "--infer", infer, "--output", output)
        assert ran.returncode == 0, ran.stderr
        written.append([file.read_bytes() for file in sorted(output.parent.iterdir())])
    assert written[0] == written[1]
    assert len(written[0]) == 2
