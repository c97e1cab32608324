"""Sample pairs for the tests of the analysis, what was found of them, and the processes that dump toys: each made once a session."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from sampled import diagnosed, sample, toys

if TYPE_CHECKING:
    from toys.parallel.pairs import Parallel

__all__ = ["diagnosed", "parallel", "sample", "toys"]


@pytest.fixture(scope="session")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Parallel"]:
    """One process that dumps toys of several ranks; each dump is made once."""
    from toys.parallel.pairs import Parallel

    with Parallel(tmp_path_factory.mktemp("parallel")) as running:
        yield running
