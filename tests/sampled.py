"""Fixtures that several folders of tests share: sample pairs, what diagnosing them leaves, and the process that dumps toys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from laying import Sample, lay_out
from running import run_command

if TYPE_CHECKING:
    from toys.pairs import Toys


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sample]:
    """A sample by name; its layers are laid over each other once a session."""
    made: dict[str, Sample] = {}
    root = tmp_path_factory.mktemp("samples")

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


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toys]:
    """One process that dumps; each dump is made once."""
    from toys.pairs import Toys

    with Toys(tmp_path_factory.mktemp("toys")) as running:
        yield running
