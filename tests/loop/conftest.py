"""One process for the sides and one for the commands, for all tests of the loop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loop import sides


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sides.Toys]:
    with sides.started(tmp_path_factory.mktemp("loop")) as running:
        yield running
