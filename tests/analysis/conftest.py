"""Sample pairs for the tests of the analysis."""

from collections.abc import Callable

import pytest
from laying import Sample, lay_out


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
