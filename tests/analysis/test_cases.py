"""Trouble that people met in public, as tests: damaged dumps, wrong calls, traps of the comparison.

The base is a real engine dump and its copy, which are equal; each test changes one thing.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from editing import copy_side, edit_tensor, set_bfloat16, tensor_file, unit_of
from laying import SAMPLES, Sample
from running import run_command

CLEAN = "qwen2-hf-vllm-clean"
NORM = "Module.model.layers.{}.input_layernorm.RMSNorm.forward.0.output.0"
NAN, INFINITY = 0x7FC0, 0x7F80


class Pair(NamedTuple):
    """An engine's dump, its copy, and a mapping of every boundary of the engine to itself."""

    train: Path
    infer: Path
    mapping: Path
    out: Path


@pytest.fixture
def pair(sample: Callable[[str], Sample], tmp_path: Path) -> Pair:
    clean = sample(CLEAN)
    rows = json.loads((SAMPLES / "qwen2-vllm-onset-kv_swapped" / "semantic_mapping.json").read_text())
    mapping = tmp_path / "mapping.json"
    mapping.write_text(json.dumps(rows))
    train, infer = copy_side(clean.infer, tmp_path / "train"), copy_side(clean.infer, tmp_path / "infer")
    return Pair(train, infer, mapping, tmp_path / "out")


class Answer(NamedTuple):
    code: int
    error: str
    conclusion: dict[str, Any]
    results: dict[str, Any]

    def status(self, boundary: str) -> str:
        rows = [*self.results["boundaries"], *self.results["weights"]]
        return next(row["status"] for row in rows if row["boundary"] == boundary)


def diagnose(pair: Pair, **changed: Path) -> Answer:
    sides = pair._replace(**changed)
    ran = run_command(
        "diagnose.py", "--train", sides.train, "--infer", sides.infer, "--mapping", sides.mapping, "--output-dir", sides.out, "--exit-code"
    )
    assert "Traceback" not in ran.stderr
    documents = {}
    for name in ("conclusion", "boundary_results"):
        path = sides.out / f"{name}.json"
        documents[name] = json.loads(path.read_text()) if path.exists() else {}
    return Answer(ran.returncode, ran.stderr, documents["conclusion"], documents["boundary_results"])


def test_equal_dumps_are_exact_and_consistent(pair: Pair) -> None:
    answer = diagnose(pair)
    assert answer.code == 0
    assert {row["status"] for row in answer.results["boundaries"] + answer.results["weights"]} == {"EXACT"}
    assert (answer.conclusion["overall"], answer.conclusion["consistency"]) == ("exact", "consistent")


def test_b01_dump_json_absent(pair: Pair) -> None:
    """B01: names come from the files, and what is equal then proves only a part: incomplete."""
    (unit_of(pair.infer) / "dump.json").unlink()
    answer = diagnose(pair)
    assert answer.code == 3
    assert answer.conclusion["consistency"] == "undecided"
    remarks = json.loads((pair.out / "probe.json").read_text())["remarks"]
    assert any("tensors present, dump.json missing: run ended before stop()" in remark["text"] for remark in remarks)


def test_b01_dump_json_cut(pair: Pair) -> None:
    """B01: the file and the byte where it ends are named; the other side is still probed."""
    path = unit_of(pair.infer) / "dump.json"
    path.write_bytes(path.read_bytes()[:1000])
    answer = diagnose(pair)
    assert answer.code == 2
    assert "dump.json: it ends at byte 1000" in answer.error
    probe = json.loads((pair.out / "probe.json").read_text())
    assert probe["infer"] is None
    assert probe["train"]["units"][0]["entries"] == 39


def test_b02_nothing_in_the_folder(pair: Pair, tmp_path: Path) -> None:
    """B02: bad input, the side and the checks named in order; never "0 boundaries, all exact"."""
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = diagnose(pair, infer=empty)
    assert answer.code == 2
    checks = ["infer", "graph mode", "hook", "msprobe installed", "rank"]
    places = [answer.error.index(word) for word in checks]
    assert places == sorted(places)
    assert answer.conclusion["overall"] == "not_run"
    assert answer.results["first_divergence"] is None


