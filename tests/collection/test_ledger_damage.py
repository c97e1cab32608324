"""The ledger's own files damaged anywhere: one error or an answer, and no byte of the user's lost."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dump_collection.ledger import changes, recording, residue, restoring, verifying
from msprobe_files.errors import DumpError

BEFORE, EDITED, OURS = "before = 1\n", "edited = 1\n", "ours = 1\n"
ODD = (None, True, -1, 10**30, float("nan"), "", "x", "a\0b", "\ud800", "../x", "/etc", "x" * 300, [], {}, [None], {"a": 1}, "drop")


class Case(NamedTuple):
    """A tree with one modified and one created file, recorded and edited; the ledger lies beside it."""

    work: Path
    tree: Path

    def lay(self) -> None:
        (self.tree / "a.py").write_text(EDITED)
        (self.tree / "b.py").write_text(OURS)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    made = Case(tmp_path / "w", tmp_path / "tree")
    made.tree.mkdir()
    (made.tree / "a.py").write_text(BEFORE)
    a, b = str(made.tree / "a.py"), str(made.tree / "b.py")
    recording.record(made.work, [a], [b], [str(made.tree)], [], "why", 6)
    made.lay()
    changes.diff(made.work)
    return made


def damaged(whole: Any) -> Iterator[Any]:
    """The value with each of its places replaced by each odd value in turn, or taken out."""
    for place in _places(whole, ()):
        for odd in ODD:
            value = copy.deepcopy(whole)
            inside = value
            for key in place[:-1]:
                inside = inside[key]
            if odd == "drop":
                del inside[place[-1]]
            else:
                inside[place[-1]] = odd
            yield value


def _places(value: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ():
        yield (*above, key)
        yield from _places(inner, (*above, key))


def test_a_damaged_ledger_is_one_error_or_an_answer(case: Case) -> None:
    """Whatever stands in it, the bytes of before stay at hand: in the file or in the ledger's folder."""
    path = case.work / "change_ledger.json"
    for value in damaged(json.loads(path.read_text())):
        for act in (lambda: changes.diff(case.work), lambda: verifying.verify(case.work, []), lambda: restoring.restore(case.work, [], [])):
            path.write_text(json.dumps(value))
            case.lay()
            with contextlib.suppress(DumpError):
                act()
            kept = {file.read_text() for file in [*(case.work / "ledger").iterdir(), *case.tree.iterdir()] if file.suffix != ".json"}
            assert {BEFORE, EDITED, OURS} <= kept


def test_a_damaged_note_of_the_tree_is_one_error_or_an_answer(case: Case) -> None:
    path = case.work / "ledger/before.tree.json"
    for value in damaged(json.loads(path.read_text())):
        for act in (lambda: verifying.verify(case.work, []), lambda: residue.add_patterns("tree", case.work, ["q"])):
            path.write_text(json.dumps(value))
            with contextlib.suppress(DumpError):
                act()


def test_a_backup_that_is_gone_is_said_in_one_line(case: Case) -> None:
    """Somebody cleaned up the workdir: no command may call that its own fault."""
    for file in (case.work / "ledger").iterdir():
        if file.suffix != ".json":
            file.unlink()
    for act in (lambda: changes.diff(case.work), lambda: verifying.verify(case.work, [])):
        (case.tree / "a.py").write_text("import msprobe\n")
        with pytest.raises(DumpError, match=r"Cannot read the backup .*: No such file or directory\. Put back the ledger's folder\."):
            act()
    (case.tree / "a.py").write_text(EDITED)
    (refused,) = restoring.restore(case.work, [], []).refused
    assert "Cannot put back" in refused
    assert (case.tree / "a.py").read_text() == EDITED
