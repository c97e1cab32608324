"""The steps of an analysis, each from files to one file: what every command calls and `diagnose` calls in turn."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msprobe_files import checkpoint

from dump_analysis.mapping import declared, layer_map, whole
from dump_analysis.mapping.changes import changes
from dump_analysis.mapping.tokens.token_join import NotJoined

from . import cli, comparable, conclusion, divergence, gate, gathered, guards, probe, sides
from .artefacts import assembly_plan, file_names, io, semantic_mapping
from .artefacts.boundary_results import GAPS, BoundaryResult, BoundaryResults
from .artefacts.common import FileDigest, SideLabel
from .artefacts.conclusion import Conclusion
from .artefacts.probe import Probe
from .artefacts.replay_results import ReplayResults
from .artefacts.semantic_mapping import MissingRow, SemanticMapping
from .boundaries import is_weight
from .replay import modules, stated
from .replay import whole as replayed
from .sides import Side
from .train_log import Log
from .wording import Language, text_of

PROBE, MAPPING, RESULTS = file_names.PROBE, file_names.MAPPING, file_names.RESULTS
REPLAY, CONCLUSION = file_names.REPLAY, file_names.CONCLUSION
LAYER_MAP, PLAN = "layer_map.md", "assembly_plan.json"


class Told(NamedTuple):
    """What a step tells beside its artefact: lines that say why there is no answer, and warnings."""

    errors: list[str]
    warnings: list[str]


def probe_step(train: Sequence[str], infer: Sequence[str], output: str | Path | None) -> tuple[Probe, Told]:
    """Stage 1. Written even where one side cannot be read: its place is null and the reason a remark."""
    found, errors = probe.probe(train, infer)
    if output is not None:
        io.write(output, found)
    return found, Told(errors, [])


def open_pair(train: Sequence[str], infer: Sequence[str]) -> tuple[Side, Side]:
    """Both sides, refused where comparing them would mean nothing."""
    pair = sides.open_side("train", train), sides.open_side("infer", infer)
    comparable.check_comparable(*pair)
    return pair


def propose_step(train: Side, infer: Side, plan: str | Path | None = None, reference: str | None = None) -> tuple[SemanticMapping, Told]:
    """Stage 2: the mapping that the dumps themselves tell, units put together by a plan or by the data and a checkpoint.

    Raises DumpError where no tokens join the sides, or the plan or the checkpoint cannot be read.
    """
    weights = checkpoint.read(reference) if reference is not None else None
    found = whole.propose(train, infer, assembly_plan.read(plan) if plan is not None else None, weights)
    remarks = [*(found.mapping.tokens.remarks if found.mapping.tokens is not None else []), *found.remarks]
    return found.mapping, Told([], [remark.text for remark in remarks])


def write_mapping(output: Path, mapping: SemanticMapping, language: Language, before: SemanticMapping | None) -> str:
    """Write a proposed mapping and, beside it, the tables for people; returns the mapping's digest.

    ``before``: the mapping that stood there; the tables say what changed.
    """
    changed = changes(before, mapping) if before is not None else None
    io.write_bytes(output.parent / LAYER_MAP, layer_map.layer_map(mapping, language, changed).encode())
    return io.write(output, mapping)


@contextmanager
def saying_not_run(train: Side, infer: Side, folder: Path) -> Iterator[None]:
    """Where no tokens join the sides, leave a mapping without rows, and results and a conclusion that say so; the error goes on."""
    try:
        yield
    except NotJoined as error:
        left, right = (SideLabel(side.label, side.digest) for side in (train, infer))
        gap = MissingRow("input_ids", 0, error.reason, [], [])
        digest = io.write(folder / MAPPING, SemanticMapping(train=left, infer=right, evidence_missing=[gap]))
        rows = [BoundaryResult(gap.boundary, gap.order, "MISSING", reason=gap.reason)]
        results = BoundaryResults(
            train=left,
            infer=right,
            mapping=FileDigest(digest),
            boundaries=rows,
            weights=[],
            first_divergence=None,
            counts=divergence.counts(rows),
            overall=divergence.overall(rows, []),
        )
        io.write(folder / RESULTS, results)
        conclude_step(folder, folder / CONCLUSION, {})
        raise


def mapping_step(
    train: Side, infer: Side, mapping: str | Path | None, plan: str | Path | None = None, reference: str | None = None
) -> tuple[SemanticMapping, Told]:
    """Stage 2: the mapping that people wrote, completed on the two dumps; None: the one that the dumps tell.

    Rows that were made for other dumps lose what joined them there: they are declared, no more.
    """
    if mapping is None:
        return propose_step(train, infer, plan, reference)
    given = semantic_mapping.read(mapping)
    unused = [flag for flag, value in (("--plan", plan), ("--reference", reference)) if value is not None]
    foreign = [
        side.label for side, stated in ((train, given.train), (infer, given.infer)) if stated is not None and stated.digest != side.digest
    ]
    warnings = [f"{Path(mapping).name} was made for another {label} dump, or its dump.json was edited since" for label in foreign]
    warnings += [f"{flag} is not used: --mapping says of which units each row is" for flag in unused]
    if foreign:
        given = declared.as_declared(given)
    return declared.complete(given, train, infer), Told([], warnings)


def gate_step(
    train: Side, infer: Side, mapping: SemanticMapping, mapping_digest: str, output: str | Path, *, quiet: bool
) -> tuple[BoundaryResults, Told]:
    """Stage 3: every row compared, the first divergence named."""
    rows = [*mapping.boundaries, *mapping.weights]
    with progress(len(rows), quiet=quiet) as advance:
        compared, notes = gate.compare(rows, mapping.evidence_missing, train, infer, advance=advance)
    of_weights = {row.boundary for row in mapping.weights}
    of_weights |= {row.boundary for row in mapping.evidence_missing if is_weight(row.boundary)}
    boundaries = [result for result in compared if result.boundary not in of_weights]
    weights = [result for result in compared if result.boundary in of_weights]
    results = BoundaryResults(
        train=SideLabel(train.label, train.digest),
        infer=SideLabel(infer.label, infer.digest),
        mapping=FileDigest(mapping_digest),
        boundaries=boundaries,
        weights=weights,
        first_divergence=divergence.first_divergence(boundaries, mapping, train, infer),
        counts=divergence.counts(boundaries),
        overall=divergence.overall(boundaries, weights),
    )
    io.write(output, results)
    warnings = [note.text for note in notes]
    turned = divergence.against_time(boundaries, train, infer)
    if turned is not None:
        warnings.append(f"{turned[1]} stands after {turned[0]} in the mapping, but both sides made it before: check the order of the rows")
    return results, Told(_why_not_run(results, train, infer), warnings)


def replay_step(
    train: Side,
    infer: Side,
    mapping: SemanticMapping,
    mapping_digest: str,
    output: str | Path,
    configs: dict[str, str | None],
    *,
    quiet: bool,
    previous: str | None = None,
) -> tuple[ReplayResults, Told]:
    """Every mapped module recomputed on both sides from what it recorded itself, and a verdict for each pair.

    ``configs``: by side, the file whose constants are tried first. ``previous``: an earlier checkpoint, to tell stale weights.
    """
    earlier = checkpoint.read(previous) if previous is not None else None
    constants = {label: stated.constants(path) for label, path in configs.items() if path is not None}
    with progress(len(modules.rows_of(mapping)), quiet=quiet) as advance:
        found = replayed.replay_pair(mapping, train, infer, constants, advance, earlier)
    results = ReplayResults(
        train=SideLabel(train.label, train.digest),
        infer=SideLabel(infer.label, infer.digest),
        mapping=FileDigest(mapping_digest),
        modules=found.modules,
        edges=found.edges,
        weights=found.weights,
        calibration=found.calibration,
    )
    io.write(output, results)
    return results, Told([], [] if found.untraced is None else [f"where inputs came from is not known: {found.untraced}"])


def _why_not_run(results: BoundaryResults, train: Side, infer: Side) -> list[str]:
    """Lines for the user where a side is empty or no row could be compared."""
    empty = [f"Cannot use the {side.label} dump: {reason}." for side in (train, infer) if (reason := sides.empty_reason(side))]
    if empty or results.overall != "not_run":
        return empty
    rows = [row for row in [*results.boundaries, *results.weights] if row.status in GAPS and row.reason is not None]
    if not rows:
        return ["Cannot compare: the mapping has no rows. Write one row a boundary (see analyze_dump_boundaries.py --help)."]
    first = f"{rows[0].boundary}: {rows[0].reason.text}" if rows[0].reason else rows[0].boundary
    return [f"Cannot compare: none of {len(rows)} rows fits the dumps; the first is {first}. Check the mapping against the dumps."]


def conclude_step(
    workdir: Path, output: Path, configs: dict[str, str | None], log: Log | None = None, param_report: str | None = None
) -> tuple[Conclusion, Told]:
    """Stage 7, from boundary_results.json and, where they are there, semantic_mapping.json, probe.json, replay_results.json, a log and a
    report on parameters."""
    guards.require_files({"--workdir": str(workdir / RESULTS)})
    handed = [path for path in (log.path if log else None, param_report) if path]
    guards.refuse_same(output, *(workdir / name for name in (RESULTS, REPLAY, MAPPING, PROBE)), *handed)
    found = gathered.gather(workdir, configs, log, param_report)
    metrics = log.metrics if log else conclusion.NOT_LOGGED
    made = conclusion.conclude(found.results, found.mapping, found.facts, found.inputs, metrics, found.replay, found.params, found.rounds)
    io.write(output, made)
    return made, Told([], found.warnings)


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Callable[[], object]]:
    """A bar on stderr, only where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="row", desc="compare", leave=False) as bar:
        yield bar.update


def after_conclusion(path: Path, left: str) -> str:
    """What to do with a conclusion: read it; where a task card leads the analysis, ask its last gate first."""
    card = path.parent / "task_card.json"
    gate = f"{cli.call('check_stage.py', '--stage', '7', '--workdir', str(path.parent.resolve()))}, then " if card.is_file() else ""
    return f"{gate}read {shlex.quote(str(path))}{left}"


def sentences(found: Conclusion, language: Language) -> list[str]:
    """The three sentences of a conclusion in one language."""
    return [text_of(sentence, language) for sentence in found.summary]