def test_b05_a_proc_folder_is_a_rank_folder(pair: Pair) -> None:
    """B05: single-process runs have no rank; what is found does not change."""
    unit = unit_of(pair.infer)
    unit.rename(unit.with_name("proc1234"))
    assert diagnose(pair).code == 0
    assert json.loads((pair.out / "probe.json").read_text())["infer"]["units"][0]["folder"] == "step0/proc1234"


def test_b05_two_dumps_of_one_step_are_listed_and_refused(pair: Pair) -> None:
    """B05: which of them is meant cannot be guessed."""
    unit = unit_of(pair.infer)
    shutil.copytree(unit, unit.with_name("proc1234"))
    answer = diagnose(pair)
    assert answer.code == 2
    assert "step0/proc1234" in answer.error
    assert "step0/rank0" in answer.error


def test_b06_a_list_index_is_no_layer(pair: Pair) -> None:
    """B06: wrappers and the index of a model list stand in front of the layer number."""
    text = (unit_of(pair.infer) / "dump.json").read_text()
    renamed = text.replace("Module.model.", "Module.0.module.model.")
    folder = unit_of(pair.infer) / "dump_tensor_data"
    (unit_of(pair.infer) / "dump.json").write_text(renamed)
    for path in folder.iterdir():
        path.rename(folder / path.name.replace("Module.model.", "Module.0.module.model."))
    ran = run_command("probe_dump.py", "--infer", pair.infer, "--json")
    facts = json.loads(ran.stdout)
    assert facts["infer"]["prefixes"][0] == "Module.0.module.model.layers.N"
    assert any("without that the layers are Module.model.layers.N" in remark["text"] for remark in facts["remarks"])


def test_b07_dtype_in_json_and_in_file_disagree(pair: Pair) -> None:
    """B07: dump.json counts: the values are equal, it is noted once, and it is no DTYPE_DIFF."""
    path = tensor_file(pair.infer, NORM.format(0))
    widen_to_float32(path)
    answer = diagnose(pair)
    assert answer.code == 0
    assert answer.status("layers.0.input_norm.out") == "EXACT"
    assert answer.error.count("bfloat16 recorded, float32 stored") == 1


