"""The folder of one analysis: its files, the dumps that its task card names, and the commands that make what it lacks."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msprobe_files import units
from msprobe_files.task_card import UNKNOWN
from msprobe_files.units import UnitPlace

from dump_analysis import round_steps, sides
from dump_analysis.artefacts import file_names, io, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.gathered import TRAIN_LOG, rounds_here
from dump_analysis.pipeline import CONCLUSION, MAPPING, PROBE, REPLAY, RESULTS
from dump_analysis.rounds import history
from dump_analysis.rounds.history import Round
from dump_analysis.sides import Side

CARD, ROWS = "task_card.json", "rows.json"
LABELS = ("train", "infer")
PLACES = {"step": re.compile(r"step(\d+)"), "rank": re.compile(r"rank(\d+)")}
_SCRIPTS = Path(__file__).parent.parent.parent
_GIVEN_TO_CONCLUDE = {
    TRAIN_LOG: '--train-log "$TRAIN_LOG"',
    "train config": '--train-config "$TRAIN_CONFIG"',
    "infer config": '--infer-config "$INFER_CONFIG"',
}

Missing = Iterator[tuple[str, str]]  # what shuts a gate, and its repair
_SHOWN = 4  # names in one line

T = TypeVar("T", bound=msgspec.Struct)


class Workdir:
    """``card``: the task card, once stage 0 has read it; ``warnings``: what reading told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.card: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._read: dict[str, msgspec.Struct] = {}
        self._opened: dict[str, Side] = {}

    # --- files ---

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def read(self, name: str, kind: type[T]) -> T | None:
        """An artefact; None where it is not there. Raises DumpError where it cannot be read."""
        if name not in self._read and self.has(name):
            self._read[name], told = io.read(self.folder / name, kind)
            self.warnings += told
        found = self._read.get(name)
        return found if isinstance(found, kind) else None

    def round_results(self) -> list[str]:
        """The results of the override rounds that a conclusion from this folder takes in."""
        return [history.result_label(one) for one in self.rounds() if one.result_digest is not None]

    def rounds(self) -> list[Round]:
        """The override rounds of the dumps that were compared here."""
        results = self.read(RESULTS, BoundaryResults)
        return (rounds_here(self.folder, results) if results is not None else history.rounds_of(self.folder))[0]

    def mapping(self) -> SemanticMapping | None:
        """semantic_mapping.json, which people may have edited; None where it is not there."""
        return semantic_mapping.read(self.folder / MAPPING) if self.has(MAPPING) else None

    def digest(self, name: str) -> str:
        """The sha-256 of a file's bytes."""
        return io.digest_of_file(self.folder / name)

    # --- dumps ---

    def field(self, label: str) -> dict[str, Any]:
        """What the task card says of one side's dump: path, step, rank."""
        dumps = self.card.get("dumps")
        side = dumps.get(label) if isinstance(dumps, dict) else None
        return side if isinstance(side, dict) else {}

    def dump(self, label: str) -> str | None:
        """The path of one side's dump; None where the task card does not tell it."""
        path = self.field(label).get("path")
        return path if isinstance(path, str) and path.strip() and path != UNKNOWN else None

    def is_there(self, label: str) -> bool:
        path = self.dump(label)
        return path is not None and os.path.exists(path)

    def side(self, label: str, digest: str) -> Side | None:
        """The dump of this digest among what the task card names: the whole path, or the part of its step and rank.

        None where no part has it. Raises DumpError where the dump cannot be read.
        """
        path = self.dump(label)
        if path is None or not os.path.exists(path):
            return None
        if label not in self._opened:
            self._opened[label] = sides.open_side(label, [path])
        whole = self._opened[label]
        wanted = self.field(label)
        fitting = [unit for unit in whole.units if all(may_be(unit.place, what, wanted.get(what)) for what in PLACES)]
        steps = sorted({unit.place.step for unit in fitting})
        parts = [[unit for unit in fitting if unit.place.step == step] for step in steps] + [[unit] for unit in fitting]
        cuts = (sides.side_of(label, part) for part in parts)
        return next((side for side in (whole, *cuts) if side.digest == digest), None)

    # --- commands ---

    def shown(self, name: str) -> str:
        """A file of this folder as a shell takes it."""
        return shlex.quote(str(self.folder / name))

    def template(self) -> str:
        """The command that lays an empty task card here."""
        return f"cp {shlex.quote(str(_SCRIPTS.parent / 'references' / CARD))} {self.shown(CARD)}"

    def probe(self, parts: "dict[str, str] | None" = None) -> str:
        """``parts``: the folder of one unit, by side, in place of the dump that the task card names."""
        return f"{_call('probe_dump.py')} {self._pair(parts)} --output {self.shown(PROBE)}"

    def diagnose(self) -> str:
        """The whole line: by the rows that people wrote here, else by a mapping that it proposes."""
        rows = f" --mapping {self.shown(ROWS)}" if self.has(ROWS) else ""
        return f"{_call('diagnose.py')} {self._pair()}{rows} --output-dir {shlex.quote(str(self.folder))}"

    def map_anew(self) -> str:
        """A mapping from the rows that people wrote here, else a proposed one."""
        return self.diagnose() if self.has(ROWS) else f"{_call('propose_mapping.py')} {self._pair()} --output {self.shown(MAPPING)}"

    def complete(self) -> str:
        """The mapping that is here, completed on the dumps."""
        return f"{_call('diagnose.py')} {self._pair()} --mapping {self.shown(MAPPING)} --output-dir {shlex.quote(str(self.folder))}"

    def analyze(self) -> str:
        return f"{_call('analyze_dump_boundaries.py')} {self._pair()} --mapping {self.shown(MAPPING)} --output {self.shown(RESULTS)}"

    def replay(self) -> str:
        return f"{_call('replay_boundaries.py')} {self._pair()} --mapping {self.shown(MAPPING)} --output {self.shown(REPLAY)}"

    def plan_round(self) -> str:
        """As the last one was planned."""
        flags = shlex.join(round_steps.as_planned(self.folder))
        return f"{_call('make_stub_instruction.py')} {self._pair()} --workdir {shlex.quote(str(self.folder))} {flags}".rstrip()

    def judge(self, number: int) -> str:
        return f"{_call('judge_round.py')} {self._pair()} --workdir {shlex.quote(str(self.folder))} --round {number}"

    def log(self) -> str | None:
        """The training log that the task card names, where it is there."""
        stated = self.card.get("log_location")
        return stated if isinstance(stated, str) and os.path.isfile(stated) else None

    def conclude(self, inputs: Sequence[str]) -> str:
        """``inputs``: labels of an earlier conclusion's inputs; what was handed to it then is asked for again."""
        more = [flag for label, flag in _GIVEN_TO_CONCLUDE.items() if label in inputs]
        if (log := self.log()) is not None:
            more = [f"--train-log {shlex.quote(log)}", *(flag for flag in more if not flag.startswith("--train-log"))]
        return " ".join([_call("conclude.py"), "--workdir", shlex.quote(str(self.folder)), *more])

    def fill_report(self) -> str:
        """The report's source from the conclusion that is here."""
        return f"{_call('generate_alignment_report.py')} --from-results {shlex.quote(str(self.folder))}"

    def render_report(self) -> str:
        source, folder = self.shown(file_names.SOURCE), shlex.quote(str(self.folder))
        return f"{_call('generate_alignment_report.py')} --input {source} --output-dir {folder}"

    def check(self, stage: int) -> str:
        return f"{_call('check_stage.py')} --stage {stage} --workdir {shlex.quote(str(self.folder))}"

    def after(self, stage: int) -> str:
        """What follows on an open gate."""
        return {
            0: self.probe(),
            1: self.diagnose(),
            2: self.analyze(),
            3: self.replay(),
            4: self.conclude([]),
            5: self.conclude([]),
            6: self.check(7),
            7: self.check(8),
            8: f"read {self.shown(CONCLUSION)}, answer the user and hand over {self.shown(file_names.REPORT_HTML)}",
        }[stage]

    def _pair(self, parts: "dict[str, str] | None" = None) -> str:
        """Both dumps as flags; a path that the task card does not tell is left to the variable that SKILL.md uses."""
        given = {label: (parts or {}).get(label) or self._part(label) for label in LABELS}
        return " ".join(f"--{label} " + (shlex.quote(path) if path else f'"${label.upper()}"') for label, path in given.items())

    def _part(self, label: str) -> str | None:
        """The path of a dump, or the one unit of several below it that has the task card's step and rank."""
        path, wanted = self.dump(label), self.field(label)
        if path is None or not self.is_there(label):
            return path
        places = units.find_units(path)
        fitting = [place for place in places if all(may_be(place, what, wanted.get(what)) for what in PLACES)]
        return fitting[0].folder if len(fitting) == 1 < len(places) else path


def _call(script: str) -> str:
    return shlex.join([sys.executable or "python3", str(_SCRIPTS / script)])


# --- steps and ranks ---


def number(value: Any) -> int | None:
    """A step or rank of the task card; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    return int(value) if re.fullmatch(r"[0-9]{1,9}", str(value)) else None


def of_folder(place: UnitPlace, what: str) -> int | None:
    """The step or rank that a unit's folders name; None where they name none (`UnitPlace` has 0 then)."""
    found = [match for part in reversed(place.folder.split(os.sep)) if (match := PLACES[what].fullmatch(part))]
    return int(found[0][1]) if found else None


def may_be(place: UnitPlace, what: str, wanted: Any) -> bool:
    """Whether a unit may be the one of this step or rank: where one of the two is not told, it may."""
    return None in (number(wanted), of_folder(place, what)) or number(wanted) == of_folder(place, what)


# --- words ---


def says(sentence: Worded | None) -> bool:
    """Whether there is a sentence that says anything."""
    return sentence is not None and bool(sentence.text.strip())


def named(names: Sequence[str]) -> str:
    """Names in one line, the first few of them."""
    return ", ".join(names[:_SHOWN]) + (f" … ({len(names)} in all)" if len(names) > _SHOWN else "")
