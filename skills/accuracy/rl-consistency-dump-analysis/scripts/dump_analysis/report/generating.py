"""A report from its source: read, held against its rules and the results beside it, guarded, rendered, written."""

from pathlib import Path
from typing import Any, NamedTuple

from dump_analysis.artefacts import file_names, io, report_source
from dump_analysis.artefacts.faults import Fault
from dump_analysis.artefacts.report_source import ReportSource
from dump_analysis.wording import Language

from . import agreement, leaks, rules

PACKAGES = ("jinja2", "markdown", "markupsafe")  # what rendering needs, and nothing else here


class Checked(NamedTuple):
    """A source and everything that keeps it from being rendered. ``source``: None where its form does not hold."""

    source: ReportSource | None
    faults: list[Fault]
    warnings: list[str]


def check(path: Path) -> Checked:
    """A source with all of its faults. Raises DumpError where it, or a file that it names, cannot be read."""
    value = io.load(path)
    found, faults = report_source.from_value(value, path.name)
    if found is None:
        return Checked(None, faults + leaks.leaks(value), [])
    source, notes = rules.as_said(found)
    beside = agreement.beside(source, path.parent)
    faults = rules.contradictions(source) + beside.faults + agreement.disagreements(source, beside)
    return Checked(source, faults + leaks.leaks(value) + _leaks_beside(source, path.parent), notes + beside.warnings)


def generate(path: Path, output: Path, language: Language | None) -> Checked:
    """Write both renderings into ``output`` where nothing is wrong with the source at ``path``; nothing else is written.

    ``language``: None for the source's own. Raises DumpError where a file cannot be read or written, ModuleNotFoundError where one of
    PACKAGES is missing.
    """
    checked = check(path)
    if checked.source is None or checked.faults:
        return checked
    markdown, html = rendered(checked.source, path.parent, language)
    found = leaks.of_text(markdown, file_names.REPORT_MARKDOWN)
    if found:
        return checked._replace(faults=found)
    io.write_bytes(output / file_names.REPORT_MARKDOWN, markdown.encode())
    io.write_bytes(output / file_names.REPORT_HTML, html.encode())
    other = language is not None and language != checked.source.language
    told = [f"{path.name} is written in {checked.source.language}: its own texts stay so"] if other else []
    return checked._replace(warnings=checked.warnings + told)


def rendered(source: ReportSource, folder: Path, language: Language | None) -> tuple[str, str]:
    """The report as Markdown and as HTML. Raises ModuleNotFoundError where one of PACKAGES is missing."""
    from . import rendering  # the packages that it needs are asked for when they are needed

    made = rendering.render(source, folder, language or source.language)
    return made.markdown, made.html


def _leaks_beside(source: ReportSource, folder: Path) -> list[Fault]:
    """What the files that a source names hold, all of which a report may show."""
    found: list[Fault] = []
    for one in source.artifacts.files:
        path = folder / one.name
        if path.suffix == ".json" and path.is_file():
            value: Any = io.load(path)
            found += leaks.leaks(value, one.name)
    return found
