"""Whether an override took effect: what the new dump records as a module's inputs, against the prepared files, bit for bit."""

import os
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from msprobe_files import names, release
from msprobe_files.errors import DumpError
from msprobe_files.units import Record, Unit, tensor_path

from dump_collection import digests, files
from dump_collection.wording import word

from . import outcomes, recorded, tensors
from .instruction import Instruction
from .prepare import Round
from .recorded import Recorded

Worded = Dict[str, Any]
_OF_VERIFYING = frozenset({"not_verified", "equal_before", "overridden_between", "overridden_again"})  # what an earlier try said


class File(NamedTuple):
    """One prepared file: its path below the source folder and on disk, its digest, and what its place says."""

    file: str
    path: str
    digest: str
    step: int
    folder: str
    entry: str
    label: str

    @property
    def rank(self) -> int:
        return int(self.folder[4:]) if self.folder.startswith("rank") else 0

    @property
    def label_of_call(self) -> str:
        return self.entry + "." + self.label


def verify(instruction: Instruction, place: Round, new: Recorded, earlier: Optional[Recorded]) -> Dict[str, Any]:
    """Prove the round by a new dump and write what was found into stub_outcome.json, which is returned.

    ``earlier``: the target's dump of before, which tells a value that was kept.
    Raises DumpError where the new dump is the earlier one or the source folder, and nothing is proven by it.
    """
    tensors.torch_here()  # without it a file would seem unreadable, and the round not effective
    outcome = outcomes.read(place.outcome)
    if outcome["instruction"]["digest"] != instruction.digest:
        raise DumpError("Cannot verify: %s was prepared from another instruction. Prepare the round again." % place.outcome)
    _is_new(place, new, earlier)
    prepared = [_file(item, place) for item in outcome["prepared"]]
    effects: List[Dict[str, Any]] = []
    warnings: List[Worded] = [told for told in outcome["warnings"] if told["kind"] not in _OF_VERIFYING]
    several = len({file.rank for file in prepared}) > 1
    for file in prepared:
        overridden, evidence = _effect(file, new, earlier)
        if overridden:
            twice, later = _again(file, new, earlier, {other.label_of_call for other in prepared})
            warnings += [told for told in _weak(file, earlier) + later if told not in warnings]
            overridden, evidence = (False, twice) if twice else (True, evidence)
        rank = {"rank": file.rank} if several else {}
        effects.append({"target_entry": file.entry, **rank, "input": file.label, "overridden": overridden, "evidence": evidence})
    effects += _unprepared(instruction, prepared, new)
    used = [unit for unit in new.units if unit.place.step in {file.step for file in prepared}] or list(new.units)
    path = os.path.abspath(used[0].place.folder if len(used) == 1 else new.path)
    side = "%s round %d" % (instruction.target_side, instruction.round)
    outcome = {
        **outcome,
        "new_dump": {"label": side, "path": path, "digest": digests.digest(used)},
        "effect": effects,
        "effective": all(effect["overridden"] for effect in effects),
        "warnings": warnings,
    }
    files.write(place.outcome, outcome)
    return outcome


def _is_new(place: Round, new: Recorded, earlier: Optional[Recorded]) -> None:
    source = os.path.realpath(place.source)
    for unit in new.units:
        if (os.path.realpath(unit.place.folder) + os.sep).startswith(source + os.sep):
            raise DumpError("Cannot verify by %s: it is the prepared source itself. Hand the dump that the run wrote." % new.path)
    if earlier is not None and digests.digest(new.units) == digests.digest(earlier.units):
        raise DumpError("Cannot verify by %s: it is the target's dump of before. Hand the dump of the run with load." % new.path)


def _file(item: Dict[str, Any], place: Round) -> File:
    step, folder, _, name = item["file"].split("/")
    parsed = names.parse_tensor(name[: -len(".pt")])
    if parsed is None:
        raise DumpError("Cannot use stub_outcome.json: prepared: %r is no file of msprobe. Prepare the round again." % item["file"])
    path = os.path.join(place.source, *item["file"].split("/"))
    return File(item["file"], path, item["digest"], int(step[4:]), folder, parsed.entry, parsed.category + "." + parsed.suffix)


def _effect(file: File, new: Recorded, earlier: Optional[Recorded]) -> Tuple[bool, Worded]:
    """Whether one input was overridden, and the evidence; every way of not being so has its own reason."""
    gone = _prepared_gone(file)
    if gone is not None:
        return False, gone
    unit, why = _unit(file, new)
    if unit is None:
        return False, why
    why = _not_called(file, unit)
    if why:
        return False, why
    name = file.entry + "." + file.label
    record = {record.name: record for record in unit.entries[file.entry]}.get(name)
    if record is None:
        found = [label for label, what in recorded.recorded_inputs(unit, file.entry).items() if what is not None]
        return False, word("input_not_recorded", entry=file.entry, input=file.label, found=found)
    try:
        alike = tensors.likeness(tensor_path(unit, record), file.path)
    except DumpError as error:
        return False, word("new_file_unreadable", why=str(error))
    if alike.same:
        return True, word("input_equals_prepared", equal=alike.equal, of=alike.of)
    if alike.shapes[0] != alike.shapes[1]:
        return False, word("shape_differs", found=str(list(alike.shapes[0])), prepared=str(list(alike.shapes[1])))
    if alike.dtypes[0] != alike.dtypes[1]:
        return False, word("dtype_differs", found=alike.dtypes[0], prepared=alike.dtypes[1])
    return False, _not_replaced(file, unit, tensor_path(unit, record), alike, earlier)


