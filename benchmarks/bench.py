"""Measure the comparison of generated dump pairs against reading them, and against what users do today (see NOTES.md)."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import baselines
import checkpoints
import clock
import pairs
import proposals
import replays
import report
from clock import Ran
from pairs import KINDS, Kind, Pair, make_pair
from report import Measured, Start
from shapes import Size

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ROOT / "skills/accuracy/rl-consistency-dump-analysis/scripts/analyze_dump_boundaries.py"
OUT = ROOT / "build" / "bench"
MAIN_GB = 1.4
GROWING = (1, 2, 4)  # layers of checkpoints: 0.75 to 3 GB a side
LAYERS = {0.35: 2, 0.7: 4, MAIN_GB: 8, 2.8: 16}  # GB a side -> layers
QUICK = Size(layers=2, tokens=256, hidden=1024, wide=4096, vocab=2048)
TINY = Size(layers=1, tokens=4, hidden=16, wide=32, vocab=32)
NEEDED_GB = 12


class WrongAnswer(Exception):
    """A method failed, or said something else than what was planted."""


class Plan(NamedTuple):
    """How often a method is run: ``rounds`` times, or once it has used ``seconds`` and at least ``least`` rounds.

    ``baselines``: the kinds of the trainer/trainer pair on which the baselines are run too.
    """

    rounds: int
    least: int
    seconds: float
    baselines: tuple[Kind, ...] = ()


class Method(NamedTuple):
    """``command`` is made anew for each run; ``wrong`` says what is wrong with a run's answer, or nothing; ``code``: of a right answer."""

    name: str
    command: Callable[[], list[str]]
    wrong: Callable[[Ran], str]
    code: int = 0


# --- methods ---


def methods_of(pair: Pair, *, with_baselines: bool) -> Iterator[Method]:
    """The unit, ours, the proposal and replay where values come from a forward, and where asked for the baselines that are installed."""
    files = pair.files()
    yield Method("cat", lambda: ["cat", *files], lambda _: "")
    yield ours(pair)
    if pair.kind in pairs.FORWARD:
        yield from _on_forward(pair)
    if not with_baselines:
        return
    if baselines.has_torch():
        loop = baselines.torch_command(pair.train, pair.infer)
        yield Method("torch loop", lambda: loop, lambda ran: _unlike(pair, baselines.read_torch(ran.output)))
    if baselines.has_msprobe():
        output = pair.folder / "msprobe"
        compare = baselines.msprobe_command
        yield Method(
            "msprobe compare",
            lambda: compare(pair.train, pair.infer, output),
            lambda _: _unlike(pair, baselines.read_msprobe(output)),
        )


def _on_forward(pair: Pair) -> Iterator[Method]:
    """The proposal, and replay with the mapping that it wrote."""
    proposed, output = pair.folder / "proposed" / "semantic_mapping.json", pair.folder / "proposed" / "replay_results.json"
    noise = pair.kind == "noise"
    propose, replay = proposals.command, replays.command
    yield Method("proposal", lambda: propose(pair.train, pair.infer, proposed), lambda _: proposals.wrong(pair.size, proposed))
    command = replay(pair.train, pair.infer, proposed, output)
    yield Method("replay", lambda: command, lambda _: replays.wrong(pair.size, output, noise=noise))


def ours(pair: Pair) -> Method:
    """The exact gate with its measures, as users call it."""
    output = pair.folder / f"{pair.label}.results.json"
    files = ["--mapping", str(pair.mapping), "--output", str(output)]
    command = [sys.executable, str(COMMAND), "--train", str(pair.train), "--infer", str(pair.infer), *files]
    return Method("ours", lambda: command, lambda _: _wrong_results(pair, output))


def _wrong_results(pair: Pair, path: Path) -> str:
    """What boundary_results.json says otherwise than was planted, row by row."""
    results = json.loads(path.read_text())
    found = {row["boundary"]: row for row in [*results["boundaries"], *results["weights"]]}
    if len(found) != len(pair.rows):
        return f"{len(found)} rows instead of {len(pair.rows)}"
    for row in pair.rows:
        planted = pair.planted[row.value]
        status, unequal = found[row.boundary]["status"], found[row.boundary]["unequal"]
        if status != ("NOT_EXACT" if planted else "EXACT") or unequal is None or unequal["count"] != planted:
            return f"{row.boundary} is {status} with {unequal}, but {planted} elements were changed"
    return ""


