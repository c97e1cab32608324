"""The bytes of before, by their digest; what lies at a path now; a file put back so that a second try mends a first one."""

import contextlib
import hashlib
import os
import signal
import stat
import threading
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from msprobe_files.errors import DumpError

from .records import FOLDER, LINK, Before

ABSENT, FILE, FOLDER_THERE, SPECIAL = "absent", "file", "folder", "special"
_BLOCK = 1 << 20


class State(NamedTuple):
    """What lies at a path: ``absent``, ``file``, ``link``, ``folder`` or ``special``; digest and mode of files and links."""

    what: str
    digest: Optional[str] = None
    mode: str = ""

    def is_as(self, before: Optional[Before]) -> bool:
        """Whether nothing is left of a change: bytes, mode and, of a link, its target."""
        if before is None:
            return self.what == ABSENT
        return (self.digest, self.mode) == (before.digest, before.mode)


def state_of(path: str) -> State:
    """What lies at a path; links are not followed. Raises DumpError where it cannot be read."""
    try:
        there = os.lstat(path)
        if stat.S_ISLNK(there.st_mode):
            return State(LINK, hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest(), LINK)
        if stat.S_ISREG(there.st_mode):
            return State(FILE, _copy(path, None), format(stat.S_IMODE(there.st_mode), "04o"))
    except FileNotFoundError:
        return State(ABSENT)
    except NotADirectoryError:
        return State(ABSENT)
    except OSError as error:
        raise DumpError("Cannot read %s: %s. Mend its permissions." % (path, error.strerror))
    return State(FOLDER_THERE if stat.S_ISDIR(there.st_mode) else SPECIAL)


def keep(path: str, workdir: Path) -> State:
    """Store the bytes of a file or the target of a link, on disk when this returns; what was stored already is left.

    Raises DumpError where the file changes meanwhile, or the folder cannot be written.
    """
    folder = workdir / FOLDER
    part = folder / (".%d.part" % os.getpid())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = os.lstat(path)
        if stat.S_ISLNK(before.st_mode):
            digest = _write_part(part, os.fsencode(os.readlink(path)))
            state = State(LINK, digest, LINK)
        else:
            state = State(FILE, _copy(path, part), format(stat.S_IMODE(before.st_mode), "04o"))
        after = os.lstat(path)
        if (before.st_mtime_ns, before.st_size, before.st_ino) != (after.st_mtime_ns, after.st_size, after.st_ino):
            raise DumpError("Cannot store %s: it is being written at this moment. Wait until nobody writes it." % path)
        os.replace(str(part), str(folder / str(state.digest)))
        _sync_folder(folder)
    except OSError as error:
        raise DumpError("Cannot store %s in %s: %s. Nothing was recorded; mend that first." % (path, folder, error.strerror))
    finally:
        if part.exists():
            part.unlink()
    return state


def bytes_of(before: Before, workdir: Path) -> bytes:
    """The bytes of before. Raises DumpError where their backup is gone."""
    backup = workdir / before.backup
    try:
        return backup.read_bytes()
    except OSError as error:
        raise DumpError("Cannot read the backup %s: %s. Put back the ledger's folder." % (backup, error.strerror))


def put_back(path: str, before: Before, workdir: Path) -> None:
    """Make a path what it was: in place, so that hard links, owner and attributes of the file stay.

    A kill leaves a file half written; a second call writes it whole. Raises DumpError where the backup is damaged or the
    path cannot be written; the file is then as it was, or the error says so.
    """
    backup = workdir / before.backup
    try:
        if _copy(str(backup), None) != before.digest:
            raise DumpError("Cannot put back %s: its backup %s is damaged. Take the file from its origin." % (path, backup))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path) or before.mode == LINK:
            remove(path)
        if before.mode == LINK:
            os.symlink(backup.read_bytes(), os.fsencode(path))
        else:
            with _undisturbed():
                _write_in_place(path, backup, int(before.mode, 8))
    except OSError as error:
        raise DumpError("Cannot put back %s: %s. Mend that and restore again; its bytes are in %s." % (path, error.strerror, backup))


def remove(path: str) -> None:
    """Remove a file or a link, if one is there. Raises DumpError where its folder forbids it."""
    try:
        if os.path.lexists(path):
            os.unlink(path)
    except OSError as error:
        raise DumpError("Cannot remove %s: %s. Mend its folder's permissions and restore again." % (path, error.strerror))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C and an ordinary kill wait until a file is whole, whichever thread of the process they reach."""
    if threading.current_thread() is not threading.main_thread():  # Python acts on signals in the main thread alone
        yield
        return
    held: List[int] = []
    before = {one: signal.signal(one, lambda number, _: held.append(number)) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, signal.SIG_DFL if handler is None else handler)
        for number in held:
            signal.raise_signal(number)


def _write_in_place(path: str, backup: Path, mode: int) -> None:
    if os.path.exists(path) and not os.access(path, os.W_OK):
        os.chmod(path, mode | stat.S_IWUSR)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        with open(str(backup), "rb") as source:
            for block in iter(lambda: source.read(_BLOCK), b""):
                _write_all(target, block)
        os.ftruncate(target, backup.stat().st_size)
        os.fchmod(target, mode)
        os.fsync(target)
    finally:
        os.close(target)


def _copy(path: str, part: Optional[Path]) -> str:
    """The digest of a file's bytes, which are also written to ``part`` where one is given."""
    whole = hashlib.sha256()
    target = None if part is None else os.open(str(part), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(path, "rb") as source:
            for block in iter(lambda: source.read(_BLOCK), b""):
                whole.update(block)
                if target is not None:
                    _write_all(target, block)
        if target is not None:
            os.fsync(target)
    finally:
        if target is not None:
            os.close(target)
    return whole.hexdigest()


def _write_part(part: Path, data: bytes) -> str:
    with open(str(part), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(data).hexdigest()


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(str(folder), os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