def _prepared_gone(file: File) -> Optional[Worded]:
    if not os.path.isfile(file.path):
        return word("prepared_missing", file=file.file)
    return word("prepared_changed", file=file.file) if files.digest_of_file(file.path) != file.digest else None


def _unit(file: File, new: Recorded) -> Tuple[Optional[Unit], Worded]:
    """The unit of the new dump that ran with this file, or why there is none."""
    of_step = [unit for unit in new.units if unit.place.step == file.step]
    if not of_step:
        return None, word("step_not_recorded", step=file.step, found=list(new.steps))
    found = [unit for unit in of_step if unit.place.rank == file.rank]
    if not found:
        return None, word("rank_not_recorded", rank=file.rank, step=file.step, found=[os.path.basename(u.place.folder) for u in of_step])
    if len(found) > 1:
        raise DumpError("Cannot verify by %s: several dumps of one rank, %s. Hand one of them." % (new.path, recorded.named(found)))
    folder = os.path.basename(found[0].place.folder)
    if folder[:4] != file.folder[:4]:
        return None, word("folder_other_kind", found=folder, prepared=file.folder)
    return found[0], {}


def _not_called(file: File, unit: Unit) -> Worded:
    """Why the call is not in the unit; empty where it is."""
    if file.entry in unit.entries:
        return {}
    wanted = names.parse_entry(file.entry)
    same = [other for other in unit.entries if names.parse_entry(other).path == wanted.path]
    calls = [other for other in same if names.parse_entry(other).class_name == wanted.class_name]
    if calls:
        return word("entry_other_call", entry=file.entry, found=calls[:4])
    return word("entry_other_class", entry=file.entry, found=same[:4]) if same else word("entry_not_recorded", entry=file.entry)


def _not_replaced(file: File, unit: Unit, path: str, alike: tensors.Likeness, earlier: Optional[Recorded]) -> Worded:
    of = release.release_of(unit, recorded.inputs_are(unit))
    if of not in (">=26.2", ">=26.1", release.UNKNOWN):
        return word("dumped_without_load", release=of)
    before = _before(file, earlier)
    if before is not None and tensors.likeness(path, before).same:
        return word("input_kept")
    return word("input_differs", equal=alike.equal, of=alike.of)


def _before(file: File, earlier: Optional[Recorded]) -> Optional[str]:
    """The file of this input in the target's dump of before; None where it is not known or not there."""
    for unit, record in earlier.holders(file.entry + "." + file.label) if earlier else ():
        if unit.place.step == file.step and unit.place.rank == file.rank and record.file is not None and record.refused is None:
            path = os.path.join(unit.place.tensor_folder, record.file)
            return path if os.path.isfile(path) else None
    return None


def _weak(file: File, earlier: Optional[Recorded]) -> List[Worded]:
    before = _before(file, earlier)
    same = before is not None and tensors.likeness(before, file.path).same
    return [word("equal_before", entry=file.entry, input=file.label)] if same else []


def _again(file: File, new: Recorded, earlier: Optional[Recorded], prepared: Set[str]) -> Tuple[Worded, List[Worded]]:
    """Other forwards that got the prepared tensor too: one of the same step (empty: none), which spoils the round, and later steps'.

    A call that held this tensor before too, or that was to be overridden itself, proves nothing.
    msprobe counts the forward between two windows to the step before: until the next start() it is replaced from the loader's cache.
    """
    wanted = names.parse_entry(file.entry)
    twice: Worded = {}
    later: List[Worded] = []
    for unit in new.units:
        others = [entry for entry in unit.entries if names.parse_entry(entry).path == wanted.path]
        if unit.place.rank != file.rank or not others:
            continue
        if unit.place.step > file.step and file.entry not in others:
            twice = twice or word("overridden_between", entry=file.entry, step=unit.place.step, found=others[:4])
        for entry in others:
            label, here = entry + "." + file.label, unit.place.step == file.step
            if (here and label in prepared) or _held(label, unit, earlier, file.path):
                continue
            if any(record.name == label and _same(unit, record, file.path) for record in unit.entries[entry]):
                told = word("overridden_again", entry=entry, step=unit.place.step, input=file.label)
                twice, later = (twice or told, later) if here else (twice, [*later, told])
    return twice, later


def _held(label: str, unit: Unit, earlier: Optional[Recorded], path: str) -> bool:
    """Whether the target's dump of before holds the prepared tensor at that call already."""
    places = earlier.holders(label) if earlier else ()
    return any(
        other.place.step == unit.place.step and other.place.rank == unit.place.rank and _same(other, record, path)
        for other, record in places
    )


def _same(unit: Unit, record: Record, path: str) -> bool:
    try:
        return tensors.likeness(tensor_path(unit, record), path).same
    except DumpError:  # a neighbour that cannot be read proves nothing either way
        return False


def _unprepared(instruction: Instruction, prepared: List[File], new: Recorded) -> List[Dict[str, Any]]:
    """Ranks that ran a call which was to be overridden on every rank, and for which nothing lies in the source folder."""
    effects: List[Dict[str, Any]] = []
    for module, item in instruction.inputs():
        of_entry = [file for file in prepared if file.entry == module.entry and file.label == item.label]
        have, steps = {file.rank for file in of_entry}, {file.step for file in of_entry}
        for unit in new.units if module.rank is None else ():
            rank = unit.place.rank
            if unit.place.step in steps and module.entry in unit.entries and rank not in have:
                evidence = word("rank_not_prepared", rank=rank)
                effects.append({"target_entry": module.entry, "rank": rank, "input": item.label, "overridden": False, "evidence": evidence})
    return effects
