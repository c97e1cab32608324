"""Toys that the real msprobe dumps, and sample pairs, for the tests of replay."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from laying import Sample, lay_out

if TYPE_CHECKING:
    from toys.pairs import Toys


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Toys"]:
    """One process that dumps; each dump is made once."""
    from toys.pairs import Toys

    with Toys(tmp_path_factory.mktemp("toys")) as running:
        yield running


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
