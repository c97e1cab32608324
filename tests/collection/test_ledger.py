"""The ledger of changes as a user meets it: recorded before an edit, put back byte for byte, refused where work would be lost."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import COLLECTION, run_collection
from trees import ACTOR, content, make_tree


class Case:
    """A tree, a workdir, and the command on them."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.work = make_tree(folder / "trainer"), folder / "run"
        self.before = content(self.tree)

    def run(self, action: str, *arguments: Any, code: int = 0) -> Any:
        ran = run_collection("change_ledger.py", action, "--workdir", self.work, *map(str, arguments))
        assert ran.returncode == code, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
        if code < 2:
            assert ran.stdout.splitlines()[-1].startswith("next: ")
        return ran

    def record(self, *arguments: Any, code: int = 0) -> Any:
        return self.run("record", "--root", self.tree, "--stage", 6, "--why", "debugger", *arguments, code=code)

    def changes(self) -> Any:
        return json.loads((self.work / "change_ledger.json").read_text())["changes"]

    def state(self) -> str:
        return str(json.loads((self.work / "change_ledger.json").read_text())["state"])


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_modified_created_deleted_and_mode_are_put_back(case: Case) -> None:
    """The whole round: what is written down at each step is the contract's form, and the tree is byte for byte as before."""
    tree = case.tree
    made, far = tree / "hook.py", tree / "new" / "deep" / "config.json"
    edited = [tree / "verl/actor.py", tree / "run.sh", tree / "fixed.py", tree / "verl/workers/crlf.py", tree / "weights.bin"]
    case.record(*edited, "--created", made, "--created", far)
    ledger = json.loads((case.work / "change_ledger.json").read_text())
    assert (ledger["schema"], ledger["roots"], ledger["state"]) == ("change_ledger/1", ["trainer"], "open")
    assert ledger["changes"][0] == {
        "id": "C1",
        "path": "trainer/verl/actor.py",
        "kind": "modified",
        "before": {"digest": _sha(ACTOR), "mode": "0644", "backup": "ledger/" + _sha(ACTOR)},
        "after": None,
        "why": "debugger",
        "stage": 6,
        "restored": False,
    }
    assert (case.work / "ledger" / _sha(ACTOR)).read_bytes() == ACTOR

    (tree / "verl/actor.py").write_bytes(ACTOR + b"DUMP_ON = 1\n")
    (tree / "run.sh").chmod(0o644)
    (tree / "fixed.py").unlink()
    (tree / "verl/workers/crlf.py").write_bytes(b"")
    (tree / "weights.bin").write_bytes(b"\0\2")
    made.write_text("PROMPTS_ONLY = 1\n")
    far.parent.mkdir(parents=True)
    far.write_text("{}")
    out = case.run("diff", "--output", case.work / "all.patch").stdout
    assert "C1 trainer/verl/actor.py (modified): edited, +1 -0" in out
    assert [change["kind"] for change in case.changes()] == [
        "modified",
        "modified",
        "deleted",
        "modified",
        "modified",
        "created",
        "created",
    ]
    assert case.changes()[0]["after"] == {"digest": _sha(ACTOR + b"DUMP_ON = 1\n")}
    assert case.run("verify", code=1).stderr.count("is not restored") == 7

    assert "restored trainer/hook.py" in case.run("restore").stdout
    assert content(tree) == case.before
    assert case.state() == "restored"
    assert case.run("verify").stdout.startswith("verify is open")
    assert case.state() == "verified"
    case.run("restore")  # again: nothing to do, nothing lost
    assert content(tree) == case.before


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_diff_is_a_patch_that_makes_the_edit_again(case: Case) -> None:
    """git applies it: the ledger's diff is the list of changes that a person reviews."""
    tree = case.tree
    case.record(tree / "verl/actor.py", tree / "verl/workers/crlf.py", tree / "fixed.py", "--created", tree / "hook.py")
    (tree / "verl/actor.py").write_bytes(ACTOR.replace(b"torch", b"torch, os"))
    (tree / "verl/workers/crlf.py").write_bytes(b"a = 1\r\nb = 3\rc\r\nno end")
    (tree / "fixed.py").unlink()
    (tree / "hook.py").write_bytes(b"one\ntwo")
    case.run("diff", "--output", case.work / "all.patch")
    edited = content(tree)
    case.run("restore")
    subprocess.run(["git", "apply", "-p2", "--whitespace=nowarn", str(case.work / "all.patch")], cwd=tree, check=True)
    assert content(tree) == edited


