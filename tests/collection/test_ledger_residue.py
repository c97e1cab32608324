"""What must not be left in a tree: found wherever it stands, and not where it stood before."""

from __future__ import annotations

import json
import py_compile
import re
from pathlib import Path
from typing import Any

import pytest
from dump_collection.ledger import residue
from test_ledger import Case

# Each word of the requirement's stage 9, as an edit would leave it.
PLANTED = {
    "DUMP_ON": "export DUMP_ON=1\n",
    "PROMPTS_ONLY": "if os.environ.get('PROMPTS_ONLY') == '1':\n",
    "dump_config_path": '--additional-config \'{"dump_config_path":"/p/config.json"}\'\n',
    "debugger": "        self.debugger.start(model=self.model)\n",
    "stop": "    debugger . stop()\n",
    "step": "    _debugger.step()\n",
    "import": "from msprobe.pytorch import seed_all\n",
    "PrecisionDebugger": "d = PrecisionDebugger(config_path=p)\n",
    "load": '  "load" : {"path": "/s", "modules": []}\n',
    "stub_source": "path = 'stub_source_round2/'\n",
    "marker": "print('[DUMP_DIAG]', type(x))\n",
    "sglang": "--sglang-msprobe-dump-config /p/c.json\n",
    "metric": "print('prefill_logprob_diff_mean', mean)\n",
}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_every_word_is_found_in_a_file_that_nobody_recorded(case: Case) -> None:
    """Each word in a file of its own: a gap for each, and none once they are gone."""
    case.record(case.tree / "fixed.py")
    case.run("restore")
    case.run("verify")
    for name, line in PLANTED.items():
        (case.tree / f"{name}.sh").write_text("#!/bin/sh\n" + line)
    ran = case.run("verify", code=1)
    assert {name for name in PLANTED if f"trainer/{name}.sh:2 holds" in ran.stderr} == set(PLANTED)
    assert json.loads((case.work / "change_ledger.json").read_text())["state"] == "restored"
    for name in PLANTED:
        (case.tree / f"{name}.sh").unlink()
    case.run("verify")


def test_words_that_stood_there_before_are_no_residue(case: Case) -> None:
    """verl and vllm-ascend have msprobe built in; an edit beside such a word must not make it one, another such word is one."""
    profiler = case.tree / "verl/profiler.py"
    case.record(case.tree / "fixed.py")
    case.run("restore")
    native = profiler.read_text()
    profiler.write_text("# shifted by a line of the user's own\n" + native)
    ran = case.run("verify")
    assert "changed since the first record, and not in the ledger: verl/profiler.py" in ran.stderr
    profiler.write_text(native + "debugger.start(model)\n")
    ran = case.run("verify", code=1)
    assert "trainer/verl/profiler.py:3, 4 holds" in ran.stderr
    assert "(1 of them were there before)" in ran.stderr


def test_a_kept_file_is_searched_against_its_backup(case: Case) -> None:
    """A file that stays as it stands must hold no more of our words than before."""
    profiler = case.tree / "verl/profiler.py"
    case.record(profiler)
    profiler.write_text(profiler.read_text() + "# mine\n")
    case.run("restore", "--keep", profiler)
    case.run("verify")
    case.record(profiler)
    profiler.write_text(profiler.read_text() + "seed_all(mode=True)\n")
    case.run("restore", "--keep", profiler)
    assert r"profiler.py:5 holds \bseed_all\b" in case.run("verify", code=1).stderr


def test_folders_of_transformed_sources_are_found(case: Case) -> None:
    case.record(case.tree / "fixed.py")
    case.run("restore")
    for folder in (case.work / "stub_source_round1", case.tree / "verl" / "stub_source_round2" / "step0"):
        folder.mkdir(parents=True)
    ran = case.run("verify", code=1)
    assert "the transformed source folder stub_source_round1 is left in the workdir" in ran.stderr
    assert "the transformed source folder trainer/verl/stub_source_round2 is left" in ran.stderr


