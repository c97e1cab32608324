"""What an analysis has left in its folder, as a report source takes it."""

from pathlib import Path
from typing import Any, NamedTuple

from msprobe_files import task_card
from msprobe_files.errors import DumpError
from msprobe_files.task_card import UNKNOWN

from dump_analysis.artefacts import file_names, io, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.probe import Probe
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.artefacts.report_source import NamedFile
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.rounds import history
from dump_analysis.wording import Language, text_of

_NAMED = (file_names.PROBE, file_names.MAPPING, file_names.RESULTS, file_names.REPLAY, file_names.CONCLUSION)


class Facts(NamedTuple):
    """``files``: what lies there, with digests; ``card``: the task card where there is one; ``warnings``: what reading told."""

    language: Language
    conclusion: Conclusion
    results: BoundaryResults | None
    mapping: SemanticMapping | None
    probe: Probe | None
    replay: ReplayResults | None
    card: dict[str, Any]
    files: list[NamedFile]
    warnings: list[str]

    def say(self, sentence: Worded) -> str:
        """A sentence in the language of the report."""
        return text_of(sentence, self.language)

    def row(self, boundary: str) -> BoundaryResult | None:
        """What was measured at a boundary or weight."""
        rows = [*self.results.boundaries, *self.results.weights] if self.results else []
        return next((row for row in rows if row.boundary == boundary), None)

    def stated(self, *path: str) -> str | None:
        """A text or number of the task card; None where it is not known there."""
        value: Any = self.card
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        known = isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip() not in ("", UNKNOWN)
        return str(value).strip() if known else None


def of_folder(folder: Path, language: Language) -> Facts:
    """The artefacts of a folder. Raises DumpError where there is no conclusion, or a file cannot be read."""
    if not (folder / file_names.CONCLUSION).is_file():
        lacking = f"{folder} holds no {file_names.CONCLUSION}"
        raise DumpError(f"Cannot fill {file_names.SOURCE}: {lacking}. Run diagnose.py or conclude.py first, or name their folder.")
    warnings: list[str] = []
    conclusion = _read(folder, file_names.CONCLUSION, Conclusion, warnings)
    if conclusion is None:
        raise DumpError(f"Cannot fill {file_names.SOURCE}: {file_names.CONCLUSION} went away. Run conclude.py again.")
    digests = {one.label: one.digest for one in conclusion.inputs}
    rounds = [label for label in digests if label.endswith(f"/{history.RESULT}")]
    named = [NamedFile(name, io.digest_of_file(folder / name)) for name in (*_NAMED, *rounds) if (folder / name).is_file()]
    edited = [one.name for one in named if one.name in digests and digests[one.name] != one.digest]
    warnings += [f"{name} was made or edited since {file_names.CONCLUSION} was made from it; run conclude.py again" for name in edited]
    return Facts(
        language,
        conclusion,
        _read(folder, file_names.RESULTS, BoundaryResults, warnings),
        semantic_mapping.read(folder / file_names.MAPPING) if (folder / file_names.MAPPING).is_file() else None,
        _read(folder, file_names.PROBE, Probe, warnings),
        _read(folder, file_names.REPLAY, ReplayResults, warnings),
        _card(folder, warnings),
        named,
        warnings,
    )


def _read(folder: Path, name: str, kind: type[io.T], warnings: list[str]) -> io.T | None:
    if not (folder / name).is_file():
        return None
    found, told = io.read(folder / name, kind)
    warnings += told
    return found


def _card(folder: Path, warnings: list[str]) -> dict[str, Any]:
    """The task card; empty where there is none, or where it cannot be read: then what it knows is left to people."""
    path = folder / file_names.CARD
    if not path.is_file():
        return {}
    try:
        return task_card.read(str(path))
    except DumpError as error:
        warnings.append(f"{file_names.CARD} is not used: {error}")
        return {}
