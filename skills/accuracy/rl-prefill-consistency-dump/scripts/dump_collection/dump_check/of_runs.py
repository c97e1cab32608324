"""Checks of what was run and how it was recorded: task, level, steps, warm-up, second calls, the end of the forward."""

from typing import Callable, List

from msprobe_files import names
from msprobe_files.units import Unit

from dump_collection.dump_check import embedding, modules
from dump_collection.dump_check.checks import Check, Finding, over
from dump_collection.dump_check.judged import Judged, Pair
from dump_collection.dump_check.sides import shown
from dump_collection.dump_check.warm_up import zeros_of
from dump_collection.wording import word

_ANY = 3  # names shown in evidence


def checks_of_runs(pair: Pair) -> List[Check]:
    """What each side ran and recorded; a side without a usable unit is asked nothing."""

    def each(look: Callable[[Judged], Finding]) -> List[Finding]:
        return [look(judged) if judged.units else (None, word("nothing_to_look_at", side=judged.label)) for judged in pair.both]

    ended = [_ended(judged, other) for judged, other in zip(pair.both, reversed(pair.both))]
    return [
        over("tensors_recorded", 6, [_tensors(judged) for judged in pair.both]),
        over("modules_recorded", 6, each(_modules)),
        over("nothing_filtered", 6, each(_nothing_filtered), shuts=False),
        over("trace_recorded", 6, each(_trace), shuts=False),
        over("one_dump_per_step", 7, each(_one_dump)),
        over("step0_recorded", 6, [_step0(pair.train)]),
        over("step0_not_warm_up", 7, each(_not_warm_up)),
        over("forward_ended", 7, ended),
        over("no_second_call", 4, each(_no_second_call)),
        over("no_recompute", 6, each(_no_recompute)),
    ]


def _tensors(judged: Judged) -> Finding:
    units = judged.units or tuple(unit for unit in judged.side.units if unit.task == "structure")
    if not units:
        return None, word("nothing_to_look_at", side=judged.label)
    without = [unit for unit in units if not any(record.file for record in unit.records())]
    if without:
        digests = any(record.digest for unit in without for record in unit.records())
        return False, word("digests_alone" if digests else "no_tensors", side=judged.label, task=str(without[0].task))
    return True, word("tensors", side=judged.label, n=sum(record.file is not None for unit in units for record in unit.records()))


def _modules(judged: Judged) -> Finding:
    count = sum(names.parse_entry(entry).kind == "module" for unit in judged.units for entry in unit.entries)
    if not count:
        return False, word("apis_alone", side=judged.label, level=str(judged.units[0].level))
    return True, word("modules", side=judged.label, n=count)


def _nothing_filtered(judged: Judged) -> Finding:
    """construct.json names everything that ran, what ``list`` and ``scope`` kept out of dump.json too."""
    left_out = [
        entry
        for unit in judged.units
        for entry in unit.trace or {}
        if entry not in unit.entries and names.parse_entry(entry).kind == "module"
    ]
    if left_out:
        return False, word("filtered", side=judged.label, n=len(left_out), first=left_out[:_ANY])
    return True, word("not_filtered", side=judged.label)


def _trace(judged: Judged) -> Finding:
    without = [shown(unit.place) for unit in judged.units if not unit.trace]
    if without:
        return False, word("no_trace", side=judged.label, units=without)
    return True, word("trace", side=judged.label)


def _one_dump(judged: Judged) -> Finding:
    if judged.rivals:
        return False, word("several_dumps", side=judged.label, units=[shown(unit.place) for unit in judged.rivals])
    units = [shown(unit.place) for unit in judged.units]
    return True, word("units_judged", side=judged.label, units=units, of=len(judged.side.units))


def _step0(judged: Judged) -> Finding:
    """The trainer's main forward is its step 0; what follows is not flushed, or another forward."""
    if not judged.side.units:
        return None, word("nothing_to_look_at", side=judged.label)
    held = [unit for unit in judged.side.units if unit.entries] or list(judged.side.units)
    steps = sorted({unit.place.step for unit in held})
    if steps[0] > 0:
        return False, word("no_step0", side=judged.label, steps=["step%d" % step for step in steps])
    empty = sorted({unit.place.step for unit in judged.side.empty})
    return True, word("step0", side=judged.label, empty=len(empty))


