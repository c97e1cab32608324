"""A ``.pt`` file of one tensor, read without torch: dtype, shape, strides and byte range.

``torch.save`` writes a zip whose members are stored uncompressed: a pickle that describes the
tensor and one member with its bytes.  The pickle is walked as data (`pickletools.genops` and an
allow-list of opcodes and globals): nothing is imported, built or run.  Format: torch 2.13
``torch/serialization.py`` and ``torch/_utils.py`` (``_rebuild_tensor_v2``, ``_rebuild_tensor_v3``);
NPU files: torch_npu 2.1+ ``utils/serialization.py`` (a seventh argument with format keys).
"""

import os
import pickletools
import struct
import zipfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .errors import DumpError

ITEM_SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1,
    "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip
_STORAGE_DTYPES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip
_LARGEST_PICKLE = 1 << 14  # bytes; a tensor's pickle has 150 to 2000
_LARGEST_STATE = 1 << 26  # bytes; a state_dict's pickle has about 200 a tensor
# What zipfile, pickletools and the walk raise on cut or foreign bytes.
_DAMAGE = (
    zipfile.BadZipFile, ValueError, LookupError, EOFError, NotImplementedError, struct.error, RuntimeError,
    AttributeError, TypeError, Warning,
)  # fmt: skip
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")


