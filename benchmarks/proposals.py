"""The mapping proposal as a process, and what is wrong with its answer, judged by the value that each operand holds."""

import json
import sys
from pathlib import Path
from typing import Any

import shapes
from shapes import Recorded, Size

COMMAND = Path(__file__).resolve().parent.parent / "skills/accuracy/rl-consistency-dump-analysis/scripts/propose_mapping.py"


def command(train: Path, infer: Path, output: Path) -> list[str]:
    """``propose_mapping.py`` on two dumps; it refuses to write over a mapping that was edited, so the last one is removed."""
    output.unlink(missing_ok=True)
    return [sys.executable, str(COMMAND), "--train", str(train), "--infer", str(infer), "--output", str(output)]


def wrong(size: Size, path: Path) -> str:
    """Why semantic_mapping.json is not the whole mapping of a trainer/engine pair, or nothing.

    Every value of the model is recorded on both sides, so each must stand in a row that bears its name, and no row may join two.
    """
    mapping = json.loads(path.read_text())
    sides = {"train": _Held(size, engine=False), "infer": _Held(size, engine=True)}
    missing = set(shapes.values(size))
    for row in [*mapping["boundaries"], *mapping["weights"]]:
        train, infer = (held.by(row[label]) for label, held in sides.items())
        if train != infer or (row["boundary"] in sides["train"].values and row["boundary"] != train):
            return f"{row['boundary']} joins {train} with {infer}"
        missing.discard(row["boundary"])
    return f"no row of {', '.join(sorted(missing)[:5])}" + (" and more" if len(missing) > 5 else "") if missing else ""


class _Held:
    """Which value an operand of one side holds."""

    def __init__(self, size: Size, *, engine: bool) -> None:
        self.values = shapes.values(size)
        self._batched = not engine
        modules = shapes.engine(size, norm_inputs=True) if engine else shapes.trainer(size)
        self._tensors = {tensor.name: tensor for module in modules for tensor in shapes.recorded(module)}

    def by(self, operand: dict[str, Any]) -> str:
        """A value's name, or a text that names none."""
        tensors = [self._tensors[source["name"]] for source in operand["sources"]]
        cut = [self._cut(tensor, source["steps"]) for tensor, source in zip(tensors, operand["sources"], strict=True)]
        if operand["combine"] is None and not tensors[0].part:
            return cut[0]
        halves = sorted(tensor.part for tensor in tensors) == ["residual", "x"] and len(set(cut)) == 1
        return cut[0] if operand["combine"] == "sum" and halves else f"{operand['combine']} of {cut}"

    def _cut(self, tensor: Recorded, steps: list[dict[str, Any]]) -> str:
        weight = tensor.slot == "parameters"
        joined = 0 if weight else len(self.values[tensor.values[0]]) - 1
        lengths = [list(self.values[value]) for value in tensor.values]
        whole = [sum(length[axis] for length in lengths) if axis == joined else lengths[0][axis] for axis in range(len(lengths[0]))]
        spans = [(0, length) for length in ([1] if self._batched and not weight else []) + whole]
        for step in steps:
            if step["op"] in ("squeeze", "reshape") and _drops_batch(step, spans):
                del spans[0]
            elif step["op"] == "slice":
                start, stop = spans[step["axis"]]
                ends = step.get("start") or 0, step.get("stop")
                spans[step["axis"]] = start + ends[0], stop if ends[1] is None else min(stop, start + ends[1])
            else:
                return f"{tensor.name} after {step['op']}"
        start = 0
        for value, length in zip(tensor.values, lengths, strict=True):
            mine = [(start, start + length[joined]) if axis == joined else (0, length[axis]) for axis in range(len(length))]
            if spans == mine:
                return value
            start += length[joined]
        return f"{spans} of {tensor.name}"


def _drops_batch(step: dict[str, Any], spans: list[tuple[int, int]]) -> bool:
    """Whether a step only takes the first axis, of length 1, away."""
    if spans[0] != (0, 1):
        return False
    if step["op"] == "squeeze":
        return bool(step["axis"] == 0)
    rest = [stop - start for start, stop in spans[1:]]
    return len(step["shape"]) == len(rest) and all(asked in (-1, length) for asked, length in zip(step["shape"], rest, strict=True))
