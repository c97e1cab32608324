"""What the steps of an analysis have left in its folder, gathered for a conclusion: each file checked against what was compared."""

from pathlib import Path
from typing import NamedTuple

import msgspec
from msprobe_files.errors import DumpError

from . import divergence
from .artefacts import file_names, io, semantic_mapping
from .artefacts.boundary_results import DIVERGED, BoundaryResults
from .artefacts.common import SideLabel
from .artefacts.conclusion import Input
from .artefacts.param_report import ParamReport
from .artefacts.probe import Probe, SideFacts
from .artefacts.replay_results import ReplayResults
from .artefacts.semantic_mapping import SemanticMapping
from .rounds import history
from .rounds.history import Round
from .train_log import Log

PROBE, MAPPING, RESULTS, REPLAY = file_names.PROBE, file_names.MAPPING, file_names.RESULTS, file_names.REPLAY
TRAIN_LOG, PARAM_REPORT = "train log", "param report"  # their labels among the inputs of a conclusion


class Gathered(NamedTuple):
    """What a conclusion rests on; None where there is none of it. ``inputs``: the dumps and files by label and digest."""

    results: BoundaryResults
    mapping: SemanticMapping | None
    facts: Probe | None
    replay: ReplayResults | None
    params: ParamReport | None
    rounds: list[Round]
    inputs: list[Input]
    warnings: list[str]


def gather(workdir: Path, configs: dict[str, str | None], log: Log | None, param_report: str | None) -> Gathered:
    """Everything in the folder and what was handed beside it. ``configs``: by side, the file that constants were tried from.

    Raises DumpError where a file cannot be read, or boundary_results.json does not say what its rows say.
    """
    results, warnings = io.read(workdir / RESULTS, BoundaryResults)
    check_consistent(results)
    facts, of_facts = _facts_of(workdir / PROBE, results)
    mapping, of_mapping = _mapping_of(workdir / MAPPING, results)
    replay, of_replay = replay_of(workdir / REPLAY, results)
    params, of_params = io.read(param_report, ParamReport) if param_report is not None else (None, [])
    read = {PROBE: facts, MAPPING: mapping, RESULTS: results, REPLAY: replay}
    files = [Input(name, io.digest_of_file(workdir / name)) for name, found in read.items() if found is not None]
    given = {**{f"{side} config": path for side, path in configs.items()}, PARAM_REPORT: param_report}
    files += [Input(label, io.digest_of_file(path)) for label, path in given.items() if path]
    files += [Input(TRAIN_LOG, log.digest)] if log else []
    rounds, of_rounds = rounds_here(workdir, results)
    files += [Input(history.result_label(one), one.result_digest) for one in rounds if one.result_digest is not None]
    dumps = [_dump(results.train, facts.train if facts else None), _dump(results.infer, facts.infer if facts else None)]
    warnings += [*of_facts, *of_mapping, *of_replay, *of_params, *(log.warnings if log else []), *of_rounds]
    return Gathered(results, mapping, facts, replay, params, rounds, [*dumps, *files], warnings)


def check_consistent(results: BoundaryResults) -> None:
    """Raise DumpError where what a file says of all its rows is not what the rows say: it was edited or is damaged."""
    first = next((row.boundary for row in results.boundaries if row.status in DIVERGED), None)
    stated = results.first_divergence.boundary if results.first_divergence else None
    for field, found, expected in (
        ("overall", results.overall, divergence.overall(results.boundaries, results.weights)),
        ("counts", results.counts, divergence.counts(results.boundaries)),
        ("first_divergence.boundary", stated, first),
    ):
        if found != expected:
            raise DumpError(f"Cannot use {RESULTS}: {field}: its rows say {expected}, found {found}. Compare again.")


def replay_of(path: Path, results: BoundaryResults) -> tuple[ReplayResults | None, list[str]]:
    """replay_results.json where there is one of the same dumps and mapping: another's verdicts prove nothing here."""
    if not path.is_file():
        return None, []
    found, warnings = io.read(path, ReplayResults)
    if (found.train.digest, found.infer.digest, found.mapping) != (results.train.digest, results.infer.digest, results.mapping):
        return None, [*warnings, f"{path.name} is of other dumps or of another mapping and is not used; replay again"]
    return found, warnings


def rounds_here(workdir: Path, results: BoundaryResults) -> tuple[list[Round], list[str]]:
    """The override rounds of these dumps; those of others are left out, and said to be."""
    found, warnings = history.rounds_of(workdir)
    kept = [one for one in found if one.instruction.source_dump.digest == getattr(results, one.instruction.source_side).digest]
    left = [one.number for one in found if one not in kept]
    warnings += [f"round{number} is of other dumps and is not used; move it away" for number in left]
    return kept, warnings


def _facts_of(path: Path, results: BoundaryResults) -> tuple[Probe | None, list[str]]:
    """probe.json without a side that is not the one compared: what is known of another dump proves nothing here."""
    if not path.is_file():
        return None, []
    facts, warnings = io.read(path, Probe)
    for label, compared in (("train", results.train), ("infer", results.infer)):
        known: SideFacts | None = getattr(facts, label)
        if known is not None and known.digest != compared.digest:
            facts = msgspec.structs.replace(facts, **{label: None})
            warnings.append(f"{path.name} is of another {label} dump and is not used for it; probe again")
    return facts, warnings


def _mapping_of(path: Path, results: BoundaryResults) -> tuple[SemanticMapping | None, list[str]]:
    """semantic_mapping.json, and a warning where it is not the one that was compared."""
    if not path.is_file():
        return None, []
    found = semantic_mapping.read(path)
    edited = io.digest_of_file(path) != results.mapping.digest
    return found, [f"{MAPPING} was edited since {RESULTS} was made from it, or is another one; compare again"] if edited else []


def _dump(side: SideLabel, facts: SideFacts | None) -> Input:
    one = facts.units[0] if facts is not None and len(facts.units) == 1 else None
    return Input(side.label, side.digest, one.step if one else None, one.rank if one else None)
