"""The house: rooms import only from lower floors, both skills share one folder, --help loads nothing."""

import ast
import filecmp
import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import COLLECTION, ROOT, SCRIPTS

ANALYST = ROOT / "skills/accuracy/rl-consistency-dump-analysis"
COLLECTOR = ROOT / "skills/accuracy/rl-prefill-consistency-dump"
# A room is a module or a folder of dump_analysis; numbers leave room for what is between.
FLOOR = {
    "msprobe_files": 0,
    "artefacts": 1, "boundaries": 1, "floats": 1, "joined_tensors": 1, "cli": 1,
    "words": 1, "guards": 2, "wording": 2, "layouts": 2, "ulps": 2, "grids": 2, "sides": 2,
    "statistics": 3, "stated_words": 4, "stated_ends": 4, "stated_rows": 5, "stated_summary": 8,
    "tensors": 3, "tally": 3, "train_log": 3,
    "assembly": 4, "pt_writer": 1, "assembled_files": 5, "comparable": 4, "pairs": 4,
    "mapping": 5,
    "tokens": 5, "measure": 5, "weights": 5, "probe": 5,
    "gate": 6,
    "replay": 7,
    "replicas": 8, "divergence": 8, "chain": 8, "causes": 8,
    "findings": 9, "coverage": 9, "parameters": 9, "rounds": 9,
    "conclusion": 10, "gathered": 10, "report": 10,
    "pipeline": 11, "assembling": 12, "reporting": 12, "round_steps": 12,
    "stages": 13,
}  # fmt: skip
# The same for dump_collection; a room's words (`*_words`) stand below the table that gathers them.
FLOOR_OF_COLLECTION = {
    "msprobe_files": 0,
    "cli": 1, "files": 1, "quotes": 1,
    "wording": 2, "digests": 2,
    "ledger": 3, "msprobe_config": 3, "dump_check": 3, "params": 3, "override": 4,
    "stages": 5,
}  # fmt: skip
HOUSES = [(SCRIPTS / "dump_analysis", FLOOR), (COLLECTION / "dump_collection", FLOOR_OF_COLLECTION)]
COMMANDS = sorted([*SCRIPTS.glob("*.py"), *COLLECTION.glob("*.py")])


def imported_rooms(path: Path, house: Path) -> set[str]:
    """The rooms that a module imports from, whatever form the import has."""
    found = set()
    inside = path.relative_to(house).parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "" if not node.level else ".".join([house.name, *inside[:-1]][: len(inside) + 1 - node.level])
            stem = ".".join(part for part in (base, node.module or "") if part)
            modules = [f"{stem}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in modules:
            parts = module.split(".")
            if parts[0] == "msprobe_files":
                found.add("msprobe_files")
            elif parts[0] == house.name and len(parts) > 1:
                found.add(parts[1])
    return found


@pytest.mark.parametrize(("house", "floor"), HOUSES, ids=["analysis", "collection"])
def test_a_room_imports_only_from_lower_floors(house: Path, floor: dict[str, int]) -> None:
    floors = {**floor, **{path.stem: 1 for path in house.glob("*_words.py") if path.stem not in floor}}
    for path in sorted(house.rglob("*.py")):
        room = path.relative_to(house).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        above = {other for other in imported_rooms(path, house) - {room} if floors[other] >= floors[room]}
        assert not above, f"{path.name} (floor {floors[room]}) imports from {above}"


def test_neither_skill_imports_the_other() -> None:
    for house, other in ((SCRIPTS, "dump_collection"), (COLLECTION, "dump_analysis")):
        for path in house.rglob("*.py"):
            assert not re.search(rf"^\s*(from|import) {other}\b", path.read_text(), re.MULTILINE), path


def test_the_ground_floor_imports_nothing_of_ours() -> None:
    """msprobe_files also stands in the collector, where dump_analysis is not."""
    for path in (SCRIPTS / "msprobe_files").glob("*.py"):
        assert not re.search(
            r"^\s*(from|import) (dump_analysis|numpy|torch|msgspec)", path.read_text().replace("    import numpy as np", ""), re.MULTILINE
        )


def test_both_skills_hold_the_same_shared_files() -> None:
    """`make sync` copies; a difference here means it was forgotten."""
    ours, theirs = SCRIPTS / "msprobe_files", COLLECTOR / "scripts/msprobe_files"
    names = sorted(path.name for path in ours.glob("*.py"))
    assert names == sorted(path.name for path in theirs.glob("*.py"))
    assert filecmp.cmpfiles(ours, theirs, names, shallow=False) == (names, [], [])
    for name in ("references/task_card.json", "references/templates/stub_instruction.example.json"):
        assert (ANALYST / name).read_bytes() == (COLLECTOR / name).read_bytes()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.parent.parent.name}-{command.stem}")
def test_help_loads_nothing_outside_the_standard_library(command: Path) -> None:
    """numpy alone would cost more than all the rest of --help."""
    code = (
        "import runpy, sys\n"
        f"sys.argv, sys.path[:0] = [{command.name!r}, '--help'], ['.']\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "tops = {name.split('.')[0] for name in sys.modules}\n"
        "outside = tops - set(sys.stdlib_module_names) - {'__main__', 'dump_analysis', 'dump_collection', 'msprobe_files'}\n"
        "print(sorted(outside), file=sys.stderr)\n"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=command.parent, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.strip() == "[]"
    assert "example:" in ran.stdout
    assert "exit codes:" in ran.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.parent.parent.name}-{command.stem}")
def test_commands_are_thin(command: Path) -> None:
    assert len(command.read_text().splitlines()) <= 120


def test_no_tracked_file_is_large() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    files = [ROOT / name.decode() for name in listed if name]
    sizes = {path: path.stat().st_size for path in files if path.is_file()}
    assert max(sizes.values()) <= 1 << 20
    assert sum(size for path, size in sizes.items() if (ROOT / "tests/samples") in path.parents) <= 24 << 20


# What mapping/ is made of, lowest first; the modules beside these packages stand on top of them all.
_STOREYS = ["recorded", "contents", "tokens", "ranks", "joining", "naming", "rows", "stated"]


def test_a_storey_of_the_mapping_imports_only_from_lower_ones() -> None:
    """Naming must not decide what is joined, nor joining what was recorded."""
    mapping = SCRIPTS / "dump_analysis/mapping"
    assert {path.name for path in mapping.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(_STOREYS)
    for path in sorted(path for below in _STOREYS for path in (mapping / below).glob("*.py")):
        storey = path.parent.name
        found = re.findall(r"^from dump_analysis\.mapping(?:\.(\w+))?[. ]", path.read_text(), re.MULTILINE)
        above = [other for other in found if other != storey and _STOREYS.index(other) >= _STOREYS.index(storey)]
        assert not above, f"{path.name} of {storey} imports from {above}"
