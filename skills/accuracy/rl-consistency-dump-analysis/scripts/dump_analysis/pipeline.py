"""The steps of an analysis, each from files to one file: what every command calls and `diagnose` calls in turn."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msprobe_files.errors import DumpError

from . import conclusion, divergence, gate, probe, sides
from .artefacts import io, semantic_mapping
from .artefacts.boundary_results import BoundaryResults
from .artefacts.common import FileDigest, SideLabel
from .artefacts.conclusion import Conclusion, Input
from .artefacts.probe import Probe, SideFacts
from .artefacts.semantic_mapping import SemanticMapping
from .cli import ANSWERED, CANNOT, FOUND, INCOMPLETE
from .mapping import declared
from .sides import Side
from .wording import text_of

PROBE, MAPPING, RESULTS, CONCLUSION = "probe.json", "semantic_mapping.json", "boundary_results.json", "conclusion.json"


class Step(NamedTuple):
    """What a step leaves beside its artefact: lines that say why nothing could be done, and warnings."""

    errors: list[str]
    warnings: list[str]


def probe_step(train: Sequence[str], infer: Sequence[str], output: str | Path | None) -> tuple[Probe, Step]:
    """Stage 1. Written even where one side cannot be read: its place is null and the reason a remark."""
    found, errors = probe.probe(train, infer)
    if output is not None:
        io.write(output, found)
    return found, Step(errors, [])


def mapping_step(train: Side, infer: Side, mapping: str | Path, output: str | Path | None) -> tuple[SemanticMapping, Step]:
    """Stage 2, so far: the mapping that people wrote, completed on the two dumps."""
    given = semantic_mapping.read(mapping)
    warnings = [
        f"{Path(mapping).name} was made for another {side.label} dump (or dump.json was edited since)"
        for side, stated in ((train, given.train), (infer, given.infer))
        if stated is not None and stated.digest != side.digest
    ]
    full = declared.complete(given, train, infer)
    if output is not None:
        full = declared.with_unmapped(full, train, infer)
        io.write(output, full)
    return full, Step([], warnings)


def gate_step(
    train: Side, infer: Side, mapping: SemanticMapping, mapping_digest: str, output: str | Path, *, quiet: bool
) -> tuple[BoundaryResults, Step]:
    """Stage 3: every row compared, the first divergence named."""
    rows = len(mapping.boundaries) + len(mapping.weights)
    with _progress(rows, quiet=quiet) as advance:
        boundaries, notes = gate.compare(mapping.boundaries, mapping.evidence_missing, train, infer, advance=advance)
        weights, weight_notes = gate.compare(mapping.weights, [], train, infer, advance=advance)
    counts: dict[str, int] = {}
    for result in boundaries:
        counts[result.status] = counts.get(result.status, 0) + 1
    results = BoundaryResults(
        train=SideLabel(train.label, train.digest),
        infer=SideLabel(infer.label, infer.digest),
        mapping=FileDigest(mapping_digest),
        boundaries=boundaries,
        weights=weights,
        first_divergence=divergence.first_divergence(boundaries, mapping, train, infer),
        counts=counts,
        overall=divergence.overall([*boundaries, *weights]),
    )
    io.write(output, results)
    errors = [f"Cannot use the {side.label} dump: {reason}." for side in (train, infer) if (reason := sides.empty_reason(side))]
    if results.overall == "not_run" and not errors:
        why = "no tensor that the mapping names was found" if rows else "the mapping has no rows"
        errors = [f"Cannot compare: {why}. Check the names in the mapping against the dumps (probe_dump.py lists their prefixes)."]
    return results, Step(errors, list(dict.fromkeys(note.text for note in [*notes, *weight_notes])))


def conclude_step(workdir: Path, output: Path, configs: dict[str, str | None]) -> tuple[Conclusion, Step]:
    """Stage 7, from boundary_results.json and, where they are there, semantic_mapping.json and probe.json."""
    results, warnings = io.read(workdir / RESULTS, BoundaryResults)
    mapping: SemanticMapping | None = None
    inputs: list[Input] = []
    if (workdir / MAPPING).is_file():
        mapping = semantic_mapping.read(workdir / MAPPING)
        digest = io.digest_of_file(workdir / MAPPING)
        inputs.append(Input(MAPPING, digest))
        if digest != results.mapping.digest:
            warnings.append(f"{MAPPING} was edited since {RESULTS} was made from it; compare again")
    facts: Probe | None = None
    if (workdir / PROBE).is_file():
        facts, told = io.read(workdir / PROBE, Probe)
        warnings += told
    inputs.append(Input(RESULTS, io.digest_of_file(workdir / RESULTS)))
    inputs += [Input(f"{side} config", io.digest_of_file(path)) for side, path in configs.items() if path]
    labels = [_side_input(results.train, facts.train if facts else None), _side_input(results.infer, facts.infer if facts else None)]
    warnings += [f"{PROBE} is of another {label.label} dump" for label, known in labels if not known]
    found = conclusion.conclude(results, mapping, [label for label, _ in labels] + inputs, _units(facts))
    io.write(output, found)
    return found, Step([], warnings)


def _side_input(side: SideLabel, facts: SideFacts | None) -> tuple[Input, bool]:
    if facts is None or facts.digest != side.digest:
        return Input(side.label, side.digest), facts is None
    one = facts.units[0] if len(facts.units) == 1 else None
    return Input(side.label, side.digest, one.step if one else None, one.rank if one else None), True


def _units(facts: Probe | None) -> tuple[int, int] | None:
    if facts is None or facts.train is None or facts.infer is None:
        return None
    return len(facts.train.units), len(facts.infer.units)


@contextmanager
def _progress(total: int, *, quiet: bool) -> Iterator[Callable[[], object]]:
    """A bar on stderr, only where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="row", desc="compare", leave=False) as bar:
        yield bar.update


def open_pair(train: Sequence[str], infer: Sequence[str]) -> tuple[Side, Side]:
    """Both sides, refused where comparing them would mean nothing."""
    pair = sides.open_side("train", train), sides.open_side("infer", infer)
    sides.check_comparable(*pair)
    return pair


def require_file(path: str | None, flag: str) -> None:
    """Raise DumpError where a flag names a file that is not there."""
    if path is not None and not os.path.isfile(path):
        raise DumpError(f"Cannot read {path}: no such file. Check {flag}.")


def sentences(found: Conclusion, language: str) -> list[str]:
    """The three sentences of a conclusion in one language."""
    return [text_of(sentence, "en" if language == "en" else "zh-CN") for sentence in found.summary]


def exit_code(found: Conclusion, *, wanted: bool) -> int:
    """What a concluding command returns; ``wanted``: --exit-code was given."""
    if found.overall == "not_run":
        return CANNOT
    return {"consistent": ANSWERED, "inconsistent": FOUND, "undecided": INCOMPLETE}[found.consistency] if wanted else ANSWERED
