"""Stages 0 to 2: the target is fixed, the machine is free and usable, every authorisation is asked for and recorded."""

import re
from typing import Any, Iterator, List, Tuple

from msprobe_files import task_card
from msprobe_files.task_card import AUTHORISATIONS, UNKNOWN
from msprobe_files.units import load_json

from dump_collection.quotes import quotes_of, version_in

from .workdir import CARD, SIDES, Missing, Workdir, named

_NO_FACTS = frozenset({"n/a", "na", "null", "nil", "tbd", "todo", "fixme", "?", "??", "-", "...", "…", "xxx", "待定", "未知", "不详"})
_TEMPLATE = re.compile(r"<[^<>]*>|\$\w+|.*\bpath/to\b.*", re.DOTALL)
_BROAD = re.compile(r"\b(pkill|killall)\b|\bkill\s+(-\S+\s+)*-1\b")
_GATED = frozenset(str(stage) for stage in range(8))  # what comes after may be left out: a collection for its own sake ends at 7


def target(work: Workdir) -> Missing:
    """Stage 0: each field holds a fact, nothing, or ``unknown``."""
    if not work.has(CARD):
        yield "%s is missing" % CARD, "Copy references/%s of this skill to %s and fill it in, then run: %s" % (
            CARD, work.shown(CARD), work.check(0),
        )  # fmt: skip
        return
    work.card = load_json(str(work.folder / CARD))
    problems = task_card.problems(work.card)
    for what in [*problems, *_no_facts(work.card, ""), *_no_numbers(work)]:
        yield "%s: %s" % (CARD, what), work.mend(0)
    for stage, value in (work.of("stages") if not problems else {}).items():
        if stage in _GATED and value["state"] == "skipped":
            yield (
                "%s: stage %s is skipped, and none of the stages 0 to 7 may be" % (CARD, stage),
                "Do it, then run: %s" % work.check(int(stage)),
            )


def _no_facts(value: Any, path: str) -> Iterator[str]:
    """Texts that stand in templates: neither a fact nor ``unknown``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _no_facts(inner, "%s.%s" % (path, key) if path else str(key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _no_facts(inner, "%s[%d]" % (path, at))
    elif isinstance(value, str) and path != "notes" and (value.strip().lower() in _NO_FACTS or _TEMPLATE.fullmatch(value.strip())):
        yield '%s: %r is no fact (write "unknown" where it is not known)' % (path, value)


def _no_numbers(work: Workdir) -> Iterator[str]:
    """Counts that are no counts: a default that somebody invented."""
    wanted: List[Tuple[Tuple[str, ...], int]] = [(("sample", "prompt_length"), 1)]
    wanted += [(("parallel", side, key), 1) for side in SIDES for key in ("tp", "pp", "ep", "cp", "dp")]
    wanted += [(("dumps", side, key), 0) for side in SIDES for key in ("step", "rank")]
    for path, least in wanted:
        value = work.of(*path)
        if value not in (UNKNOWN, "") and (type(value) is not int or value < least):
            yield "%s: expected a whole number from %d on or unknown, found %r" % (".".join(path), least, value)


def machine(work: Workdir) -> Missing:
    """Stage 1: cards at their idle baseline, msprobe in both environments, the job can be started; commands and outputs quoted."""
    for when in ("before", "after"):
        if not quotes_of(work.of("cards", when)):
            yield "%s: cards.%s quotes no command with its output" % (CARD, when), _quote(work, "npu-smi info, nvidia-smi or the like")
    if work.lacks("cards.idle_memory"):
        yield "%s: cards.idle_memory is not known" % CARD, work.mend(1)
    yield from _stopped(work)
    for side in SIDES:
        if work.lacks("environments.%s.activation" % side):
            yield "%s: environments.%s.activation is not known" % (CARD, side), work.mend(1)
        if not quotes_of(work.of("environments", side, "msprobe")) or version_in(work.of("environments", side, "msprobe")) is None:
            how = "python3 -m pip show mindstudio-probe, in the very environment that runs %s" % side
            yield "%s: environments.%s.msprobe quotes no command that printed a version" % (CARD, side), _quote(work, how)
    for field in work.lacks("baseline_command", "log_location", "product_root"):
        yield "%s: %s is not known" % (CARD, field), work.mend(1)


def _quote(work: Workdir, what: str) -> str:
    return 'Run %s, write {"command": …, "output": …} into %s, then run: %s' % (what, work.shown(CARD), work.check(1))


def _stopped(work: Workdir) -> Missing:
    """Processes of this task that were stopped: by exact ids, with leave, and gone afterwards."""
    stopped = work.of("cards", "stopped_processes")
    for at, process in enumerate(stopped if isinstance(stopped, list) else []):
        text = str(process)
        if _BROAD.search(text):
            yield (
                "%s: cards.stopped_processes[%d] was stopped by a broad name" % (CARD, at),
                "Stop processes by their ids alone; " + work.mend(1),
            )
        elif not re.search(r"\d", text):
            yield "%s: cards.stopped_processes[%d] names no process id" % (CARD, at), work.mend(1)
    if stopped and stopped != UNKNOWN:
        yield from work.ask("AUTH_STOP_RUNNING_SERVICES", 1)


def authorisations(work: Workdir) -> Missing:
    """Stage 2: all five asked for and answered, with the date."""
    ask = "Ask the user for all of them at once, write the answers into %s, then run: %s" % (work.shown(CARD), work.check(2))
    silent = [name for name in AUTHORISATIONS if work.of("authorisations", name, "state") not in ("granted", "denied")]
    if silent:
        yield "%s: authorisations without an answer: %s" % (CARD, named(silent) if len(silent) < 5 else "all five"), ask
    undated = [name for name in AUTHORISATIONS if name not in silent and not _is_date(work.of("authorisations", name, "date"))]
    if undated:
        yield "%s: authorisations without a date: %s" % (CARD, named(undated)), ask


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and re.search(r"\d", value) is not None
