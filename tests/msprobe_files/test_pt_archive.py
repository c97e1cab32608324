"""Tensor files read without torch: real ones, and files that are cut, flipped, foreign or made to harm."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any, Callable, List, Sequence, Tuple

import pytest
from handmade import (
    NO_HOOKS,
    SIXTEEN,
    VERSIONS,
    call,
    name,
    number,
    numbers,
    program,
    sample_file,
    sequence,
    storage,
    tensor,
    text,
    unit_folder,
    write_archive,
    write_values,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import PtTensor, read_bytes, read_header

MIB = 1 << 20
REAL = sample_file("26.2.0/mini_tensor", "Module.lin.Linear.forward.0.input.0")
NPU = sample_file("npu_tagged", "Module.lin.Linear.forward.0.input.0")
SLICED = sample_file("26.2.0/sliced", "Module.0.Linear.forward.0.input.0")


def refusal(path: str) -> str:
    """Why a file is refused; the rest of the message is checked here."""
    with pytest.raises(DumpError) as caught:
        read_header(path)
    message = str(caught.value)
    start, end = "Cannot read %s: " % os.path.basename(path), ". Copy or dump the file again."
    assert message.startswith(start)
    assert message.endswith(end)
    assert len(message) < 2000, "what a hostile file holds must not fill the screen"
    return message[len(start) : -len(end)]


def refused_in_little_memory(path: str, most: int) -> str:
    tracemalloc.start()
    try:
        why = refusal(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most, "%.1f MiB" % (peak / MIB)
    return why


def stays_inside(header: PtTensor, size: int) -> bool:
    """The storage lies in the file and every element in the storage."""
    if header.elements == 0:
        return True
    last = header.start + header.item_size * sum((length - 1) * step for length, step in zip(header.shape, header.strides))
    first, end = header.storage_start, header.storage_start + header.storage_bytes
    return 0 <= first <= header.start <= last <= end - header.item_size and end <= size


def is_harmless(path: Path) -> None:
    """A damaged file is refused or describes bytes that are there; anything else raises."""
    try:
        header = read_header(str(path))
        assert stays_inside(header, path.stat().st_size)
        if header.contiguous:
            assert len(read_bytes(header)) == header.elements * header.item_size
    except DumpError:
        pass


# --- real files ---


def test_a_file_made_by_hand_is_read(tmp_path: Path) -> None:
    """The hand-made files below are right but for what each test puts into them."""
    path = write_archive(tmp_path / "t.pt", program(tensor()))
    header = read_header(path)
    at = Path(path).read_bytes().index(SIXTEEN)
    assert header == PtTensor(path, "float32", (2, 2), (2, 1), at, at, 16, "cpu")
    assert read_bytes(header) == SIXTEEN
    assert read_bytes(header, 5) == SIXTEEN[:5]


def test_a_real_file_is_read() -> None:
    """Truth: hexadecimal words of the file, bfloat16 5.0 5.5 6.0 6.5 7.0 7.5 (dump.json: Min 5, Max 7.5, Mean 6.25)."""
    header = read_header(str(REAL))
    assert (header.dtype, header.shape, header.strides, header.location, header.storage_bytes) == ("bfloat16", (2, 3), (3, 1), "cpu", 12)
    assert read_bytes(header) == struct.pack("<6H", 0x40A0, 0x40B0, 0x40C0, 0x40D0, 0x40E0, 0x40F0)


def test_npu_files_equal_those_of_the_cpu() -> None:
    """The same program saved with NPU tags: only the location may differ."""
    files = sorted((unit_folder("npu_tagged") / "dump_tensor_data").iterdir())
    assert len(files) == 17
    for file in files:
        npu, cpu = read_header(str(file)), read_header(str(sample_file("26.2.0/mini_tensor", file.stem)))
        assert (npu.dtype, npu.shape, npu.strides, read_bytes(npu)) == (cpu.dtype, cpu.shape, cpu.strides, read_bytes(cpu))
        assert (npu.location, cpu.location) == ("npu:0", "cpu")


def test_the_older_npu_form_is_read() -> None:
    """torch_npu before 2.1 names a function of its own; its six first arguments are torch's."""
    header = read_header(str(VERSIONS / "npu_tagged" / "legacy_torch_npu_before_2.1.pt"))
    assert (header.dtype, header.shape, header.strides, header.location) == ("bfloat16", (2, 3), (3, 1), "npu:0")
    assert read_bytes(header) == struct.pack("<6H", 0, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0)  # 0 1 2 3 4 5


