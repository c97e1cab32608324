"""What the commands write is read back as it was, byte for byte, and says nothing of the machine."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from dump_analysis.artefacts import io, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.probe import Probe
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from laying import Sample
from running import run_command

KINDS: dict[str, type[msgspec.Struct]] = {
    "probe.json": Probe,
    "semantic_mapping.json": SemanticMapping,
    "boundary_results.json": BoundaryResults,
    "conclusion.json": Conclusion,
}


@pytest.fixture(scope="module")
def written(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs on a real pair with a fault."""
    pair = sample("qwen2-hf-vllm-kv_swapped")
    folders = [tmp_path_factory.mktemp("out") for _ in range(2)]
    for folder in folders:
        ran = run_command("diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", folder)
        assert ran.returncode == 0, ran.stderr
    return folders


@pytest.mark.parametrize("name", KINDS)
def test_an_artefact_comes_back_as_it_was(written: list[Path], name: str) -> None:
    """Read, checked against its type, and written again: the same bytes, nothing unknown."""
    text = (written[0] / name).read_text(encoding="utf-8")
    found, warnings = io.of_value(io.load(written[0] / name), KINDS[name], name, written_by_people=True)
    assert warnings == []
    assert io.text_of(found) == text
    assert next(iter(json.loads(text))) == "schema"


@pytest.mark.parametrize("name", KINDS)
def test_two_runs_write_the_same_bytes_and_no_path_of_the_machine(written: list[Path], name: str, sample: Callable[[str], Sample]) -> None:
    one, two = ((folder / name).read_bytes() for folder in written)
    assert one == two
    pair = sample("qwen2-hf-vllm-kv_swapped")
    for path in (written[0], pair.train, pair.infer, pair.mapping.parent, Path.home()):
        assert str(path).encode() not in one


def test_the_written_mapping_is_a_mapping_to_read(written: list[Path]) -> None:
    mapping = semantic_mapping.read(written[0] / "semantic_mapping.json")
    assert len(mapping.boundaries) > 20
    assert io.text_of(mapping) == (written[0] / "semantic_mapping.json").read_text(encoding="utf-8")


def test_the_results_name_the_mapping_that_they_were_made_from(written: list[Path]) -> None:
    results, _ = io.read(written[0] / "boundary_results.json", BoundaryResults)
    assert results.mapping.digest == io.digest_of_file(written[0] / "semantic_mapping.json")
