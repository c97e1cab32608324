"""Stage 8: the report follows from its source, and the source from the conclusion that is here now."""

from dump_analysis.artefacts import file_names
from dump_analysis.artefacts.report_source import ReportSource
from dump_analysis.report import generating
from dump_analysis.report.source import fill
from dump_analysis.wording import Language

from .workdir import Missing, Workdir

_LANGUAGES: tuple[Language, ...] = ("zh-CN", "en")
_RESTS_ON = (file_names.RESULTS, file_names.CONCLUSION)
_SHOWN = 6  # fields in one line


def gate(work: Workdir) -> Missing:
    """Stage 8: each gap and its repair; where there is no conclusion, stage 6 has said so."""
    if not work.has(file_names.CONCLUSION):
        return
    fill_again, render = f"Run: {work.fill_report()}", f"Run: {work.render_report()}"
    if not work.has(file_names.SOURCE):
        yield f"{file_names.SOURCE} is missing", fill_again
        return
    checked = generating.check(work.folder / file_names.SOURCE)
    mend = f"Mend it in {work.shown(file_names.SOURCE)}, then run: {work.render_report()}"
    for fault in checked.faults:
        yield f"{file_names.SOURCE}: {fault.path}: {fault.why}", f"{fault.remedy} {mend}"
    if checked.source is None or checked.faults:
        return
    digests = {one.name: one.digest for one in checked.source.artifacts.files}
    stale = [name for name in _RESTS_ON if work.has(name) and digests.get(name) != work.digest(name)]
    if stale:
        yield f"{file_names.SOURCE} was filled from another {', '.join(stale)}, or that was made or edited since", fill_again
    else:
        yield from _of_the_report(work, checked.source, render)
    _warn(work, checked.source, checked.warnings)


def _of_the_report(work: Workdir, source: ReportSource, render: str) -> Missing:
    """Whether both renderings are there, and are what the source gives in one of the languages."""
    names = (file_names.REPORT_MARKDOWN, file_names.REPORT_HTML)
    missing = [name for name in names if not work.has(name)]
    if missing:
        yield f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing", render
        return
    found = tuple((work.folder / name).read_bytes() for name in names)
    made = (tuple(text.encode() for text in generating.rendered(source, work.folder, language)) for language in _LANGUAGES)
    if found not in made:
        yield f"{' and '.join(names)} are not what {file_names.SOURCE} gives: one of the three was edited or made since", render


def _warn(work: Workdir, source: ReportSource, warnings: list[str]) -> None:
    """What is left to people keeps no gate shut: nobody may know it."""
    work.warnings += warnings
    left = fill.left_to_people(source)
    if left:
        more = f" … ({len(left)} in all)" if len(left) > _SHOWN else ""
        work.warnings.append(f"{file_names.SOURCE} still says unknown: {', '.join(left[:_SHOWN])}{more}")
