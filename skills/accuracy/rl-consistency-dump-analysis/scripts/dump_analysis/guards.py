"""What may be read, written and replaced: checked before a command begins, so that nothing is lost."""

import os
from collections.abc import Sequence
from pathlib import Path

from msprobe_files import units
from msprobe_files.errors import DumpError

from .artefacts import semantic_mapping
from .artefacts.semantic_mapping import SemanticMapping


def require_files(paths: dict[str, str | None]) -> None:
    """Raise DumpError where a flag names a file that is not there."""
    for flag, path in paths.items():
        if path is not None and not os.path.isfile(path):
            raise DumpError(f"Cannot read {path}: no such file. Check {flag}.")


def refuse_same(output: str | Path, *inputs: str | Path) -> None:
    """Raise DumpError where an output would take the place of an input."""
    for path in inputs:
        if os.path.realpath(output) == os.path.realpath(path):
            raise DumpError(f"Cannot write to {output}: it is an input. Choose another place.")


def refuse_inside(output: str | Path, paths: Sequence[str]) -> None:
    """Raise DumpError where an output would be written into a dump of these paths: analysis never writes there."""
    target = os.path.realpath(output)
    for path in paths:
        folders = {os.path.realpath(folder) for place in units.find_units(path) for folder in (place.folder, place.tensor_folder)}
        if os.path.isdir(path):
            folders.add(os.path.realpath(path))
        if any(os.path.commonpath([target, folder]) == folder for folder in folders):
            raise DumpError(f"Cannot write to {output}: it lies in the dump {path}. Choose a folder outside.")


def forget(answers: Sequence[Path], inputs: Sequence[str | None]) -> None:
    """Remove the answers of an earlier run, so that none is left beside a run that fails; never an input."""
    for answer in answers:
        refuse_same(answer, *(path for path in inputs if path is not None))
        try:
            if answer.is_file():
                answer.unlink()
        except OSError as error:
            raise DumpError(f"Cannot write to {answer}: {error.strerror}. Choose another place.") from None


def standing(path: Path) -> SemanticMapping | None:
    """The proposed mapping that a new one is to replace, if there is one.

    Raises DumpError where people wrote rows of it, or where it cannot be read.
    """
    if not path.is_file():
        return None
    try:
        found = semantic_mapping.read(path)
    except DumpError as error:  # perhaps rows of people with a slip
        raise DumpError(f"Cannot propose a mapping in place of {path}: it cannot be read. {error} Or move it away.") from None
    if any("declared" in row.basis for row in [*found.boundaries, *found.weights]):
        raise DumpError(
            f"Cannot propose a mapping in place of {path}: people wrote rows of it. Hand it in with --mapping, or choose another place."
        )
    return found
