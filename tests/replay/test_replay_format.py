"""replay_results.json: what the format holds, and that it comes back as it was."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dump_analysis.artefacts import io
from dump_analysis.artefacts.replay_results import ReplayResults
from laying import Sample
from msprobe_files.errors import DumpError
from running import run_command

EXAMPLE = Path(__file__).parent / "replay_results.json"


@pytest.fixture(scope="module")
def written(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs on a real pair whose engine has another eps."""
    pair = sample("qwen2-hf-vllm-rms_eps")
    found = []
    for _ in range(2):
        found.append(tmp_path_factory.mktemp("out") / "replay_results.json")
        ran = run_command(
            "replay_boundaries.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output", found[-1]
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "layers.0.input_norm: eps is 1e-06 on train and 1e-05 on infer" in ran.stdout
        assert ran.stdout.splitlines()[-1].startswith("next: ")
    return found


def test_every_form_of_the_contract_is_read() -> None:
    """A span, constants that are lists and null, a residual, edges and weights of every kind: nothing unknown, nothing lost."""
    found, warnings = io.read(EXAMPLE, ReplayResults)
    assert warnings == []
    assert json.loads(io.text_of(found)) == json.loads(EXAMPLE.read_text(encoding="utf-8"))


def test_a_verdict_that_there_is_not_is_refused() -> None:
    value = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    value["modules"][0]["verdict"] = "guilty"
    with pytest.raises(DumpError, match=r"modules\[0\].verdict"):
        io.of_value(value, ReplayResults, "replay_results.json")


def test_what_is_written_comes_back_as_it_was(written: list[Path]) -> None:
    found, warnings = io.read(written[0], ReplayResults)
    assert warnings == []
    assert io.text_of(found) == written[0].read_text(encoding="utf-8")


def test_two_runs_write_the_same_bytes_and_no_path_of_the_machine(written: list[Path], sample: Callable[[str], Sample]) -> None:
    one, two = (path.read_bytes() for path in written)
    assert one == two
    pair = sample("qwen2-hf-vllm-rms_eps")
    for path in (written[0].parent, pair.train, pair.infer, Path.home()):
        assert str(path).encode() not in one


def test_the_command_prints_the_artefact(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair, output = sample("qwen2-hf-vllm-clean"), tmp_path / "out.json"
    arguments = ["--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output", output, "--json"]
    ran = run_command("replay_boundaries.py", *arguments)
    assert (ran.returncode, ran.stdout) == (0, output.read_text(encoding="utf-8"))


@pytest.mark.parametrize("flag", ["--mapping", "--train-config", "--infer-config"])
def test_a_file_that_is_not_there_is_one_line(sample: Callable[[str], Sample], tmp_path: Path, flag: str) -> None:
    pair = sample("qwen2-hf-vllm-clean")
    given = {"--mapping": pair.mapping, flag: tmp_path / "none.json"}
    arguments = [text for item in given.items() for text in item]
    ran = run_command("replay_boundaries.py", "--train", pair.train, "--infer", pair.infer, *arguments, "--output", tmp_path / "out.json")
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert f"Check {flag}." in ran.stderr
    assert not (tmp_path / "out.json").exists()


def test_an_output_inside_a_dump_is_refused(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair = sample("qwen2-hf-vllm-clean")
    arguments = ["--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output", pair.train / "out.json"]
    ran = run_command("replay_boundaries.py", *arguments)
    assert ran.returncode == 2
    assert "it lies in the dump" in ran.stderr
