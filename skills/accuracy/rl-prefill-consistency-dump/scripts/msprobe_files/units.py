"""Dump units: where they lie, and what their JSON files record.

A *unit* is what one process recorded in one step: a folder with ``dump.json`` (or, where that is
missing, with ``.pt`` files alone).  Layout and fields: mindstudio-probe 8.1 to 26.2, measured on
dumps of each (``tests/samples/versions``).
"""

import json
import os
import re
import stat
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from . import names
from .errors import DumpError

SIBLINGS = ("dump.json", "construct.json", "stack.json")
TENSOR_FOLDERS = ("dump_tensor_data", "tensor_data")
_STEP = re.compile(r"^step(\d+)$")
_RANK = re.compile(r"^rank(\d+)$")
SLOTS = (("input_args", "input"), ("input", "input"), ("input_kwargs", "kwargs"), ("output", "output"), ("parameters", "parameters"))
_PART_OF_NUMBER = re.compile(r"(\.|[eE][-+]?|-)\Z")
_CUT_ADVICE = "The run was killed while writing, or the copy is cut; dump or copy it again."
_FLUSH = 1000  # msprobe writes dump.json each 1000 entries: a kill leaves a multiple of it


class UnitPlace(NamedTuple):
    """Where a unit lies. ``folder`` is absolute; ``step`` and ``rank`` follow from folder names, else 0."""

    folder: str
    tensor_folder: str
    step: int
    rank: int
    has_json: bool


class Record(NamedTuple):
    """One recorded tensor.

    ``file``: bare file name, None where msprobe saved none (empty, freed or statistics only).
    ``dtype`` without ``torch.``; ``dtype`` and ``shape`` are None in a unit without dump.json.
    ``refused``: why the recorded file name is not used.
    """

    name: str
    entry: str
    category: str
    suffix: str
    dtype: Optional[str]
    shape: Optional[Tuple[int, ...]]
    file: Optional[str]
    statistics: Dict[str, Any]
    digest: Optional[str]
    refused: Optional[str]


class Unit(NamedTuple):
    """What one unit records. ``entries``: dump.json's order, which is the order of *ends*.

    ``trace``: entry -> its parent, in the order of *starts*, from construct.json (None where that is
    missing); ``trace_keys`` counts all its keys.  ``order_known`` is False where only file names tell.
    ``present``: the JSON files that can be read, ``broken``: those that are there and cannot.
    ``marks``: keys that only some releases write (see `release`).
    """

    place: UnitPlace
    task: Optional[str]
    level: Optional[str]
    entries: Dict[str, Tuple[Record, ...]]
    interrupted: Tuple[str, ...]
    trace: Optional[Dict[str, Optional[str]]]
    trace_keys: int
    present: Tuple[str, ...]
    broken: Tuple[str, ...]
    order_known: bool
    killed: bool
    missing_files: Tuple[str, ...]
    stale_files: Tuple[str, ...]
    marks: Dict[str, bool]

    @property
    def complete(self) -> bool:
        """False where the run ended early or files are gone."""
        cut_short = self.killed or not self.order_known or bool(self.interrupted)
        return not cut_short and not self.missing_files and bool(self.entries)

    def records(self) -> Iterator[Record]:
        for records in self.entries.values():
            yield from records


# --- finding ---


def find_units(path: str) -> List[UnitPlace]:
    """The units that a path means: a dump root, stepN, rankN, dump_tensor_data, or one of the JSON files.

    Sorted by step, rank and folder; empty where nothing was dumped.  Raises DumpError where the path
    does not exist or is a file of another kind.
    """
    if not path:
        raise DumpError("Cannot find a dump: its path is empty. Is a variable unset?")
    real = os.path.abspath(path)
    if os.path.isfile(real):
        if os.path.basename(real) not in SIBLINGS:
            raise DumpError("Cannot use %s as a dump: it is a file. Hand the dump's folder or its dump.json." % path)
        real = os.path.dirname(real)
    if not os.path.isdir(real):
        raise DumpError("Cannot find %s: no such folder. Check the path." % path)
    if os.path.basename(real) in TENSOR_FOLDERS:
        return [_place(os.path.dirname(real), real)]
    found = [_place(folder, tensors) for folder, tensors in _walk(real)]
    return sorted(found, key=lambda place: (place.step, place.rank, place.folder))


