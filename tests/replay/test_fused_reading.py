"""The orders in which q, k and v of one matrix can be read: against columns counted by hand."""

from pathlib import Path

import dumping
import numpy as np
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.replay.fused_reading import BLOCKS, orders
from dump_analysis.replay.modules import Pair, pair_of
from msprobe_files.operands import parse

WIDTH, ENTRY = 2, dumping.entry_of("qkv")
IN_BLOCKS = [[0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]  # four heads of two columns, two groups
IN_GROUPS = [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 12, 13], [6, 7, 14, 15]]


def mapped(root: Path, columns: list[list[int]]) -> Pair:
    """A pair whose train side cuts q, k and v so out of one tensor."""
    sides = [dumping.side_of(root, label, {ENTRY: {"output": [dumping.of(np.zeros((3, 16), np.float32))]}}) for label in ("train", "infer")]
    name, rows = f"{ENTRY}.output.0", []
    for at, (part, picked) in enumerate(zip("qkv", columns, strict=True)):
        cut = parse({"sources": [{"name": name, "steps": [{"op": "take", "axis": 1, "index": picked}]}]})
        rows.append(Row(f"layers.0.{part}.out", at, cut, parse(name)))
    return pair_of(SemanticMapping(boundaries=rows), *sides)


def read(pair: Pair) -> list[list[int]]:
    """The columns that the train side's rows pick."""
    found = []
    for part in "qkv":
        (op,) = pair.rows[f"layers.0.{part}.out"].train.sources[0].steps or ()
        found.append(list(range(op.start or 0, op.stop or 0)) if op.op == "slice" else list(op.picked))
    return found


def test_the_other_order_of_two_is_tried(tmp_path: Path) -> None:
    """A rule that turns the wrong way, or tries what is there already."""
    (found,) = orders(mapped(tmp_path / "blocks", IN_BLOCKS), "layers.0.", "train", WIDTH)
    assert (found[0], read(found[1])) == (2, IN_GROUPS)
    (found,) = orders(mapped(tmp_path / "groups", IN_GROUPS), "layers.0.", "train", WIDTH)
    assert (found[0], read(found[1])) == (BLOCKS, IN_BLOCKS)


def test_what_is_no_fused_matrix_is_left_alone(tmp_path: Path) -> None:
    """Columns that overlap or leave a gap, heads that do not come out, a side whose rows cut nothing."""
    pair = mapped(tmp_path / "blocks", IN_BLOCKS)
    assert list(orders(pair, "layers.0.", "infer", WIDTH)) == []
    assert list(orders(pair, "layers.0.", "train", 3)) == []
    assert list(orders(pair, "layers.1.", "train", WIDTH)) == []
    gap = [IN_BLOCKS[0], IN_BLOCKS[1], [12, 13, 14, 16]]
    assert list(orders(mapped(tmp_path / "gap", gap), "layers.0.", "train", WIDTH)) == []