def test_what_is_not_searched_is_said(case: Case, tmp_path: Path) -> None:
    """Binary, huge and linked files are left out, out loud; a link out of the root leads nowhere."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.py").write_text("DUMP_ON\n")
    case.record(case.tree / "fixed.py")
    case.run("restore")
    (case.tree / "log.txt").write_bytes(b"DUMP_ON\n" * ((residue.HUGE >> 3) + 1))
    (case.tree / "out").symlink_to(tmp_path / "outside")
    (case.tree / "out.py").symlink_to(tmp_path / "outside" / "a.py")
    ran = case.run("verify")
    assert "not searched (larger than 8 MiB): log.txt" in ran.stderr
    assert "not searched (binary): weights.bin" in ran.stderr


def test_a_word_of_the_site_can_be_added(case: Case) -> None:
    """By record it holds for every later verify, by verify for that one."""
    case.record(case.tree / "fixed.py", "--pattern", r"\bMY_SWITCH\b")
    case.run("restore")
    (case.tree / "launch.sh").write_text("MY_SWITCH=1 OTHER=1\n")
    assert "MY_SWITCH" in case.run("verify", code=1).stderr
    (case.tree / "launch.sh").write_text("OTHER=1\n")
    case.run("verify")
    assert "OTHER" in case.run("verify", "--pattern", "OTHER", code=1).stderr


def test_a_restored_file_that_changes_again_shuts_the_gate(case: Case) -> None:
    case.record(case.tree / "verl/actor.py")
    case.run("restore")
    (case.tree / "verl/actor.py").write_bytes(b"DUMP_ON\n")
    ran = case.run("verify", code=1)
    assert "is not what it was when it was restored" in ran.stderr


def test_the_workdir_may_lie_inside_a_root(tmp_path: Path) -> None:
    """The ledger's backups hold words of before; they are no residue of the tree."""
    case = Case(tmp_path)
    case.work = case.tree / "run"
    case.record(case.tree / "verl/profiler.py")
    (case.tree / "verl/profiler.py").write_bytes(b"DUMP_ON\n")
    case.run("diff")
    case.run("restore")
    case.run("verify")


def test_what_runs_wrote_is_no_residue(tmp_path: Path) -> None:
    """A dump quotes the debugger's calls, a log prints the metric, the workdir holds configurations: none is a switch."""
    case = Case(tmp_path)
    case.work = case.tree / "run"
    case.record(case.tree / "fixed.py")
    case.run("restore")
    unit = case.tree / "dump" / "step0" / "rank0"
    unit.mkdir(parents=True)
    for name in ("dump.json", "construct.json", "stack.json"):
        (unit / name).write_text("debugger.start(model)\n")
    (case.tree / "train.log").write_text("prefill_logprob_diff_mean 0\n")
    (case.work / "msprobe_infer.json").write_text('{"load": {"path": 1}}\n')
    ran = case.run("verify")
    for said in ("(a dump): dump/step0/rank0", "(a log): train.log", "(the workdir): run"):
        assert f"not searched {said}" in ran.stderr


def test_a_root_without_an_edit_can_be_verified(case: Case) -> None:
    """A framework with msprobe built in needs no edit; its launch script is searched all the same."""
    assert "no file is recorded yet" in case.run("record", "--root", case.tree).stdout
    case.run("verify")
    (case.tree / "run.sh").write_text("export DUMP_ON=1\n")
    assert "run.sh:1 holds" in case.run("verify", code=1).stderr


@pytest.mark.parametrize(("data", "lines"), [(b"a\nX\nXX", (2, 3, 3)), (b"X", (1,)), (b"\n\nX\n", (3,)), (b"\r\nX", (2,)), (b"", ())])
def test_line_numbers_are_those_of_an_editor(data: bytes, lines: Any) -> None:
    assert residue.lines_of(data, residue.compiled(["X"])).get("X", ()) == lines


def test_what_python_compiled_from_a_file_that_was_made_is_named(case: Case) -> None:
    """It holds what its source held and cannot be searched; of a file that was there before, it is compiled anew."""
    made = case.tree / "hook.py"
    case.record(case.tree / "fixed.py", "--created", made)
    made.write_text("DUMP_ON = 1\n")
    (case.tree / "hooks.py").write_text("x = 1\n")
    for path in (made, case.tree / "hooks.py", case.tree / "fixed.py"):
        py_compile.compile(str(path))
    case.run("restore")
    ran = case.run("verify", code=1)
    (compiled,) = (case.tree / "__pycache__").glob("hook.*")
    assert ran.stderr.count("was compiled from") == 1
    assert re.match("next: mend what stderr names, then .*change_ledger.py verify ", ran.stdout.splitlines()[-1]), (
        "there is nothing to restore"
    )
    assert f"trainer/__pycache__/{compiled.name} was compiled from trainer/hook.py, which we made. Remove it by its name" in ran.stderr
    compiled.unlink()
    case.run("verify")
