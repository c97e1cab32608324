"""Dumps damaged anywhere: each is judged or refused in one line, and one that lost anything is never called comparable."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_collection import files
from dump_collection.dump_check import report
from dump_collection.dump_check.card import NO_CARD
from dumping import Tensor, of_bits, write_unit
from msprobe_files.errors import DumpError

TOKENS, HIDDEN, WORDS = 6, 4, 32
ODD = (None, True, -1, 10**30, float("nan"), "", "x", "a\0b", "\ud800", "torch.int64", "../x.pt", [], {}, [None], [2**62, 2**62], {"a": 1})


def floats(*shape: int) -> Tensor:
    return of_bits(np.random.default_rng(sum(shape)).random(shape, dtype=np.float32).view("<u4"), "float32")


def lay(root: Path) -> Path:
    """A prefill of one prompt: embedding, one decoder layer, head. Returns the unit's folder."""
    ids = of_bits(np.array([3, 9, 4, 1, 5, 2], dtype="<i8"), "int64")
    positions = of_bits(np.arange(TOKENS, dtype="<i8"), "int64")
    stream = floats(TOKENS, HIDDEN)
    table, head = {"weight": floats(WORDS, HIDDEN)}, {"weight": floats(WORDS, HIDDEN)}
    entries = {
        "Module.model.embed_tokens.Embedding.forward.0": {"input": [ids], "output": [stream], "parameters": table},
        "Module.model.layers.0.Layer.forward.0": {"input": [positions, stream], "output": [stream]},
        "Module.lm_head.Linear.forward.0": {"input": [stream], "output": [floats(TOKENS, WORDS)], "parameters": head},
    }
    return write_unit(root, entries, trace=dict.fromkeys(entries))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    return lay(tmp_path / "train"), lay(tmp_path / "infer")


def judge(tmp_path: Path) -> bool:
    """Whether the pair is comparable; the report is written as the command writes it. A refusal is no."""
    try:
        told = report.check_pair([str(tmp_path / "train")], [str(tmp_path / "infer")], NO_CARD).as_json()
        files.write(tmp_path / "dump_pair_report.json", told)
    except DumpError:
        return False
    return bool(told["comparable"])


def damaged(whole: Any) -> Iterator[Any]:
    for place in _places(whole, ()):
        for odd in ODD:
            value = copy.deepcopy(whole)
            inside = value
            for key in place[:-1]:
                inside = inside[key]
            inside[place[-1]] = odd
            yield value


def _places(value: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*above, key)
        yield from _places(inner, (*above, key))


@pytest.mark.parametrize("name", ["dump.json", "construct.json"])
def test_odd_values_are_judged_or_refused(pair: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    assert judge(tmp_path), "the whole pair"
    path = pair[0] / name
    for value in itertools.islice(damaged(json.loads(path.read_text())), 0, None, 5):  # 5 and 16 values: all of both
        path.write_text(json.dumps(value))
        judge(tmp_path)


def test_a_cut_file_is_never_comparable(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Each file that dump.json names, and itself, cut at twenty places; a tensor's file ends with the list of its parts."""
    for path in [pair[1] / "dump.json", *sorted((pair[1] / "dump_tensor_data").iterdir())]:
        whole = path.read_bytes()
        for at in range(0, len(whole), max(1, len(whole) // 20)):
            path.write_bytes(whole[:at])
            assert not judge(tmp_path), f"{path.name} cut at {at}"
        path.unlink()
        assert not judge(tmp_path), f"{path.name} gone"
        path.write_bytes(whole)


def test_a_dump_that_is_being_written_is_not_comparable(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """msprobe writes tensors first and dump.json at the end, whole; before it an empty one."""
    whole = (pair[1] / "dump.json").read_text()
    value = json.loads(whole)
    (pair[1] / "dump.json").write_text(json.dumps({**value, "data": {}}))
    assert not judge(tmp_path)
    (pair[1] / "dump.json").unlink()
    assert not judge(tmp_path)
    (pair[1] / "dump.json").write_text(whole)
    assert judge(tmp_path)
