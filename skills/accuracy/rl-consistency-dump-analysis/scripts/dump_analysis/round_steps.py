"""The steps of the override rounds, each from files to files: what their commands call."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msprobe_files import task_card
from msprobe_files.errors import DumpError

from . import cli, gathered, guards, pipeline, sides
from .artefacts import file_names, io, semantic_mapping
from .artefacts.boundary_results import BoundaryResults
from .artefacts.common import FileDigest, SideName, Worded
from .artefacts.conclusion import Conclusion
from .artefacts.noise_floor import Method, NoiseFloor
from .artefacts.replay_results import ReplayResults
from .artefacts.round_plan import PlannedRound, RoundPlan
from .artefacts.round_result import RoundResult
from .artefacts.semantic_mapping import SemanticMapping
from .artefacts.stub_instruction import StubInstruction
from .artefacts.stub_outcome import StubOutcome
from .pipeline import Told
from .rounds import again, floor, history, judge, plan, preconditions
from .rounds.character import Evidence
from .rounds.feeds import Feeds, feeds_of
from .rounds.levels import ROUNDS
from .rounds.open_points import Ground, open_points
from .rounds.plan import Planned
from .rounds.sums import adding_up
from .rounds.writing import Wanted, instruction
from .sides import Side
from .wording import word

PLAN, FLOOR = "round_plan.json", "noise_floor.json"
_SIDES: tuple[SideName, ...] = ("infer", "train")  # the engine first: it records more of what it makes as outputs


def require_analysis(workdir: Path, doing: str, dumps: Sequence[str]) -> None:
    """Raise DumpError where a folder lacks what rounds rest on. ``dumps``: the flags that name the pair."""
    for name in (pipeline.MAPPING, pipeline.RESULTS, pipeline.CONCLUSION):
        if not (workdir / name).is_file():
            again = cli.call("diagnose.py", *dumps, "--output-dir", str(workdir.resolve()))
            raise DumpError(f"Cannot {doing}: {workdir / name} is missing. Analyse the pair first: {again}")


def as_planned(workdir: Path) -> list[str]:
    """The flags by which the last round was planned, so that the next plan is asked for alike; none where nothing was planned."""
    flags: list[str] = []
    rounds = history.rounds_of(workdir)[0]
    if rounds:
        made = rounds[-1].instruction
        flags += ["--all"] if made.kind == "forced" else []
        side = made.reason.values.get("side")
        asked = isinstance(side, dict) and side.get("kind") == "side_told"
        flags += ["--target", made.target_side] if asked else []
    if (workdir / PLAN).is_file():
        remarks = io.read(workdir / PLAN, RoundPlan)[0].remarks
        named = {remark.values.get("name") for remark in remarks if remark.kind == "round_despite"}
        despite = [short for short, name in preconditions.CHEAP.items() if name in named]
        flags += ["--despite", *despite] if despite else []
    return flags


class Next(NamedTuple):
    """The plan, and the instruction of its next round with the folder that it went to; None where no round adds anything."""

    plan: RoundPlan
    instruction: StubInstruction | None
    folder: Path | None


def plan_step(
    train: Side, infer: Side, workdir: Path, target: SideName | None, despite: Collection[str], *, at_once: bool
) -> tuple[Next, Told]:
    """Stage 5: the next round. Raises DumpError where cheap causes are not ruled out, or the files are of other dumps."""
    mapping, ground, warnings = _ground(train, infer, workdir, "plan a round")
    told = preconditions.check_cheap_causes(ground.conclusion, despite)
    able, remarks = _able(train, infer, workdir, target)
    remarks = told + remarks
    known = {side: feeds_of(mapping.boundaries, train, infer, side) for side in able}
    found = [_planned(feeds, ground, at_once=at_once) for feeds in known.values()]
    left = open_points(ground)
    best = plan.better(found) if found else None
    waiting = [one for one in ground.rounds if one.result is not None and not one.result.effective]
    remarks += [word("round_again", round=one.number, why=one.result.why_not or "") for one in waiting[-1:] if one.result is not None]
    made, folder = None, None
    rounds: list[PlannedRound] = []
    if best is not None and best.wanted is not None:
        made, folder, rounds = _written(best, best.wanted, _side_said(best, found, target, at_once=at_once), ground, mapping, workdir)
    else:
        remarks += [word("round_nothing_open", side=side) for side in able[:1]]
        others = _able(train, infer, workdir, None)[0] if target is not None else []
        known |= {side: feeds_of(mapping.boundaries, train, infer, side) for side in others if side not in known}
        remarks += _elsewhere(known, ground, target, at_once=at_once)
        history.withdraw(workdir, ground.rounds, _planned_digests(workdir))
    planned = RoundPlan(
        open=[finding.id for finding in left.findings],
        rounds=rounds,
        ablations=best.beyond if best is not None else [],
        not_needed=left.not_needed,
        remarks=remarks,
    )
    io.write(workdir / PLAN, planned)
    return Next(planned, made, folder), Told([], warnings)


def _written(
    best: Planned, wanted: Wanted, side: Worded | None, ground: Ground, mapping: SemanticMapping, workdir: Path
) -> tuple[StubInstruction, Path, list[PlannedRound]]:
    """The instruction in the folder of its round, and the plan's line of it and of those after it. ``side``: why this side."""
    number = history.next_number(ground.rounds, history.taken(workdir))
    reason = word("reason_with_side", reason=wanted.reason, side=side) if side is not None else wanted.reason
    made = instruction(wanted._replace(reason=reason), number, mapping)
    folder = history.folder_of(workdir, number)
    _refuse_edited(workdir, folder, made)
    digest = io.write(folder / history.INSTRUCTION, made)
    rounds = [PlannedRound(number, FileDigest(digest), best.adds or reason)]
    return made, folder, rounds + [PlannedRound(number + at, None, adds) for at, adds in enumerate(best.later, 1)]