def test_a_slice_keeps_its_own_bytes_apart_from_its_storage() -> None:
    """2 of 100 rows, the storage saved whole: its first values are 0 1 2 3 (dump.json: Min 0, Max 3, Mean 1.5)."""
    header = read_header(str(SLICED))
    assert (header.shape, header.storage_bytes) == ((2, 2), 800)
    assert read_bytes(header) == struct.pack("<4f", 0, 1, 2, 3)


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), False),
        ((2, 3), (6, 1), False),
        ((1, 3), (99, 1), True),
        ((3, 1), (1, 99), True),
        ((), (), True),
        ((0, 3), (7, 5), True),
        ((2, 2), (0, 1), False),
    ],
)
def test_contiguous_means_row_after_row(shape: Tuple[int, ...], strides: Tuple[int, ...], contiguous: bool) -> None:
    """Strides of axes of size 1, and of tensors without elements, mean nothing."""
    assert PtTensor("", "float32", shape, strides, 0, 0, 0, "cpu").contiguous is contiguous


def test_a_strided_view_has_no_bytes_of_its_own(tmp_path: Path) -> None:
    header = read_header(write_archive(tmp_path / "t.pt", program(tensor(strides=numbers(1, 2)))))
    with pytest.raises(DumpError, match="strided view"):
        read_bytes(header)


def test_a_file_cut_after_its_header_was_read(tmp_path: Path) -> None:
    path = tmp_path / "t.pt"
    header = read_header(write_archive(path, program(tensor())))
    path.write_bytes(path.read_bytes()[: header.start + 10])
    with pytest.raises(DumpError, match="ends 6 bytes before its data does"):
        read_bytes(header)


def test_a_file_gone_after_its_header_was_read(tmp_path: Path) -> None:
    """A dump on a file server may vanish while it is read: one clear error, no traceback."""
    header = read_header(write_archive(tmp_path / "t.pt", program(tensor())))
    (tmp_path / "t.pt").unlink()
    with pytest.raises(DumpError, match=r"t\.pt"):
        read_bytes(header)


# --- damaged files ---


@pytest.mark.parametrize("source", [REAL, NPU, SLICED], ids=["cpu", "npu", "sliced"])
def test_a_file_cut_anywhere_is_refused(source: Path, tmp_path: Path) -> None:
    """B12: disk full during the dump. Every length that the file can be cut to."""
    raw, path = source.read_bytes(), tmp_path / "cut.pt"
    path.write_bytes(raw)
    for length in reversed(range(len(raw))):
        os.truncate(path, length)
        with pytest.raises(DumpError, match=r"^Cannot read cut\.pt: "):
            read_header(str(path))


@pytest.mark.parametrize("source", [REAL, NPU, SLICED], ids=["cpu", "npu", "sliced"])
def test_a_flipped_byte_anywhere_does_no_harm(source: Path, tmp_path: Path) -> None:
    """Every byte of the file, lowest bit, highest bit and all bits."""
    raw, path = source.read_bytes(), tmp_path / "flipped.pt"
    path.write_bytes(raw)
    with open(path, "r+b", buffering=0) as file:
        for at in range(len(raw)):
            for value in (raw[at] ^ 0x01, raw[at] ^ 0x80, raw[at] ^ 0xFF, raw[at]):
                file.seek(at)
                file.write(bytes([value]))
                is_harmless(path)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_several_changes_at_once_do_no_harm(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Bytes replaced, put in and taken out at random places, so that the zip's own records disagree."""
    raw = bytearray(data.draw(st.sampled_from([REAL, NPU, SLICED])).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=9))
    path = tmp_path_factory.getbasetemp() / "changed.pt"
    path.write_bytes(raw)
    is_harmless(path)