def widen_to_float32(path: Path) -> None:
    """Rewrite a bfloat16 file as float32 of the same values: other storage class, twice the bytes."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if name.endswith("data.pkl"):
                content = content.replace(b"BFloat16Storage", b"FloatStorage")
            elif name.endswith("/data/0"):
                content = b"".join(b"\0\0" + content[at : at + 2] for at in range(0, len(content), 2))
            archive.writestr(name, content)


def test_b08_nonfinite_on_one_side(pair: Pair) -> None:
    """B08: NONFINITE at the first such boundary, the side named, a finding."""
    edit_tensor(tensor_file(pair.infer, NORM.format(1)), set_bfloat16(70, NAN))
    answer = diagnose(pair)
    assert answer.code == 1
    assert answer.status("layers.1.input_norm.out") == "NONFINITE"
    finding, handed = answer.conclusion["findings"]
    assert (finding["boundary"], finding["character"], finding["side"]) == ("layers.1.input_norm.out", "logic", "infer")
    # The file of what was handed on was not edited: it holds the number.
    assert (handed["boundary"], handed["cause"]["kind"], handed["side"]) == ("layers.1.q.out", "replay_altered", "infer")


def test_b08_the_same_nan_on_both_sides_is_said_not_judged(pair: Pair) -> None:
    """B08: the gate does not call NaN == NaN equal or different without saying so."""
    for side in (pair.train, pair.infer):
        edit_tensor(tensor_file(side, NORM.format(1)), set_bfloat16(70, NAN))
    answer = diagnose(pair)
    assert answer.code == 3
    row = next(row for row in answer.results["boundaries"] if row["boundary"] == "layers.1.input_norm.out")
    assert (row["status"], row["special"]["nan_both"], row["unequal"]["count"]) == ("NONFINITE", 1, 0)


def test_equal_infinities_are_numbers(pair: Pair) -> None:
    for side in (pair.train, pair.infer):
        edit_tensor(tensor_file(side, NORM.format(1)), set_bfloat16(70, INFINITY))
    answer = diagnose(pair)
    assert answer.code == 0
    row = next(row for row in answer.results["boundaries"] if row["boundary"] == "layers.1.input_norm.out")
    assert (row["status"], row["special"]["nonfinite"]) == ("EXACT", {"train": 1, "infer": 1})
    assert row["reason"]["kind"] == "equal_infinities"


def test_b12_one_truncated_file(pair: Pair) -> None:
    """B12: that boundary MISSING, the rest compared, the file named relative to the dump."""
    path = tensor_file(pair.infer, NORM.format(1))
    path.write_bytes(path.read_bytes()[:700])
    answer = diagnose(pair)
    assert answer.code == 3
    assert answer.status("layers.1.input_norm.out") == "MISSING"
    assert answer.results["counts"] == {"EXACT": 43, "MISSING": 1}
    reason = next(row["reason"]["text"] for row in answer.results["boundaries"] if row["status"] == "MISSING")
    assert "file unreadable" in reason
    assert path.name in reason
    assert str(path.parent) not in reason


def test_b12_a_gap_before_the_first_divergence_is_stated(pair: Pair) -> None:
    """B12: the divergence is named, and that an earlier source is not excluded."""
    tensor_file(pair.infer, NORM.format(1)).write_bytes(b"")
    edit_tensor(tensor_file(pair.infer, NORM.format(2)), set_bfloat16(5, 0x4000))
    first = diagnose(pair).conclusion["first_divergence"]
    assert first["boundary"] == "layers.2.input_norm.out"
    assert not first["predecessors_complete"]
    assert first["uncompared_before"] == ["layers.1.input_norm.out"]


def test_b18_every_layer_holds_one_buffer(pair: Pair) -> None:
    """B18: under graph capture every layer's file is the last layer's; that is no data."""
    layer = "Module.model.layers.{}.Qwen2DecoderLayer.forward.0.output.{}"
    for output in (0, 1):
        last = tensor_file(pair.infer, layer.format(2, output))
        for number in (0, 1):
            shutil.copyfile(last, tensor_file(pair.infer, layer.format(number, output)))
    answer = diagnose(pair)
    assert answer.code == 2
    assert "3 layer outputs on the infer side are bitwise equal: captured buffer, not data" in answer.error


@pytest.mark.parametrize("inside", ["", "step0", "step0/rank0", "step0/rank0/dump.json", "step0/rank0/dump_tensor_data"])
def test_c17_a_side_against_itself(pair: Pair, inside: str) -> None:
    """C17: refused whatever path leads there; a comparison with itself is always exact."""
    answer = diagnose(pair, infer=pair.train / inside)
    assert answer.code == 2
    assert "both sides resolve to the same files" in answer.error
    assert not answer.conclusion


def test_c17_probe_only_remarks_it(pair: Pair) -> None:
    ran = run_command("probe_dump.py", "--train", pair.train, "--infer", pair.train)
    assert ran.returncode == 0
    assert "the same files" in ran.stdout


def test_d11_a_gap_between_the_last_exact_and_the_first_divergence(pair: Pair) -> None:
    """D11: the divergence lies between the two; the outputs that no row names are listed, nothing is blamed.

    Truth by hand: between the residual after layer 0's MLP and layer 1's output projection this engine runs input
    norm (its second output is the residual again, which a row holds), qkv, rotary (two outputs) and attention.
    """
    edit_tensor(
        tensor_file(pair.infer, "Module.model.layers.1.self_attn.o_proj.RowParallelLinear.forward.0.output.0"), set_bfloat16(9, 0x4000)
    )
    kept = {"layers.0.resid_mlp", "layers.1.o_proj.out", "embedding.out"}
    rows = json.loads(pair.mapping.read_text())
    rows["boundaries"] = [row for row in rows["boundaries"] if row["boundary"] in kept]
    pair.mapping.write_text(json.dumps(rows))
    first = diagnose(pair).conclusion["first_divergence"]
    assert first["boundary"] == "layers.1.o_proj.out"
    one_side = [
        "Module.model.layers.1.input_layernorm.RMSNorm.forward.0.output.0",
        "Module.model.layers.1.self_attn.qkv_proj.QKVParallelLinear.forward.0.output.0",
        "Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.1.output.0",
        "Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.1.output.1",
        "Module.model.layers.1.self_attn.attn.Attention.forward.0.output.0",
    ]
    assert first["uncompared_before"] == one_side * 2
    assert not first["predecessors_complete"]
