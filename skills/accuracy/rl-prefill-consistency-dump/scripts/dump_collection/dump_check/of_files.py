"""Checks of the files of each side: are they there, whole, and what dump.json says of them."""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from msprobe_files import names, pt_archive
from msprobe_files.errors import DumpError
from msprobe_files.units import Unit, tensor_path

from dump_collection.dump_check.checks import Check, Finding, over
from dump_collection.dump_check.judged import Judged, Pair
from dump_collection.dump_check.sides import Side, shown
from dump_collection.wording import word

_ANY = 3  # names shown in evidence


def checks_of_files(pair: Pair) -> List[Check]:
    """Whether each side was dumped, read, and completely written."""
    sides = [judged.side for judged in pair.both]
    read = {judged.label: [_read(unit) for unit in _looked_at(judged)] for judged in pair.both}

    def each(look: Callable[[Judged], Finding]) -> List[Finding]:
        return [look(judged) if _looked_at(judged) else _nothing(judged.label) for judged in pair.both]

    return [
        over("dump_found", 6, [_found(side) for side in sides]),
        over("parses", 7, [_parses(side) for side in sides]),
        over("forward_ran", 6, [_ran(side) for side in sides]),
        over("not_killed", 7, [_not_killed(judged) for judged in pair.both]),
        over("complete", 7, each(_complete)),
        over("files_readable", 7, each(lambda judged: _readable(judged, read[judged.label]))),
        over("files_as_recorded", 7, each(lambda judged: _as_recorded(judged, read[judged.label])), shuts=False),
        over("nothing_lost", 7, each(_nothing_lost)),
        over("no_stale_files", 7, each(_no_stale), shuts=False),
        over("everything_saved", 7, each(_saved), shuts=False),
        over("no_slack", 7, each(lambda judged: _no_slack(judged, read[judged.label])), shuts=False),
    ]


def _looked_at(judged: Judged) -> Tuple[Unit, ...]:
    """The judged units; where nothing could be judged, every unit with tensors."""
    return judged.units or tuple(unit for unit in judged.side.units if unit.entries)


def _nothing(label: str) -> Finding:
    return None, word("nothing_to_look_at", side=label)


# --- is there anything ---


def _found(side: Side) -> Finding:
    count = len(side.units) + len(side.unread)
    return (True, word("units_found", side=side.label, n=count)) if count else (False, word("no_dump", side=side.label))


def _parses(side: Side) -> Finding:
    if side.unread:
        return False, word("unreadable_json", side=side.label, why=[why for _, why in side.unread])
    entries = sum(len(unit.entries) for unit in side.units if unit.place.has_json)
    units = sum(unit.place.has_json for unit in side.units)
    if not units:
        return _nothing(side.label)
    return True, word("entries", side=side.label, n=entries, units=units)


def _ran(side: Side) -> Finding:
    """A debugger that was started and stopped without a module called leaves dump.json without entries."""
    if not side.units:
        return _nothing(side.label)
    others = [unit for unit in side.units if unit.entries or unit.task == "structure"]
    empty = [shown(unit.place) for unit in side.empty if unit.task != "structure"]
    if not others:
        return False, word("nothing_ran", side=side.label, units=empty)
    return True, word("ran", side=side.label, empty=len(empty))


def _not_killed(judged: Judged) -> Finding:
    """A kill leaves tensors without dump.json, beside an empty one, or beside one of a multiple of 1000 entries."""
    usable = judged.side.usable
    killed = [unit for unit in judged.side.units if unit.entries and (unit.killed or not unit.order_known)]
    graph = [unit for unit in killed if os.path.basename(unit.place.folder).startswith("pid")]
    killed = [unit for unit in killed if not any(unit is other for other in graph)]
    steps, ranks = {unit.place.step for unit in judged.units}, {unit.place.rank for unit in judged.units}
    if usable:  # an earlier run beside a whole one does no harm; another rank of the judged step is missed
        killed = [unit for unit in killed if unit.place.step in steps and unit.place.rank not in ranks]
    if killed:
        where = [shown(unit.place) for unit in killed]
        kind = "killed" if all(unit.place.has_json for unit in killed) else "no_dump_json"
        return False, word(kind, side=judged.label, units=where, n=sum(len(list(unit.records())) for unit in killed))
    ran_on = [unit for unit in judged.units if _unlisted_calls(unit)]
    if ran_on:
        return False, word("killed_later", side=judged.label, units=[shown(unit.place) for unit in ran_on])
    return (True, word("not_killed", side=judged.label)) if usable else _nothing(judged.label)