def _refuse_edited(workdir: Path, folder: Path, made: StubInstruction) -> None:
    """Raise DumpError where the instruction of a round that was not judged is neither the one that was planned nor this one."""
    path = folder / history.INSTRUCTION
    if not path.is_file() or path.read_bytes() == io.text_of(made).encode() or io.digest_of_file(path) in _planned_digests(workdir):
        return
    what = f"{folder.name}/{path.name} was edited since it was planned, or comes from elsewhere"
    raise DumpError(f"Cannot plan a round: {what}. Carry it out and judge it, or move it away to have it planned anew.")


def _planned_digests(workdir: Path) -> set[str]:
    """The digests of the instructions that the last plan wrote."""
    if not (workdir / PLAN).is_file():
        return set()
    return {one.instruction.digest for one in io.read(workdir / PLAN, RoundPlan)[0].rounds if one.instruction is not None}


def judge_step(
    train: Side, infer: Side, workdir: Path, number: int, dump: str | None, noise: str | None, output: Path
) -> tuple[RoundResult, Told]:
    """What round ``number`` has shown. ``dump``: the target dumped again, None: where the outcome says; ``noise``: a noise floor.

    Raises DumpError where the round was not prepared, or what is handed does not belong together.
    """
    folder = history.folder_of(workdir, number)
    names = (pipeline.MAPPING, pipeline.RESULTS, pipeline.CONCLUSION, pipeline.REPLAY, file_names.CARD)
    handed = [noise] if noise is not None else []
    guards.refuse_same(output, *(workdir / name for name in names), folder / history.INSTRUCTION, folder / history.OUTCOME, *handed)
    mapping, ground, warnings = _ground(train, infer, workdir, f"judge round {number}")
    made, outcome, told = _carried_out(folder, number, {"train": train, "infer": infer})
    digest = io.digest_of_file(folder / history.INSTRUCTION)
    path = dump or (outcome.new_dump.path if outcome.new_dump is not None else None)
    if path is None:
        result = judge.not_effective(made, digest, word("why_not_verified"))
    else:
        feeds = feeds_of(mapping.boundaries, train, infer, made.target_side)
        new = again.open_round(feeds.target, path)
        why = again.stated(outcome, digest, new) or again.seen(made, feeds, new)
        earlier = ground._replace(rounds=[one for one in ground.rounds if one.number < number])
        other = feeds.source_side
        untried = bool(_able(train, infer, workdir, other)[0]) and len(history.forced_into(earlier.rounds, other)) < ROUNDS
        known = _evidence(ground, noise)
        result = (
            judge.judge(made, digest, feeds, new, earlier, known, other_side=untried)
            if why is None
            else judge.not_effective(made, digest, why)
        )
    io.write(output, result)
    return result, Told([], warnings + told)


def _carried_out(folder: Path, number: int, pair: Mapping[str, Side]) -> tuple[StubInstruction, StubOutcome, list[str]]:
    """What the folder of a round holds, and warnings. Raises DumpError where it was not carried out, or on another pair."""
    plan_it = "Plan it with make_stub_instruction.py first, or hand the number of a round that was planned."
    carry_out = "Carry the round out with the collection skill (stage 8, apply_stub_instruction.py) first."
    for name, remedy in ((history.INSTRUCTION, plan_it), (history.OUTCOME, carry_out)):
        if not (folder / name).is_file():
            raise DumpError(f"Cannot judge round {number}: {folder / name} is missing. {remedy}")
    made, told = history.read(folder, history.INSTRUCTION, StubInstruction)
    outcome, more = history.read(folder, history.OUTCOME, StubOutcome)
    if made.source_dump.digest != pair[made.source_side].digest:
        raise DumpError(f"Cannot judge round {number}: its instruction was made from another {made.source_side} dump. Hand that pair.")
    return made, outcome, told + more


