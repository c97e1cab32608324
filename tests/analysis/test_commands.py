"""The commands as users call them: wrong calls, mappings by hand, hostile files, stops, and the folder copied alone."""

import json
import os
import pickle
import shlex
import shutil
import signal
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from editing import copy_side, edit_json, tensor_file, unit_of
from laying import SAMPLES, Sample
from running import ROOT, SCRIPTS, run_command

CLEAN = "qwen2-hf-vllm-clean"
EMBEDDING = "Module.model.embed_tokens.{}.forward.0.output.0"
NAMES = {"train": EMBEDDING.format("Embedding"), "infer": EMBEDDING.format("VocabParallelEmbedding")}


def analyze(pair: Sample, rows: Any, tmp_path: Path, *more: str) -> "tuple[subprocess.CompletedProcess[str], dict[str, Any]]":
    """analyze_dump_boundaries.py with a mapping of these rows; what it printed and what it left."""
    mapping, output = tmp_path / "rows.json", tmp_path / "results.json"
    mapping.write_text(json.dumps(rows))
    ran = run_command(
        "analyze_dump_boundaries.py", "--train", pair.train, "--infer", pair.infer, "--mapping", mapping, "--output", output, *more
    )
    assert "Traceback" not in ran.stderr
    return ran, json.loads(output.read_text()) if output.exists() else {}


@pytest.fixture
def clean(sample: Callable[[str], Sample]) -> Sample:
    return sample(CLEAN)


# --- mappings by hand ---


def test_a_bare_list_is_read(clean: Sample, tmp_path: Path) -> None:
    """Names, a glob and an operand, mixed; order is the list's; ids of different width are equal."""
    rows = [
        {"boundary": "input_ids", "train": "*.Embedding.forward.0.input.0", "infer": "*.VocabParallelEmbedding.forward.0.input.0"},
        {"boundary": "embedding.out", **NAMES, "note": "by hand"},
        {
            "boundary": "layers.0.k.out",
            "train": "Module.model.layers.0.self_attn.k_proj.Linear.forward.0.output.0",
            "infer": {
                "sources": [
                    {
                        "name": "Module.model.layers.0.self_attn.qkv_proj.QKVParallelLinear.forward.0.output.0",
                        "steps": [{"op": "slice", "axis": 1, "start": 64, "stop": 96}],
                    }
                ],
                "combine": None,
            },
        },
    ]
    ran, results = analyze(clean, rows, tmp_path, "--exit-code")
    assert ran.returncode == 0
    assert [(row["boundary"], row["status"]) for row in results["boundaries"]] == [(row["boundary"], "EXACT") for row in rows]
    assert results["boundaries"][0]["dtype"] == {"train": "int64", "infer": "int32"}


def test_parameters_in_a_bare_list_are_weights(clean: Sample, tmp_path: Path) -> None:
    rows = [{"boundary": "embedding.weight", **{side: name.replace("output.0", "parameters.weight") for side, name in NAMES.items()}}]
    _, results = analyze(clean, rows, tmp_path)
    assert not results["boundaries"]
    assert [row["status"] for row in results["weights"]] == ["EXACT"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"boundary": "x", "train": "*input_layernorm*output.0", "infer": NAMES["infer"]}], ["3 tensors", "layers.0.", "layers.2."]),
        ([{"boundary": "x", **NAMES, "nots": "?"}], ["rows[0].nots", 'did you mean "note"']),
        ([{"boundary": "x", "train": NAMES["train"]}], ["rows[0]", "infer"]),
        ([{"boundary": "x", **NAMES}, {"boundary": "x", **NAMES}], ["two rows"]),
        (
            [{"boundary": "x", "train": {"sources": [{"name": "a", "steps": [{"op": "slise"}]}]}, "infer": "b"}],
            ["rows[0].train.sources[0].steps[0].op", 'did you mean "slice"'],
        ),
        ([{"boundary": "x", "train": {"sources": [{"name": "a"}, {"name": "b"}]}, "infer": "b"}], ["rows[0].train.combine", "sum", "cat"]),
        ([{"boundary": "x", **NAMES, "order": 1}, {"boundary": "y", **NAMES}], ["order"]),
        ({"schema": "semantic_mapping/2"}, ["semantic_mapping/1", "semantic_mapping/2"]),
        ({"schema": "semantic_mapping/1", "boundarys": []}, ["boundarys", 'did you mean "boundaries"']),
        ("text", ["expected"]),
    ],
)
def test_a_wrong_mapping_is_one_clear_line(rows: Any, words: list[str], clean: Sample, tmp_path: Path) -> None:
    ran, results = analyze(clean, rows, tmp_path)
    assert ran.returncode == 2
    assert not results
    assert ran.stderr.count("\n") == 1
    assert all(word in ran.stderr for word in words), ran.stderr