def _unlisted_calls(unit: Unit) -> List[str]:
    """Entries of this run (construct.json names them) whose tensors lie there though dump.json does not list them."""
    parsed = [names.parse_tensor(file[: -len(".pt")]) for file in unit.stale_files]
    return [one.entry for one in parsed if one is not None and one.entry in (unit.trace or {}) and one.entry not in unit.entries]


# --- whole files ---


class _Read(NamedTuple):
    """What a unit's files hold against what dump.json says; all are names of tensors but ``slack``, in bytes."""

    files: int
    damaged: List[str]
    shapes: List[str]
    dtypes: List[str]
    slack: int


def _read(unit: Unit) -> _Read:
    damaged, shapes, dtypes, slack, count = [], [], [], 0, 0
    for record in unit.records():
        if record.file is None or record.file in unit.missing_files:
            continue
        count += 1
        try:
            tensor = pt_archive.read_header(tensor_path(unit, record))
        except DumpError as error:
            damaged.append("%s (%s)" % (record.name, _why(error)))
            continue
        if record.shape is not None and record.shape != tensor.shape:
            shapes.append(record.name)
        if record.dtype is not None and record.dtype != tensor.dtype:
            dtypes.append("%s (%s, %s)" % (record.name, record.dtype, tensor.dtype))
        slack += max(0, tensor.storage_bytes - tensor.elements * tensor.item_size)
    return _Read(count, damaged, shapes, dtypes, slack)


def _why(error: DumpError) -> str:
    """The reason inside "Cannot read FILE: why. What to do."."""
    return str(error).split(": ", 1)[-1].rsplit(". ", 1)[0]


def _some(found: List[str]) -> Dict[str, Any]:
    return {"n": len(found), "first": found[:_ANY]}


def _complete(judged: Judged) -> Finding:
    missing = [name for unit in _looked_at(judged) for name in unit.missing_files]
    if missing:
        return False, word("files_missing", side=judged.label, **_some(missing))
    count = sum(record.file is not None for unit in _looked_at(judged) for record in unit.records())
    return True, word("files_there", side=judged.label, n=count)


def _readable(judged: Judged, read: List[_Read]) -> Finding:
    broken = [name for one in read for name in one.damaged + one.shapes]
    if broken:
        return False, word("files_damaged", side=judged.label, **_some(broken))
    return True, word("files_whole", side=judged.label, n=sum(one.files for one in read))


def _as_recorded(judged: Judged, read: List[_Read]) -> Finding:
    differing = [name for one in read for name in one.dtypes]
    if differing:
        return False, word("other_dtype", side=judged.label, **_some(differing))
    return True, word("dtypes_agree", side=judged.label, n=sum(one.files for one in read))


def _no_slack(judged: Judged, read: List[_Read]) -> Finding:
    """Files written with ``slice`` or ``request_id`` hold the whole storage of what was cut (msprobe 26.2.0)."""
    wasted = sum(one.slack for one in read)
    if wasted:
        return False, word("slack", side=judged.label, bytes=wasted)
    return True, word("no_slack", side=judged.label)


def _nothing_lost(judged: Judged) -> Finding:
    """msprobe 8.x writes a log beside dump.json where it lost an entry."""
    logs = [unit for unit in _looked_at(judged) if os.path.exists(os.path.join(unit.place.folder, "dump_error_info.log"))]
    if not logs:
        return True, word("no_error_log", side=judged.label)
    lost = [entry for unit in logs for entry in unit.trace or {} if entry not in unit.entries]
    return False, word("error_log", side=judged.label, units=[shown(unit.place) for unit in logs], **_some(lost))


def _no_stale(judged: Judged) -> Finding:
    stale = [name for unit in _looked_at(judged) for name in unit.stale_files]
    if stale:
        return False, word("stale_files", side=judged.label, **_some(stale))
    return True, word("no_stale_files", side=judged.label)


def _saved(judged: Judged) -> Finding:
    """AsyncCollectiveTensor, freed flat parameters and FRACTAL_NZ weights are recorded without a file."""
    units = [unit for unit in _looked_at(judged) if unit.task == "tensor"]
    unsaved = [record.name for unit in units for record in unit.records() if record.file is None and record.shape and 0 not in record.shape]
    if unsaved:
        return False, word("not_saved", side=judged.label, **_some(unsaved))
    return True, word("all_saved", side=judged.label)
