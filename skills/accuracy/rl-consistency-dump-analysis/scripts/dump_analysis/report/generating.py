"""A report from its source: read, held against its rules and the results beside it, guarded, rendered, written."""

from pathlib import Path
from typing import Any, NamedTuple

from dump_analysis.artefacts import file_names, io, report_source
from dump_analysis.artefacts.faults import Fault
from dump_analysis.artefacts.report_source import ReportSource
from dump_analysis.rounds import history
from dump_analysis.wording import Language

from . import agreement, leaks, rules
from .said import Voice

PACKAGES = ("jinja2", "markdown", "markupsafe")  # what rendering needs, and nothing else here

_OF_ROUNDS = (history.INSTRUCTION, history.RESULT)  # what a report shows of a round


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
    """The report as Markdown and as HTML; without a conclusion in ``folder`` of the source alone.

    Raises ModuleNotFoundError where one of PACKAGES is missing.
    """
    from . import by_hand, rendering  # the packages that they need are asked for when they are needed

    if not (folder / file_names.CONCLUSION).is_file():
        return by_hand.by_hand(source, Voice(language or source.language))
    made = rendering.render(source, folder, language or source.language)
    return made.markdown, made.html


def _leaks_beside(source: ReportSource, folder: Path) -> list[Fault]:
    """What the files beside a source hold that a report may show: those it names, the results, and what rounds were to show and showed.

    What else lies in a round's folder (the configuration of its run, with the paths of that machine) is in no report.
    """
    names = {one.name for one in source.artifacts.files} | {file_names.CONCLUSION, file_names.RESULTS}
    paths = {folder / name for name in names if name.endswith(".json")}
    paths |= {history.folder_of(folder, number) / name for number in history.numbers_of(folder) for name in _OF_ROUNDS}
    found: list[Fault] = []
    for path in sorted(path for path in paths if path.is_file()):
        value: Any = io.load(path)
        found += leaks.leaks(value, path.relative_to(folder).as_posix())
    return found