def test_uncommitted_work_of_the_user_stays_in_a_git_tree(case: Case) -> None:
    """Restore gives the bytes of before, not the commit's; git sees the same tree as before."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(case.tree)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "as published"], check=True)
    (case.tree / "verl/actor.py").write_bytes(ACTOR + b"# the user's own, uncommitted\n")
    (case.tree / "notes.txt").write_text("untracked\n")
    status = subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout
    before = content(case.tree)
    case.record(case.tree / "verl/actor.py", case.tree / "notes.txt")
    (case.tree / "verl/actor.py").write_bytes(b"rewritten\n")
    (case.tree / "notes.txt").unlink()
    case.run("restore")
    assert {name: value for name, value in content(case.tree).items() if not name.startswith(".git/")} == {
        name: value for name, value in before.items() if not name.startswith(".git/")
    }
    assert subprocess.run([*git, "status", "--porcelain"], check=True, capture_output=True).stdout == status
    ran = case.run("verify")
    assert "not searched (version control): .git" in ran.stderr


def test_several_roots_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Trainer and engine may both be cloned into a folder ``src``."""
    case = Case(tmp_path)
    other = make_tree(tmp_path / "engine" / "trainer")
    case.record("--root", other, case.tree / "fixed.py", other / "fixed.py")
    assert [change["path"] for change in case.changes()] == ["trainer/fixed.py", "trainer-2/fixed.py"]
    for root in (case.tree, other):
        (root / "fixed.py").chmod(0o644)
        (root / "fixed.py").write_text("y\n")
    case.run("restore", other / "fixed.py")
    assert content(other) == case.before
    assert content(case.tree) != case.before
    assert case.state() == "open"
    case.run("restore")
    assert content(case.tree) == case.before


@pytest.mark.parametrize("sealed", [True, False])
def test_a_change_of_somebody_else_is_refused_and_the_way_on_works(case: Case, sealed: bool) -> None:
    """After a diff, later work on the file is not lost: the merge that the refusal names takes out our edit alone."""
    actor = case.tree / "verl/actor.py"
    case.record(actor, case.tree / "fixed.py")
    (case.tree / "fixed.py").unlink()
    ours = ACTOR + b"\n\n\n# ours: DUMP_ON\n"
    actor.write_bytes(ours)
    if sealed:
        case.run("diff")
    actor.write_bytes(b"# the user's work of today\n" + ours)
    if not sealed:  # without a diff nobody can tell whose it is: taken for the edit, but kept
        case.run("restore")
        assert content(case.tree) == case.before
        assert (case.work / "ledger" / _sha(b"# the user's work of today\n" + ours)).is_file()
        return
    ran = case.run("restore", code=2)
    assert "Cannot restore trainer/verl/actor.py: it was changed after its last diff, so somebody's work would be lost" in ran.stderr
    assert actor.read_bytes() == b"# the user's work of today\n" + ours
    assert (case.tree / "fixed.py").exists(), "the others are restored"
    assert "changed since" in case.run("diff").stdout, "a diff must not take the work for ours"
    merge = ran.stderr.partition("git merge-file ")[2].partition(", then")[0]
    subprocess.run(["git", "merge-file", *shlex.split(merge)], check=True)
    case.run("restore", "--keep", actor)
    assert actor.read_bytes() == b"# the user's work of today\n" + ACTOR
    case.run("verify")


def test_a_second_record_counts_the_later_work_as_ours(case: Case) -> None:
    """Stage 6 edits what stage 5 edited: one change, both reasons, the bytes of the first before."""
    actor = case.tree / "verl/actor.py"
    case.run("record", "--root", case.tree, "--stage", 5, "--why", "param P1", actor)
    actor.write_bytes(b"five\n")
    case.run("diff")
    case.record(actor)
    actor.write_bytes(b"six\n")
    case.run("diff")
    (change,) = case.changes()
    assert (change["why"], change["stage"], change["before"]["digest"]) == ("param P1; debugger", 6, _sha(ACTOR))
    case.run("restore")
    assert content(case.tree) == case.before
    case.record(actor)
    assert [change["restored"] for change in case.changes()] == [True, False], "an edit after restoring is a change of its own"


