"""Six of the sets of `make loop`, each in another form: everything injected is listed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from loop import fault_sets, running, sides

# Of each form a set that takes several rounds, or in which one fault hides or repeats another: attention behind q, k and v that differ;
# a residual that is lost, so that two boundaries are one tensor; what an override of one side alone can show.
SETS = {"forced into train": 12, "cuts into train": 24, "forced into train, no replay": 33, "forced into infer": 44, "cuts into infer": 14,
        "forced into infer, no replay": 11}  # fmt: skip


@pytest.mark.parametrize("manner", running.MANNERS, ids=str)
def test_a_loop_ends_by_itself_with_what_was_injected(toys: sides.Toys, tmp_path: Path, manner: running.Manner) -> None:
    """A fault that is missed, invented or pinned on the wrong side; a round too many; a loop that somebody must stop."""
    (outcome,) = running.run(toys, fault_sets.drawn(SETS[str(manner)]), tmp_path, [manner])
    assert not outcome.wrong, str(outcome)