def floor_step(runs: Sequence[str], method: Method, output: Path) -> NoiseFloor:
    """How far runs of one side part. Raises DumpError where one is named twice, or nothing of one sequence stands in two of them."""
    known: dict[str, str] = {}
    for path in runs:
        if known.setdefault(os.path.realpath(path), path) is not path:
            raise DumpError(f"Cannot measure a noise floor: --run names {path} twice. Hand the dump of another run.")
    opened = [floor.sequenced(sides.open_side("train", [path])) for path in runs]
    found = NoiseFloor(method=method, points=floor.points(floor.copies(opened, method)), runs=len(runs))
    io.write(output, found)
    return found


def _evidence(ground: Ground, noise: str | None) -> Evidence:
    points = io.read(noise, NoiseFloor)[0].points if noise is not None else []
    modules = {one.module: one for one in ground.replay.modules} if ground.replay is not None else {}
    return Evidence(modules, ground.results, {point.boundary: point for point in points})


def _planned(feeds: Feeds, ground: Ground, *, at_once: bool) -> Planned:
    return plan.next_forced(ground, feeds) if at_once else plan.next_cut(ground, feeds)


def _ground(train: Side, infer: Side, workdir: Path, doing: str) -> tuple[SemanticMapping, Ground, list[str]]:
    """The artefacts of an analysis, all of these two dumps. Raises DumpError where one cannot be read or is of others."""
    mapping = semantic_mapping.read(workdir / pipeline.MAPPING)
    results, warnings = io.read(workdir / pipeline.RESULTS, BoundaryResults)
    if (results.train.digest, results.infer.digest) != (train.digest, infer.digest):
        raise DumpError(f"Cannot {doing}: {pipeline.RESULTS} is of other dumps than were handed. Hand the pair of this analysis.")
    if results.mapping.digest != io.digest_of_file(workdir / pipeline.MAPPING):
        warnings.append(f"{pipeline.MAPPING} was edited since {pipeline.RESULTS} was made from it; compare again")
    conclusion, told = io.read(workdir / pipeline.CONCLUSION, Conclusion)
    warnings += told
    replay: ReplayResults | None
    replay, told = gathered.replay_of(workdir / pipeline.REPLAY, results)
    warnings += told
    rounds, told = gathered.rounds_here(workdir, results)
    adds_up = adding_up(mapping.boundaries, train, infer)
    return mapping, Ground(results, conclusion, replay, rounds, adds_up), warnings + told


def _able(train: Side, infer: Side, workdir: Path, target: SideName | None) -> tuple[list[SideName], list[Worded]]:
    """The sides that may be overridden, and why the others may not."""
    card = task_card.read(str(workdir / "task_card.json")) if (workdir / "task_card.json").is_file() else task_card.empty()
    sides = {"train": train, "infer": infer}
    able, remarks = [], []
    for side in [target] if target is not None else list(_SIDES):
        why = preconditions.without_load(sides[side], card)
        if why is None and len({unit.place.step for unit in sides[side].units}) > 1:
            why = word("round_several_steps", side=side)
        if why is None:
            able.append(side)
        else:
            remarks.append(why)
    return able, remarks


def _elsewhere(able: Mapping[SideName, Feeds], ground: Ground, target: SideName | None, *, at_once: bool) -> list[Worded]:
    """What another kind of round would still show: into the side that was not asked for, or with everything overridden at once."""
    for side, feeds in able.items():
        if target not in (None, side) and _planned(feeds, ground, at_once=at_once).wanted is not None:
            return [word("round_other_side", side=side)]
    forced = [plan.next_forced(ground, feeds) for feeds in able.values()] if not at_once else []
    best = plan.better(forced).wanted if forced else None
    return [word("round_forced_shows", side=best.feeds.target_side)] if best is not None else []


def _side_said(best: Planned, found: Sequence[Planned], target: SideName | None, *, at_once: bool) -> Worded | None:
    """Why this side is overridden and not the other."""
    if best.wanted is None:
        return None
    side = best.wanted.feeds.target_side
    other = next((one for one in found if one is not best and one.wanted is not None), None)
    if target is not None:
        return word("side_told", side=side)
    if other is None or other.wanted is None:
        return word("side_alone_shows", side=side) if len(found) > 1 else None
    name = other.wanted.feeds.target_side
    here = {"side": side, "other": name}
    if at_once:
        (hidden, rounds, at_risk, *_), (other_hidden, other_rounds, other_at_risk, *_) = best.cost, other.cost
        there = {"other_hidden": other_hidden, "other_rounds": other_rounds, "other_at_risk": other_at_risk}
        return word("side_cheaper_forced", **here, hidden=hidden, rounds=rounds, at_risk=at_risk, **there)
    (hidden, inputs), (other_hidden, other_inputs) = best.cost, other.cost
    return word("side_cheaper_cut", **here, hidden=hidden, inputs=inputs, other_hidden=other_hidden, other_inputs=other_inputs)
