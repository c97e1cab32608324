"""Kernels that nobody has written down, in all layers of one side or of both: no fault, and no cover for one."""

import json
from pathlib import Path
from typing import Any

import pytest
from dump_analysis import pipeline
from test_findings_toys_torch import concluded, of
from toys.pairs import Toys
from toys.switches import Side, Switches

SIDES: list[Side] = ["train", "infer"]
WHERE = [("train",), ("infer",), ("train", "infer")]
KERNELS = ["blocked_attention", "cut_attention", "truncated_sums", "blocked_sums"]
# What is left looks like rounding: of float16 weights and sums. What cuts has a gain, which a factor would have, too.
EVEN = {"blocked_attention": "noise_model", "blocked_sums": "bound"}
CONFIG = {"rms_norm_eps": 1e-6, "rope_theta": 10000.0, "head_dim": 16}


def replayed(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / pipeline.REPLAY).read_text())
    return found


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
    assert (found.consistency == "consistent") == (kernel in EVEN or len(where) == 2)  # both sides: the same bits
    written = replayed(tmp_path)
    bases = {one[side]["basis"] for one in written["modules"] for side in where if one[side]["variant"] is None}
    assert bases == {EVEN.get(kernel)}
    scales = {side: each.get("linear", {}).get("bound_scale") for side, each in written["calibration"].items()}
    assert [side for side in SIDES if scales[side] is not None] == [side for side in where if kernel.endswith("_sums")]
    if found.would_decide:
        told = " ".join(one.text for one in found.would_decide)
        assert "override round" in told
        assert "run alone" in told


FAULTS = {
    "eps": "layers.1.input_norm.out",
    "updated_weight": "layers.1.down.weight",
    "mask_off_by_one": "layers.1.attn_core.out",
    "rope_base": "layers.0.attn_core.out",
    "scale_up": "layers.1.attn_core.out",
    "one_channel": "layers.1.o_proj.out",
    "one_token": "layers.1.down.out",
}
BESIDE = {
    "blocked_attention": ["eps", "updated_weight", "mask_off_by_one", "rope_base", "scale_up"],
    "cut_attention": ["mask_off_by_one", "rope_base"],  # 1 % of a scale is less than what that kernel cuts
    "truncated_sums": list(FAULTS),
    "blocked_sums": ["updated_weight", "scale_up", "one_channel", "one_token"],
}


@pytest.mark.parametrize("where", WHERE, ids="+".join)
@pytest.mark.parametrize(("kernel", "fault"), [(kernel, fault) for kernel, faults in BESIDE.items() for fault in faults])
def test_faults_beside_an_unknown_kernel_are_found(toys: Toys, tmp_path: Path, kernel: str, where: tuple[str, ...], fault: str) -> None:
    boundary = FAULTS[fault]
    found = concluded(toys.both(on(kernel, where, "train"), on(kernel, where, "infer", fault)), tmp_path, CONFIG)
    (finding,) = of(found, "logic")
    assert finding.boundary in (boundary, boundary.replace(".weight", ".out"))
    assert finding.side in ("infer", "unknown")


def test_a_scale_beside_a_kernel_of_the_other_side_is_found(toys: Toys, tmp_path: Path) -> None:
    """Would catch a kernel that nobody knows on one side, which hides what the other side proves of itself."""
    found = concluded(
        toys.both(on("cut_attention", ("train",), "train"), on("cut_attention", (), "infer", "attention_scale")), tmp_path, CONFIG
    )
    (finding,) = of(found, "logic")
    assert (finding.boundary, finding.side, finding.cause.kind) == ("layers.1.attn_core.out", "infer", "replay_constant_alone")


@pytest.mark.parametrize("where", WHERE, ids="+".join)
@pytest.mark.parametrize("kernel", ["truncated_sums", "blocked_sums"])
def test_faults_in_all_layers_beside_an_unknown_kernel_are_not_called_rounding(
    toys: Toys, tmp_path: Path, kernel: str, where: tuple[str, ...]
) -> None:
    """Would catch a bound that a fault itself has widened: all modules of its place have it."""
    faults = tuple((fault, layer) for fault in ("one_channel", "one_token", "missing_bias") for layer in range(3))
    infer = Switches((*(((kernel, 0),) if "infer" in where else ()), *faults))
    concluded(toys.both(on(kernel, where, "train"), infer), tmp_path, CONFIG)
    verdicts = {one["module"]: one["verdict"] for one in replayed(tmp_path)["modules"]}
    assert {verdicts[f"layers.{layer}.{name}"] for layer in range(3) for name in ("q", "k", "v", "o_proj", "down")} <= {"logic", "unknown"}
