"""Six of the sets of `make loop`, each in another form: everything injected is listed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from loop import fault_sets, running, sides


@pytest.mark.parametrize("seed", range(6))
def test_a_loop_ends_by_itself_with_what_was_injected(toys: sides.Toys, tmp_path: Path, seed: int) -> None:
    """A fault that is missed, invented or pinned on the wrong side; a round too many; a loop that somebody must stop."""
    (outcome,) = running.run(toys, fault_sets.drawn(seed), tmp_path, [running.MANNERS[seed]])
    assert not outcome.wrong, str(outcome)