def test_a_diff_before_the_edit_announces_nothing_else(case: Case) -> None:
    """A file looked at too early: its digest is that of before, and the edit that follows is still ours."""
    actor = case.tree / "verl/actor.py"
    case.record(actor)
    assert "untouched" in case.run("diff").stdout
    assert case.changes()[0]["after"] == {"digest": _sha(ACTOR)}
    actor.write_bytes(b"edited\n")
    assert "edited, +1" in case.run("diff").stdout
    case.run("restore")
    assert content(case.tree) == case.before


def test_what_nobody_recorded_is_never_deleted(case: Case) -> None:
    """A folder that came with a created file stays while other files are in it, and the gate says so."""
    made = case.tree / "new" / "hook.py"
    case.record("--created", made)
    made.parent.mkdir()
    made.write_text("a\n")
    (made.parent / "theirs.log").write_text("precious\n")
    assert "new/ was not there before" in case.run("restore").stderr
    assert not made.exists()
    assert (made.parent / "theirs.log").read_text() == "precious\n"
    assert "trainer/new/ was not there before and holds files that nobody recorded" in case.run("verify", code=1).stderr
    (made.parent / "theirs.log").unlink()
    case.run("restore")
    case.run("verify")
    assert content(case.tree) == case.before


def test_an_edit_through_a_link_is_recorded_and_links_come_back(case: Case) -> None:
    """Writing latest.py changes verl/actor.py; a link replaced by a file becomes a link again."""
    case.record(case.tree / "latest.py")
    assert [change["path"] for change in case.changes()] == ["trainer/latest.py", "trainer/verl/actor.py"]
    (case.tree / "latest.py").write_bytes(b"through the link\n")
    (case.tree / "latest.py").unlink()
    (case.tree / "latest.py").write_bytes(b"a file now\n")
    case.run("diff")
    case.run("restore")
    assert content(case.tree) == case.before


def test_a_link_out_of_the_root_is_no_way_to_edit_elsewhere(case: Case, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("a\n")
    (case.tree / "out.py").symlink_to(tmp_path / "elsewhere.py")
    assert "elsewhere.py: it lies in no root" in case.record(case.tree / "out.py", code=2).stderr
    case.record(case.tree / "fixed.py")
    shutil.move(str(case.tree / "verl"), str(tmp_path / "moved"))
    (case.tree / "verl").symlink_to(tmp_path / "moved")
    assert "lies in no root" in case.run("record", "--stage", 6, "--why", "w", case.tree / "verl/actor.py", code=2).stderr


def test_restoring_does_not_write_through_a_folder_that_became_a_link(case: Case, tmp_path: Path) -> None:
    case.record(case.tree / "verl/actor.py")
    shutil.move(str(case.tree / "verl"), str(tmp_path / "moved"))
    (tmp_path / "moved/actor.py").write_bytes(b"not ours to write\n")
    (case.tree / "verl").symlink_to(tmp_path / "moved")
    assert "a folder on its way is a link out of its root now" in case.run("restore", code=2).stderr
    assert (tmp_path / "moved/actor.py").read_bytes() == b"not ours to write\n"


def test_hard_links_keep_their_partner(case: Case, tmp_path: Path) -> None:
    """Package managers link installed files to a cache: an edit in place changes both, so restoring must, too."""
    os.link(case.tree / "verl/actor.py", tmp_path / "cache.py")
    case.record(case.tree / "verl/actor.py")
    (case.tree / "verl/actor.py").write_bytes(b"edited in place\n")
    assert (tmp_path / "cache.py").read_bytes() == b"edited in place\n"
    case.run("restore")
    assert (tmp_path / "cache.py").read_bytes() == ACTOR


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["verl/none.py"], r"none\.py: there is no such file. If it is about to be made, give it by --created"),
        (["--created", "fixed.py"], r"fixed\.py as created: it is there already"),
        (["verl"], "verl: it is a folder"),
        (["pipe"], "pipe: it is no ordinary file"),
        (["../outside.py"], r"outside\.py: it lies in no root of the ledger; known are: trainer"),
        (["../run/change_ledger.json"], "belongs to the ledger itself"),
        (["../run/ledger/x"], "belongs to the ledger itself"),
        (["fixed.py", "--root", "verl"], "lie in each other"),
        (["fixed.py", "--root", "run.sh"], "it is no folder of sources"),
        (["fixed.py", "--pattern", "("], r"the pattern '\('"),
        (["fixed.py", "--keep", "fixed.py"], "--keep is for restore"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_one_line(case: Case, arguments: list[str], says: str) -> None:
    """Nothing is written down then, not even the files of the same call that could be."""
    os.mkfifo(case.tree / "pipe")
    paths = [arg if arg.startswith("--") or arg == "(" else str(case.tree / arg) for arg in arguments]
    ran = case.record(case.tree / "verl/actor.py", *paths, code=2)
    assert len(ran.stderr.splitlines()) == 1
    assert re.search(says, ran.stderr), ran.stderr
    assert not (case.work / "change_ledger.json").exists()


@pytest.mark.parametrize(("stage", "why"), [(1, "debugger"), (99, "debugger"), (6, ""), (6, " ")])
def test_a_record_that_the_gate_would_refuse_is_not_taken(case: Case, stage: int, why: str) -> None:
    """No command changes stage and reason afterwards, so what stage 6 asks of them is asked at once."""
    ran = case.run("record", "--root", case.tree, "--stage", stage, "--why", why, case.tree / "fixed.py", code=2)
    assert len(ran.stderr.splitlines()) == 1
    assert not (case.work / "change_ledger.json").exists()


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda ledger: ledger["changes"][0].update(path="trainer/../../etc/passwd"), r"changes\[0\]\.path: expected one of the roots"),
        (lambda ledger: ledger["changes"][0]["before"].update(backup="/etc/passwd"), r"changes\[0\]\.before\.backup"),
        (lambda ledger: ledger["changes"][0]["before"].update(mode="rw"), r"changes\[0\]\.before\.mode"),
        (lambda ledger: ledger["changes"][0].pop("restored"), r"changes\[0\]\.restored: expected a value of type bool, found None"),
        (lambda ledger: ledger["changes"][0].update(before=None), r"changes\[0\]\.kind: expected created"),
        (lambda ledger: ledger.update(places=[{"root": "trainer"}]), r"places\[0\]\.path: expected a value of type str"),
        (lambda ledger: ledger["places"][0].update(path="/nowhere"), "its root trainer is not at /nowhere"),
    ],
)
def test_a_ledger_that_was_edited_is_refused_with_its_place(case: Case, edit: Any, says: str) -> None:
    case.record(case.tree / "fixed.py")
    path = case.work / "change_ledger.json"
    ledger = json.loads(path.read_text())
    edit(ledger)
    path.write_text(json.dumps(ledger))
    ran = case.run("restore", code=2)
    assert re.search(says, ran.stderr), ran.stderr