class PtTensor(NamedTuple):
    """One tensor inside a file. ``start``: byte offset of its first element; ``strides`` in elements.

    ``storage_start`` and ``storage_bytes`` are the byte range of the storage that the tensor views.
    """

    path: str
    dtype: str
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    start: int
    storage_start: int
    storage_bytes: int
    location: str

    @property
    def item_size(self) -> int:
        return ITEM_SIZES[self.dtype]

    @property
    def elements(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def contiguous(self) -> bool:
        """True where the elements lie one after the other in row-major order."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size != 1 and stride != expected:
                return self.elements == 0
            expected *= size
        return True


def read_header(path: str) -> PtTensor:
    """Describe the tensor in ``path`` without reading its data.

    Raises DumpError for a file that is no stored zip of one tensor: cut, foreign, compressed,
    hostile, or of a dtype that is not known.
    """
    found = _read_archive(path, _LARGEST_PICKLE, lambda pickle: {"": _described.get(pickle) or _describe(pickle, path)})
    return found[""]


def read_headers(path: str) -> Dict[str, PtTensor]:
    """Describe the tensors of a state_dict that torch.save wrote, by name; names of nested ones are joined by dots.

    Raises DumpError as `read_header` does, and where there is anything else in it than tensors, numbers and texts.
    """
    return _read_archive(path, _LARGEST_STATE, lambda pickle: _tensors(_walk(pickle, path)))


def _tensors(state: Any) -> Dict[str, "_Tensor"]:
    found: Dict[str, _Tensor] = {}
    seen = set()  # each dict is walked once: laughs do not multiply
    todo = [("", state)]
    while todo:
        name, value = todo.pop()
        if isinstance(value, _Tensor):
            found[name] = value
        elif isinstance(value, dict) and id(value) not in seen:
            seen.add(id(value))
            todo.extend((name + "." + key if name else key, item) for key, item in reversed(list(value.items())))
    return found


def _read_archive(path: str, most: int, tensors_of: Callable[[bytes], Dict[str, "_Tensor"]]) -> Dict[str, PtTensor]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path)
            pickle = _read_small(archive, members["data.pkl"], path, most)
            order = _read_small(archive, members["byteorder"], path) if "byteorder" in members else b"little"
            if order.strip() != b"little":
                raise _unreadable(path, "its bytes are %s-endian" % order[:16].decode("ascii", "replace"))
            return {name: _locate(tensor, members, path) for name, tensor in tensors_of(pickle).items()}
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error))
    except _DAMAGE as error:
        raise _unreadable(path, "it is no file of torch.save (%s)" % (str(error) or type(error).__name__))


def read_bytes(tensor: PtTensor, most: Optional[int] = None) -> bytes:
    """The bytes of a contiguous tensor, whole or the first ``most``. Raises DumpError if it is a strided view."""
    wanted = tensor.elements * tensor.item_size
    return b"".join(blocks(tensor, wanted if most is None else min(wanted, most)))


def blocks(tensor: PtTensor, most: Optional[int] = None) -> Iterator[bytes]:
    """The bytes of a contiguous tensor, or the first ``most``, in blocks: a short one, then 256 KiB each.

    Raises DumpError if it is a strided view, or if the file ends early.
    """
    if not tensor.contiguous:
        raise _unreadable(tensor.path, "it is a strided view")
    left = tensor.elements * tensor.item_size if most is None else most
    size = 4096  # tells most unequal tensors apart
    try:
        with open(tensor.path, "rb") as file:
            file.seek(tensor.start)
            while left:
                data = file.read(min(size, left))
                if not data:
                    raise _unreadable(tensor.path, "it ends %d bytes before its data does" % left)
                yield data
                left, size = left - len(data), 1 << 18
    except OSError as error:
        raise _unreadable(tensor.path, error.strerror or str(error))


def _unreadable(path: str, why: str) -> DumpError:
    # What a hostile file holds must neither fill the screen nor steer it.
    shown = "".join(sign if sign.isprintable() else "?" for sign in why[:300]) + (" …" if len(why) > 300 else "")
    return DumpError("Cannot read %s: %s. Copy or dump the file again." % (os.path.basename(path), shown.rstrip(". ")))


# --- the zip ---


def _members(archive: zipfile.ZipFile, path: str) -> Dict[str, zipfile.ZipInfo]:
    """Members by their name below the archive's folder; several torch versions add dotted ones."""
    found: Dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        _, _, name = info.filename.partition("/")
        if name == "data.pkl" or name == "byteorder" or name.startswith("data/"):
            if name in found:
                raise _unreadable(path, "it holds %s twice" % name)
            found[name] = info
    if "data.pkl" not in found:
        raise _unreadable(path, "it is a zip without data.pkl, not one of torch.save")
    return found


def _read_small(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str, most: int = _LARGEST_PICKLE) -> bytes:
    # Refused before anything is inflated: torch stores, so a compressed member is foreign or a bomb.
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or info.file_size > most:
        raise _unreadable(path, "its %s is compressed or has %d bytes" % (os.path.basename(info.filename), info.file_size))
    return archive.read(info)


def _data_start(info: zipfile.ZipInfo, path: str) -> int:
    """Byte offset of a stored member's data: the local header has its own name and extra lengths."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER.size)
    fields = _LOCAL_HEADER.unpack(header)
    if fields[0] != b"PK\x03\x04":
        raise _unreadable(path, "a local zip header is damaged")
    return int(info.header_offset + _LOCAL_HEADER.size + fields[9] + fields[10])


# --- the pickle, as data ---


class _Global(NamedTuple):
    name: str


class _Storage(NamedTuple):
    dtype: Optional[str]  # None: untyped, bytes
    key: str
    location: str
    elements: int


class _Tensor(NamedTuple):
    storage: _Storage
    dtype: str
    offset: int
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]


_MARK = object()
# Walking a pickle takes longer than all else here, and the layers of a model share their shapes.
_described: Dict[bytes, _Tensor] = {}
_PUSH_ARGUMENT = frozenset(("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE"))
_CONSTANTS: Dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_IGNORED = frozenset({"PROTO", "FRAME"})


def _walk(data: bytes, path: str) -> Any:
    """The value that the pickle describes, built from plain tuples; raises DumpError on any other opcode."""
    stack: List[Any] = []
    memo: Dict[Any, Any] = {}
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name in _IGNORED:
            continue
        if name == "STOP":
            return stack.pop()
        if name in _PUSH_ARGUMENT:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        else:
            _build(name, argument, stack, path)
    raise _unreadable(path, "its pickle has no end")


def _build(name: str, argument: Any, stack: List[Any], path: str) -> None:
    """The opcodes that make something out of what lies on the stack."""
    if name == "MARK":
        stack.append(_MARK)
    elif name == "EMPTY_DICT":
        stack.append({})
    elif name == "GLOBAL":
        stack.append(_Global(str(argument).replace(" ", ".", 1)))
    elif name == "STACK_GLOBAL":
        attribute, module = _text(stack.pop()), _text(stack.pop())
        stack.append(_Global(module + "." + attribute))
    elif name == "TUPLE":
        stack.append(tuple(_above_mark(stack)))
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
        count = int(name[-1])
        if len(stack) < count:
            raise _unreadable(path, "its pickle is cut")
        top = tuple(stack[-count:])
        del stack[-count:]
        stack.append(top)
    elif name == "SETITEMS":
        items = _above_mark(stack)
        stack[-1].update(zip(map(_text, items[0::2]), items[1::2]))
    elif name == "SETITEM":
        value, key = stack.pop(), _text(stack.pop())
        stack[-1][key] = value
    elif name == "BUILD":
        stack.pop()  # a state_dict's versions of its modules
    elif name == "BINPERSID":
        stack.append(_storage(stack.pop(), path))
    elif name == "REDUCE":
        arguments, function = stack.pop(), stack.pop()
        stack.append(_reduce(function, arguments, path))
    else:
        raise _unreadable(path, "its pickle uses %s, which a tensor never needs" % name)


def _text(value: Any) -> str:
    # Only text is printed, joined or hashed: nested tuples can be made to grow without end.
    if not isinstance(value, str) or len(value) > 200:
        raise ValueError("a pickle with a %s where a short text is due" % type(value).__name__)
    return value


def _above_mark(stack: List[Any]) -> List[Any]:
    items: List[Any] = []
    while stack:
        item = stack.pop()
        if item is _MARK:
            return items[::-1]
        items.append(item)
    raise ValueError("a pickle without a mark")


def _storage(value: Any, path: str) -> _Storage:
    if not (isinstance(value, tuple) and len(value) == 5 and value[0] == "storage" and isinstance(value[1], _Global)):
        raise _unreadable(path, "its pickle names no storage")
    kind = value[1].name
    if kind == "torch.storage.UntypedStorage":
        dtype = None
    elif kind.startswith("torch.") and kind[6:] in _STORAGE_DTYPES:
        dtype = _STORAGE_DTYPES[kind[6:]]
    else:
        raise _unreadable(path, "it holds a %s" % kind)
    if not _is_count(value[4]):
        raise _unreadable(path, "the size of its storage is no number of elements")
    return _Storage(dtype, _text(value[2]), _text(value[3]), value[4])


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _reduce(function: Any, arguments: Any, path: str) -> Any:
    if not isinstance(function, _Global) or not isinstance(arguments, tuple):
        raise _unreadable(path, "its pickle calls something that is no name")
    name = function.name
    if name == "collections.OrderedDict" and arguments == ():
        return {}
    if name == "torch._utils._rebuild_parameter":
        return arguments[0] if arguments else None
    if name in ("torch._utils._rebuild_tensor_v2", "torch_npu.utils.storage._rebuild_npu_tensor"):
        return _rebuilt(arguments, 6, path)
    if name == "torch._utils._rebuild_tensor_v3":
        return _rebuilt(arguments, 7, path)
    raise _unreadable(path, "its pickle calls %s, which is not part of a tensor" % name)


def _rebuilt(arguments: Tuple[Any, ...], metadata_at: int, path: str) -> _Tensor:
    """A tensor of ``(storage, offset, size, stride, requires_grad, hooks[, dtype][, metadata])``."""
    if len(arguments) < metadata_at or not isinstance(arguments[0], _Storage):
        raise _unreadable(path, "its pickle describes no tensor")
    storage, offset, shape, strides = arguments[:4]
    dtype = storage.dtype
    if metadata_at == 7:
        named = arguments[6]
        dtype = named.name[6:] if isinstance(named, _Global) and named.name.startswith("torch.") else None
    if dtype not in ITEM_SIZES:
        raise _unreadable(path, "its dtype %s is not known" % (dtype or "is not stated, so it"))
    metadata = arguments[metadata_at] if len(arguments) > metadata_at else None
    if isinstance(metadata, dict) and (metadata.get("conj") or metadata.get("neg")):
        raise _unreadable(path, "it is a lazily conjugated or negated view")
    fits = isinstance(shape, tuple) and isinstance(strides, tuple) and len(shape) == len(strides) <= 64
    if not fits or not all(_is_count(n) for n in (offset,) + shape + strides):
        raise _unreadable(path, "its shape, strides or offset are no counts")
    return _Tensor(storage, dtype, offset, tuple(shape), tuple(strides))


def _describe(pickle: bytes, path: str) -> _Tensor:
    value = _walk(pickle, path)
    if not isinstance(value, _Tensor):
        raise _unreadable(path, "it holds no tensor but a %s" % type(value).__name__)
    if len(_described) < 4096:
        _described[pickle] = value
    return value


def _locate(tensor: _Tensor, members: Dict[str, zipfile.ZipInfo], path: str) -> PtTensor:
    """Check the tensor against its storage and find the bytes."""
    info = members.get("data/" + tensor.storage.key)
    item = ITEM_SIZES[tensor.dtype]
    stored = tensor.storage.elements * (1 if tensor.storage.dtype is None else item)
    elements, last = 1, tensor.offset
    for size, stride in zip(tensor.shape, tensor.strides):
        elements *= size
        last += (size - 1) * stride
    if elements == 0:
        return PtTensor(path, tensor.dtype, tensor.shape, tensor.strides, 0, 0, 0, tensor.storage.location)
    if info is None:
        raise _unreadable(path, "the data of its storage is missing")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != stored:
        raise _unreadable(path, "its data has %d bytes where %d are due" % (info.file_size, stored))
    if (last + 1) * item > stored or elements * item > stored:
        shown = list(tensor.shape) if len(tensor.shape) <= 8 else "of %d axes" % len(tensor.shape)
        raise _unreadable(path, "its shape %s does not fit into %d bytes" % (shown, stored))
    start = _data_start(info, path)
    if start + stored > os.path.getsize(path):
        raise _unreadable(path, "its data ends after the file does")
    first = start + tensor.offset * item
    return PtTensor(path, tensor.dtype, tensor.shape, tensor.strides, first, start, stored, tensor.storage.location)
