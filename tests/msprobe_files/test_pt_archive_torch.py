"""Tensor files against torch itself: what torch.save wrote and torch.load reads back is the truth."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest
import torch
from handmade import SAMPLES, VERSIONS
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import ITEM_SIZES, read_bytes, read_header

DTYPES = sorted(ITEM_SIZES)


def raw(value: torch.Tensor) -> bytes:
    """The bytes of a tensor's elements in row-major order."""
    flat = torch.empty(value.numel(), dtype=value.dtype)
    flat.copy_(value.detach().reshape(-1))
    return bytes(flat.view(torch.uint8).tolist())


def made(dtype: str, *shape: int) -> torch.Tensor:
    """Random bits of a dtype (bool: random truth)."""
    drawn = torch.Generator().manual_seed(7)
    kind = getattr(torch, dtype)
    if kind is torch.bool:
        return torch.randint(0, 2, shape, generator=drawn).bool()
    count = 1
    for size in shape:
        count *= size
    return torch.randint(0, 256, (count * kind.itemsize,), generator=drawn).to(torch.uint8).view(kind).reshape(shape)


def agrees(path: Path, wanted: torch.Tensor) -> None:
    """The header is torch's, and the bytes that it points at are the tensor's."""
    header = read_header(str(path))
    assert (header.dtype, header.shape) == (str(wanted.dtype)[len("torch.") :], tuple(wanted.shape))
    assert header.item_size == wanted.element_size()
    assert header.elements == wanted.numel()
    if wanted.numel() == 0:
        assert read_bytes(header) == b""
        return
    assert header.strides == wanted.stride()
    assert header.storage_bytes == wanted.untyped_storage().nbytes()
    assert header.start - header.storage_start == wanted.storage_offset() * wanted.element_size()
    file = path.read_bytes()
    stored = bytearray(file[header.storage_start : header.storage_start + header.storage_bytes])
    first = (header.start - header.storage_start) // header.item_size
    again = torch.frombuffer(stored, dtype=torch.uint8).view(wanted.dtype).as_strided(header.shape, header.strides, first)
    assert raw(again) == raw(wanted)
    assert header.contiguous == wanted.is_contiguous()
    if header.contiguous:
        assert read_bytes(header) == raw(wanted)
        assert read_bytes(header, 3) == raw(wanted)[:3]


def saved(path: Path, value: Any, **options: Any) -> torch.Tensor:
    torch.save(value, path, **options)
    return torch.load(path, weights_only=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4), (5,), (), (0,), (3, 0), (1, 1, 2), (2, 3, 2, 2)], ids=str)
def test_every_dtype_and_shape(dtype: str, shape: Tuple[int, ...], tmp_path: Path) -> None:
    agrees(tmp_path / "t.pt", saved(tmp_path / "t.pt", made(dtype, *shape)))


@pytest.mark.filterwarnings("ignore")  # torch's own, of rare dtypes
def test_every_dtype_that_torch_saves_is_known_or_refused(tmp_path: Path) -> None:
    """A new release of torch may bring dtypes: none may be read as another one."""
    known = 0
    for dtype in {value for value in vars(torch).values() if isinstance(value, torch.dtype)}:
        try:
            torch.save(torch.empty(2, dtype=dtype), tmp_path / "t.pt")
        except (RuntimeError, KeyError):
            continue  # torch itself cannot
        if str(dtype)[len("torch.") :] in ITEM_SIZES:
            assert read_header(str(tmp_path / "t.pt")).dtype == str(dtype)[len("torch.") :]
            known += 1
        else:
            with pytest.raises(DumpError):
                read_header(str(tmp_path / "t.pt"))
    assert known == len(ITEM_SIZES)


VIEWS: List[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda t: t.t(),
    lambda t: t[1:3],
    lambda t: t[1:3, 2:5],
    lambda t: t[::2],
    lambda t: t[:, ::3],
    lambda t: t[2],
    lambda t: t[:, 4],
    lambda t: t[3, 5],
    lambda t: t[5:5],
    lambda t: t.unfold(1, 4, 4),
    lambda t: t.reshape(3, 2, 8).permute(2, 0, 1),
    lambda t: t.as_strided((3, 3), (1, 2), 7),
    lambda t: t[-1:, -1:],
]


@pytest.mark.parametrize("view", range(len(VIEWS)))
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "uint16", "bool", "complex64"])
def test_views_keep_their_storage_and_offset(view: int, dtype: str, tmp_path: Path) -> None:
    agrees(tmp_path / "t.pt", saved(tmp_path / "t.pt", VIEWS[view](made(dtype, 6, 8))))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_cut_and_order_of_axes(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), max_size=4))
    value = made(data.draw(st.sampled_from(DTYPES)), *shape)
    value = value.permute(data.draw(st.permutations(range(value.dim()))))
    for axis in range(value.dim()):
        start = data.draw(st.integers(0, value.shape[axis]))
        value = value.narrow(axis, start, data.draw(st.integers(0, value.shape[axis] - start)))
    path = tmp_path_factory.getbasetemp() / "t.pt"
    agrees(path, saved(path, value))


