"""Facts of a dump before anything is compared: units, counts, naming rules, what is missing and what that costs."""

import os
import re
from collections.abc import Iterable, Sequence

from msprobe_files import names, release
from msprobe_files.errors import DumpError
from msprobe_files.units import SIBLINGS, Record, Unit, load_json

from . import comparable, sides, tensors
from .artefacts.common import Worded
from .artefacts.probe import Probe, SideFacts, TensorCounts, UnitFacts
from .sides import EMPTY_CHECKS, Place, Side
from .wording import word

# Names that say "fused": used to name things for people only, never to map them.
_FUSED_NAME = re.compile(r"qkv|gate_up|linear_fc1|w13|kv_a_proj_with_mqa|[Ff]used|Merged|AndMul")
_COSTS = {"stack.json": "costs_call_sites", "construct.json": "costs_parents"}


def probe(train: Sequence[str], infer: Sequence[str]) -> tuple[Probe, list[str]]:
    """Probe one or both sides, each given by its paths; the second value holds one error line for a side that cannot be read."""
    opened: dict[str, Side | None] = {}
    facts: dict[str, SideFacts | None] = {"train": None, "infer": None}
    remarks: list[Worded] = []
    errors: list[str] = []
    for label, paths in (("train", train), ("infer", infer)):
        if not paths:
            continue
        try:
            side = opened[label] = sides.open_side(label, paths)
        except DumpError as error:
            errors.append(str(error))
            remarks.append(word("side_unreadable", side=label, why=_without_folders(str(error), paths)))
            continue
        facts[label], told = _side_facts(side, paths)
        remarks += told
        if not side.by_name:
            errors.append(f"Cannot use the {label} dump: {sides.empty_reason(side)}.")
    remarks += _pair_remarks(opened.get("train"), opened.get("infer"))
    return Probe(train=facts["train"], infer=facts["infer"], remarks=remarks), errors


def _without_folders(text: str, paths: Sequence[str]) -> str:
    """A message whose paths are cut to their last part: an artefact names no folder of the machine."""
    for path in paths:
        text = text.replace(path, os.path.basename(path.rstrip(os.sep)) or path)
    return text


def _side_facts(side: Side, paths: Sequence[str]) -> tuple[SideFacts, list[Worded]]:
    units: list[UnitFacts] = []
    remarks: list[Worded] = []
    for unit in side.units:
        inputs = release.inputs_are(unit)
        version = release.release_of(unit, inputs)
        units.append(_unit_facts(unit, paths, inputs, version))
        remarks += _unit_remarks(side.label, unit, inputs, version)
    facts = SideFacts(
        label=side.label,
        digest=side.digest,
        units=units,
        prefixes=_prefixes(side.units),
        fused=_fused(side.units),
        trace=sum(unit.trace_keys for unit in side.units),
    )
    return facts, _unique(_whole_side_remarks(side) + remarks)


def _unit_facts(unit: Unit, paths: Sequence[str], inputs: str, version: str) -> UnitFacts:
    counts = {"input": 0, "kwargs": 0, "output": 0, "parameters": 0, "parameters_grad": 0}
    for record in unit.records():
        counts[record.category] += 1
    return UnitFacts(
        folder=_below(unit.place.folder, paths),
        step=unit.place.step,
        rank=unit.place.rank,
        msprobe=version,
        task=unit.task,
        level=unit.level,
        entries=len(unit.entries),
        tensors=TensorCounts(counts["input"] + counts["kwargs"], counts["output"], counts["parameters"]),
        missing_files=list(unit.missing_files),
        stale_files=list(unit.stale_files),
        complete=unit.complete,
        inputs_are=inputs,  # type: ignore[arg-type]  # one of the three words of release.py
    )


def _below(folder: str, paths: Sequence[str]) -> str:
    """The unit's folder below the path that was given; ``.`` where the path is the unit itself or lies inside it."""
    for path in paths:
        relative = os.path.relpath(folder, os.path.abspath(path))
        if not relative.startswith(".."):
            return relative
    return "."


def _prefixes(units: Iterable[Unit]) -> list[str]:
    """The paths of repeated layers (N for the number) and their ancestors, the deepest first."""
    found: list[str] = []
    for unit in units:
        for entry in unit.entries:
            path = names.parse_entry(entry).path
            position = names.layer_position(path)
            if position is None:
                continue
            parts = [names.MODULE_PREFIX, *names.layer_pattern(path)[: position + 1]]
            chain = [".".join(parts)] + [".".join(parts[:end]) for end in range(len(parts) - 2, 0, -1)]
            found += [prefix for prefix in chain if prefix not in found]
    return sorted(found, key=lambda prefix: -prefix.count("."))


