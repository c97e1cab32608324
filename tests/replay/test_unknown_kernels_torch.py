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
        assert {one.kind for one in found.would_decide} == {"replay_kernel"}
        assert "override round" in found.would_decide[0].text
        assert "run alone" in found.would_decide[0].text


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
        ("one_channel", "layers.1.o_proj.out"),
        ("one_token", "layers.1.down.out"),
    ],
)
def test_faults_beside_an_unknown_kernel_are_found(
    toys: Toys, tmp_path: Path, kernel: str, where: tuple[str, ...], fault: str, boundary: str
) -> None:
    found = concluded(toys.both(on(kernel, where, "train"), on(kernel, where, "infer", fault)), tmp_path, CONFIG)
    if (kernel, fault) == ("cut_attention", "scale_up") and "infer" in where:  # 1 % of a scale is less than the cuts of that kernel
        assert (of(found, "logic"), of(found, "rounding"), len(of(found, "unknown"))) == ([], [], 1)
        return
    (finding,) = of(found, "logic")
    assert finding.boundary in (boundary, boundary.replace(".weight", ".out"))
    assert finding.side in ("infer", "unknown")


@pytest.mark.parametrize("where", WHERE, ids="+".join)
@pytest.mark.parametrize("kernel", ["truncated_sums", "blocked_sums"])
@pytest.mark.parametrize(
    ("fault", "name"),
    [("one_channel", "o_proj"), ("one_token", "down"), ("missing_bias", "q"), ("missing_bias", "k"), ("missing_bias", "v")],
)
def test_a_fault_in_all_layers_beside_an_unknown_kernel_is_not_called_rounding(
    toys: Toys, tmp_path: Path, kernel: str, where: tuple[str, ...], fault: str, name: str
) -> None:
    """Would catch a bound that the fault itself has widened: all modules of its place have it."""
    infer = Switches((*(((kernel, 0),) if "infer" in where else ()), *((fault, layer) for layer in range(3))))
    concluded(toys.both(on(kernel, where, "train"), infer), tmp_path, CONFIG)
    verdicts = {one["module"]: one["verdict"] for one in replayed(tmp_path)["modules"]}
    assert {verdicts[f"layers.{layer}.{name}"] for layer in range(3)} <= {"logic", "unknown"}
