"""Artefacts on disk: written in one step, digested, refused where JSON cannot hold them."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, Union

from msprobe_files.errors import DumpError
from msprobe_files.units import load_json

_BLOCK = 1 << 20


def read(path: Union[str, Path], schema: str) -> Dict[str, Any]:
    """An artefact of a schema. Raises DumpError where the file is another or cannot be read."""
    value = load_json(str(path))
    if value.get("schema") != schema:
        raise DumpError(
            "Cannot use %s: schema: expected %r, found %r. Hand the right file, or one of this release."
            % (Path(path).name, schema, value.get("schema"))
        )
    return value


def text_of(artefact: Dict[str, Any]) -> str:
    """The artefact as it is written: two spaces, UTF-8, no number that JSON lacks."""
    return json.dumps(artefact, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(path: Union[str, Path], artefact: Dict[str, Any]) -> str:
    """Write an artefact; returns the sha-256 of its bytes. See `write_bytes`."""
    data = text_of(artefact).encode("utf-8", "backslashreplace")  # a byte of a name that is no UTF-8 becomes JSON's \udcXX
    write_bytes(path, data)
    return hashlib.sha256(data).hexdigest()


def write_bytes(path: Union[str, Path], data: bytes) -> None:
    """Write a file so that its final name never holds a part of it, whenever the process or the machine stops.

    Raises DumpError where the folder cannot be written.
    """
    target = Path(os.path.realpath(str(path)))  # a link keeps pointing to the file
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix="." + target.name + ".", suffix=".part", dir=str(target.parent))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, str(target))
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise DumpError("Cannot write %s: %s. Choose another place." % (path, error.strerror or error)) from None


def digest_of_file(path: Union[str, Path]) -> str:
    """The sha-256 of a file's bytes, 64 lowercase hex digits. Raises DumpError where it cannot be read."""
    whole = hashlib.sha256()
    try:
        with open(str(path), "rb") as file:
            for block in iter(lambda: file.read(_BLOCK), b""):
                whole.update(block)
    except OSError as error:
        raise DumpError("Cannot read %s: %s. Check the path." % (path, error.strerror)) from None
    return whole.hexdigest()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