def _not_warm_up(judged: Judged) -> Finding:
    counted = [zeros_of(unit) for unit in judged.units]
    zero, of = sum(one.zero for one in counted), sum(one.of for one in counted)
    if any(one.most for one in counted):
        return False, word("warm_up_zeros", side=judged.label, zero=zero, of=of, rows=_rows(judged.units[0]))
    ids = [forward.ids.values for forward in judged.forwards]
    if ids and all(len(values) > 1 and len(set(values)) == 1 for values in ids):
        return False, word("warm_up_ids", side=judged.label, rows=len(ids[0]))
    if judged.asleep:
        return True, word("warm_up_aside", side=judged.label, units=[shown(unit.place) for unit in judged.asleep], zero=zero, of=of)
    return True, word("not_zero", side=judged.label, zero=zero, of=of)


def _rows(unit: Unit) -> int:
    """Rows of the first activation."""
    for entry in unit.entries:
        for record in modules.outputs(unit, entry):
            rows = 1
            for size in (record.shape or ())[:-1]:
                rows *= size
            return rows
    return 0


# --- calls ---


def _ended(judged: Judged, other: Judged) -> Finding:
    if not judged.units:
        return None, word("nothing_to_look_at", side=judged.label)
    half = [entry for unit in judged.units for entry in unit.interrupted]
    if half:
        return False, word("interrupted", side=judged.label, n=len(half), first=half[:_ANY])
    goes_on = _goes_on(judged, other)
    if goes_on:
        return False, word("ended_early", side=judged.label, n=len(goes_on), first=goes_on[:_ANY])
    last = max(judged.units, key=lambda unit: unit.place.rank)
    layers = modules.layers_of(last)
    if not layers.entries:
        return None, word("end_unknown", side=judged.label)
    if not modules.after_layers(last, layers):
        return None, word("nothing_after_layers", side=judged.label, last=layers.last)
    return True, word("forward_ended", side=judged.label)


def _goes_on(judged: Judged, other: Judged) -> List[str]:
    """What the other side, running the same modules, recorded after all that this side did; empty where they differ."""
    if len(judged.units) != 1 or len(other.units) != 1:
        return []
    own, theirs = judged.units[0], other.units[0]
    if modules.ancestors_missing(own, modules.layers_of(own)):
        return []  # verl's rule takes the last module away
    order = [entry for entry in theirs.entries if names.parse_entry(entry).kind == "module"]
    shared = [entry for entry in order if entry in own.entries]
    ran = own.trace or own.entries
    if not shared or any(entry not in order for entry in own.entries if names.parse_entry(entry).kind == "module"):
        return []
    rest = order[order.index(shared[-1]) + 1 :]
    return [entry for entry in rest if entry not in ran] if order[: len(shared)] == shared else []


def _no_second_call(judged: Judged) -> Finding:
    """Two calls of the embedding and of the layers are two forwards; a shared rotary module or a second head is none."""
    for unit in judged.units:
        again = modules.repeated(unit)
        layers = modules.layers_of(unit)
        if layers.entries:
            calls = modules.layer_calls(layers)
            first = min(min(one) for one in layers.entries.values())
            if calls > 1 and len(embedding.calls_of(unit)) != 1:
                return False, word("second_call", side=judged.label, unit=shown(unit.place), calls=calls)
            if first > 0:
                return False, word("first_call_missing", side=judged.label, unit=shown(unit.place), call=first)
        elif again and 2 * len(again) >= sum(names.parse_entry(entry).kind == "module" for entry in unit.entries):
            calls = 1 + max(names.parse_entry(entry).call for entry in again)
            return False, word("second_call", side=judged.label, unit=shown(unit.place), calls=calls)
    return True, word("one_call", side=judged.label)


def _no_recompute(judged: Judged) -> Finding:
    """A backward pass in the window: gradients, and forwards that checkpointing ran again."""
    found = [
        entry
        for unit in judged.units
        for entry in unit.entries
        if names.parse_entry(entry).direction == "backward" or modules.is_recomputed(unit, entry)
    ]
    if found:
        return False, word("backward", side=judged.label, n=len(found), first=found[:_ANY])
    return True, word("no_backward", side=judged.label)