def _walk(top: str) -> Iterator[Tuple[str, str]]:
    seen = set()
    for folder, below, files in os.walk(top, onerror=_refuse_to_skip, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # a link that leads back
            below[:] = []
            continue
        seen.add(real)
        below.sort()
        tensors = [name for name in TENSOR_FOLDERS if name in below]
        below[:] = [name for name in below if name not in TENSOR_FOLDERS]
        if "dump.json" in files or tensors:
            below[:] = []
            yield folder, os.path.join(folder, tensors[0] if tensors else TENSOR_FOLDERS[0])
        elif any(name.endswith(".pt") for name in files):
            yield folder, folder


def _refuse_to_skip(error: OSError) -> None:
    raise DumpError("Cannot list %s: %s. Check its permissions." % (os.path.basename(str(error.filename)), error.strerror))


def _place(folder: str, tensor_folder: str) -> UnitPlace:
    parts = os.path.abspath(folder).split(os.sep)
    rank = _RANK.match(parts[-1])
    steps = [found for found in map(_STEP.match, reversed(parts)) if found]
    step = int(steps[0].group(1)) if steps else 0
    has_json = os.path.isfile(os.path.join(folder, "dump.json"))
    return UnitPlace(folder, tensor_folder, step, int(rank.group(1)) if rank else 0, has_json)


# --- reading ---


def read_unit(place: UnitPlace) -> Unit:
    """Read a unit's JSON files; raises DumpError where dump.json is cut or is none."""
    files = _pt_files(place.tensor_folder)
    present = tuple(name for name in SIBLINGS if os.path.isfile(os.path.join(place.folder, name)))
    dump = load_json(os.path.join(place.folder, "dump.json")) if place.has_json else {}
    data = dump.get("data")
    if place.has_json and not isinstance(data, dict):
        raise DumpError('Cannot read %s: it has no "data" object. Is it a dump.json of msprobe?' % _shown(place, "dump.json"))
    trace, trace_keys, broken = _trace_if_readable(place) if "construct.json" in present else (None, 0, ())
    try:
        entries, interrupted, marks = _read_entries(data or {})
    except RecursionError:
        raise DumpError("Cannot read %s: its values nest too deep. Is it a dump.json of msprobe?" % _shown(place, "dump.json"))
    killed = place.has_json and not entries and bool(files)
    listed = {record.file for records in entries.values() for record in records}
    if not entries:
        entries = _entries_from_files(files)
        listed = set(files)
    stale = tuple(sorted(files - listed))
    at_flush = bool(stale) and len(data or {}) > 0 and len(data or {}) % _FLUSH == 0
    return Unit(
        place=place,
        task=_text_or_none(dump.get("task")),
        level=_text_or_none(dump.get("level")),
        entries=entries,
        interrupted=interrupted,
        trace=trace,
        trace_keys=trace_keys,
        present=tuple(name for name in present if name not in broken),
        broken=broken,
        order_known=place.has_json and not killed,
        killed=killed or at_flush,
        missing_files=tuple(sorted(name for name in listed if name is not None and name not in files)),
        stale_files=stale,
        marks=marks,
    )


def load_json(path: str) -> Dict[str, Any]:
    """A JSON object of msprobe; its NaN and Infinity tokens are allowed. Raises DumpError, with the byte where it ends."""
    shown = os.path.join(os.path.basename(os.path.dirname(path)), os.path.basename(path))
    try:
        with open(path, "rb") as file:
            raw = file.read()
        value = json.loads(raw.decode("utf-8"))
    except OSError as error:
        raise DumpError("Cannot read %s: %s. Check the path." % (shown, error.strerror or error))
    except json.JSONDecodeError as error:
        if _is_cut(error):
            raise DumpError("Cannot read %s: it ends at byte %d in the middle. %s" % (shown, len(raw), _CUT_ADVICE))
        at = len(error.doc[: error.pos].encode("utf-8"))
        raise DumpError("Cannot read %s: it is no JSON at byte %d (%s). %s" % (shown, at, error.msg, _CUT_ADVICE))
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            raise DumpError("Cannot read %s: it ends at byte %d in the middle. %s" % (shown, len(raw), _CUT_ADVICE))
        raise DumpError("Cannot read %s: it is no JSON of msprobe (no UTF-8 at byte %d). Dump or copy it again." % (shown, error.start))
    except (RecursionError, ValueError) as error:
        raise DumpError("Cannot read %s: it is no JSON of msprobe (%s). Dump or copy it again." % (shown, error))
    if not isinstance(value, dict):
        raise DumpError("Cannot read %s: expected a JSON object, found a %s." % (shown, type(value).__name__))
    return value


def _is_cut(error: json.JSONDecodeError) -> bool:
    """Whether the text ends before its JSON does: an open string or escape, a part of a word, or nothing more."""
    rest = error.doc[error.pos :].strip()
    if error.msg.startswith("Unterminated string") or not rest:
        return True
    if error.msg.startswith("Invalid \\") and len(rest) <= 12:
        return True
    literals = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
    return any(literal.startswith(rest) for literal in literals) or _PART_OF_NUMBER.match(rest) is not None


def tensor_path(unit: Unit, record: Record) -> str:
    """The file of a record, below the unit's own tensor folder whatever ``dump_data_dir`` says.

    Raises DumpError with the reason where there is none to read: not saved, gone, or outside the folder.
    """
    if record.refused is not None:
        raise DumpError(record.refused)
    if record.file is None:
        raise DumpError("%s: no file was saved for it" % record.name)
    path = os.path.join(unit.place.tensor_folder, record.file)
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            if os.path.dirname(os.path.realpath(path)) != os.path.realpath(unit.place.tensor_folder):
                raise DumpError("%s leads outside its dump_tensor_data" % record.file)
            mode = os.stat(path).st_mode
    except OSError:
        raise DumpError("%s is not there" % record.file)
    if not stat.S_ISREG(mode):
        raise DumpError("%s is no file" % record.file)
    return path


def _shown(place: UnitPlace, name: str) -> str:
    return os.path.join(os.path.basename(place.folder), name)


def _text_or_none(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _pt_files(folder: str) -> "set[str]":
    try:
        return {name for name in os.listdir(folder) if name.endswith(".pt")}
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError as error:
        raise DumpError("Cannot list %s: %s. Check the folder." % (os.path.basename(folder), error.strerror or error))


def _trace_if_readable(place: UnitPlace) -> Tuple[Optional[Dict[str, Optional[str]]], int, Tuple[str, ...]]:
    """The trace, the number of its keys, and the file's name where it cannot be read.

    That costs what a missing one costs; whoever reads the unit says so.
    """
    try:
        return (*_read_trace(place), ())
    except DumpError:
        return None, 0, ("construct.json",)


def _read_trace(place: UnitPlace) -> Tuple[Dict[str, Optional[str]], int]:
    """construct.json. Under Megatron's schedules a value is ``[parent, micro step]`` and one key counts micro steps."""
    raw = load_json(os.path.join(place.folder, "construct.json"))
    trace: Dict[str, Optional[str]] = {}
    for child, parent in raw.items():
        if isinstance(parent, list):
            parent = parent[0] if parent else None
        if parent is None or isinstance(parent, str):
            trace[child] = parent
    return trace, len(raw)


def _read_entries(data: Dict[str, Any]) -> Tuple[Dict[str, Tuple[Record, ...]], Tuple[str, ...], Dict[str, bool]]:
    entries: Dict[str, Tuple[Record, ...]] = {}
    half: List[str] = []
    whole = False
    marks = {"is_recompute": False, "bare_parameters_grad": False}
    for entry, content in data.items():
        records: List[Record] = []
        if isinstance(content, dict):
            marks["is_recompute"] = marks["is_recompute"] or "is_recompute" in content
            gradients = names.holds_gradients(entry)
            slots = tuple((key, "parameters_grad") for key in content) if gradients else SLOTS
            for key, category in slots:
                value = content.get(key)
                suffix = key if gradients else ""
                if gradients and isinstance(value, list) and len(value) == 1:
                    value = value[0]
                _collect(value, entry, category, suffix, records)
            if not gradients and "input_args" in content:
                half += [entry] if "output" not in content else []
                whole = whole or "output" in content
        marks["bare_parameters_grad"] = marks["bare_parameters_grad"] or entry.endswith(".parameters_grad")
        entries[entry] = tuple(records)
    # With data_mode ["input"] no entry has outputs: then none was interrupted.
    return entries, tuple(half) if whole else (), marks


def _collect(value: Any, entry: str, category: str, suffix: str, into: List[Record]) -> None:
    """Walk one slot: tensor record | scalar record | {} | null | list | dict, nested as the arguments were."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            _collect(item, entry, category, suffix_of(suffix, str(at)), into)
    elif isinstance(value, dict):
        # A dict of the model's own may hold a "dtype" and a "shape" too: there they are records themselves.
        if isinstance(value.get("dtype"), str) and isinstance(value.get("shape"), list):
            into.append(_record(value, entry, category, suffix))
            return
        for key, item in value.items():
            if isinstance(item, (dict, list)):
                _collect(item, entry, category, suffix_of(suffix, str(key)), into)


def suffix_of(suffix: str, part: str) -> str:
    return suffix + "." + part if suffix else part


def _record(value: Dict[str, Any], entry: str, category: str, suffix: str) -> Record:
    name = names.tensor_name(entry, category, suffix)
    file, refused = value.get("data_name"), None
    if file is not None and not _is_bare_file_name(file):
        file, refused = None, "%s: its data_name is no bare file name and leads outside the dump" % name
    if isinstance(file, str) and file.endswith(".pt"):
        name = file[: -len(".pt")]
    dtype = value["dtype"]
    shape = value["shape"]
    sizes = tuple(size for size in shape if type(size) is int and size >= 0)
    return Record(
        name=name,
        entry=entry,
        category=category,
        suffix=suffix,
        dtype=dtype.split(".")[-1].lower(),
        shape=sizes if len(sizes) == len(shape) else None,
        file=file,
        statistics={key: value.get(key) for key in ("Max", "Min", "Mean", "Norm")},
        digest=value["md5"] if isinstance(value.get("md5"), str) and value["md5"] else None,
        refused=refused,
    )


def _is_bare_file_name(value: Any) -> bool:
    if not isinstance(value, str) or value in (".", "..", "") or "\0" in value or os.path.basename(value) != value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _entries_from_files(files: "set[str]") -> Dict[str, Tuple[Record, ...]]:
    """Entries by file name alone, in the order of their names: what ran when is not known."""
    grouped: Dict[str, List[Record]] = {}
    for file in sorted(files, key=_natural):
        stem = file[: -len(".pt")]
        parsed = names.parse_tensor(stem) or names.TensorName(stem, "output", "")
        record = Record(stem, parsed.entry, parsed.category, parsed.suffix, None, None, file, {}, None, None)
        grouped.setdefault(parsed.entry, []).append(record)
    return {entry: tuple(records) for entry, records in grouped.items()}


def _natural(text: str) -> List[Any]:
    """Sort key in which ``layers.2`` comes before ``layers.10``."""
    return [(int(part), "") if at % 2 else (-1, part) for at, part in enumerate(re.split(r"([0-9]{1,9})", text))]
