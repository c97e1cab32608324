"""What users do today, as processes: a loop of torch.load and torch.equal, and msprobe's own compare.

As a script: ``baselines.py TRAIN INFER`` runs the torch loop on two folders of tensor files and prints what it found as JSON.
"""

import csv
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

_MSPROBE = Path(sys.executable).parent / "msprobe"


class Found(NamedTuple):
    """How many tensors were compared, and how many of them differ."""

    tensors: int
    unequal: int


def has_torch() -> bool:
    """Whether torch is installed beside this interpreter."""
    return importlib.util.find_spec("torch") is not None


def has_msprobe() -> bool:
    """Whether msprobe's command is installed beside this interpreter."""
    return _MSPROBE.exists()


def torch_command(train: Path, infer: Path) -> list[str]:
    """The torch loop over two sides of one layout."""
    return [sys.executable, __file__, *(str(side / "step0/rank0/dump_tensor_data") for side in (train, infer))]


def read_torch(output: str) -> Found:
    """What the torch loop printed."""
    found = json.loads(output)
    return Found(found["tensors"], found["unequal"])


def msprobe_command(train: Path, infer: Path, output: Path) -> list[str]:
    """``msprobe compare`` of two sides of one layout; empties ``output``, where msprobe adds a csv file a run."""
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    dumps = [str(side / "step0/rank0/dump.json") for side in (infer, train)]
    return [str(_MSPROBE), "compare", "-tp", dumps[0], "-gp", dumps[1], "-o", str(output)]


def read_msprobe(output: Path) -> Found:
    """What msprobe wrote: its rows, and those whose largest absolute error is not 0."""
    tables = list(output.glob("*.csv"))
    if len(tables) != 1:
        return Found(0, 0)
    with tables[0].open(newline="") as file:
        errors = [row["MaxAbsErr"] for row in csv.DictReader(file)]
    return Found(len(errors), sum(float(error) != 0 for error in errors))


def _torch_loop(train: Path, infer: Path) -> None:
    import torch

    torch.set_num_threads(1)  # more threads cost more CPU for the same answer
    tensors = unequal = 0
    largest = 0.0
    for path in sorted(train.glob("*.pt")):
        left, right = torch.load(path), torch.load(infer / path.name)
        tensors += 1
        unequal += not torch.equal(left, right)
        largest = max(largest, float((left.float() - right.float()).abs().max()))
    print(json.dumps({"tensors": tensors, "unequal": unequal, "max_abs": largest}))


if __name__ == "__main__":
    _torch_loop(Path(sys.argv[1]), Path(sys.argv[2]))
