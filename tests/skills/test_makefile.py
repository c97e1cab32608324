"""The targets of the Makefile, as users call them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from running import ROOT


@pytest.mark.parametrize("target", ["test", "check"])
def test_a_path_that_msprobe_refuses_is_told_before_anything_is_installed(tmp_path: Path, target: str) -> None:
    """One line that says where, why and what to do."""
    clone = tmp_path / "a b"
    (clone / ".venv").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", clone)
    for name in (".venv/made", "pyproject.toml", "constraints.txt"):
        (clone / name).touch()
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    ran = subprocess.run(["make", target], cwd=clone, capture_output=True, text=True, env=plain, check=False)
    told, *rest = ran.stderr.splitlines()
    assert ran.returncode == 2
    assert told.startswith(f"Cannot run the tests in {clone}: msprobe")
    assert [line for line in rest if not line.startswith("make")] == []
    assert not (clone / ".venv/test").exists()
