"""The noise floor: sequences paired by ids and positions, figures that are known because they were put in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from dump_analysis.artefacts.boundary_results import BoundaryResult, Direction, SidesDtype, Ulp, Unequal
from dump_analysis.artefacts.noise_floor import FloorPoint
from dump_analysis.rounds.character import Evidence, character
from dump_analysis.rounds.floor import copies, points, sequenced
from dump_analysis.sides import open_side
from running import run_command
from toys.pairs import Toys

NAME = "Module.model.layers.1.mlp.down_proj.RowParallelLinear.forward.0.output.0"
TOKENS = 24


def stacked(toys: Toys, folder: Path, times: int = 2, step: int = 0) -> Path:
    """The engine's clean dump with its rows ``times`` over, as a batch leaves them; ``step``: ULPs added to an element of the last copy."""
    shutil.copytree(toys.side("infer"), folder)
    for file in folder.rglob("*.pt"):
        value = torch.load(file, weights_only=True)
        if ".parameters." in file.name:
            continue
        value = torch.cat([value] * times)
        if step and file.stem == NAME:
            value.view(torch.int16)[-1, 3] += step
        torch.save(value, file)
    for path in folder.rglob("dump.json"):
        dump = json.loads(path.read_text(encoding="utf-8"))
        for entry in dump["data"].values():
            for slot in ("input_args", "input_kwargs", "output"):
                for record in _records(entry.get(slot)):
                    record["shape"][0] *= times
        path.write_text(json.dumps(dump), encoding="utf-8")
    return folder


def _records(value: object) -> list[dict[str, list[int]]]:
    if isinstance(value, dict):
        return [value] if isinstance(value.get("shape"), list) else [one for item in value.values() for one in _records(item)]
    return [one for item in value for one in _records(item)] if isinstance(value, list) else []


def floor_of(method: str, *runs: Path) -> dict[str, FloorPoint]:
    found = [sequenced(open_side("train", [str(run)])) for run in runs]
    return {point.boundary: point for point in points(copies(found, method))}  # type: ignore[arg-type]


def test_equal_copies_have_no_noise_and_every_boundary_is_there(toys: Toys, tmp_path: Path) -> None:
    found = floor_of("within_batch", stacked(toys, tmp_path / "two"))
    assert {"embedding.out", "layers.1.down.out", "layers.2.resid_mlp", "logits"} <= set(found)
    assert {(point.max_abs, point.rel_l2, point.ulp_p99, point.share) for point in found.values()} == {(0.0, 0.0, 0, 0.0)}


@pytest.mark.parametrize("method", ["within_batch", "single_vs_stacked"])
def test_the_worst_copy_counts_where_it_differs_and_nowhere_else(toys: Toys, tmp_path: Path, method: str) -> None:
    """One element of the third copy of one tensor is three steps up: its boundary has that noise, no other has any."""
    run = stacked(toys, tmp_path / "three", times=3, step=3)
    runs = [run] if method == "within_batch" else [toys.side("infer"), run]
    found = floor_of(method, *runs)
    (file,) = run.rglob(f"{NAME}.pt")
    value = torch.load(file, weights_only=True).double()
    loud = found["layers.1.down.out"]
    apart = float((value[-1, 3] - value[TOKENS - 1, 3]).abs())
    assert loud.max_abs == pytest.approx(apart)
    assert loud.rel_l2 == pytest.approx(apart / float(value[:TOKENS].norm()), rel=1e-2)
    assert loud.share == pytest.approx(1 / (TOKENS * 64))
    assert (loud.ulp_p99, loud.layer, loud.dtype) == (0, 1, "bfloat16")
    assert {name for name, point in found.items() if point.max_abs} <= {"layers.1.down.out"}


def test_no_two_sequences_that_are_the_same_is_refused(toys: Toys, tmp_path: Path) -> None:
    ran = run_command(
        "measure_noise_floor.py", "--run", toys.side("infer"), "--method", "within_batch", "--output", tmp_path / "floor.json"
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("Cannot measure a noise floor: no sequence of equal ids and positions stands twice in this run")
    assert not (tmp_path / "floor.json").exists()


def test_the_command_writes_what_was_measured(toys: Toys, tmp_path: Path) -> None:
    again = shutil.copytree(toys.side("infer"), tmp_path / "again")
    ran = run_command("measure_noise_floor.py", "--run", toys.side("infer"), "--run", again, "--output", tmp_path / "floor.json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads((tmp_path / "floor.json").read_text(encoding="utf-8"))
    assert (found["schema"], found["method"], found["runs"]) == ("noise_floor/1", "repeat", 2)
    assert ran.stdout.splitlines()[0] == f"repeat, 2 runs: 0 of {len(found['points'])} boundaries have noise"


@pytest.mark.parametrize(("times", "basis"), [(0.5, "noise_floor"), (1.0, "noise_floor"), (10.0, "fingerprint")])
def test_a_difference_within_the_floor_is_rounding_and_one_above_it_is_not_covered_by_it(times: float, basis: str) -> None:
    """Half the floor is not claimed, ten times it is looked at as any difference is, and the times are told."""
    row = BoundaryResult(
        "layers.0.o_proj.out", 5, "NOT_EXACT", [4, 8], SidesDtype("bfloat16", "bfloat16"), unequal=Unequal(32, 1.0),
        max_abs_diff=0.01 * times, rel_l2=0.004 * times, ulp=Ulp(300, 300.0, {}), direction=Direction(32, 0, 5.6),
    )  # fmt: skip
    point = FloorPoint("layers.0.o_proj.out", 0, "bfloat16", 0.01, 0.004, 4, 1.0)
    results = type("Results", (), {"weights": []})()
    judged = character(row, Evidence({}, results, {point.boundary: point}))
    assert judged.basis == basis
    assert judged.character == ("rounding" if basis == "noise_floor" else "logic")
    if basis == "fingerprint":
        assert judged.evidence[0].kind == "above_floor"
        assert judged.evidence[0].values["times"] == pytest.approx(10)
