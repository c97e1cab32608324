"""Tensor files written without torch, read by torch."""

from pathlib import Path

import numpy as np
import pytest
import torch
from dump_analysis.pt_writer import write_pt
from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import read_header

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_torch_reads_back_what_is_written(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    """Catches a pickle that torch refuses, or bytes that it reads as another dtype or shape."""
    wanted = (torch.arange(int(np.prod(shape))).reshape(shape) % 2).to(getattr(torch, dtype))
    data = (
        wanted.contiguous().view(torch.uint8).numpy().tobytes()
        if wanted.numel() and shape
        else wanted.reshape(-1).view(torch.uint8).numpy().tobytes()
    )
    write_pt(tmp_path / "x.pt", dtype, shape, (data[at : at + 5] for at in range(0, len(data), 5)))
    found = torch.load(tmp_path / "x.pt", weights_only=True)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert torch.equal(found, wanted)
    header = read_header(str(tmp_path / "x.pt"))
    assert (header.dtype, header.shape) == (dtype, shape)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Catches a file that holds fewer bytes than its header says, or another dtype."""
    with pytest.raises(DumpError, match="no storage class for float8_e5m2"):
        write_pt(tmp_path / "x.pt", "float8_e5m2", (2,), [b"ab"])
    with pytest.raises(DumpError, match="3 bytes for 4"):
        write_pt(tmp_path / "x.pt", "float32", (1,), [b"abc"])