def test_a_mapping_that_is_no_json(clean: Sample, tmp_path: Path) -> None:
    mapping = tmp_path / "rows.json"
    mapping.write_text('[{"boundary": ')
    ran = run_command("analyze_dump_boundaries.py", "--train", clean.train, "--infer", clean.infer, "--mapping", mapping)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "rows.json" in ran.stderr


def test_rows_against_the_order_of_both_sides_are_warned_of(clean: Sample, tmp_path: Path) -> None:
    """A list turned around would name the last boundary as the first divergence, and nobody would know."""
    rows = json.loads(clean.mapping.read_text())["boundaries"]
    listed = [{key: row[key] for key in ("boundary", "train", "infer")} for row in rows]
    straight, _ = analyze(clean, listed, tmp_path)
    assert straight.stderr == ""
    turned, _ = analyze(clean, listed[::-1], tmp_path)
    assert "check the order of the rows" in turned.stderr


# --- nothing to compare ---


@pytest.mark.parametrize("rows", [[], [{"boundary": "x", "train": "no.such", "infer": "no.such"}]])
def test_nothing_comparable_is_not_run(rows: Any, clean: Sample, tmp_path: Path) -> None:
    """Exit 2, the artefact is written, and it never says exact."""
    ran, results = analyze(clean, rows, tmp_path)
    assert ran.returncode == 2
    assert results["overall"] == "not_run"
    assert ran.stderr


def test_an_empty_dump_is_not_run(clean: Sample, tmp_path: Path) -> None:
    side = copy_side(clean.infer, tmp_path / "infer")
    shutil.rmtree(unit_of(side) / "dump_tensor_data")
    edit_json(unit_of(side) / "dump.json", lambda dump: dump["data"].clear())
    ran, results = analyze(clean._replace(infer=side), [{"boundary": "embedding.out", **NAMES}], tmp_path)
    assert (ran.returncode, results["overall"]) == (2, "not_run")


@pytest.mark.parametrize("side", ["--train", "--infer"])
def test_a_missing_side_is_one_clear_line(side: str, clean: Sample, tmp_path: Path) -> None:
    other = {"--train": "--infer", "--infer": "--train"}[side]
    ran = run_command(
        "diagnose.py", side, tmp_path / "nowhere", other, clean.train, "--mapping", clean.mapping, "--output-dir", tmp_path / "out"
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "nowhere" in ran.stderr


@pytest.mark.parametrize("arguments", [["--trian", "x"], [], ["--tra", "x"], ["--train"]])
def test_a_wrong_call_is_one_line(arguments: list[str]) -> None:
    """Abbreviations are off; usage stays in --help."""
    ran = run_command("diagnose.py", *arguments)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)


# --- hostile and foreign files ---


class _Runs:
    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> Any:
        return (os.system, (f"touch {self._marker}",))


