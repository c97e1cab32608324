"""Sample pairs, laid out from their layers (see samples/README.md)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

SAMPLES = Path(__file__).parent / "samples"


class Sample(NamedTuple):
    """A committed pair, laid out: paths of both sides and of the mapping, and what is known of it by hand."""

    name: str
    train: Path
    infer: Path
    mapping: Path
    expected: dict[str, Any]


def lay_out(name: str, root: Path) -> Sample:
    """A sample by name; a side of several layers is copied together under ``root``."""
    folder = SAMPLES / name
    pair = json.loads((folder / "pair.json").read_text())
    left_out = pair.get("without", {})
    sides = {
        side: _layered([folder / layer for layer in pair[side]], root / name / side, left_out.get(side, [])) for side in ("train", "infer")
    }
    expected = json.loads((folder / "expected.json").read_text())
    return Sample(name, sides["train"], sides["infer"], folder / pair["mapping"], expected)


def _layered(layers: list[Path], target: Path, left_out: list[str]) -> Path:
    """The folders over each other, later ones first in sight; a single one is used where it is.

    ``left_out``: names of files (shell patterns) that only the last folder may bring.
    """
    if len(layers) == 1:
        return layers[0].resolve()
    for layer in layers:
        for file in _files(layer):
            if layer != layers[-1] and any(fnmatchcase(file.name, pattern) for pattern in left_out):
                continue
            place = target / file.relative_to(layer)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            shutil.copyfile(file, place)
    return target


def _files(folder: Path) -> Iterator[Path]:
    for top, _, names in os.walk(folder):
        yield from (Path(top) / name for name in names)
