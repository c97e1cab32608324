"""Generated pairs of msprobe dumps: byte-equal, sparsely and densely different, with the counts that were planted.

Values are random bit patterns between 2^-7 and 2 in magnitude, drawn by numpy from a seed for each value: a step of
one ULP never meets zero, NaN or infinity. Those of the kinds `forward` (the trainer's side), `noise` and `rounded` (the
engine's) come from a forward instead (forward.py). Nothing is read back: both sides are made from the same seeds.
"""

import json
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import dumping
import shapes
from bits import Made, draw, plant, rounded_sum
from forward import Forward
from shapes import Module, Recorded, Size

Kind = Literal["train", "equal", "sparse", "dense", "forward", "noise", "rounded"]
KINDS: tuple[Kind, ...] = ("equal", "sparse", "dense")  # what is compared with `train`
FORWARD: tuple[Kind, ...] = ("noise", "rounded")  # what is compared with `forward`
_SPARSE_EACH = 3  # every third value differs
_KEPT = 32  # values held in memory: those of about one layer
# msprobe 26.2 takes module inputs in a pre-hook; its stack.json says so in the top frame.
_FRAME = "File torch/nn/modules/module.py, line 1811, in inner, \n args_kwargs_result = hook(self, args, kwargs)"


class Source:
    """The values of one side of a pair of this size and kind."""

    def __init__(self, size: Size, kind: Kind) -> None:
        self.kind = kind
        self._shapes = shapes.values(size)
        self._numbers = {value: at for at, value in enumerate(self._shapes)}
        self.of = lru_cache(maxsize=_KEPT)(self._make)

    def ids(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Token ids: 0, 1, 2 and so on."""
        return np.arange(self._shapes[shapes.IDS][0])

    def differs(self, value: str) -> bool:
        """Whether this kind of side differs from the train side at this value."""
        if value == shapes.IDS or self.kind in ("train", "equal"):
            return False
        return self.kind == "dense" or self._numbers[value] % _SPARSE_EACH == 0

    def _make(self, value: str) -> Made:
        number, shape = self._numbers[value], self._shapes[value]
        lots = np.random.default_rng([1, number])
        whole, parts = draw(lots, shape), {}
        if shapes.is_pair(value):  # of one sign: no sum is zero
            residual = (draw(lots, shape) & 0x7FFF) | (whole & 0x8000)
            parts = {"x": whole, "residual": residual}
            whole = rounded_sum(whole, residual)
        if not self.differs(value):
            return Made(whole, parts, 0)
        planted, changed = plant(np.random.default_rng([2, number]), whole, dense=self.kind == "dense")
        if parts:
            parts = {"x": np.where(planted, changed, parts["x"]), "residual": np.where(planted, 0, parts["residual"]).astype(np.uint16)}
        return Made(changed, parts, int(planted.sum()))


# --- writing ---


def write_side(root: Path, size: Size, kind: Kind, *, engine: bool) -> dict[str, int]:
    """Write one side as an msprobe dump under ``root``; returns how many elements were planted in each value."""
    computed = kind in ("forward", *FORWARD)
    source = Forward(size, noisy=kind == "noise", rounds=kind == "rounded") if computed else Source(size, kind)
    unit = root / "step0" / "rank0"
    folder = unit / "dump_tensor_data"
    folder.mkdir(parents=True)
    data: dict[str, Any] = {}
    planted: dict[str, int] = {}
    modules = shapes.engine(size, norm_inputs=kind == "rounded") if engine else shapes.trainer(size)
    for module in modules:
        entry: dict[str, Any] = {"input_args": [], "input_kwargs": {}, "output": [], "parameters": {}}
        for tensor in shapes.recorded(module):
            record = _write_tensor(folder, source, tensor, batched=not engine)
            if tensor.slot == "parameters":
                entry["parameters"][tensor.key] = record
            else:
                entry["input_args" if tensor.slot == "input" else "output"].append(record)
            planted.update({value: source.of(value).planted for value in tensor.values})
        data[module.entry] = entry
    head = {"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": str(folder)}
    (unit / "dump.json").write_text(json.dumps({**head, "data": data}))
    (unit / "construct.json").write_text(json.dumps(_construct(modules)))
    (unit / "stack.json").write_text(json.dumps({"0": [[module.entry for module in modules], [_FRAME]]}))
    return planted


def _write_tensor(folder: Path, source: Source | Forward, tensor: Recorded, *, batched: bool) -> dict[str, Any]:
    weight = tensor.slot == "parameters"
    if tensor.values == (shapes.IDS,):
        made = dumping.of(source.ids().reshape((1, -1) if batched else (-1,)), "int64")
    else:
        found = [source.of(value) for value in tensor.values]
        bits = [each.parts[tensor.part] if tensor.part else each.whole for each in found]
        joined = bits[0] if len(bits) == 1 else np.concatenate(bits, axis=0 if weight else 1)
        made = dumping.of_bits(joined[None] if batched and not weight else joined, "bfloat16")
    dumping.write_pt(folder / f"{tensor.name}.pt", made)
    return {**dumping.record_of(made), "data_name": f"{tensor.name}.pt"}


def _construct(modules: Iterable[Module]) -> dict[str, str | None]:
    """construct.json: each entry's parent, in the order of starts, which is that of paths among the modules of a layer."""
    by_path = {module.path: module.entry for module in modules}
    found: dict[str, str | None] = {}
    for path, entry in by_path.items():
        above = [".".join(path.split(".")[:depth]) for depth in range(1, path.count(".") + 1)]
        parents = [by_path[folder] for folder in above if folder in by_path]
        for parent, grand in zip(parents, [None, *parents], strict=False):
            found.setdefault(parent, grand)
        found.setdefault(entry, parents[-1] if parents else None)
    return found


def write_mapping(path: Path, size: Size, *, same_layout: bool) -> None:
    """The mapping as a bare list of rows."""
    found = shapes.rows(size, same_layout=same_layout)
    path.write_text(json.dumps([{"boundary": row.boundary, "train": row.train, "infer": row.infer} for row in found]))


def tensor_files(root: Path) -> list[str]:
    """All tensor files of a side, sorted."""
    return sorted(str(path) for path in root.glob("step0/rank0/dump_tensor_data/*.pt"))


# --- a pair on disk ---


class Pair(NamedTuple):
    """One generated pair on disk. ``planted``: how many elements of each value differ."""

    folder: Path
    size: Size
    kind: Kind
    same_layout: bool
    planted: dict[str, int]

    @property
    def train(self) -> Path:
        return self.folder / ("forward" if self.kind in FORWARD else "train")

    @property
    def infer(self) -> Path:
        return self.folder / self.label

    @property
    def mapping(self) -> Path:
        return self.folder / f"{self.label}.mapping.json"

    @property
    def label(self) -> str:
        return f"{'same' if self.same_layout else 'engine'}-{self.kind}"

    @property
    def rows(self) -> list[shapes.Row]:
        return shapes.rows(self.size, same_layout=self.same_layout)

    def files(self) -> list[str]:
        return [*tensor_files(self.train), *tensor_files(self.infer)]


def make_pair(folder: Path, size: Size, kind: Kind, *, same_layout: bool) -> Pair:
    """Write the engine's side and the mapping beside the train side that is already there."""
    pair = Pair(folder, size, kind, same_layout, {})
    planted = write_side(pair.infer, size, kind, engine=not same_layout)
    write_mapping(pair.mapping, size, same_layout=same_layout)
    return pair._replace(planted=planted)
