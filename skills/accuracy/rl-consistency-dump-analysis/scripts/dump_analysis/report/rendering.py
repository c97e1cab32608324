"""A report source rendered twice, as one HTML file and as Markdown, from the same view."""

from pathlib import Path
from typing import NamedTuple

from dump_analysis.artefacts.report_source import ReportSource
from dump_analysis.report.evidence import read
from dump_analysis.report.said import Voice
from dump_analysis.wording import Language


class Rendered(NamedTuple):
    markdown: str
    html: str


def render(source: ReportSource, folder: Path, language: Language) -> Rendered:
    """Both renderings of a source whose artefacts lie in ``folder``.

    Artefacts that the source does not name, or that are not there, leave their sections out or say so; without conclusion.json and
    boundary_results.json there is nothing to render (DumpError).
    """
    from dump_analysis.report.page import page
    from dump_analysis.report.twin import twin
    from dump_analysis.report.view import view

    voice = Voice(language)
    shown = view(source, read(folder, [file.name for file in source.artifacts.files]), voice)
    return Rendered(twin(shown, voice), page(shown, voice))