@pytest.mark.filterwarnings("ignore:invalid escape sequence")  # of pickletools, hidden from users
def test_a_changed_pickle_does_no_harm(tmp_path: Path) -> None:
    """Any one byte of the pickle, the zip's checksum made right again so that the walk itself sees it."""
    path, drawn = tmp_path / "t.pt", random.Random(0)
    whole = program(tensor(storage(name("torch.storage", "UntypedStorage")), function=name("torch._utils", "_rebuild_tensor_v3")))
    for pickled in (program(tensor()), whole):
        for at in range(len(pickled)):
            for value in drawn.sample(range(256), 8):
                write_archive(path, pickled[:at] + bytes([value]) + pickled[at + 1 :])
                is_harmless(path)


PIECES = [
    NO_HOOKS, storage(), tensor(), text("storage"), text("0"), number(1), number(-1), number(1 << 70), numbers(2, 2), b"(", b"t", b")",
    b"}", b"]", b"u", b"s", b"R", b"Q", b"q\x00", b"h\x00", b"r\xff\xff\xff\xff", b"j\xff\xff\xff\xff", b"\x94", b"\x85", b"\x86", b"\x87",
    b"N", b"\x88", b"\x89", b"0", b"1", b"2", b"\x93", b"b", b"\x81", b"i", b".", name("torch", "FloatStorage"), name("os", "system"),
    name("torch._utils", "_rebuild_parameter"), name("torch._utils", "_rebuild_tensor_v2"), name("torch", "float8_e4m3fn"),
]  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_opcodes_in_any_order_do_no_harm(tmp_path_factory: pytest.TempPathFactory, pieces: List[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "pieces.pt"
    write_archive(path, program(b"".join(pieces)))
    is_harmless(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no file of torch.save"),
        (b"\x80\x02]q\x00.", "no file of torch.save"),
        (b"hello\n" * 100, "no file of torch.save"),
        (b"PK\x05\x06" + bytes(18), "a zip without data.pkl"),
        (b"PK\x03\x04" + bytes(60), "no file of torch.save"),
    ],
    ids=["zero bytes", "pickle of old torch", "text", "empty zip", "zip header alone"],
)
def test_what_is_no_tensor_file_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "t.pt").write_bytes(content)
    assert why in refusal(str(tmp_path / "t.pt"))


def test_paths_that_are_no_file_are_refused(tmp_path: Path) -> None:
    assert refusal(str(tmp_path)) == "Is a directory"
    assert refusal(str(tmp_path / "none.pt")) == "No such file or directory"
    assert "null" in refusal(str(tmp_path / "a\0b.pt"))


def test_a_zip_of_other_things_is_refused(tmp_path: Path) -> None:
    """A model's own archive, or a zip whose data.pkl lies elsewhere."""
    for member in ("data.pkl", "a/b/data.pkl", "archive/constants.pkl"):
        with zipfile.ZipFile(tmp_path / "t.pt", "w") as archive:
            archive.writestr(member, program(tensor()))
        assert "a zip without data.pkl" in refusal(str(tmp_path / "t.pt"))


def test_a_reason_is_never_empty(tmp_path: Path) -> None:
    """Some errors of zipfile and of the walk have no text of their own."""
    for pickled in (
        b"",
        b"\x80\x02",
        program(b"h\x07"),
        program(b"("),
        program(b"R"),
        program(b"q\x00"),
        program(b"u"),
        program(b"s"),
        b".",
    ):
        why = refusal(write_archive(tmp_path / "t.pt", pickled))
        assert "()" not in why
        assert why.strip()


