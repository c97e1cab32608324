"""The source that stands in a folder when a new one is filled: what people wrote there is not lost."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msprobe_files.errors import DumpError

from dump_analysis.artefacts import file_names, io, report_source
from dump_analysis.artefacts.report_source import ReportSource

from .fill import from_results, is_left


class Standing(NamedTuple):
    """``source``: None where its form does not hold; ``only_filled``: people filled what was unknown, and wrote nothing else."""

    raw: bytes
    source: ReportSource | None
    only_filled: bool


def standing(folder: Path) -> Standing | None:
    """The source of a folder; to be asked for before the results that it was filled from are made anew."""
    path = folder / file_names.SOURCE
    if not path.is_file():
        return None
    try:
        source, _ = report_source.from_value(io.load(path))
    except DumpError:
        source = None
    return Standing(path.read_bytes(), source, source is not None and _as_filled(source, folder))


def write(folder: Path, fresh: ReportSource, before: Standing | None) -> tuple[ReportSource, list[str]]:
    """Write a newly filled source with what people told before; where they wrote more, their file is kept beside it, and said."""
    path = folder / file_names.SOURCE
    source = kept(fresh, before.source) if before is not None and before.source is not None else fresh
    warnings: list[str] = []
    if before is not None and not before.only_filled and before.raw != io.text_of(source).encode():
        aside = _free(path)
        io.write_bytes(aside, before.raw)
        warnings.append(
            f"{path.name} was edited by people, or its results were made anew: it is kept as {aside.name}; take over what still holds"
        )
    io.write(path, source)
    return source, warnings


def kept(fresh: ReportSource, before: ReportSource) -> ReportSource:
    """The fresh source, with what people told where it still says unknown."""
    filled = _filled(io.builtins(fresh), io.builtins(before))
    try:
        return msgspec.convert(filled, ReportSource)
    except msgspec.ValidationError:  # a value of one finding that another does not take
        return fresh


def _filled(fresh: Any, before: Any) -> Any:
    if isinstance(fresh, dict) and isinstance(before, dict):
        if fresh.get("diff_id") != before.get("diff_id"):
            return fresh  # another finding
        return {key: _filled(value, before[key]) if key in before else value for key, value in fresh.items()}
    if isinstance(fresh, list) and isinstance(before, list):
        return [_filled(value, before[at]) if at < len(before) else value for at, value in enumerate(fresh)]
    told = isinstance(before, str | int) and not is_left(before)
    return before if told and is_left(fresh) else fresh


def _as_filled(source: ReportSource, folder: Path) -> bool:
    try:
        fresh, _ = from_results(folder, source.language)
    except DumpError:
        return False
    return kept(fresh, source) == source


def _free(path: Path) -> Path:
    """A name beside the source that is not taken."""
    number = 1
    while (aside := path.with_name(f"{path.stem}.edited{number}.json")).exists():
        number += 1
    return aside
