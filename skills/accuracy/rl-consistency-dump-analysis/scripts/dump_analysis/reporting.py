"""The last step of an analysis: its report, from what the other steps have left in the folder (stage 8)."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msprobe_files.errors import DumpError

from . import cli, pipeline
from .artefacts import file_names
from .report import evidence, generating, glyphs
from .report.source import fill, standing
from .report.source.standing import Standing
from .wording import Language

RENDERED = (file_names.REPORT_MARKDOWN, file_names.REPORT_HTML)


class Reported(NamedTuple):
    """``files``: what was written, by name; ``warnings``: why the rest was not, and what reading and people's edits gave to tell."""

    files: list[str]
    warnings: list[str]


def report_step(folder: Path, language: Language, before: Standing | None) -> Reported:
    """Fill report_source.json from conclusion.json and render it; an analysis stands without its report, so nothing is raised.

    ``before``: the source that stood in the folder when the analysis began.
    """
    try:
        fresh, warnings = fill.from_results(folder, language)
        _, edited = standing.write(folder, fresh, before)
    except DumpError as error:
        return Reported([], [f"no report: {error}"])
    written, warnings = [file_names.SOURCE], warnings + edited
    try:
        made = generating.generate(folder / file_names.SOURCE, folder, language)
    except DumpError as error:
        return Reported(written, [*warnings, f"no report: {error}"])
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in generating.PACKAGES:
            raise
        again = cli.call("generate_alignment_report.py", "--input", str(folder / file_names.SOURCE), "--output-dir", str(folder))
        return Reported(written, [*warnings, f"no report: the package {error.name} is missing. {cli.install()}, then {again}"])
    told = [f"no report: {file_names.SOURCE}: {fault.line}" for fault in made.faults]
    return Reported(written + ([] if told else list(RENDERED)), [*warnings, *made.warnings, *told])


@contextmanager
def even_so(folder: Path, language: Language, before: Standing | None) -> Iterator[None]:
    """Where a step cannot go on and has left a conclusion that says so, report that; the error goes on."""
    try:
        yield
    except DumpError:
        if (folder / file_names.CONCLUSION).is_file():
            report_step(folder, language, before)
        raise


class Opening(NamedTuple):
    """The report's headline and three sentences, and its findings over the layers, a line each."""

    said: list[str]
    strip: list[str]


def opening(folder: Path, language: Language) -> Opening:
    """What the report opens with, for a terminal; it needs no package of the report's."""
    found = evidence.read(folder, [file_names.REPLAY, file_names.MAPPING])
    lead = glyphs.lead_of(found, language)
    return Opening([f"{lead.glyph} {lead.headline}", *lead.sentences], glyphs.glyph_strip(found, language))


def after(folder: Path, reported: Reported, left: str) -> str:
    """What to do with an analysis: open its report; where a task card leads it, ask its last gate first."""
    if file_names.REPORT_HTML not in reported.files:
        return pipeline.after_conclusion(folder / file_names.CONCLUSION, left)
    card = (folder / file_names.CARD).is_file()
    gate = f"{cli.call('check_stage.py', '--stage', '8', '--workdir', str(folder.resolve()))}, then " if card else ""
    return f"{gate}open {shlex.quote(str(folder / file_names.REPORT_HTML))} in a browser{left}"
