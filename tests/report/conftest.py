"""Samples with what diagnosing them leaves, reports included: each made once a session."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sampled import diagnosed, sample

__all__ = ["diagnosed", "faulty", "folder", "sample"]


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
