"""What was compared: both sides beside each other, how their boundaries were joined, from which files the report is made."""

import shlex
from collections import Counter
from typing import NamedTuple

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Input
from dump_analysis.artefacts.report_source import Comparison, Layout, ProvenanceSide, ReportSource
from dump_analysis.report import stated
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice, count
from dump_analysis.report.sides_told import side_name
from dump_analysis.wording import word

_DUMPS = ("train", "infer")


class Axis(NamedTuple):
    name: str
    status: str
    evidence: str


class Compared(NamedTuple):
    """``sides``: label, train, infer; ``facts``: label, value; ``files`` and ``dumps``: name, digest; ``commands``: without paths."""

    answer: str
    sides: tuple[tuple[str, str, str], ...]
    facts: tuple[tuple[str, str], ...]
    axes: tuple[Axis, ...]
    dumps: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


def compared(source: ReportSource, evidence: Evidence, voice: Voice) -> Compared:
    """The section's facts; what nobody stated says so."""
    inputs = evidence.conclusion.inputs
    tokens = source.comparison.prompt_token_length
    rows = count(len(evidence.results.boundaries))
    told = word("inputs_answer_unknown", rows=rows) if tokens == "unknown" else word("inputs_answer", n=count(int(tokens)), rows=rows)
    axes = source.verification_axes
    return Compared(
        voice.say(told),
        _sides(source, inputs, voice),
        _facts(source, evidence, voice),
        tuple(Axis(name, getattr(axes, name).status, voice.say(getattr(axes, name).evidence)) for name in axes.__struct_fields__),
        tuple((voice.say(_dump_label(one)), one.digest) for one in inputs if not one.label.endswith((".json", ".md"))),
        tuple((file.name, file.digest) for file in source.artifacts.files),
        tuple(_commands(inputs)),
    )


def _sides(source: ReportSource, inputs: list[Input], voice: Voice) -> tuple[tuple[str, str, str], ...]:
    scope, sides = source.scope, source.provenance
    dumps = {label: next((one for one in inputs if one.label == label), None) for label in _DUMPS}
    steps = [_step(dumps[label], voice) for label in _DUMPS]
    requests = [dump.request_id if dump is not None and dump.request_id else "" for dump in dumps.values()]
    rows: list[tuple[Worded, str, str]] = [
        (word("in_side"), side_name("train", voice), side_name("infer", voice)),
        (word("in_backend"), _stated(scope.training_backend, voice), _stated(scope.inference_backend, voice)),
        (word("in_versions"), _versions(sides.train, voice), _versions(sides.infer, voice)),
        (word("in_layout"), _layout(scope.topology.train, voice), _layout(scope.topology.infer, voice)),
        (word("in_dump"), sides.train.digest[:12], sides.infer.digest[:12]),
        (word("in_step"), steps[0], steps[1]),
    ]
    if any(requests):
        rows.append((word("in_request"), voice.say(requests[0]) or "–", voice.say(requests[1]) or "–"))
    return tuple((voice.say(label), train, infer) for label, train, infer in rows)


def _step(dump: Input | None, voice: Voice) -> str:
    if dump is None or dump.step is None:
        return voice.say(word("in_none"))
    return voice.say(word("page_step_rank", step=dump.step, rank="–" if dump.rank is None else dump.rank))


def _stated(text: str, voice: Voice) -> str:
    return voice.say(word("in_unknown")) if text == "unknown" else voice.say(text)


def _versions(side: ProvenanceSide, voice: Voice) -> str:
    told = [f"{name} {version}" for name, version in side.versions.items()]
    return voice.say(voice.join(told)) if told else voice.say(word("in_none"))


def _layout(layout: Layout, voice: Voice) -> str:
    """The sizes that are known; one word where none is."""
    known = [f"{name.upper()} {size}" for name in layout.__struct_fields__ if (size := getattr(layout, name)) != "unknown"]
    unknown = [name.upper() for name in layout.__struct_fields__ if getattr(layout, name) == "unknown"]
    left = [f"{voice.join(unknown)} {voice.say(word('in_unknown'))}"] if unknown and known else []
    return " · ".join([*known, *left]) or voice.say(word("in_unknown"))


def _facts(source: ReportSource, evidence: Evidence, voice: Voice) -> tuple[tuple[str, str], ...]:
    scope = source.scope
    rows = [
        (word("in_hardware"), _stated(scope.hardware_backend, voice)),
        (word("in_evidence"), _stated(scope.evidence_provider, voice)),
        (word("in_coverage"), _stated(scope.coverage, voice)),
        (word("in_objective"), _stated(source.acceptance_contract.objective, voice)),
        (word("in_alignment"), _alignment(source.comparison, voice)),
    ]
    if evidence.mapping is not None:
        rows.append((word("in_basis"), _basis(evidence, voice)))
    return tuple((voice.say(label), value) for label, value in [*rows, *stated.rows(source, voice)])


def _alignment(of: Comparison, voice: Voice) -> str:
    cut = of.train_prompt_slice
    unknown = voice.say(word("in_unknown"))
    values = (of.prompt_token_length, of.train_input_token_length, of.infer_prefill_token_length, of.logit_causal_shift)
    prompt, train, infer, shift = (unknown if value == "unknown" else str(value) for value in values)
    shown = f"[{cut[0]}, {cut[1]})" if isinstance(cut, list) and len(cut) == 2 else unknown if cut == "unknown" else "–"
    return voice.say(word("in_aligned", prompt=prompt, train=train, infer=infer, slice=shown, shift=shift))


def _basis(evidence: Evidence, voice: Voice) -> str:
    """What joined the boundaries, with counts; a row joined by several counts for each."""
    assert evidence.mapping is not None
    of: Counter[str] = Counter(basis for row in [*evidence.mapping.boundaries, *evidence.mapping.weights] for basis in row.basis)
    names = {
        "weights": word("joined_weights"),
        "values": word("joined_values"),
        "dataflow": word("joined_dataflow"),
        "signature": word("joined_signature"),
        "structure": word("joined_structure"),
        "name": word("joined_name"),
        "declared": word("joined_declared"),
    }
    told = [voice.say(word("in_basis_one", name=name, n=count(of[key]))) for key, name in names.items() if of[key]]
    return voice.join(told) or "–"


def _dump_label(one: Input) -> str:
    return one.label if one.step is None else f"{one.label} step{one.step}" + ("" if one.rank is None else f" rank{one.rank}")


def _commands(inputs: list[Input]) -> list[str]:
    """The analysis and the report again, with labels where paths stood: the report holds no path."""
    flags = {
        "train config": "--train-config",
        "infer config": "--infer-config",
        "train log": "--train-log",
        "param report": "--param-report",
    }
    given = [f"{flag} {name.replace(' ', '_').upper()}" for name, flag in flags.items() if any(one.label == name for one in inputs)]
    return [
        " ".join(["python3 scripts/diagnose.py", "--train TRAIN --infer INFER", *given, "--output-dir DIR"]),
        shlex.join(["python3", "scripts/generate_alignment_report.py", "--input", "DIR/report_source.json", "--output-dir", "DIR"]),
    ]
