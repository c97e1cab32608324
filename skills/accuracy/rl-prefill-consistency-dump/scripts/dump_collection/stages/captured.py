"""Stages 7 and 8: the pair of dumps can be compared and is tied together; an override took effect."""

import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.task_card import UNKNOWN
from msprobe_files.units import UnitPlace, find_units

from dump_collection import digests, files
from dump_collection.dump_check import matching, sides
from dump_collection.dump_check.pieces import Cut
from dump_collection.override import outcomes, recorded

from .workdir import CARD, INSTRUCTION, OUTCOME, PAIR, SIDES, Missing, Workdir, objects

PAIR_SCHEMA = "dump_pair_report/1"
_ROUND = re.compile(r"round(\d+)\Z")


class Association(NamedTuple):
    """What ties the two dumps together: ``request_id`` (its value) or ``token_ids``, and step and rank of each side."""

    by: str
    request_id: str
    units: Dict[str, Tuple[int, int]]


# --- stage 7 ---


def pair(work: Workdir) -> Missing:
    """The report says comparable, and the association names one unit a side, of the same tokens."""
    yield from work.ask("AUTH_RUN_DUMP_JOB", 7)
    again = "Run: %s" % work.command("check_dump_pair.py")
    report: Dict[str, Any] = {}
    if not work.has(PAIR):
        yield "%s is missing" % PAIR, again
    else:
        report = work.read(PAIR, PAIR_SCHEMA)
        checks = objects(report.get("checks"), PAIR + ": checks")
        if not checks or any(check.get("ok", "") not in (True, False, None) for check in checks):
            yield "%s: checks: expected answers of true, false or null to each" % PAIR, again
        failed = [check for check in checks if _fails(check)]
        for check in failed:
            back = "Go back to stage %s, repair, dump again, then run: %s" % (check["back_to_stage"], work.command("check_dump_pair.py"))
            yield "%s: %s: %s" % (PAIR, check.get("id"), _text(check.get("evidence"))), back
        if not failed and report.get("comparable") is not True:
            yield "%s: comparable is %r" % (PAIR, report.get("comparable")), again
    yield from _associated(work, report)


def _fails(check: Dict[str, Any]) -> bool:
    """A check that fails without a stage to go back to is a remark."""
    return check.get("ok") is False and check.get("back_to_stage") is not None


def _text(sentence: Any) -> str:
    return str(sentence.get("text")) if isinstance(sentence, dict) else str(sentence)


def _associated(work: Workdir, report: Dict[str, Any]) -> Missing:
    found = association_of(work)
    form = '"token_ids", or {"by": "request_id", "request_id": …}, and path, step and rank of dumps.train and dumps.infer'
    if found is None:
        shown = work.of("association")
        yield "%s: association names no unit of each side, found %r" % (CARD, shown), "Write %s; %s" % (form, work.mend(7))
        return
    cuts: List[Sequence[Cut]] = []
    folders: List[str] = []
    for side in SIDES:
        places = _places(work, side, found.units[side])
        if len(places) != 1:
            yield _not_one(work, side, found.units[side], places)
            return
        usable = sides.read_side(side, [places[0].folder]).usable
        if usable and not _was_judged(report.get(side), digests.digest(usable)):
            what = "%s judged another dump than association names on %s (step %d, rank %d)" % (PAIR, side, *found.units[side])
            repair = "Check these units (where the dumps hold several, hand the folders of these by --train and --infer): %s"
            yield what, repair % work.command("check_dump_pair.py")
        cuts.append(matching.cuts_of(usable))
        folders.append(os.path.realpath(places[0].folder))
    if folders[0] == folders[1]:
        yield "%s: association: train and infer name one and the same dump" % CARD, "Name each side's own; " + work.mend(7)
        return
    fit = matching.match(cuts[0], cuts[1])
    if fit is None and found.by == "token_ids":
        yield "%s: association: a dump records no token ids to compare" % CARD, "Tie the dumps by request_id; " + work.mend(7)
    elif fit is not None and (fit.fit.unequal or len(fit.train.ids) != len(fit.infer.ids)):
        what = "%d of %d on train and %d on infer agree" % (fit.fit.equal, len(fit.train.ids), len(fit.infer.ids))
        yield (
            "%s: association: the two units did not run the same tokens: %s" % (CARD, what),
            "Name the units of one request; " + work.mend(7),
        )


def _not_one(work: Workdir, side: str, unit: Tuple[int, int], places: List[UnitPlace]) -> Tuple[str, str]:
    """The gap of a unit that is not there, or there several times: as a run leaves it that was killed and begun again."""
    if not places:
        return "%s: association: on %s no dump has step %d and rank %d" % (CARD, side, *unit), work.mend(7)
    what = "%s: association: on %s several dumps have step %d and rank %d: %s" % (
        CARD, side, *unit, ", ".join(os.path.relpath(place.folder, str(work.dump(side))) for place in places),
    )  # fmt: skip
    return what, "Dump again to a fresh folder, or name the folder of the whole one in dumps.%s.path; %s" % (side, work.mend(7))


