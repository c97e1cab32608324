"""Checkpoints read as byte ranges: what torch saves, and safetensors files written here by the format's own text."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints import Raw, of_floats, write_safetensors
from dump_analysis import floats, tensors
from dump_analysis.floats import Array
from msprobe_files import checkpoint
from msprobe_files.errors import DumpError
from torch import nn

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "F64": torch.float64, "I64": torch.int64, "BOOL": torch.bool}
DTYPES |= {"F8_E4M3": torch.float8_e4m3fn, "U8": torch.uint8}


def values(tensor: Any) -> Array:
    files = tensors.Files()
    try:
        stream = tensors.cut_stream(files, tensor, ())
        raw = stream.read(0, tensor.elements)
        return floats.values(raw, tensor.dtype).reshape(tensor.shape)
    finally:
        files.close()


def raw(state: dict[str, torch.Tensor]) -> dict[str, Raw]:
    names = {dtype: name for name, dtype in DTYPES.items()}
    flat = {name: tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() for name, tensor in state.items() if tensor.numel()}
    return {name: (names[tensor.dtype], tuple(tensor.shape), flat.get(name, b"")) for name, tensor in state.items()}


def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    made = {f"x.{name}": (torch.randn(3, 5) * 9).to(dtype) for name, dtype in DTYPES.items()}
    return made | {"scalar": torch.tensor(2.5), "empty": torch.zeros(0, 4), "stack": torch.randn(2, 3, 4)}


def same(found: Any, given: torch.Tensor) -> bool:
    expected = given.double().numpy()
    return found.shape == tuple(given.shape) and bool((values(found).astype(np.float64) == expected).all())


def test_a_safetensors_file_gives_every_tensor(tmp_path: Path) -> None:
    """Catches an offset that forgets the header, and a dtype read as another of its size."""
    given = state()
    found = checkpoint.read(write_safetensors(tmp_path / "model.safetensors", raw(given)))
    assert list(found) == list(given)
    assert [name for name in given if not same(found[name], given[name])] == []


def test_a_weight_that_the_index_lists_and_no_file_holds_is_named(tmp_path: Path) -> None:
    """A loader makes such a weight anew, at random."""
    write_safetensors(tmp_path / "model.safetensors", of_floats({"a": np.ones((2, 2), np.float32)}))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "model.safetensors"}}))
    with pytest.raises(DumpError, match="its index lists b, which none of its files holds"):
        checkpoint.read(tmp_path)


def test_a_folder_is_read_by_its_index(tmp_path: Path) -> None:
    """Catches a shard left out, and a stray file beside the index (an adapter) read as part of the model."""
    given = state()
    halves = dict(list(given.items())[:4]), dict(list(given.items())[4:])
    for at, half in enumerate(halves):
        write_safetensors(tmp_path / f"model-{at}.safetensors", raw(half))
    write_safetensors(tmp_path / "adapter.safetensors", raw({"stray": torch.ones(2)}))
    names = {name: f"model-{at}.safetensors" for at, half in enumerate(halves) for name in half}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    found = checkpoint.read(tmp_path)
    assert sorted(found) == sorted(given)
    assert all(same(found[name], given[name]) for name in given)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert sorted(checkpoint.read(tmp_path)) == sorted([*given, "stray"])


def test_a_state_dict_of_torch_is_read(tmp_path: Path) -> None:
    """Catches what a module's state_dict has beside tensors (versions, tied weights, views), and a state_dict inside a dict."""
    model = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3), nn.Linear(3, 4, bias=False))
    model[2].weight = nn.Parameter(model[0].weight.detach().t())
    given = dict(model.state_dict())
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    found = checkpoint.read(tmp_path)
    assert list(found) == list(given)
    assert all(same(found[name], given[name]) for name in given)
    torch.save({"model": model.state_dict(), "iteration": 7}, tmp_path / "last.pt")
    assert list(checkpoint.read(tmp_path / "last.pt")) == [f"model.{name}" for name in given]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"data_offsets": [0, 1 << 40]}, "does not fit"),
        ({"data_offsets": [-8, 52]}, "is no count"),
        ({"shape": [3, 4]}, "does not fit"),
        ({"shape": "3"}, "is no count"),
        ({"dtype": "F4"}, "F4, is not known"),
        ({"data_offsets": None}, "does not say where"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, changed: dict[str, Any], why: str) -> None:
    """Catches bytes of another tensor, or beyond the file, taken for a weight."""
    with pytest.raises(DumpError, match=why):
        checkpoint.read(write_safetensors(tmp_path / "m.safetensors", raw(state()), **changed))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "cut in its header"),
        (struct.pack("<Q", 1 << 50) + b"{}", "cut in its header"),
        (struct.pack("<Q", 2) + b"{]", "no JSON"),
        (struct.pack("<Q", 2) + b"[]", "no JSON object"),
        (struct.pack("<Q", 2) + b"{}", "holds no tensors"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "git lfs pull"),
    ],
)
def test_a_file_that_is_no_checkpoint_is_one_clear_error(tmp_path: Path, content: bytes, why: str) -> None:
    """Catches a traceback, or memory asked for by what a file claims."""
    (tmp_path / "m.safetensors").write_bytes(content)
    with pytest.raises(DumpError, match=why):
        checkpoint.read(tmp_path / "m.safetensors")


def test_what_a_folder_lacks_is_said(tmp_path: Path) -> None:
    """Catches an empty folder, a shard that was not copied, an index that leads outside, and one name in two files."""
    with pytest.raises(DumpError, match=r"no \.safetensors"):
        checkpoint.read(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "gone.safetensors"}}))
    with pytest.raises(DumpError, match=r"gone\.safetensors: No such file"):
        checkpoint.read(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "../../secret.safetensors"}}))
    with pytest.raises(DumpError, match="outside its folder"):
        checkpoint.read(tmp_path)
    index.unlink()
    for name in ("a", "b"):
        write_safetensors(tmp_path / f"{name}.safetensors", raw({"w": torch.ones(2)}))
    with pytest.raises(DumpError, match="both hold w"):
        checkpoint.read(tmp_path)


def test_a_torch_file_runs_nothing(tmp_path: Path) -> None:
    """Catches a checkpoint unpickled: what it would call is named, not called."""

    class Hostile:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"w": torch.ones(2), "x": Hostile()}, tmp_path / "m.pt")
    with pytest.raises(DumpError, match=r"which is not part of a tensor|which a tensor never needs"):
        checkpoint.read(tmp_path / "m.pt")
    assert not (tmp_path / "ran").exists()