@pytest.mark.parametrize("order", [b"big", b"big\n", b"", b"middle"])
def test_other_byte_orders_are_refused(tmp_path: Path, order: bytes) -> None:
    """Values would come back with their bytes reversed."""
    assert "-endian" in refusal(write_archive(tmp_path / "t.pt", program(tensor()), byteorder=order))


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """Two readers could take a different one of them for the tensor."""
    for member, content in (("data.pkl", program(tensor())), ("data/0", SIXTEEN)):
        with pytest.warns(UserWarning, match="Duplicate name"):
            path = write_archive(tmp_path / "t.pt", program(tensor()), more=[(member, content)])
        assert refusal(path) == "it holds %s twice" % member


def test_missing_data_is_refused(tmp_path: Path) -> None:
    assert refusal(write_archive(tmp_path / "t.pt", program(tensor(storage(key=text("1")))))) == "the data of its storage is missing"
    assert (
        refusal(write_archive(tmp_path / "t.pt", program(tensor(storage(key=text("../data/0")))))) == "the data of its storage is missing"
    )


# --- zips made to harm ---


def end_of_directory(raw: bytes) -> Tuple[int, int]:
    """Where the zip's directory and its last record begin."""
    last = raw.rindex(b"PK\x05\x06")
    return struct.unpack_from("<I", raw, last + 16)[0], last


def directory_entry(raw: bytes, member: str) -> int:
    at, last = end_of_directory(raw)
    while at < last:
        length, extra, comment = struct.unpack_from("<3H", raw, at + 28)
        if raw[at + 46 : at + 46 + length].endswith(member.encode()):
            return at
        at += 46 + length + extra + comment
    raise AssertionError(member)


def declare(path: str, member: str, fields: Sequence[Tuple[str, int, int]]) -> None:
    """Change fields (format, offset in the directory, value) of a member's directory entry."""
    raw = bytearray(Path(path).read_bytes())
    at = directory_entry(bytes(raw), member)
    for form, offset, value in fields:
        struct.pack_into(form, raw, at + offset, value)
    Path(path).write_bytes(raw)


@pytest.mark.parametrize("member", ["data.pkl", "byteorder", "data/0"])
def test_compressed_members_are_refused(tmp_path: Path, member: str) -> None:
    """torch.save stores. The same file with the member stored is read (first test)."""
    path = write_archive(tmp_path / "t.pt", program(tensor()), data=SIXTEEN, compressed=[member])
    assert ("compressed" in refusal(path)) or member == "data/0"


