"""The two skills apart, copied once."""

from __future__ import annotations

import pytest
from handoff.apart import Apart, copied


@pytest.fixture(scope="session")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Apart:
    return copied(tmp_path_factory.mktemp("apart"))
