"""Source trees for the tests of the ledger, and what they hold byte for byte."""

from __future__ import annotations

import os
import stat
from pathlib import Path

ACTOR = b'import torch\n\n\ndef compute_log_prob(self, batch):\n    """Doc with \'\'\' inside."""\n    return f"{batch!r}"\n'
NATIVE = b"from msprobe.pytorch import PrecisionDebugger\n# built in: dump_config_path\ndebugger.start(model)\n"


def make_tree(root: Path) -> Path:
    """A trainer as it is found: an executable, a link, a read-only file, bytes that are no text, words of its own."""
    (root / "verl" / "workers").mkdir(parents=True)
    (root / "verl" / "actor.py").write_bytes(ACTOR)
    (root / "verl" / "workers" / "crlf.py").write_bytes(b"a = 1\r\nb = 2\rc\r\nno end")
    (root / "verl" / "profiler.py").write_bytes(NATIVE)
    (root / "run.sh").write_bytes(b"#!/bin/sh\npython3 -m verl\n")
    (root / "run.sh").chmod(0o755)
    (root / "fixed.py").write_bytes(b"x = 1\n")
    (root / "fixed.py").chmod(0o444)
    (root / "weights.bin").write_bytes(b"\0\1DUMP_ON\xff" * 10)
    (root / "latest.py").symlink_to("verl/actor.py")
    return root


def content(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Everything below a folder: kind, mode, bytes."""
    found = {}
    for folder, folders, names in os.walk(root):
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            there = os.lstat(path)
            if stat.S_ISLNK(there.st_mode):
                value = ("link", 0, os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(there.st_mode):
                value = ("folder", stat.S_IMODE(there.st_mode), b"")
            else:
                value = ("file", stat.S_IMODE(there.st_mode), Path(path).read_bytes())
            found[os.path.relpath(path, root)] = value
    return found