def test_a_ledger_of_roots_beside_it_is_read(tmp_path: Path) -> None:
    """The contract's own example names no places: its roots lie beside the ledger, its backups bear the change's name."""
    case = Case(tmp_path)
    case.work = tmp_path
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger/C1").write_bytes(ACTOR)
    change = {
        "id": "C1", "path": "trainer/verl/actor.py", "kind": "modified", "why": "start and stop of the debugger", "stage": 6,
        "before": {"digest": _sha(ACTOR), "mode": "0644", "backup": "ledger/C1"}, "after": {"digest": _sha(b"edited")}, "restored": False,
    }  # fmt: skip
    value = {"schema": "change_ledger/1", "roots": ["trainer"], "changes": [change], "state": "open"}
    (tmp_path / "change_ledger.json").write_text(json.dumps(value))
    (case.tree / "verl/actor.py").write_bytes(b"edited")
    case.run("restore")
    assert content(case.tree) == case.before


def test_a_damaged_backup_is_not_put_back(case: Case) -> None:
    case.record(case.tree / "verl/actor.py")
    (case.tree / "verl/actor.py").write_bytes(b"edited\n")
    (case.work / "ledger" / _sha(ACTOR)).write_bytes(b"cut")
    assert "its backup" in case.run("restore", code=2).stderr
    assert (case.tree / "verl/actor.py").read_bytes() == b"edited\n"


def test_calls_at_one_time_lose_no_entry(case: Case) -> None:
    """Eight processes record eight files into one ledger: each waits for the others."""
    for n in range(8):
        (case.tree / f"f{n}.py").write_text(f"{n}\n")
    case.record(case.tree / "fixed.py")
    command = [sys.executable, COLLECTION / "change_ledger.py", "record", "--workdir", case.work, "--stage", "6", "--why", "w"]
    running = [subprocess.Popen([*command, case.tree / f"f{n}.py"], stdout=subprocess.DEVNULL) for n in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    assert sorted(change["id"] for change in case.changes()) == [f"C{n}" for n in range(1, 10)]
    assert {change["path"] for change in case.changes()} == {"trainer/fixed.py", *(f"trainer/f{n}.py" for n in range(8))}