@pytest.mark.parametrize("member", ["data.pkl", "byteorder"])
def test_a_zip_bomb_is_refused_before_it_is_inflated(tmp_path: Path, member: str) -> None:
    """1 GiB of zeros in a megabyte."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = squeezer.compress(bytes(MIB)) + squeezer.flush(zlib.Z_FULL_FLUSH)
    bomb = block * 1024 + squeezer.flush()
    assert zlib.decompressobj(-15).decompress(bomb, MIB) == bytes(MIB)
    contents = {"data.pkl": program(tensor()), "byteorder": b"little", member: bomb}
    path = write_archive(tmp_path / "t.pt", contents["data.pkl"], byteorder=contents["byteorder"])
    declare(path, member, [("<H", 10, zipfile.ZIP_DEFLATED), ("<I", 24, 1 << 30)])
    assert "compressed or has 1073741824 bytes" in refused_in_little_memory(path, 8 * MIB)
    declare(path, member, [("<I", 24, 100)])
    assert "compressed or has 100 bytes" in refused_in_little_memory(path, 8 * MIB)


def test_a_small_zip_bomb_that_states_its_stored_size_is_refused(tmp_path: Path) -> None:
    """40 MiB of zeros in as many kilobytes, which are said to be all."""
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = squeezer.compress(bytes(40 * MIB)) + squeezer.flush()
    path = write_archive(tmp_path / "t.pt", bomb)
    declare(path, "data.pkl", [("<H", 10, zipfile.ZIP_DEFLATED)])
    assert "compressed or has %d bytes" % len(bomb) in refused_in_little_memory(path, 8 * MIB)


def test_a_stored_member_as_large_as_the_file_is_not_read(tmp_path: Path) -> None:
    """Its stated size is small but its stored size is not: zipfile reads the latter. The file is a hole and costs no disk."""
    path = write_archive(tmp_path / "t.pt", program(tensor()))
    raw, hole = Path(path).read_bytes(), 128 * MIB
    directory, last = end_of_directory(raw)
    tail = bytearray(raw[directory:])
    struct.pack_into("<I", tail, last - directory + 16, directory + hole)
    with open(path, "wb") as file:
        file.write(raw[:directory])
        file.seek(directory + hole)
        file.write(tail)
    assert read_header(path).shape == (2, 2)
    declare_at_end(path, directory + hole, bytes(tail), hole)
    tracemalloc.start()
    is_harmless(Path(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MIB, "%.1f MiB" % (peak / MIB)


def declare_at_end(path: str, at: int, tail: bytes, size: int) -> None:
    """As `declare`, for a directory at the end of a file that is too large to hold."""
    changed = bytearray(tail)
    struct.pack_into("<I", changed, changed.index(b"archive/data.pkl") - 46 + 20, size)
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(changed)


@pytest.mark.parametrize("offset", [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("member", ["data.pkl", "byteorder", "data/0"])
def test_a_member_that_is_said_to_lie_far_beyond_the_file_is_refused(tmp_path: Path, member: str, offset: int) -> None:
    """Zip64 offsets have 64 bits; a file position has 63."""
    path = write_archive(tmp_path / "t.pt", program(tensor()))
    raw = bytearray(Path(path).read_bytes())
    at, (directory, last) = directory_entry(bytes(raw), member), end_of_directory(bytes(raw))
    extra = struct.pack("<2HQ", 1, 8, offset)
    struct.pack_into("<I", raw, at + 42, 0xFFFFFFFF)
    struct.pack_into("<H", raw, at + 30, len(extra))
    struct.pack_into("<I", raw, last + 12, last - directory + len(extra))
    end_of_name = at + 46 + struct.unpack_from("<H", raw, at + 28)[0]
    raw[end_of_name:end_of_name] = extra
    Path(path).write_bytes(raw)
    refusal(path)


@pytest.mark.parametrize(
    ("size", "why"), [(15, "has 15 bytes where 16 are due"), (17, "has 17 bytes where 16 are due"), (0, "has 0 bytes where 16 are due")]
)
def test_a_storage_of_another_size_is_refused(tmp_path: Path, size: int, why: str) -> None:
    assert why in refusal(write_archive(tmp_path / "t.pt", program(tensor()), data=bytes(size)))


def test_data_that_would_end_after_the_file_is_refused(tmp_path: Path) -> None:
    """Stated sizes agree with each other, only the bytes are not there."""
    many = 1 << 20
    path = write_archive(tmp_path / "t.pt", program(tensor(storage(elements=number(many)), shape=numbers(many), strides=numbers(1))))
    declare(path, "data/0", [("<I", 20, 4 * many), ("<I", 24, 4 * many)])
    assert refusal(path) == "its data ends after the file does"


def test_a_local_header_that_is_none_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "t.pt", program(tensor()))
    raw = bytearray(Path(path).read_bytes())
    raw[raw.index(b"archive/data/0") - 30] ^= 1
    Path(path).write_bytes(raw)
    assert "damaged" in refusal(path)


# --- pickles made to harm ---


class Command:
    """What a pickle can hold: a call of anything."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Tuple[Callable[[str], int], Tuple[str]]:
        return os.system, (self.command,)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_no_code_is_run(tmp_path: Path, protocol: int) -> None:
    """The same bytes do run where they are unpickled."""
    marker = tmp_path / "ran"
    hostile = pickle.dumps(Command("touch '%s'" % marker), protocol)
    assert refusal(write_archive(tmp_path / "t.pt", hostile)) == "its pickle calls posix.system, which is not part of a tensor"
    assert not marker.exists()
    pickle.loads(hostile)  # noqa: S301
    assert marker.exists()


