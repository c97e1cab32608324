"""Experts on several ranks read like a single rank's: other ones on each rank, numbered from 0 again, or every one cut."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import sharded_experts
import sharding
from dump_analysis.artefacts.boundary_results import BoundaryResults
from networks import EXPERTS, Network, Recording, engine, trainer, weights_of
from sharded_experts import expert_shards, stack_shards, stacks_apart, write_expert_parallel
from test_ranks import compare, said

ROUTED = Network(routed=True, stale="experts.3.down")
WEIGHTED = Network(routed=True, weighted=True, stale="experts.1.gate_up")
Write = Callable[[Path, Recording], str]


@cache
def sides(network: Network) -> tuple[Recording, Recording]:
    weights = weights_of(network)
    return sharded_experts.named(trainer(network, weights)), engine(network, weights)


def single(root: Path, record: Recording) -> str:
    return sharded_experts.write(root, record) if ".experts.0.down" in " ".join(record.roles) else record.write(root)


def ranks(cut: sharding.Cut) -> Write:
    return lambda root, record: sharding.write_ranks(root, record, cut)


def expert_parallel(cut: sharding.Cut) -> Write:
    return lambda root, record: write_expert_parallel(root, record, cut)


LAYOUTS: dict[str, tuple[Write, Write]] = {
    "expert parallel trainer": (expert_parallel(sharding.copies), single),
    "expert and sequence parallel trainer": (expert_parallel(sharding.sequence_shards), single),
    "expert parallel trainer, experts cut": (
        lambda root, record: write_expert_parallel(root, record, sharding.copies, expert_shards, 2),
        single,
    ),
    "trainer's experts cut": (lambda root, record: ranks(expert_shards)(root, sharded_experts.with_lists(record, range(EXPERTS))), single),
    "engine's stacks cut": (single, ranks(stack_shards)),
    "engine's stacks apart": (single, ranks(stacks_apart)),
    "expert parallel on both": (expert_parallel(sharding.sequence_shards), ranks(stacks_apart)),
}


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> dict[Network, BoundaryResults]:
    """The truth: both sides recorded by one rank."""
    tmp = tmp_path_factory.mktemp("one")
    found = {}
    for at, network in enumerate((ROUTED, WEIGHTED)):
        train, infer = sides(network)
        found[network] = compare(tmp, sharded_experts.write(tmp / f"train{at}", train), infer.write(tmp / f"infer{at}"))[1]
    return found


def test_the_truth_compares_experts(one_rank: dict[Network, BoundaryResults]) -> None:
    """Against a truth that knows no experts: then every layout would agree with it."""
    for results in one_rank.values():
        weights = {row.boundary: row.status for row in results.weights if ".experts." in row.boundary}
        assert len(weights) >= 3 * EXPERTS
        assert [name for name, status in weights.items() if status == "NOT_EXACT"]


@pytest.mark.parametrize("network", [ROUTED, WEIGHTED], ids=["plain", "weighted"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_is_that_of_one_rank(tmp_path: Path, one_rank: dict[Network, BoundaryResults], layout: str, network: Network) -> None:
    """Catches expert 0 of rank 1 taken for expert 0, halves of gate and up in the wrong order, and experts lost on the way."""
    train, infer = (
        write(tmp_path / label, record) for write, label, record in zip(LAYOUTS[layout], ("train", "infer"), sides(network), strict=True)
    )
    mapping, results, told = compare(tmp_path, train, infer)
    assert said(results) == said(one_rank[network])
    assert not [line for line in told if "fit no way" in line or "differ between" in line]
    if layout.startswith("expert parallel"):
        assert mapping.ranks is not None
        assert mapping.ranks.train is not None
        assert mapping.ranks.train.parallel.ep == 2
