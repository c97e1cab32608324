"""One process, measured: CPU seconds, wall seconds and peak anonymous memory of it and all that it starts. Linux only."""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_EVERY_MS = 3


class Ran(NamedTuple):
    """``cpu``: user + system seconds of the process tree, as wait4 counts them. Memory in bytes.

    ``anonymous``: the most that one process of the tree held at any sample (RssAnon of /proc, every 3 ms): heap and
    stacks, no file pages. ``resident``: the largest VmHWM of one process, file pages included; it misses no spike.
    """

    cpu: float
    wall: float
    anonymous: int
    resident: int
    code: int
    output: str
    errors: str


def run(command: Sequence[str], *, discard: bool = False) -> Ran:
    """Run a command to its end. ``discard``: its stdout is the null device."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        # Popen returns after exec: no sample shows this process's own memory.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if discard else output, stderr=errors)
        anonymous, resident = _watch(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Ran(usage.ru_utime + usage.ru_stime, wall, anonymous, resident, process.returncode, texts[0], texts[1])


def _watch(pid: int) -> tuple[int, int]:
    """Sample until the process ends; returns the peaks."""
    anonymous = resident = 0
    ended = select.poll()
    handle = os.pidfd_open(pid)
    try:
        ended.register(handle, select.POLLIN)
        while not ended.poll(_EVERY_MS):
            for each in _tree(pid):
                held, most = _memory(each)
                anonymous, resident = max(anonymous, held), max(resident, most)
    finally:
        os.close(handle)
    return anonymous, resident


def _tree(pid: int) -> list[int]:
    """A process and all below it that are still there."""
    found = [pid]
    for parent in found:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as file:
                found += map(int, file.read().split())
        except OSError:
            continue
    return found


def _memory(pid: int) -> tuple[int, int]:
    """RssAnon and VmHWM in bytes; 0 of a process that has ended."""
    found = {"RssAnon": 0, "VmHWM": 0}
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                field, _, rest = line.partition(":")
                if field in found:
                    found[field] = int(rest.split()[0]) * 1024
    except OSError:
        pass
    return found["RssAnon"], found["VmHWM"]


def warm(files: Iterable[str]) -> None:
    """Read files once, so that the next process finds them in the page cache."""
    buffer = bytearray(1 << 20)
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
