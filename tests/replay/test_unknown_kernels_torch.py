"""Kernels that nobody has written down, in all layers of one side or of both: no fault, and no cover for one."""

from pathlib import Path

import pytest
from test_findings_toys_torch import concluded, of
from toys.pairs import Toys
from toys.switches import Side, Switches

SIDES: list[Side] = ["train", "infer"]
WHERE = [("train",), ("infer",), ("train", "infer")]
KERNELS = ["blocked_attention", "truncated_sums"]
CONFIG = {"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "head_dim": 16}


def on(kernel: str, where: tuple[str, ...], side: str, fault: str | None = None) -> Switches:
    """What is switched on a side."""
    return Switches((*(((kernel, 0),) if side in where else ()), *(((fault, 1),) if fault is not None else ())))


@pytest.mark.parametrize("where", WHERE, ids="+".join)
@pytest.mark.parametrize("kernel", KERNELS)
def test_an_unknown_kernel_in_all_layers_is_never_called_logic(toys: Toys, tmp_path: Path, kernel: str, where: tuple[str, ...]) -> None:
    """A users' normal case: what is not explained is rounding by the noise model, or unknown with what would decide it."""
    found = concluded(toys.both(*(on(kernel, where, side) for side in SIDES)), tmp_path, CONFIG)
    assert of(found, "logic") == []
    assert found.consistency == ("consistent" if not of(found, "unknown") else "undecided")
    assert bool(found.would_decide) == (found.consistency == "undecided")


@pytest.mark.parametrize("where", WHERE, ids="+".join)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("fault", "boundary"),
    [
        ("eps", "layers.1.input_norm.out"),
        ("updated_weight", "layers.1.down.weight"),
        ("mask_off_by_one", "layers.1.attn_core.out"),
        ("rope_base", "layers.0.attn_core.out"),
        ("scale_up", "layers.1.attn_core.out"),
    ],
)
def test_faults_beside_an_unknown_kernel_are_found(
    toys: Toys, tmp_path: Path, kernel: str, where: tuple[str, ...], fault: str, boundary: str
) -> None:
    found = concluded(toys.both(on(kernel, where, "train"), on(kernel, where, "infer", fault)), tmp_path, CONFIG)
    (finding,) = of(found, "logic")
    assert finding.boundary in (boundary, boundary.replace(".weight", ".out"))
    assert finding.side in ("infer", "unknown")