def test_a_small_view_of_a_big_storage(tmp_path: Path) -> None:
    """The file holds 4 MB, the tensor 8 bytes of it."""
    value = torch.arange(1 << 20, dtype=torch.float32)[777_777:777_779]
    agrees(tmp_path / "t.pt", saved(tmp_path / "t.pt", value))
    assert read_header(str(tmp_path / "t.pt")).storage_bytes == 4 << 20


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_every_pickle_protocol(protocol: int, dtype: str, tmp_path: Path) -> None:
    """Later ones write names, texts and memos with other opcodes."""
    for at, value in enumerate([made(dtype, 300, 5)[7:, 1:], torch.nn.Parameter(made(dtype, 2, 2), requires_grad=False)]):
        torch.save(value, tmp_path / ("%d.pt" % at), pickle_protocol=protocol)
        agrees(tmp_path / ("%d.pt" % at), value)


def test_the_folder_inside_the_zip_may_have_any_name(tmp_path: Path) -> None:
    """torch names it after the file, or ``archive`` where there is none."""
    value, buffer = made("float32", 2, 3), io.BytesIO()
    torch.save(value, buffer)
    (tmp_path / "t.pt").write_bytes(buffer.getvalue())
    assert b"archive/data.pkl" in buffer.getvalue()
    agrees(tmp_path / "t.pt", value)
    for name in ("Module.a.forward.0.output.0.pt", "data.pt", "a b.pt", "data", "张量.pt"):
        agrees(tmp_path / name, saved(tmp_path / name, value))


@pytest.mark.parametrize("trainable", [True, False])
def test_parameters_and_tensors_with_gradients(trainable: bool, tmp_path: Path) -> None:
    value = torch.nn.Parameter(made("bfloat16", 2, 3), requires_grad=trainable)
    agrees(tmp_path / "t.pt", saved(tmp_path / "t.pt", value).detach())
    agrees(tmp_path / "t.pt", saved(tmp_path / "t.pt", made("float32", 2).requires_grad_(trainable)).detach())


@pytest.mark.parametrize(
    "value",
    [
        made("complex64", 3).conj(),
        made("complex64", 3).conj().imag,
        torch._neg_view(made("float32", 3)),
        torch.ones(1).expand(5, 3),
        [torch.ones(2)],
        {"a": torch.ones(2)},
        torch.nn.Linear(2, 2).state_dict(),
        torch.ones(2).to_sparse(),
        torch.empty(2, device="meta"),
        torch.ones(2).untyped_storage(),
        "text",
        3,
        None,
    ],
    ids=[
        "conj",
        "conj and neg",
        "neg",
        "stride 0",
        "list",
        "dict",
        "state",
        "sparse",
        "meta",
        "storage",
        "text",
        "int",
        "None",
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch's own, of old ways
def test_what_is_not_one_plain_tensor_is_refused(value: Any, tmp_path: Path) -> None:
    torch.save(value, tmp_path / "t.pt")
    with pytest.raises(DumpError, match=r"^Cannot read t\.pt: "):
        read_header(str(tmp_path / "t.pt"))


def test_conjugates_that_were_resolved_are_read(tmp_path: Path) -> None:
    agrees(tmp_path / "t.pt", saved(tmp_path / "t.pt", made("complex64", 3).conj().resolve_conj()))


def test_files_of_old_torch_are_refused(tmp_path: Path) -> None:
    torch.save(torch.ones(2), tmp_path / "t.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(DumpError, match="no file of torch"):
        read_header(str(tmp_path / "t.pt"))


def test_every_sample_file() -> None:
    """All files that real runs of msprobe 8.1 to 26.2 wrote, NPU-tagged ones included."""
    files = [path for path in SAMPLES.rglob("*.pt") if not path.name.startswith("legacy")]
    assert len(files) > 1000
    for path in files:
        agrees(path, torch.load(path, map_location="cpu", weights_only=True))


def test_the_older_npu_file() -> None:
    """torch reads it with a stand-in for the function that torch_npu had."""

    def shim(*arguments: Any) -> torch.Tensor:
        return torch._utils._rebuild_tensor_v2(*arguments[:6])

    path = VERSIONS / "npu_tagged" / "legacy_torch_npu_before_2.1.pt"
    with torch.serialization.safe_globals([(shim, "torch_npu.utils.storage._rebuild_npu_tensor")]):
        agrees(path, torch.load(path, map_location="cpu", weights_only=True))