@pytest.mark.parametrize(
    ("module", "attribute"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "__import__"),
        ("torch", "load"),
        ("torch._utils", "_rebuild_qtensor"),
        ("torch._utils", "_rebuild_tensor_v2 "),
        ("torch._tensor", "_rebuild_from_type_v2"),
        ("collections", "Counter"),
        ("numpy._core.multiarray", "_reconstruct"),
    ],
)
def test_calls_of_other_names_are_refused(tmp_path: Path, module: str, attribute: str) -> None:
    path = write_archive(tmp_path / "t.pt", program(call(name(module, attribute), text("touch x"))))
    assert refusal(path) == "its pickle calls %s.%s, which is not part of a tensor" % (module, attribute)


def laughs(depth: int = 200) -> bytes:
    """A tuple of 2**200 items in 600 bytes: each level holds the one before twice."""
    return b")" + b"q\x01h\x01\x86" * depth


def test_a_billion_laughs_are_not_laughed(tmp_path: Path) -> None:
    """Printed, hashed or compared anywhere, they would take for ever."""
    nested = laughs()
    hostile: List[bytes] = [
        nested,
        tensor(shape=nested),
        tensor(strides=nested),
        tensor(offset=nested),
        tensor(shape=sequence(nested), strides=sequence(nested)),
        tensor(stored=nested),
        tensor(storage(kind=nested)),
        tensor(storage(key=nested)),
        tensor(storage(location=nested)),
        tensor(storage(elements=nested)),
        tensor(function=nested),
        tensor(more=[nested], function=name("torch._utils", "_rebuild_tensor_v3")),
        b"}" + nested + b"Ns",
        b"}(" + nested + b"Nu",
        nested + nested + b"\x93",
        nested + b"Q",
        call(name("collections", "OrderedDict"), nested),
        call(name("torch._utils", "_rebuild_parameter"), nested),
        name("torch._utils", "_rebuild_parameter") + nested + b"R",
        name("os", "system") + nested + b"R",
    ]
    for body in hostile:
        refused_in_little_memory(write_archive(tmp_path / "t.pt", program(body)), MIB)


def test_laughs_beside_the_tensor_do_no_harm(tmp_path: Path) -> None:
    """Metadata of NPU files is not read but for two keys."""
    header = read_header(write_archive(tmp_path / "t.pt", program(tensor(more=[laughs()]))))
    assert header.shape == (2, 2)