def _unlike(pair: Pair, found: baselines.Found) -> str:
    expected = baselines.Found(len(pair.rows), sum(pair.planted[row.value] > 0 for row in pair.rows))
    return "" if found == expected else f"{found}, but {expected} is true"


# --- measuring ---


def measure(methods: Sequence[Method], files: Sequence[str], plan: Plan) -> dict[str, list[Ran]]:
    """Rounds over all methods, each run with all files in the page cache. Raises WrongAnswer."""
    runs: dict[str, list[Ran]] = {method.name: [] for method in methods}
    for _ in range(plan.rounds):
        for method in methods:
            done = runs[method.name]
            if len(done) >= plan.least and sum(ran.wall for ran in done) > plan.seconds:
                continue
            command = method.command()
            clock.warm(files)
            ran = clock.run(command, discard=method.name == "cat")
            wrong = f"exit {ran.code}: {ran.errors[-400:]}" if ran.code != method.code else method.wrong(ran)
            if wrong:
                raise WrongAnswer(f"{method.name}: {wrong}")
            done.append(ran)
    return runs


def measure_pair(pair: Pair, plan: Plan) -> list[Measured]:
    """All methods on one pair."""
    files = pair.files()
    gigabytes = sum(os.path.getsize(file) for file in files) / 2e9
    try:
        runs = measure(list(methods_of(pair, with_baselines=pair.same_layout and pair.kind in plan.baselines)), files, plan)
    except WrongAnswer as wrong:
        raise WrongAnswer(f"{pair.label}, {gigabytes:.2f} GB a side: {wrong}") from None
    unit = min(ran.cpu for ran in runs["cat"])
    shown = "trainer/trainer" if pair.same_layout else "trainer/engine"
    return [Measured.of(runs[name], name, pair.kind, pair=shown, gigabytes=gigabytes, unit=unit) for name in runs]


def measure_size(folder: Path, size: Size, plan: Plan, *, main: bool, keep: bool) -> list[Measured]:
    """All kinds of one size, both layouts of the main size; an engine side is removed once it was measured."""
    found: list[Measured] = []
    pairs.write_side(folder / "train", size, "train", engine=False)
    for same_layout in (False, True) if main else (False,):
        for kind in KINDS:
            pair = make_pair(folder, size, kind, same_layout=same_layout)
            os.sync()  # or the kernel writes the side to disk during the first rounds
            found += measure_pair(pair, plan)
            print(f"  {found[-1].gigabytes:.2f} GB a side, {pair.label}: measured", file=sys.stderr, flush=True)
            if not keep:
                shutil.rmtree(pair.infer)
    if not keep:
        shutil.rmtree(folder / "train")
    return found + (measure_forward(folder, size, plan, keep=keep) if main else [])


def measure_forward(folder: Path, size: Size, plan: Plan, *, keep: bool) -> list[Measured]:
    """Pairs whose values come from a forward: proposal and replay beside the comparison."""
    found: list[Measured] = []
    pairs.write_side(folder / "forward", size, "forward", engine=False)
    for kind in pairs.FORWARD:
        pair = make_pair(folder, size, kind, same_layout=False)
        os.sync()
        found += measure_pair(pair, plan)
        print(f"  {found[-1].gigabytes:.2f} GB a side, {pair.label}: measured", file=sys.stderr, flush=True)
        if not keep:
            shutil.rmtree(pair.infer)
    if not keep:
        shutil.rmtree(folder)
    return found


def measure_checkpoints(folder: Path, sizes: Sequence[checkpoints.Size], plan: Plan) -> list[Measured]:
    """The check of parameters on checkpoints of growing sizes, the last one the main size; of the others only what grows."""
    found: list[Measured] = []
    for size in sizes:
        checkpoints.write_train(folder, size)
        for kind in checkpoints.KINDS if size is sizes[-1] else checkpoints.ENDS:
            found += _measure_checkpoints(checkpoints.make(folder, size, kind), plan)
        shutil.rmtree(folder)
    return found


