"""Files that nobody meant: whatever a value is, the command compares it or says why not."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from collection.aligning import align, compare_files
from dump_collection.params import comparison, configs, declared, points
from dump_collection.params.judged import in_order
from hypothesis import given, settings
from hypothesis import strategies as st
from running import ROOT, run_collection

SAMPLES = ROOT / "tests/samples/providers"
READ = {
    name: {side: json.loads((SAMPLES / name / file).read_text()) for side, file in (("train", "provider.json"), ("infer", "config.json"))}
    for name in ("qwen3-yarn", "deepseek_v3", "gpt_oss", "llama3")
}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_leaves=5
)


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_any_value_in_any_field_is_compared_or_called_a_difference(data: st.DataObject) -> None:
    """No value breaks the comparison, and the report is JSON whatever it is."""
    name = data.draw(st.sampled_from(sorted(READ)))
    sides = copy.deepcopy(READ[name])
    for _ in range(data.draw(st.integers(1, 4))):
        part = sides[data.draw(st.sampled_from(["train", "infer"]))]
        part = part.get("fields", part)
        inner = part.get("rope_scaling")
        if isinstance(inner, dict) and inner and data.draw(st.booleans()):
            part = inner
        part[data.draw(st.sampled_from(sorted(part)))] = data.draw(VALUES)
    train, infer = (configs.of(sides[side], side) for side in ("train", "infer"))
    found = in_order([*comparison.compare(train, infer), *declared.by_modules(train, infer)])
    told = points.of(found, {})
    json.dumps([item.as_json() for item in found] + [point.as_json() for point in told], allow_nan=False)
    assert {item.canonical for point in told for item in point.items} == {item.canonical for item in found if item.shuts}
    assert len({item.canonical for item in found}) == len(found)


@given(st.sampled_from(sorted(READ)), st.sampled_from(["train", "infer"]))
def test_a_side_against_itself_is_equal(name: str, side: str) -> None:
    """Whatever the table knows of a configuration, it reads the same twice."""
    value = READ[name][side]
    found = comparison.compare(configs.of(value, "train"), configs.of(value, "infer"))
    assert {item.canonical for item in found if item.shuts and item.kind not in ("undeclared", "requested_not_effective")} == set()
    assert len(found) > 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "expected a JSON object"),
        ('{"num_layers": ', "it ends at byte"),
        ("{]", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("\xff", "no JSON"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "infer.json").write_text('{"num_hidden_layers": 2}')
    (tmp_path / "train.json").write_bytes(text.encode("latin-1"))
    ran = run_collection(
        "param_align_check.py", "--train-cfg", tmp_path / "train.json", "--infer-cfg", tmp_path / "infer.json", "--workdir", tmp_path
    )  # fmt: skip
    (line,) = ran.stderr.splitlines()
    assert (ran.returncode, said in line) == (2, True), line
    assert not (tmp_path / "param_alignment_report.json").exists()


def test_a_calls_own_mistakes(tmp_path: Path) -> None:
    """One list of weights alone compares nothing; an earlier checkpoint proves nothing without weights."""
    (tmp_path / "c.json").write_text('{"num_hidden_layers": 2}')
    both = ("--train-cfg", tmp_path / "c.json", "--infer-cfg", tmp_path / "c.json", "--workdir", tmp_path)
    for more in (["--train-weights", tmp_path], ["--previous", tmp_path], ["--train-cfg"]):
        ran = run_collection("param_align_check.py", *both, *more)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    ran = run_collection("param_align_check.py", *both[:3], tmp_path / "no.json", "--workdir", tmp_path)
    assert (ran.returncode, "Cannot read" in ran.stderr) == (2, True)


def test_names_and_shapes_check_the_structure_alone(tmp_path: Path) -> None:
    """Lists hold no values: the weights stay not checked."""
    shapes: dict[str, Any] = {"model.embed_tokens.weight": [128, 32], "lm_head.weight": [128, 32]}
    for side, value in (("train", shapes), ("infer", {**shapes, "lm_head.weight": [128, 64]})):
        (tmp_path / f"{side}_shapes.json").write_text(json.dumps(value))
    config = tmp_path / "c.json"
    config.write_text('{"num_hidden_layers": 2}')
    for infer, code in (("train", 0), ("infer", 1)):
        ran = run_collection(
            "param_align_check.py", "--train-cfg", config, "--infer-cfg", config, "--workdir", tmp_path,
            "--train-weights", tmp_path / "train_shapes.json", "--infer-weights", tmp_path / f"{infer}_shapes.json",
        )  # fmt: skip
        assert ran.returncode == code, ran.stderr
        report = json.loads((tmp_path / "param_alignment_report.json").read_text())
        assert report["layers"] == {"config": "checked", "structure": "checked", "weights": "not_checked"}
    assert [point["id"] for point in report["mismatch_points"]] == ["P1"]
    assert report["mismatch_points"][0]["items"] == ["lm_head.weight"]


def test_a_waiver_of_all_items_of_a_point_closes_it(tmp_path: Path) -> None:
    """An item of another layer is waived by its name, too."""
    found = align(tmp_path, {"num_layers": 2}, {"num_hidden_layers": 3})
    assert found.instruction["points"][0]["target"] == "num_layers"
    assert "num_hidden_layers = 3" in found.instruction["points"][0]["action"]


def test_nobodys_folders_stand_in_an_artefact(tmp_path: Path) -> None:
    """Comparing takes the whole value; what is written down has the last part alone."""
    train = {"_name_or_path": "/home/someone/q", "num_layers": 2, "adapter": "https://host.example/one", "nested": {"at": ["~/two"]}}
    infer = {"_name_or_path": "/volumes/q", "num_hidden_layers": 2, "adapter": "/three/one", "nested": {"at": ["/home/someone/two"]}}
    found = align(tmp_path, train, infer, requested={"adapter": "/home/someone/four"})
    assert found.item("_name_or_path")["status"] == found.item("adapter")["status"] == found.item("nested.at")["status"] == "DIFF"
    written = json.dumps([found.report, found.instruction]) + found.stdout.split("next:")[0] + found.stderr
    assert not [word for word in ("home", "someone", "volumes", "host", "https", "three", "~") if word in written]
    assert found.item("_name_or_path")["train"]["value"] == ".../q"


def test_weights_that_cannot_be_read_keep_what_the_configurations_said(tmp_path: Path) -> None:
    """A wrong path ends with 2; the report holds the layer that was compared and calls the others not checked."""
    (tmp_path / "shapes.json").write_text('{"lm_head.weight": "wide"}')
    for side, key in (("train", "num_layers"), ("infer", "num_hidden_layers")):
        (tmp_path / f"{side}.json").write_text(json.dumps({key: len(side)}))
    found = compare_files(
        tmp_path, tmp_path / "train.json", tmp_path / "infer.json",
        "--train-weights", tmp_path / "shapes.json", "--infer-weights", tmp_path / "nowhere",
    )  # fmt: skip
    assert found.code == 2
    assert found.report["layers"] == {"config": "checked", "structure": "not_checked", "weights": "not_checked"}
    assert [line.split(" ")[0] for line in found.stderr.splitlines()] == ["Cannot"]
    assert found.stdout.splitlines()[-1].startswith("next: mend")


def test_a_key_that_stands_twice_with_two_values_is_refused(tmp_path: Path) -> None:
    """Readers do not agree which of the two counts."""
    train, infer = tmp_path / "t.json", tmp_path / "i.json"
    infer.write_text('{"num_hidden_layers": 3, "num_hidden_layers": 3, "text_config": {"rope_theta": 1e6, "rope_theta": 1e4}}')
    train.write_text('{"num_layers": 3}')
    found = compare_files(tmp_path / "work", train, infer)
    assert (found.code, found.stdout) == (2, "")
    assert found.stderr == "Cannot use i.json: rope_theta is there twice, with 1000000.0 and 10000.0. Keep the one that is meant.\n"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_no_contradiction_of_itself(tmp_path: Path, word: str) -> None:
    train, infer = tmp_path / "t.json", tmp_path / "i.json"
    train.write_text(f'{{"num_layers": 3, "rotary_base": {word}, "layernorm_epsilon": {word}}}')
    infer.write_text('{"num_hidden_layers": 3, "rope_theta": 1e6, "rms_norm_eps": 1e-6}')
    assert compare_files(tmp_path / "work", train, infer).differing() == {"rope_theta", "norm_eps"}


def test_an_answer_that_could_not_be_had_is_not_called_open(tmp_path: Path) -> None:
    """The configurations agree, the weights are gone."""
    (tmp_path / "c.json").write_text('{"num_hidden_layers": 3}')
    more = ["--train-weights", tmp_path / "gone", "--infer-weights", tmp_path / "gone"]
    found = compare_files(tmp_path / "work", tmp_path / "c.json", tmp_path / "c.json", *more)
    assert found.code == 2
    assert found.stdout.startswith("cannot tell: a layer could not be compared")