@pytest.mark.parametrize(
    "pickled",
    [
        program(b"N" + b"\x85" * (MIB - 64)),
        program(b"}" * (MIB - 64)),
        program(b"N" * (MIB - 64)),
        program(b"c" + b"a" * (MIB // 2) + b"\n" + b"b" * (MIB // 3) + b"\n)R"),
        program(text("x" * (MIB - 64))),
        program(tensor(storage(key=text("x" * (MIB // 2))))),
        program(tensor(function=name("torch._utils", "_rebuild_tensor_v3"), more=[name("torch", "x" * (MIB // 2))])),
        program(tensor(storage(name("torch", "x" * (MIB // 2) + "Storage")))),
        program(b"N" * 2 * MIB),
        program(tensor(function=name("torch._utils", "_rebuild_tensor_v3"), more=[name("torch", "x" * 30000)])),
        program(tensor(storage(key=text("x" * 30000)))),
    ],
    ids=["nested tuples", "dicts", "nulls", "call", "text", "key", "dtype", "storage", "over a megabyte", "long dtype", "long key"],
)
def test_a_large_pickle_is_refused_in_little_memory(tmp_path: Path, pickled: bytes) -> None:
    """A tensor's has at most a thousand bytes: what costs more than a few megabytes to read is not worth it."""
    refused_in_little_memory(write_archive(tmp_path / "t.pt", pickled), 8 * MIB)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"X\xff\xff\xff\x7fabc", "expected 2147483647 bytes"),
        (b"\x8d" + b"\xff" * 8 + b"abc", "18446744073709551615"),
        (b"\x8a\xff\x01", "no file of torch.save"),
        (b"Nr\xff\xff\xff\xff", "no tensor but a NoneType"),
        (b"j\xff\xff\xff\xff", "no file of torch.save"),
        (b"\x8b\xff\xff\xff\x7f", "no file of torch.save"),
        (b"I" + b"9" * 5000 + b"\n", ""),
        (b"L" + b"9" * 5000 + b"L\n", ""),
        (b"\x95" + b"\xff" * 8 + b"N", ""),
        (b"]", "EMPTY_LIST"),
        (name("os", "system") + b")\x81", "NEWOBJ"),
        (b"cos\nsystem\n", "no tensor but a _Global"),
        (b"Vabc\n", "UNICODE"),
        (b"Pabc\n", "PERSID"),
        (b"\x82\x01", "EXT1"),
    ],
)
def test_other_opcodes_and_giant_lengths_are_refused(tmp_path: Path, body: bytes, why: str) -> None:
    """LONG_BINPUT 0xffffffff makes Python's C unpickler reserve 32 GiB; a stated length is not memory to reserve either."""
    assert why in refused_in_little_memory(write_archive(tmp_path / "t.pt", program(body)), MIB)


def test_a_memo_of_any_number_is_read(tmp_path: Path) -> None:
    """Counterpart of the test before: the number of a memo is only a name."""
    pickled = program(tensor(shape=numbers(1, 1) + b"r\xff\xff\xff\xff", strides=b"j\xff\xff\xff\xff"))
    assert read_header(write_archive(tmp_path / "t.pt", pickled)).strides == (1, 1)


BIG = 1 << 62


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"shape": numbers(-2, 2)}, "no counts"),
        ({"strides": numbers(-2, 1)}, "no counts"),
        ({"offset": number(-1)}, "no counts"),
        ({"shape": numbers(2), "strides": numbers(2, 1)}, "no counts"),
        ({"shape": sequence(text("2"), number(2))}, "no counts"),
        ({"shape": sequence(b"\x88", number(2))}, "no counts"),
        ({"shape": number(4), "strides": number(1)}, "no counts"),
        ({"shape": numbers(*[1] * 65), "strides": numbers(*[1] * 65)}, "no counts"),
        ({"shape": numbers(1 << 63), "strides": numbers(1)}, "no counts"),
        ({"shape": numbers(1 << 800), "strides": numbers(1)}, "no counts"),
        ({"offset": number(1)}, "does not fit into 16 bytes"),
        ({"offset": number(BIG)}, "does not fit into 16 bytes"),
        ({"shape": numbers(2, 3), "strides": numbers(3, 1)}, "does not fit into 16 bytes"),
        ({"shape": numbers(2, 2), "strides": numbers(3, 1)}, "does not fit into 16 bytes"),
        ({"shape": numbers(2, 2), "strides": numbers(BIG, 1)}, "does not fit into 16 bytes"),
        ({"shape": numbers(BIG, BIG), "strides": numbers(0, 0)}, "does not fit into 16 bytes"),
        ({"shape": numbers(5), "strides": numbers(0)}, "does not fit into 16 bytes"),
        ({"shape": numbers(*[BIG] * 64), "strides": numbers(*[BIG] * 64)}, "does not fit into 16 bytes"),
        ({"stored": storage(elements=number(3))}, "has 16 bytes where 12 are due"),
        ({"stored": storage(elements=number(BIG))}, "bytes where 18446744073709551616 are due"),
        ({"stored": storage(elements=number(-4))}, "no number of elements"),
        ({"stored": storage(elements=text("4"))}, "no number of elements"),
        ({"stored": storage(elements=b"\x88")}, "no number of elements"),
        ({"stored": storage(kind=name("torch", "QUInt8Storage"))}, "it holds a torch.QUInt8Storage"),
        ({"stored": storage(kind=name("os", "FloatStorage"))}, "it holds a os.FloatStorage"),
        ({"stored": storage(kind=text("FloatStorage"))}, "names no storage"),
        ({"stored": storage(key=number(0))}, "a short text is due"),
        ({"stored": sequence(text("module"), name("torch", "FloatStorage"), text("0"), text("cpu"), number(4)) + b"Q"}, "names no storage"),
        ({"stored": b"N"}, "describes no tensor"),
        ({"stored": storage(name("torch.storage", "UntypedStorage"), elements=number(16))}, "not known"),
    ],
)
def test_shapes_that_their_storage_cannot_hold_are_refused(tmp_path: Path, made: Any, why: str) -> None:
    """Among them: stride 0, which makes 16 bytes out to be any number of elements."""
    assert why in refused_in_little_memory(write_archive(tmp_path / "t.pt", program(tensor(**made))), MIB)


def test_a_view_that_just_fits_is_read(tmp_path: Path) -> None:
    """Counterpart of the test before: the last element is the storage's last."""
    made = program(tensor(offset=number(1), shape=numbers(2, 1), strides=numbers(2, 9)))
    header = read_header(write_archive(tmp_path / "t.pt", made))
    assert header.start - header.storage_start == 4
    assert stays_inside(header, os.path.getsize(header.path))
    overlapping = program(tensor(shape=numbers(2, 2), strides=numbers(1, 1)))
    assert read_header(write_archive(tmp_path / "t.pt", overlapping)).strides == (1, 1)


@pytest.mark.parametrize("dtype", ["complex32", "quint8", "float4_e2m1fn_x2", "int4", "bits8", "Tensor"])
def test_dtypes_that_are_not_known_are_refused_by_name(tmp_path: Path, dtype: str) -> None:
    stored = storage(name("torch.storage", "UntypedStorage"), elements=number(16))
    made = tensor(stored, function=name("torch._utils", "_rebuild_tensor_v3"), more=[name("torch", dtype)])
    assert refusal(write_archive(tmp_path / "t.pt", program(made))) == "its dtype %s is not known" % dtype


@pytest.mark.parametrize("key", ["conj", "neg"])
def test_lazily_changed_views_are_refused(tmp_path: Path, key: str) -> None:
    """Their bytes are not their values."""
    v2 = tensor(more=[b"}" + text(key) + b"\x88s"])
    stored = storage(name("torch.storage", "UntypedStorage"), elements=number(16))
    v3 = tensor(stored, function=name("torch._utils", "_rebuild_tensor_v3"), more=[name("torch", "uint32"), b"}" + text(key) + b"\x88s"])
    for made in (v2, v3):
        assert "conjugated or negated" in refusal(write_archive(tmp_path / "t.pt", program(made)))
    assert read_header(write_archive(tmp_path / "t.pt", program(tensor(more=[b"}" + text(key) + b"\x89s"])))).shape == (2, 2)


def test_a_file_read_before_lends_nothing_to_the_next(tmp_path: Path) -> None:
    """Layers share their pickles, so the description is kept: the bytes and the checks must be each file's own."""
    first = read_header(write_values(tmp_path / "a.pt", "int64", bytes(range(16)), (2,)))
    second = read_header(write_values(tmp_path / "b.pt", "int64", bytes(range(16, 32)), (2,)))
    assert (read_bytes(first), read_bytes(second)) == (bytes(range(16)), bytes(range(16, 32)))
    shutil.copyfile(tmp_path / "a.pt", tmp_path / "c.pt")
    declare(str(tmp_path / "c.pt"), "data/0", [("<I", 24, 8)])
    assert "has 8 bytes where 16 are due" in refusal(str(tmp_path / "c.pt"))
