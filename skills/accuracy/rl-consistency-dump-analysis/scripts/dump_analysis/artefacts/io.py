"""Reading and writing artefacts: errors with their path, unknown keys, atomic replacement."""

import contextlib
import difflib
import hashlib
import math
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, as_json, known_only, parse
from msprobe_files.units import SIBLINGS

T = TypeVar("T", bound=msgspec.Struct)


def read(path: str | Path, kind: type[T]) -> tuple[T, list[str]]:
    """A machine-written artefact in ``path`` and the warnings about it; see `of_value`."""
    return of_value(load(path), kind, Path(path).name)


def load(path: str | Path) -> Any:
    """Parsed JSON of any form. Raises DumpError with the place where it is none."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise DumpError(f"Cannot read {path}: {error.strerror}. Check the path.") from None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DumpError(f"Cannot read {Path(path).name}: {error or 'nested too deeply'}. Mend the JSON.") from None


def of_value(value: Any, kind: type[T], shown: str, *, written_by_people: bool = False) -> tuple[T, list[str]]:
    """An artefact from parsed JSON, and the warnings about it; ``shown`` names the file in messages.

    Unknown keys are refused in files that people write and warned of in others. Raises DumpError,
    naming the JSON path of what is wrong.
    """
    check_schema(value, kind, shown)
    try:
        made = msgspec.convert(value, kind, dec_hook=_decode if written_by_people else _decode_known)
    except (msgspec.ValidationError, RecursionError) as error:
        raise DumpError(f"Cannot use {shown}: {_with_path(str(error))}. Mend the field and try again.") from None
    unknown = _unknown_keys(value, msgspec.to_builtins(made, enc_hook=_known_to_itself), "")
    if unknown and written_by_people:
        end = "" if unknown[0].endswith("?") else "."
        raise DumpError(f"Cannot use {shown}: {unknown[0]}{end} Remove the key or correct it.")
    return made, [f"{shown}: {text}, ignored" for text in unknown]


def write(path: str | Path, artefact: msgspec.Struct) -> str:
    """Write an artefact under its final name in one step; returns the sha-256 of its bytes.

    Raises DumpError where a number is not finite (JSON has no form for it) or the folder cannot be written.
    """
    data = text_of(artefact).encode()
    write_bytes(path, data)
    return hashlib.sha256(data).hexdigest()


def text_of(artefact: msgspec.Struct) -> str:
    """The artefact as it is written. Raises DumpError where a number is not finite."""
    value = builtins(artefact)
    _check_finite(value, "")
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write a file so that its final name never holds a part of it, whenever the process is stopped."""
    if Path(path).name in SIBLINGS:
        raise DumpError(f"Cannot write to {path}: that is a file of a dump. Choose another name.")
    target = Path(os.path.realpath(path))  # a link keeps pointing to the file
    try:
        given = Path(path)
        if given.exists() and not given.is_file() and not given.is_dir():
            given.write_bytes(data)  # a device or pipe, such as /dev/stdout, is written to and never replaced
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # it may be in place already
                os.unlink(temporary)
            raise
    except OSError as error:
        raise DumpError(f"Cannot write {path}: {error.strerror or error}. Choose another place.") from None


def digest_of_file(path: str | Path) -> str:
    """The sha-256 of a file's bytes. Raises DumpError where it cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DumpError(f"Cannot read {path}: {error.strerror}. Check the path.") from None


def builtins(artefact: msgspec.Struct) -> Any:
    """The artefact as plain JSON values."""
    return msgspec.to_builtins(artefact, enc_hook=_encode)


def _encode(value: Any) -> Any:
    if isinstance(value, Operand):
        return as_json(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _known_to_itself(value: Any) -> Any:
    """An operand has refused its own unknown keys when it was parsed."""
    return None if isinstance(value, Operand) else _encode(value)


def _decode(kind: type, value: Any) -> Any:
    if kind is Operand:
        return parse(value)
    raise TypeError(f"no JSON form for {kind.__name__}")


def _decode_known(kind: type, value: Any) -> Any:
    return _decode(kind, known_only(value))


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def check_schema(value: Any, kind: type[msgspec.Struct], shown: str) -> None:
    """Raise DumpError where parsed JSON does not state the schema of ``kind``."""
    expected = next(field.default for field in msgspec.structs.fields(kind) if field.name == "schema")
    if not isinstance(value, dict):
        raise DumpError(f"Cannot use {shown}: expected an object with schema {expected}, found a {type(value).__name__}.")
    found = value.get("schema")
    if found != expected:
        raise DumpError(f"Cannot use {shown}: schema: expected {expected!r}, found {found!r}. Hand the right file, or one of this release.")


def _with_path(message: str) -> str:
    """msgspec puts the path last and its own ``$`` first; ours comes first, joined to the path inside an operand."""
    text, sep, path = message.rpartition(" - at `")
    if not sep:
        return message
    place = path.rstrip("`").removeprefix("$").lstrip(".")
    inner, sep, why = text.partition(": ")
    if sep and inner and all(part for part in inner.split(".")) and " " not in inner:
        return f"{place}.{inner}: {why}" if place else f"{inner}: {why}"
    return f"{place}: {text}" if place else text


def _unknown_keys(given: Any, known: Any, path: str) -> list[str]:
    """Keys that are in the file and not in the artefact, each with its path and the nearest valid key."""
    found: list[str] = []
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            place = f"{path}.{key}" if path else str(key)
            if key in known:
                found += _unknown_keys(value, known[key], place)
            else:
                close = difflib.get_close_matches(str(key), [str(name) for name in known], 1)
                found.append(f"{place}: unknown key" + (f'; did you mean "{close[0]}"?' if close else ""))
    elif isinstance(given, list) and isinstance(known, list):
        for at, (item, counterpart) in enumerate(zip(given, known, strict=False)):
            found += _unknown_keys(item, counterpart, f"{path}[{at}]")
    return found


def _check_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise DumpError(f"Cannot write {path}: the measure is {value}, which JSON cannot hold. This is a fault of the tool.")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_finite(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            _check_finite(item, f"{path}[{at}]")