def _fused(units: Iterable[Unit]) -> list[str]:
    """Entries that look fused: by name, or because they own parameters and take and give two tensors (add + norm)."""
    found: list[str] = []
    for unit in units:
        paths = {names.parse_entry(entry).path for entry in unit.entries}
        parents = {path[:end] for path in paths for end in range(len(path))}
        for entry, records in unit.entries.items():
            parsed = names.parse_entry(entry)
            if parsed.kind != "module" or parsed.direction != "forward" or parsed.path in parents:
                continue
            name = ".".join([names.MODULE_PREFIX, *names.layer_pattern(parsed.path), parsed.class_name])
            if name not in found and (_FUSED_NAME.search(f"{parsed.path[-1]}.{parsed.class_name}") or _adds_and_norms(records)):
                found.append(name)
    return found


def _adds_and_norms(records: Sequence[Record]) -> bool:
    by_category = {category: [r for r in records if r.category == category] for category in ("input", "output", "parameters")}
    shapes = {record.shape for category in ("input", "output") for record in by_category[category]}
    return len(by_category["parameters"]) == 1 and len(by_category["input"]) == 2 == len(by_category["output"]) and len(shapes) == 1


# --- remarks ---


def _whole_side_remarks(side: Side) -> list[Worded]:
    found: list[Worded] = []
    if not side.by_name:
        found.append(word("side_empty", side=side.label, checks=list(EMPTY_CHECKS)))
    doubled = comparable.duplicates(side)
    if doubled:
        found.append(word("several_dumps", side=side.label, folders=doubled))
    captured = comparable.captured_layers(side)
    if captured:
        found.append(word("captured_buffer", side=side.label, n=captured))
    found += _dtypes_apart(side)
    return found


def _dtypes_apart(side: Side) -> list[Worded]:
    apart: list[tuple[str, str, str]] = []
    for unit in side.units:
        for record in unit.records():
            stored = _stored_dtype(unit, record)
            if stored is not None and record.dtype is not None and stored != record.dtype:
                apart.append((record.name, record.dtype, stored))
    return [
        word("dtype_in_file", side=side.label, n=len(apart), name=name, recorded=recorded, stored=stored)
        for name, recorded, stored in apart[:1]
    ]


def _stored_dtype(unit: Unit, record: Record) -> str | None:
    if record.file is None:
        return None
    try:
        return tensors.header(Place(unit, record)).dtype
    except DumpError:
        return None  # counted among the missing files, or named by the comparison


def _unit_remarks(label: str, unit: Unit, inputs: str, version: str) -> list[Worded]:
    found: list[Worded] = _wrapper_remarks(label, unit)
    if not unit.place.has_json:
        found.append(word("no_dump_json", side=label))
    elif unit.killed:
        found.append(
            word(
                "run_killed",
                side=label,
                entries=0 if not unit.order_known else len(unit.entries),
                files=len(unit.stale_files) or _files(unit),
            )
        )
    else:
        gone = [sibling for sibling in SIBLINGS[:0:-1] if sibling not in unit.present + unit.broken]
        broken = [*unit.broken, *_broken_stack(unit)]
        found += [word("sibling_broken", side=label, file=sibling, costs=word(_COSTS[sibling])) for sibling in broken]
        found += [word("sibling_missing", side=label, file=sibling, costs=word(_COSTS[sibling])) for sibling in gone]
    if unit.interrupted:
        found.append(word("interrupted", side=label, n=len(unit.interrupted), entry=unit.interrupted[0]))
    if unit.missing_files:
        found.append(word("missing_files", side=label, n=len(unit.missing_files), first=unit.missing_files[0]))
    if unit.stale_files and not unit.killed:
        found.append(word("stale_files", side=label, n=len(unit.stale_files)))
    if unit.entries and unit.order_known and not any(record.file for record in unit.records()):
        found.append(word("statistics_only", side=label, task=unit.task or "unknown"))
    found += _call_remarks(label, unit)
    found += _axis_remarks(label, unit)
    if inputs == release.POST_CALL:
        found.append(word("inputs_after_call", side=label))
    elif inputs == release.UNKNOWN:
        found.append(word("inputs_unknown", side=label))
    if "stack.json" not in unit.present and inputs != release.UNKNOWN:
        when = word("before" if inputs == release.PRE_CALL else "after")
        found.append(word("version_from_data", side=label, version=version, when=when))
    return found


