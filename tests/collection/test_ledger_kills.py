"""A kill -9 before any single operation of record, diff, restore or verify: restoring afterwards gives the tree of before."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_collection.ledger import changes, recording, restoring, store, verifying
from dump_collection.ledger.records import Before
from trees import ACTOR, content, make_tree

# What changes a file; a kill comes before the call, so the one before it has just ended.
_WRITING = {
    "write", "flush", "ftruncate", "fchmod", "chmod", "open", "close", "replace", "unlink", "mkdir", "rmdir", "symlink", "mkstemp",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written: only a power cut would, and waiting makes hundreds of runs slow."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def _forked(work: Callable[[], object], kill_at: int) -> bool:
    """Run ``work`` in a child that kills itself before its ``kill_at``-th writing call; whether it was killed."""
    child = os.fork()
    if child == 0:
        left = [kill_at]

        def count(_frame: Any, event: str, function: Any) -> None:
            if event == "c_call" and function.__name__ in _WRITING:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        try:
            work()
        except BaseException:  # noqa: BLE001  # the parent must see that it failed
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def _record(tree: Path, work: Path) -> None:
    paths = [str(tree / name) for name in ("verl/actor.py", "fixed.py", "latest.py", "verl/workers/crlf.py", "run.sh")]
    recording.record(work, paths, [str(tree / "new/hook.py")], [str(tree)], [], "debugger", 6)


def _edit(tree: Path) -> None:
    """Each kind of edit; every file becomes longer or shorter, so that a half written one is another."""
    (tree / "verl/actor.py").write_bytes(ACTOR * 3)
    (tree / "fixed.py").unlink()
    (tree / "latest.py").unlink()
    (tree / "latest.py").write_bytes(b"a file\n")
    (tree / "verl/workers/crlf.py").write_bytes(b"a")
    (tree / "run.sh").chmod(0o600)
    (tree / "new").mkdir()
    (tree / "new/hook.py").write_bytes(b"DUMP_ON = 1\n")


@pytest.mark.parametrize("stage", ["record", "diff", "restore", "restore after diff", "verify"])
def test_a_kill_at_any_write_is_mended_by_restoring(stage: str, tmp_path: Path) -> None:
    """Kills before the 1st, 2nd, … writing call of one command until it runs through; then restore, and compare every byte.

    A kill within record comes before the edit that it announces, as the command did not return.
    """
    before = content(make_tree(tmp_path / "model"))
    at, killed = 0, True
    while killed:
        at += 1
        tree, work = tmp_path / f"{at}" / "trainer", tmp_path / f"{at}" / "run"
        shutil.copytree(tmp_path / "model", tree, symlinks=True)
        if stage != "record":
            _record(tree, work)
            _edit(tree)
        if stage == "verify":
            restoring.restore(work, [], [])
        if stage == "restore after diff":  # a file half put back is neither as before nor as the diff saw it
            changes.diff(work)
        run: dict[str, Callable[[], object]] = {
            "record": lambda tree=tree, work=work: _record(tree, work),
            "diff": lambda work=work: changes.diff(work),
            "restore": lambda work=work: restoring.restore(work, [], []),
            "verify": lambda work=work: verifying.verify(work, []),
        }
        killed = _forked(run[stage.partition(" ")[0]], at)
        if stage == "record" and killed and not (work / "change_ledger.json").exists():
            assert content(tree) == before
            continue
        if stage == "record" and not killed:
            _edit(tree)
        found = restoring.restore(work, [], [])
        assert not found.refused
        assert found.still_open == 0
        assert content(tree) == before
        assert not verifying.verify(work, []).gaps
        shutil.rmtree(tmp_path / f"{at}")
    assert at > {"record": 40, "diff": 30, "restore": 50, "verify": 7}[stage.partition(" ")[0]], (
        "the command was not killed where it writes"
    )


def test_a_kill_while_the_agent_edits_is_mended(tmp_path: Path) -> None:
    """A file cut by a kill of the editor itself, before any diff: still an edit of ours."""
    tree, work = make_tree(tmp_path / "trainer"), tmp_path / "run"
    before = content(tree)
    _record(tree, work)
    (tree / "verl/actor.py").write_bytes(ACTOR[:7])
    restoring.restore(work, [], [])
    assert content(tree) == before


def test_a_record_killed_in_a_second_round_keeps_the_first(tmp_path: Path) -> None:
    """What stage 5 wrote down must survive a kill while stage 6 writes."""
    tree, work = make_tree(tmp_path / "trainer"), tmp_path / "run"
    before = content(tree)
    recording.record(work, [str(tree / "fixed.py")], [], [str(tree)], [], "param P1", 5)
    (tree / "fixed.py").unlink()
    changes.diff(work)
    at = 1
    while _forked(lambda: recording.record(work, [str(tree / "verl/actor.py")], [], [], [], "debugger", 6), at):
        assert content(tree)["verl/actor.py"] == before["verl/actor.py"]
        at += 1
    (tree / "verl/actor.py").write_bytes(b"edited\n")
    restoring.restore(work, [], [])
    assert content(tree) == before


def test_a_file_written_meanwhile_is_not_stored_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that grows while it is copied: refused, as its backup would be of no moment."""
    path = tmp_path / "grows.py"
    path.write_bytes(b"a\n")
    copy = store._copy

    def growing(source: str, part: Any) -> str:
        digest = copy(source, part)
        with path.open("ab") as file:
            file.write(b"more\n")
        return digest

    monkeypatch.setattr(store, "_copy", growing)
    with pytest.raises(store.DumpError, match="it is being written at this moment"):
        store.keep(str(path), tmp_path / "run")


def test_ctrl_c_waits_until_a_file_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The command says that nothing was left half written."""
    tree, work = make_tree(tmp_path / "trainer"), tmp_path / "run"
    _record(tree, work)
    (tree / "verl/actor.py").write_bytes(b"e")
    write = store._write_all

    def interrupted(handle: int, data: bytes) -> None:
        write(handle, data[:3])
        os.kill(os.getpid(), signal.SIGINT)
        write(handle, data[3:])

    monkeypatch.setattr(store, "_write_all", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started with it ignored
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    backup = Before(hashlib.sha256(ACTOR).hexdigest(), "0644", "ledger/" + hashlib.sha256(ACTOR).hexdigest())
    with pytest.raises(KeyboardInterrupt):
        store.put_back(str(tree / "verl/actor.py"), backup, work)
    assert (tree / "verl/actor.py").read_bytes() == ACTOR