def _stored(path: Path, pickled: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("x/data.pkl", pickled)
        archive.writestr("x/data/0", b"\0" * 64)


@pytest.mark.parametrize("kind", ["code", "memory", "bomb", "empty", "text", "outside", "folder"])
def test_a_hostile_file_costs_its_own_row(kind: str, clean: Sample, tmp_path: Path) -> None:
    """Nothing is run, no memory asked for; the row is MISSING with a reason and the rest is compared."""
    side = copy_side(clean.infer, tmp_path / "infer")
    path, marker = tensor_file(side, NAMES["infer"]), tmp_path / "ran"
    path.unlink()
    if kind == "code":
        _stored(path, pickle.dumps(_Runs(marker), protocol=2))
    elif kind == "memory":
        _stored(path, b"\x80\x02Nr\xff\xff\xff\xff.")
    elif kind == "bomb":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x/data.pkl", b"\0" * (1 << 26))
    elif kind == "empty":
        path.touch()
    elif kind == "text":
        path.write_text("not a tensor")
    elif kind == "outside":
        secret = tmp_path / "secret.pt"
        shutil.copyfile(tensor_file(clean.infer, NAMES["infer"]), secret)
        path.symlink_to(secret)
    else:
        path.mkdir()
    ran = run_command("diagnose.py", "--train", clean.train, "--infer", side, "--mapping", clean.mapping, "--output-dir", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    results = json.loads((tmp_path / "out/boundary_results.json").read_text())
    rows = {row["boundary"]: row for row in results["boundaries"]}
    assert rows["embedding.out"]["status"] == "MISSING"
    assert rows["embedding.out"]["reason"]["text"]
    assert sum(row["status"] == "MISSING" for row in results["boundaries"]) == 1
    assert not marker.exists()


def test_a_data_name_that_leaves_the_dump(clean: Sample, tmp_path: Path) -> None:
    side = copy_side(clean.infer, tmp_path / "infer")
    entry = NAMES["infer"].removesuffix(".output.0")

    def leave(dump: Any) -> None:
        dump["data"][entry]["output"][0]["data_name"] = "../../../../etc/passwd"

    edit_json(unit_of(side) / "dump.json", leave)
    _, results = analyze(clean._replace(infer=side), [{"boundary": "embedding.out", **NAMES}], tmp_path)
    (row,) = results["boundaries"]
    assert row["status"] == "MISSING"
    assert "leads outside" in row["reason"]["text"]
    assert "passwd" not in json.dumps(row)


# --- bytes out ---


def test_same_input_same_bytes(clean: Sample, tmp_path: Path) -> None:
    """No clock, no host, no absolute path: two copies at two places give one answer."""
    written = []
    for number in (1, 2):
        home = tmp_path / str(number)
        train, infer = copy_side(clean.train, home / "train"), copy_side(clean.infer, home / "infer")
        run_command("diagnose.py", "--train", train, "--infer", infer, "--mapping", clean.mapping, "--output-dir", home / "out")
        written.append({path.name: path.read_bytes() for path in sorted((home / "out").iterdir())})
    assert written[0] == written[1]
    assert sorted(written[0]) == [
        "alignment_report.html", "alignment_report.md", "boundary_results.json", "conclusion.json", "probe.json", "replay_results.json",
        "report_source.json", "semantic_mapping.json",
    ]  # fmt: skip
    assert not any(str(tmp_path).encode() in data for data in written[0].values())


def test_the_dumps_are_never_written_to(clean: Sample, tmp_path: Path) -> None:
    train = copy_side(clean.train, tmp_path / "train")
    before = {path: path.stat().st_mtime_ns for path in train.rglob("*")}
    run_command("diagnose.py", "--train", train, "--infer", clean.infer, "--mapping", clean.mapping, "--output-dir", tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in train.rglob("*")} == before


def test_a_kill_leaves_no_half_file(clean: Sample, tmp_path: Path) -> None:
    """Killed at twelve moments from start to end: whatever stands under a final name is whole."""
    command = [sys.executable, SCRIPTS / "diagnose.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping]
    start = time.monotonic()
    subprocess.run([*command, "--output-dir", tmp_path / "whole"], check=True, capture_output=True)
    took = time.monotonic() - start
    for moment in range(12):
        out = tmp_path / str(moment)
        process = subprocess.Popen([*command, "--output-dir", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(took * (moment + 1) / 13)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for path in out.glob("[!.]*"):
            assert path.read_bytes() == (tmp_path / "whole" / path.name).read_bytes()


def test_json_prints_the_artefact_itself(clean: Sample, tmp_path: Path) -> None:
    ran, results = analyze(clean, [{"boundary": "embedding.out", **NAMES}], tmp_path, "--json")
    assert json.loads(ran.stdout) == results


def test_answers_are_short(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Agents cut long output: under 2,000 characters, the last line what to run next."""
    for name in (CLEAN, "qwen2-hf-vllm-token_diff", "qwen2-megatron_te_shaped-sglang-clean"):
        pair = sample(name)
        for language in ("en", "zh-CN"):
            ran = run_command(
                "diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping,
                "--output-dir", tmp_path / name, "--lang", language,
            )  # fmt: skip
            assert len(ran.stdout) < 2000
            assert ran.stdout.splitlines()[-1].startswith("next: ")


def test_configs_are_recorded_by_digest(clean: Sample, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    run_command(
        "diagnose.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping, "--output-dir", tmp_path / "out",
        "--train-config", config,
    )  # fmt: skip
    inputs = json.loads((tmp_path / "out/conclusion.json").read_text())["inputs"]
    recorded = {item["label"]: item["digest"] for item in inputs}
    assert recorded["train config"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # sha-256 of "{}"


def test_edited_artefacts_are_warned_of(clean: Sample, tmp_path: Path) -> None:
    """Any artefact may be edited and fed on; that it was edited is said."""
    run_command("diagnose.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping, "--output-dir", tmp_path)
    edit_json(tmp_path / "semantic_mapping.json", lambda mapping: mapping["boundaries"][0].update(note="looked at"))
    ran = run_command("conclude.py", "--workdir", tmp_path)
    assert ran.returncode == 0
    assert "edited since" in ran.stderr


def test_exit_codes_say_what_was_found(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    codes = {}
    for name in ("qwen2-toy-26.2.0", CLEAN, "qwen2-hf-vllm-kv_swapped"):
        pair = sample(name)
        ran = run_command(
            "diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", tmp_path / name,
            "--exit-code",
        )  # fmt: skip
        codes[name] = ran.returncode
    assert codes == {"qwen2-toy-26.2.0": 0, CLEAN: 0, "qwen2-hf-vllm-kv_swapped": 1}


# --- the folder alone ---


def test_the_skill_folder_works_copied_alone(clean: Sample, tmp_path: Path) -> None:
    """Only the folder and what its requirements.txt asks for, from another working directory."""
    folder = tmp_path / "elsewhere" / "my skill"
    shutil.copytree(ROOT / "skills/accuracy/rl-consistency-dump-analysis", folder)
    wanted = [line.split(">=")[0] for line in (folder / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python*/site-packages")
    for name in wanted:
        module = __import__(name)
        for part in Path(module.__file__ or "").parent.parent.glob(f"{name}*"):
            (packages / part.name).symlink_to(part)
    for command, *arguments in (
        ["probe_dump.py", "--train", clean.train, "--infer", clean.infer, "--output", "probe.json"],
        ["analyze_dump_boundaries.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping],
        ["conclude.py"],
        ["diagnose.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping, "--output-dir", "out"],
    ):
        ran = subprocess.run(
            [home / "bin/python", folder / "scripts" / str(command), *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "conclusion.json").exists()
    assert (tmp_path / "out/conclusion.json").exists()


def test_a_missing_package_is_asked_for_in_one_line(clean: Sample, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-S", SCRIPTS / "probe_dump.py", "--train", clean.train], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "pip install -r" in ran.stderr


def test_a_script_copied_without_its_folder_says_so(tmp_path: Path) -> None:
    shutil.copyfile(SCRIPTS / "diagnose.py", tmp_path / "diagnose.py")
    ran = subprocess.run([sys.executable, tmp_path / "diagnose.py", "--help"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "whole skill folder" in ran.stderr


def test_every_sample_says_where_it_comes_from() -> None:
    for pair in SAMPLES.rglob("pair.json"):
        assert (pair.parent / "PROVENANCE.md").is_file()


# --- where artefacts go ---


def test_a_device_is_written_to_and_never_replaced(clean: Sample, tmp_path: Path) -> None:
    """Renaming a file over /dev/null or /dev/stdout would take it away from the whole machine; a pipe stands for them."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        ran = run_command(
            "analyze_dump_boundaries.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping, "--output", pipe
        )
        written = reader.communicate()[0]
    assert ran.returncode == 0
    assert json.loads(written)["schema"] == "boundary_results/1"
    assert pipe.is_fifo()


def test_a_link_keeps_pointing_to_its_file(clean: Sample, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "results.json").symlink_to(tmp_path / "real" / "results.json")
    analyze(clean, [{"boundary": "embedding.out", **NAMES}], tmp_path)
    assert (tmp_path / "results.json").is_symlink()
    assert (tmp_path / "real" / "results.json").is_file()


@pytest.mark.parametrize("place", ["a file", "in the dump"])
def test_a_place_that_cannot_be_written_is_one_clear_line(place: str, clean: Sample, tmp_path: Path) -> None:
    train = copy_side(clean.train, tmp_path / "train")
    taken = tmp_path / "taken"
    taken.touch()
    out = taken if place == "a file" else train / "analysis"
    ran = run_command("diagnose.py", "--train", train, "--infer", clean.infer, "--mapping", clean.mapping, "--output-dir", out)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert ran.stderr.startswith("Cannot write")


def test_chinese_on_a_terminal_without_it(clean: Sample, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, SCRIPTS / "probe_dump.py", "--train", clean.train, "--lang", "zh-CN"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("field", ["overall", "counts", "first_divergence"])
def test_results_that_contradict_their_rows_are_refused(field: str, clean: Sample, tmp_path: Path) -> None:
    """An edited file that says exact above rows that differ must not become a conclusion."""
    run_command("diagnose.py", "--train", clean.train, "--infer", clean.infer, "--mapping", clean.mapping, "--output-dir", tmp_path)
    (tmp_path / "conclusion.json").unlink()
    changes = {"overall": "exact", "counts": {"EXACT": 44}, "first_divergence": None}
    edit_json(tmp_path / "boundary_results.json", lambda results: results.update({field: changes[field]}))
    ran = run_command("conclude.py", "--workdir", tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert field in ran.stderr
    assert not (tmp_path / "conclusion.json").exists()


def test_a_failed_run_leaves_no_older_answer(clean: Sample, tmp_path: Path) -> None:
    """Else the next step would answer from it."""
    side = copy_side(clean.infer, tmp_path / "infer")
    pair = clean._replace(infer=side)
    analyze(pair, [{"boundary": "embedding.out", **NAMES}], tmp_path)
    dump = unit_of(side) / "dump.json"
    dump.write_bytes(dump.read_bytes()[:500])
    ran, results = analyze(pair, [{"boundary": "embedding.out", **NAMES}], tmp_path)
    assert (ran.returncode, results) == (2, {})


def test_an_input_is_never_overwritten(clean: Sample, tmp_path: Path) -> None:
    mapping = tmp_path / "boundary_results.json"
    shutil.copyfile(clean.mapping, mapping)
    pair = ("--train", clean.train, "--infer", clean.infer, "--mapping", mapping)
    for command, *more in (["analyze_dump_boundaries.py", "--output", mapping], ["diagnose.py", "--output-dir", tmp_path]):
        ran = run_command(command, *pair, *more)
        assert ran.returncode == 2
        assert "it is an input" in ran.stderr
    assert mapping.read_bytes() == clean.mapping.read_bytes()


def test_a_file_of_another_shape_than_recorded_is_missing(clean: Sample, tmp_path: Path) -> None:
    """It is of another run: what is equal by chance must not be EXACT."""
    side = copy_side(clean.infer, tmp_path / "infer")
    entry = NAMES["infer"].removesuffix(".output.0")
    edit_json(unit_of(side) / "dump.json", lambda dump: dump["data"][entry]["output"][0].update(shape=[7, 128]))
    _, results = analyze(clean._replace(infer=side), [{"boundary": "embedding.out", **NAMES}], tmp_path)
    assert results["boundaries"][0]["status"] == "MISSING"
    assert "another run" in results["boundaries"][0]["reason"]["text"]


# --- a proposed mapping beside one that people wrote ---


@pytest.mark.parametrize("command", ["diagnose.py", "propose_mapping.py"])
def test_rows_that_people_wrote_are_not_proposed_over(command: str, clean: Sample, tmp_path: Path) -> None:
    """The file stays as it is, byte for byte, and the line says how to use it; a proposed mapping is proposed anew."""
    place = ("--output-dir", tmp_path) if command == "diagnose.py" else ("--output", tmp_path / "semantic_mapping.json")
    pair = ("--train", clean.train, "--infer", clean.infer)
    assert run_command(command, *pair, *place).returncode == 0
    assert run_command(command, *pair, *place).returncode == 0
    (tmp_path / "semantic_mapping.json").write_text("[{")
    assert "it cannot be read" in run_command(command, *pair, *place).stderr
    shutil.copyfile(clean.mapping, tmp_path / "semantic_mapping.json")
    ran = run_command(command, *pair, *place)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "people wrote rows of it. Hand it in with --mapping" in ran.stderr
    assert (tmp_path / "semantic_mapping.json").read_bytes() == clean.mapping.read_bytes()


def test_the_next_command_of_a_probe_works_where_the_probe_was_left(clean: Sample, tmp_path: Path) -> None:
    """Not in a folder of another name, below wherever the command was called from."""
    work = tmp_path / "an analysis"
    work.mkdir()
    ran = run_command("probe_dump.py", "--train", clean.train, "--infer", clean.infer, "--output", work / "probe.json")
    assert shlex.split(ran.stdout.splitlines()[-1])[-2:] == ["--output-dir", str(work)]