def _was_judged(side: Any, digest: str) -> bool:
    """Whether the report knows a unit; one that names no units was written by another tool or by hand."""
    units = side.get("units") if isinstance(side, dict) else None
    return not isinstance(units, list) or any(isinstance(unit, dict) and unit.get("digest") == digest for unit in units)


def association_of(work: Workdir) -> Optional[Association]:
    """The card's association; None where it does not name a step and a rank of each side."""
    value = work.of("association")
    by = value.get("by") if isinstance(value, dict) else value
    request = value.get("request_id") if isinstance(value, dict) else ""
    units: Dict[str, Tuple[int, int]] = {}
    for side in SIDES:
        named = value.get(side) if isinstance(value, dict) and side in value else work.of("dumps", side)
        step, rank = (named.get(key) if isinstance(named, dict) else None for key in ("step", "rank"))
        if type(step) is not int or type(rank) is not int or work.dump(side) is None:
            return None
        units[side] = (step, rank)
    known = by == "token_ids" or (by == "request_id" and isinstance(request, str) and request.strip() not in ("", UNKNOWN))
    return Association(str(by), str(request or ""), units) if known else None


def _places(work: Workdir, side: str, unit: Tuple[int, int]) -> List[UnitPlace]:
    path = str(work.dump(side))
    try:
        found = find_units(path)
    except DumpError:
        return []  # the gap says that there is no dump
    return [place for place in found if (place.step, place.rank) == unit]


# --- stage 8 ---


def override(work: Workdir) -> Missing:
    """Every round that was prepared is proven by its own new dump."""
    yield from work.ask("AUTH_RUN_DUMP_JOB", 8)
    rounds = list(_rounds(work))
    if not any(work.has(os.path.join(folder, OUTCOME)) for folder in rounds):
        first = rounds[0] if rounds else "round1"
        yield "no round holds a %s" % OUTCOME, "Run, with the instruction that the analysis wrote: %s" % _prepare(work, first)
        return
    for folder in rounds:
        if work.has(os.path.join(folder, OUTCOME)):
            yield from _round(work, folder)
        else:
            yield "%s was not carried out" % os.path.join(folder, INSTRUCTION), "Run: %s" % _prepare(work, folder)


def _rounds(work: Workdir) -> Iterator[str]:
    """The folders of rounds in their order, the collection's own where a single round lies there."""
    below = [name for name in os.listdir(str(work.folder)) if _ROUND.match(name)]
    for name in ["", *sorted(below, key=lambda name: int(name[len("round") :]))]:
        if any(work.has(os.path.join(name, artefact)) for artefact in (OUTCOME, INSTRUCTION)):
            yield name


def _prepare(work: Workdir, folder: str) -> str:
    return work.command("apply_stub_instruction.py", *_of_round(work, folder))


def _of_round(work: Workdir, folder: str) -> List[str]:
    whole = work.folder / folder
    return ["--instruction", str(whole / INSTRUCTION), "--output-dir", str(whole)]


def _round(work: Workdir, folder: str) -> Missing:
    name, instruction = os.path.join(folder, OUTCOME), os.path.join(folder, INSTRUCTION)
    outcome = outcomes.read(work.folder / name)
    again = "Run: %s" % work.command("apply_stub_instruction.py", *_of_round(work, folder), "--verify", str(work.folder / folder / "dump"))
    if work.has(instruction) and files.digest_of_file(work.folder / instruction) != outcome["instruction"]["digest"]:
        yield "%s was prepared from another instruction than the one beside it" % name, "Run: %s" % _prepare(work, folder)
    if outcome["new_dump"] is None or len(outcome["effect"]) < len(outcome["prepared"]):
        yield "%s: no new dump was compared with the prepared files" % name, again
        return
    failed = [item for item in outcome["effect"] if item.get("overridden") is not True]
    for item in failed:
        yield (
            "%s: %s %s: %s" % (name, item.get("target_entry"), item.get("input"), _text(item.get("evidence"))),
            ("Mend that, run the target again, then " + again[0].lower() + again[1:]),
        )
    if not failed and outcome.get("effective") is not True:
        yield "%s: effective is %r" % (name, outcome.get("effective")), again
    path = work.at(outcome["new_dump"]["path"])
    if os.path.exists(path) and outcome["new_dump"].get("digest") not in recorded.digests(recorded.open_dump(path, "the new dump")):
        yield "%s: the new dump was changed since it was verified" % name, again
