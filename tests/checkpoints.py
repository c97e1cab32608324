"""Safetensors files, written by the format's own text (https://github.com/huggingface/safetensors#format)."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Raw = tuple[str, Sequence[int], bytes]  # the format's name of the dtype, shape, data
else:
    Raw = Any  # Python 3.8 runs this file


def write_safetensors(path: Path, tensors: Mapping[str, Raw], **changed: Any) -> Path:
    """``changed``: fields of the first tensor's header that lie."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    if changed:
        header[next(iter(tensors))].update(changed)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def of_floats(weights: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Raw]:
    """float32 arrays as they are written."""
    return {name: ("F32", value.shape, np.ascontiguousarray(value, "<f4").tobytes()) for name, value in weights.items()}
