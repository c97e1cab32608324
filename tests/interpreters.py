"""Run the tests on the other Python versions that this machine has.

What the collector shares runs on 3.8, the rooms without torch on 3.10 and on the newest, there every test with the
first and the last of its cases: what a version changes (syntax, the standard library, numpy) shows in any of them, and
3.11 runs them all. Looks on PATH and in pyenv's versions; a shim that does not start is no interpreter. Prints which
ran and which did not.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
OLDEST_SHARED, OLDEST_ANALYSIS, OWN = (3, 8), (3, 10), (3, 11)
# What a version runs: the packages it needs, and what pytest is told.
SHARED = (["pytest", "hypothesis", "numpy"], ["tests/msprobe_files", "tests/collection"])
ANALYSIS = (["pytest", "hypothesis", "numpy", "msgspec", "tqdm", "jinja2", "markdown"], ["--ends", "tests"])


def candidates() -> Iterator[Path]:
    """Every file that looks like an interpreter."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders += sorted(pyenv.glob("versions/*/bin"))
    for folder in folders:
        if folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if re.fullmatch(r"python3\.\d+", path.name))


def version_of(path: Path) -> tuple[int, int] | None:
    """The version that an interpreter says it is; None for one that does not start."""
    try:
        ran = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.fullmatch(r"(\d+) (\d+)\s*", ran.stdout)
    return (int(found.group(1)), int(found.group(2))) if ran.returncode == 0 and found else None


def run(path: Path, version: tuple[int, int]) -> bool:
    """Make an environment of that version and run what is meant for it."""
    packages, tests = SHARED if version < OLDEST_ANALYSIS else ANALYSIS
    home = ROOT / f".venv-{version[0]}.{version[1]}"
    python = home / "bin" / "python"
    if not (home / "made").exists():
        subprocess.run([path, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
        (home / "made").touch()
    options = ["-q", "-p", "no:cacheprovider", "--ignore-glob=*_torch.py"]
    ran = subprocess.run([python, "-m", "pytest", *options, *tests], cwd=ROOT, capture_output=True, text=True, check=False)
    print(f"{ran.stdout}{ran.stderr}Python {version[0]}.{version[1]}: {'FAILED' if ran.returncode else 'passed'}", flush=True)
    return ran.returncode == 0


def main() -> None:
    found: dict[tuple[int, int], Path] = {}
    for path in candidates():
        version = version_of(path)
        if version is not None:
            found.setdefault(version, path)
    newest = max(found)
    wanted = {OLDEST_SHARED, OLDEST_ANALYSIS, newest} - {OWN}
    meant: list[tuple[int, int]] = []
    for version in sorted(set(found) | wanted):
        name = f"Python {version[0]}.{version[1]}"
        if version not in found:
            print(f"{name}: not run, no such interpreter here", flush=True)
        elif version == OWN:
            print(f"{name}: not run here, make test does", flush=True)
        elif version not in wanted:
            print(f"{name}: not run, nothing is promised for it beyond its neighbours", flush=True)
        else:
            meant.append(version)
    print("running: " + ", ".join(f"Python {major}.{minor}" for major, minor in meant), flush=True)
    with ThreadPoolExecutor(max_workers=2) as pool:  # the machines that this is meant for have two cores
        passed = list(pool.map(lambda version: run(found[version], version), meant))
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
