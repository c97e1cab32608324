"""The rule of add + norm against torch's own sums."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from handmade import record
from msprobe_files.release import inputs_are
from msprobe_files.units import find_units, read_unit

ENTRY = "Module.norm.RMSNorm.forward.0"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("size", ["subnormal", "ordinary", "overflowing"])
@pytest.mark.parametrize("wrong", [False, True])
def test_torch_sums_are_known_and_one_wrong_bit_is_seen(tmp_path: Path, dtype: torch.dtype, size: str, wrong: bool) -> None:
    """1000 random sums; in the last case some are infinite."""
    limits = torch.finfo(dtype)
    scale = {"subnormal": limits.tiny / 8, "ordinary": 3.0, "overflowing": limits.max * 0.9}[size]
    drawn = torch.Generator().manual_seed(3)
    x, y = ((torch.rand(1000, generator=drawn, dtype=torch.float64).sub(0.3) * scale).to(dtype) for _ in range(2))
    assert (x + y).isinf().any() == (size == "overflowing")
    total = x + y
    if wrong:
        at = int(total.isfinite().nonzero()[0])
        total.view(torch.int32 if dtype is torch.float32 else torch.int16)[at] ^= 1
    data = {ENTRY: {"input_args": [], "output": [], "parameters": {"weight": record("torch.float32")}}}
    for slot, category, values in (("input_args", "input", [x, y]), ("output", "output", [x * 0.5 + 1, total])):
        for at, value in enumerate(values):
            name = "%s.%s.%d.pt" % (ENTRY, category, at)
            torch.save(value, tmp_path / name)
            data[ENTRY][slot].append(record(str(dtype), [1000], data_name=name))  # type: ignore[attr-defined]
    (tmp_path / "dump.json").write_text(json.dumps({"data": data}))
    (tmp_path / "dump_tensor_data").symlink_to(tmp_path)
    (place,) = find_units(str(tmp_path))
    assert inputs_are(read_unit(place)) == ("unknown" if wrong else "pre_call")