def _broken_stack(unit: Unit) -> list[str]:
    if "stack.json" not in unit.present:
        return []
    try:
        load_json(os.path.join(unit.place.folder, "stack.json"))
    except DumpError:
        return ["stack.json"]
    return []


def _files(unit: Unit) -> int:
    return sum(1 for _ in unit.records())


def _wrapper_remarks(label: str, unit: Unit) -> list[Worded]:
    """Naming rules: what wrappers and list indices add to paths."""
    wrappers: set[str] = set()
    indexed = False
    plain = ""
    for entry in unit.entries:
        path = names.parse_entry(entry).path
        bare = names.plain_path(path)
        if path != bare:
            wrappers |= names.WRAPPERS & set(path)
            indexed = indexed or path[0].isdigit()
            position = names.layer_position(bare)
            if position is not None:
                plain = ".".join([names.MODULE_PREFIX, *names.layer_pattern(bare)[: position + 1]])
    if not wrappers and not indexed:
        return []
    shown = [*sorted(wrappers), *([word("list_index")] if indexed else [])]
    if not plain:
        return [word("wrapped_names", side=label, wrappers=shown)]
    return [word("wrapped_layers", side=label, wrappers=shown, plain=plain)]


def _call_remarks(label: str, unit: Unit) -> list[Worded]:
    """Modules that ran several times: one shared by all layers, or a second forward."""
    calls: dict[tuple[tuple[str, ...], str], list[names.Entry]] = {}
    layers: set[int] = set()
    for entry in unit.entries:
        parsed = names.parse_entry(entry)
        layer = names.layer_of(parsed.path)
        if parsed.kind == "module" and parsed.direction == "forward":
            calls.setdefault((parsed.path, parsed.class_name), []).append(parsed)
            layers |= set() if layer is None else {layer}
    several = {key: found for key, found in calls.items() if len(found) > 1}
    found: list[Worded] = []
    for key, entries in list(several.items()):
        if len(entries) == len(layers) > 1 and names.layer_of(key[0]) == min(layers):
            found.append(word("shared_module", side=label, entry=entries[0].text.rsplit(".forward.", 1)[0], calls=len(entries)))
            del several[key]
    if several:
        most = max(several.values(), key=len)
        found.append(word("second_call", side=label, n=len(several), calls=len(most), entry=most[0].text))
    return found


def _axis_remarks(label: str, unit: Unit) -> list[Worded]:
    """Regular axes of size 1, and a last entry that keeps one position of many."""
    outputs = [(entry, r) for entry, records in unit.entries.items() for r in records if r.category == "output" and r.shape is not None]
    floats_of = [record.shape for _, record in outputs if record.shape is not None and len(record.shape) == 3]
    found: list[Worded] = []
    if outputs and outputs[-1][1].shape is not None:
        entry, last = outputs[-1]
        rows = [record.shape[-2] for _, record in outputs if record.shape is not None and len(record.shape) >= 2]
        usual = max(set(rows), key=rows.count) if rows else 0
        if last.shape is not None and len(last.shape) >= 2 and last.shape[-2] == 1 < usual:
            found.append(word("last_row_only", side=label, entry=entry))
    if floats_of and all(shape[0] == 1 for shape in floats_of):
        found.append(word("batch_axis", side=label))
    elif floats_of and all(shape[1] == 1 for shape in floats_of):
        found.append(word("middle_axis", side=label))
    return found


def _pair_remarks(train: Side | None, infer: Side | None) -> list[Worded]:
    if train is None or infer is None or not train.units or not infer.units:
        return []
    folders = [{os.path.realpath(unit.place.folder) for unit in side.units} for side in (train, infer)]
    if folders[0] & folders[1]:
        return [word("same_folder")]
    return [word("same_bytes")] if train.digest == infer.digest else []


def _unique(remarks: Sequence[Worded]) -> list[Worded]:
    """Each remark once: the ranks of one side mostly say the same."""
    seen: dict[str, Worded] = {}
    for remark in remarks:
        seen.setdefault(remark.text, remark)
    return list(seen.values())