def _measure_checkpoints(pair: checkpoints.Checkpoints, plan: Plan) -> list[Measured]:
    os.sync()
    files = pair.files()
    check = Method("check", pair.command, lambda _: pair.wrong(), code=int(pair.kind != "equal"))
    try:
        runs = measure([Method("cat", lambda: ["cat", *files], lambda _: ""), check], files, plan)
    except WrongAnswer as wrong:
        raise WrongAnswer(f"checkpoints, {pair.kind}: {wrong}") from None
    gigabytes, unit = sum(os.path.getsize(file) for file in files) / 2e9, min(ran.cpu for ran in runs["cat"])
    found = [Measured.of(runs[name], name, pair.kind, pair="checkpoints", gigabytes=gigabytes, unit=unit) for name in runs]
    print(f"  {gigabytes:.2f} GB a side, checkpoints {pair.kind}: measured", file=sys.stderr, flush=True)
    shutil.rmtree(pair.infer)
    return found


def measure_start(folder: Path, rounds: int) -> list[Start]:
    """What a call costs before it compares anything: --help, and a pair of a few bytes."""
    pairs.write_side(folder / "train", TINY, "train", engine=False)
    pair = make_pair(folder, TINY, "equal", same_layout=False)
    asked = Method("--help", lambda: [sys.executable, str(COMMAND), "--help"], lambda ran: "" if "--mapping" in ran.output else "no help")
    runs = measure([asked, ours(pair)._replace(name="tiny pair")], pair.files(), Plan(rounds, rounds, 0.0))
    shutil.rmtree(folder)
    return [Start.of(runs[name], name) for name in runs]


# --- the command ---


def full_size(gigabytes: float) -> Size:
    """The model whose dump has about this size a side."""
    layers = LAYERS[gigabytes]
    return Size(layers=layers, tokens=2048, hidden=1024, wide=4096, vocab=1024 * layers)


@contextmanager
def place(data: Path, *, keep: bool) -> Iterator[Path]:
    """A folder of this run's own in ``data``, removed at the end."""
    folder = data / "pairs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small pair, few rounds: a check of the answers, no measurement")
    parser.add_argument("--size", type=float, choices=[*LAYERS], help="GB a side; this size alone, without growth")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("BENCH_DATA", OUT)), help="where pairs are made ($BENCH_DATA)")
    parser.add_argument("--keep", action="store_true", help="leave the pairs of the main size there")
    return parser.parse_args()


def run_all(args: argparse.Namespace, folder: Path) -> tuple[list[Start], list[Measured]]:
    """Start-up, then the growing sizes, then the main size."""
    if args.quick:
        plan = Plan(rounds=3, least=1, seconds=1.0, baselines=("sparse",))  # some of its tensors differ, some do not
        checked = measure_checkpoints(folder / "checkpoints", [checkpoints.TINY, checkpoints.SMALL], plan)
        return measure_start(folder / "tiny", 3), [*measure_size(folder / "quick", QUICK, plan, main=True, keep=args.keep), *checked]
    start, plan = measure_start(folder / "tiny", 9), Plan(rounds=7, least=2, seconds=30.0, baselines=KINDS)
    main = args.size or MAIN_GB
    measured = []
    for gigabytes in [] if args.size else [size for size in LAYERS if size != main]:
        measured += measure_size(folder / str(gigabytes), full_size(gigabytes), plan, main=False, keep=False)
    measured += measure_size(folder / str(main), full_size(main), plan, main=True, keep=args.keep)
    sizes = [checkpoints.TINY, *map(checkpoints.of_layers, GROWING[-1:] if args.size else GROWING)]
    return start, [*measured, *measure_checkpoints(folder / "checkpoints", sizes, Plan(rounds=7, least=1, seconds=20.0))]


def main() -> int:
    args = parse()
    args.data.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(args.data).free / 1e9
    if not args.quick and free < NEEDED_GB:
        print(f"Cannot measure: {free:.0f} GB are free in {args.data}, {NEEDED_GB} are needed. Set BENCH_DATA.", file=sys.stderr)
        return 2
    try:
        with place(args.data, keep=args.keep) as folder:
            start, measured = run_all(args, folder)
    except WrongAnswer as wrong:
        print(f"Wrong answer: {wrong}", file=sys.stderr)
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(report.as_data(start, measured), indent=1) + "\n")
    print(report.text(start, measured))
    print("every answer is what was planted")
    missing = {"torch loop", "msprobe compare"} - {each.method for each in measured}
    if missing:
        print(f"not installed, not measured: {', '.join(sorted(missing))}")
    print(f"left in {OUT}: results.json" + (f"; pairs in {args.data / 'pairs'}" if args.keep else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
