"""Samples with what diagnosing them leaves, reports included: each made once a session."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laying import Sample, lay_out
from running import run_command


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sample]:
    """A sample by name, laid out once a session."""
    root = tmp_path_factory.mktemp("samples")
    made: dict[str, Sample] = {}

    def by_name(name: str) -> Sample:
        if name not in made:
            made[name] = lay_out(name, root)
        return made[name]

    return by_name


@pytest.fixture(scope="session")
def diagnosed(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder that ``diagnose.py`` leaves of a sample with its mapping; not to be written to."""
    made: dict[str, Path] = {}
    root = tmp_path_factory.mktemp("diagnosed")

    def by_name(name: str) -> Path:
        if name not in made:
            pair, out = sample(name), root / name
            ran = run_command("diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", out)
            assert ran.returncode == 0, ran.stderr
            made[name] = out
        return made[name]

    return by_name


@pytest.fixture
def folder(diagnosed: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of what diagnosing a sample leaves, to be changed."""

    def by_name(name: str) -> Path:
        return Path(shutil.copytree(diagnosed(name), tmp_path / name))

    return by_name


@pytest.fixture
def faulty(diagnosed: Callable[[str], Path]) -> dict[str, Any]:
    """The report source of a pair with a fault, as parsed JSON, to be changed."""
    return json.loads((diagnosed("qwen2-hf-vllm-kv_swapped") / "report_source.json").read_text(encoding="utf-8"))
