"""Replay on clean pairs of toys of many architectures, with the mapping that the dumps tell: nothing is convicted.

Their products are torch's: whatever its kernels' order, a bound must hold what they give.
"""

from pathlib import Path

import pytest
from dump_analysis import pipeline
from toys.arch.shapes import ARCHITECTURES, LAYERS
from toys.pairs import Toys
from toys.switches import Side

SIDES: list[Side] = ["train", "infer"]
PLACES = ("attn_core", "q_rope", "k_rope")  # attention is another test's
# What no formula knows yet: learned positions that are added to the embedding, logits that are divided inside the head.
OPEN = {"turned": {"embedding"}, "multipliers": {"lm_head"}}
CHOSEN = ["grouped_interleaved", "turned", "parallel_one_norm", "parallel_two_norms", "end_norms", "multipliers"]


@pytest.mark.parametrize("name", CHOSEN)
def test_a_clean_pair_convicts_nobody(toys: Toys, tmp_path: Path, name: str) -> None:
    """A turned matrix, an activation without a gate, sums in another order, a branch that is multiplied, norms of heads."""
    assert name in ARCHITECTURES
    train, infer = pipeline.open_pair([str(toys.architecture("train", name))], [str(toys.architecture("infer", name))])
    mapping, _ = pipeline.propose_step(train, infer)
    results, _ = pipeline.replay_step(train, infer, mapping, "0" * 64, tmp_path / pipeline.REPLAY, {}, quiet=True)
    judged = {module.module: module.verdict for module in results.modules if not module.module.endswith(PLACES)}
    assert {one for one, verdict in judged.items() if verdict not in ("same", "rounding")} == OPEN.get(name, set())
    assert len(judged) > 8 * LAYERS
    rounded = {one.rpartition(".")[2] for one, verdict in judged.items() if verdict == "rounding"}
    assert rounded == ({"resid_mlp"} if name.startswith("parallel") else set())


def test_a_multiplier_is_known_with_its_interval(toys: Toys, tmp_path: Path) -> None:
    """A branch that is multiplied by .22 on both sides, which no dump records."""
    train, infer = pipeline.open_pair(*([str(toys.architecture(side, "multipliers"))] for side in SIDES))
    mapping, _ = pipeline.propose_step(train, infer)
    results, _ = pipeline.replay_step(train, infer, mapping, "0" * 64, tmp_path / pipeline.REPLAY, {}, quiet=True)
    found = [module.train.config["multiplier"] for module in results.modules if module.operator == "residual_add"]
    assert [constant.value for constant in found] == [0.22] * (2 * LAYERS)
    for constant in found:
        assert constant.interval is not None
        assert constant.interval[0] <= 0.22 <= constant.interval[1]
