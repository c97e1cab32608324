"""Any sequence of records, edits, diffs and restores: each file comes back, or is refused exactly where work would be lost."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from dump_collection.ledger import changes, recording, restoring
from hypothesis import example, given, settings
from hypothesis import strategies as st

_NAMES = ["a.py", "new/d.py"]  # the second lies in a folder that may not be there yet
_BYTES = [b"", b"x", b"x\n", b"a\nb\n", b"\0\xff", b"longer than the others\n" * 9]
# what lies at a path: nothing, a file (bytes, mode) or a link (target)
_LIES = st.one_of(
    st.none(),
    st.tuples(st.just("file"), st.sampled_from(_BYTES), st.sampled_from([0o644, 0o755])),
    st.tuples(st.just("link"), st.sampled_from([b"nowhere", b"x"]), st.just(0)),
)  # fmt: skip
_FILE, _OTHER, _THIRD = ("file", b"x", 0o644), ("file", b"x\n", 0o755), ("file", b"", 0o644)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.sampled_from(_NAMES), st.none()),
        st.tuples(st.just("edit"), st.sampled_from(_NAMES), _LIES),
        st.tuples(st.just("diff"), st.none(), st.none()),
        st.tuples(st.just("restore"), st.none(), st.none()),
    ),
    min_size=3,
    max_size=14,
)


def _put(path: Path, lies: Any) -> None:
    if os.path.lexists(path):
        path.unlink()
    if lies is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    kind, data, mode = lies
    if kind == "link":
        os.symlink(data, os.fsencode(path))
    else:
        path.write_bytes(data)
        path.chmod(mode)


def _found(path: Path) -> Any:
    if not os.path.lexists(path):
        return None
    if path.is_symlink():
        return ("link", os.fsencode(os.readlink(path)), 0)
    return ("file", path.read_bytes(), stat.S_IMODE(path.stat().st_mode))


class _Model:
    """What must hold, by a dictionary: the state of before, and what the last diff saw, of each open path."""

    def __init__(self) -> None:
        self.before: dict[str, Any] = {}
        self.sealed: dict[str, Any] = {}

    def see(self, now: dict[str, Any]) -> None:
        """A diff: an edit is ours from now on as it is; what was seen before stays, unless the file is as before or gone."""
        for name, before in self.before.items():
            if now[name] == before and before is not None:
                self.sealed.pop(name, None)
            elif now[name] != before and (now[name] is None or name not in self.sealed):
                self.sealed[name] = now[name]

    def may_restore(self, name: str, now: Any) -> bool:
        seen = self.sealed.get(name, "no diff yet")
        if now == self.before[name] or now is None or seen == "no diff yet":
            return True
        before = self.before[name]
        return seen is not None and seen[1] in (now[1], before and before[1])


# somebody edits after the diff; somebody makes anew what we deleted; a file of ours is replaced by a link
@example(start=(_FILE, None), steps=[("edit", "a.py", _OTHER), ("diff", None, None), ("edit", "a.py", _THIRD)])
@example(start=(_FILE, None), steps=[("edit", "a.py", None), ("diff", None, None), ("edit", "a.py", _THIRD)])
@example(start=(None, _FILE), steps=[("edit", "a.py", _OTHER), ("diff", None, None), ("edit", "a.py", ("link", b"x", 0))])
@settings(max_examples=200, deadline=None)
@given(start=st.tuples(_LIES, _LIES), steps=_STEPS)
def test_sequences(start: Any, steps: list[tuple[str, Any, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):  # no power is cut here
        tree, work, model = Path(folder) / "tree", Path(folder) / "run", _Model()
        tree.mkdir()
        for at, lies in enumerate(start):
            _put(tree / _NAMES[at], lies)
        recording.record(work, [], [], [str(tree)], [], "", 0)
        for action, name, lies in [*(("record", name, None) for name in _NAMES), *steps, ("restore", None, None)]:
            if action == "edit":
                _put(tree / name, lies)
            elif action == "record":
                here = _found(tree / name)
                created = model.before.get(name, here) is None
                recording.record(work, [] if created else [str(tree / name)], [str(tree / name)] if created else [], [], [], "why", 6)
                model.before.setdefault(name, here)
                model.sealed.pop(name, None)
            elif action == "diff":
                changes.diff(work)
                model.see({name: _found(tree / name) for name in _NAMES})
            else:
                _check_restore(tree, work, model)


def _check_restore(tree: Path, work: Path, model: _Model) -> None:
    now = {name: _found(tree / name) for name in _NAMES}
    able = {name for name in model.before if model.may_restore(name, now[name])}
    found = restoring.restore(work, [], [])
    assert set(found.restored) == {f"tree/{name}" for name in able}
    assert len(found.refused) == len(model.before) - len(able) == found.still_open
    for name in _NAMES:
        assert _found(tree / name) == (model.before[name] if name in able else now[name]), name
    for name in able:
        del model.before[name]
        model.sealed.pop(name, None)


@given(st.text(alphabet="a\r\n\f\x1c\u2028", max_size=12))
def test_lines_end_at_line_feeds_alone(text: str) -> None:
    """As git and patch cut them; splitlines would cut at nine other characters and spoil the patch."""
    lines = changes._lines(text.encode())
    assert "".join(lines) == text
    assert all("\n" not in line[:-1] for line in lines)
    assert all(line.endswith("\n") for line in lines[:-1])
