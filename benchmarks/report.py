"""What was measured, as one table of ratios beside the targets, and as data."""

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from clock import Ran

_MIB = 1 << 20
_JUDGED_FROM_GB = 1.3  # below, start-up weighs too much
_FACTOR = {"equal": 1.3, "sparse": 6.0, "dense": 16.0}  # units
_ADDED = {"equal": 0.15, "sparse": 0.0, "dense": 0.0}  # seconds
_MOST_MIB, _HELP_S = 64, 0.15
_TIMES = {"proposal": 3.0, "replay": 10.0}  # comparisons of the same pair
_REPLAY_MIB = 600
_CHECK_UNITS, _CHECK_MIB = 2.0, 128  # of checkpoints
_GROWS_FROM_GB = 0.1  # a tiny pair is start-up alone


class Start(NamedTuple):
    """What a call costs before it compares. The least of all rounds."""

    call: str
    rounds: int
    cpu: float
    wall: float
    anonymous_mib: float

    @classmethod
    def of(cls, runs: Sequence[Ran], call: str) -> "Start":
        return cls(call, len(runs), min(r.cpu for r in runs), min(r.wall for r in runs), max(r.anonymous for r in runs) / _MIB)


class Measured(NamedTuple):
    """One method on one pair: the least CPU and wall seconds of all rounds, the most memory; ``units`` are CPU over cat's."""

    gigabytes: float
    pair: str
    kind: str
    method: str
    rounds: int
    cpu: float
    wall: float
    units: float
    anonymous_mib: float
    resident_mib: float

    @classmethod
    def of(cls, runs: Sequence[Ran], method: str, kind: str, *, pair: str, gigabytes: float, unit: float) -> "Measured":
        cpu, wall = min(ran.cpu for ran in runs), min(ran.wall for ran in runs)
        anonymous, resident = (max(getattr(ran, name) for ran in runs) / _MIB for name in ("anonymous", "resident"))
        return cls(gigabytes, pair, kind, method, len(runs), cpu, wall, cpu / unit, anonymous, resident)


class Line(NamedTuple):
    """CPU seconds = ``start`` + ``slope`` * GB a side, and how far the farthest size is off, relative to it."""

    kind: str
    method: str
    start: float
    slope: float
    off: float


def target_of(row: Measured, measured: Sequence[Measured]) -> str:
    """The target of ours, the proposal and replay, and whether it is reached; empty for other methods and for pairs without target."""
    if row.method in _TIMES:
        compared = next(other for other in measured if (other.method, other.pair, other.kind) == ("ours", row.pair, row.kind))
        ratio, most = row.cpu / compared.cpu, _TIMES[row.method]
        judged = _verdict(ratio, most) if row.gigabytes >= _JUDGED_FROM_GB else "not judged at this size"
        memory = f"; <= {_REPLAY_MIB} MiB: {_verdict(row.anonymous_mib, _REPLAY_MIB)}" if row.method == "replay" else ""
        return f"<= {most:g} of ours, is {ratio:.2f}: {judged}{memory}"
    if row.method == "check":
        return _target_of_check(row, measured)
    if row.method != "ours" or row.pair != "trainer/engine" or row.kind not in _FACTOR:
        return ""
    factor, added = _FACTOR[row.kind], _ADDED[row.kind]
    shown = f"<= {factor:g} units" + (f" + {added:g} s" if added else "")
    if row.gigabytes >= _JUDGED_FROM_GB:
        allowed = factor * row.cpu / row.units + added
        shown += f" = {allowed:.2f} s: {_verdict(row.cpu, allowed)}"
    else:
        shown += ", not judged at this size"
    return f"{shown}; <= {_MOST_MIB} MiB: {_verdict(row.anonymous_mib, _MOST_MIB)}"


def _target_of_check(row: Measured, measured: Sequence[Measured]) -> str:
    """Of equal checkpoints the time beyond what the check of a tiny pair takes; of all the memory."""
    memory = f"<= {_CHECK_MIB} MiB: {_verdict(row.anonymous_mib, _CHECK_MIB)}"
    start = min(other.cpu for other in measured if (other.method, other.kind) == ("check", "equal"))
    if row.kind != "equal" or row.gigabytes < _JUDGED_FROM_GB:
        return memory
    allowed = _CHECK_UNITS * row.cpu / row.units + start
    return f"<= {_CHECK_UNITS:g} units + start = {allowed:.2f} s: {_verdict(row.cpu, allowed)}; {memory}"


def _verdict(value: float, most: float) -> str:
    return "reached" if value <= most else "not reached"


def lines(measured: Sequence[Measured]) -> list[Line]:
    """Straight lines through the sizes of the trainer/engine pair and of checkpoints, fitted on relative errors; none of fewer than 3."""
    found = []
    for method, pair in (("cat", "trainer/engine"), ("ours", "trainer/engine"), ("check", "checkpoints")):
        for kind in _FACTOR:
            rows = [row for row in measured if (row.method, row.kind, row.pair) == (method, kind, pair) and row.gigabytes > _GROWS_FROM_GB]
            sizes, cpus = np.array([row.gigabytes for row in rows]), np.array([row.cpu for row in rows])
            if len(rows) >= 3:
                slope, start = np.polyfit(sizes, cpus, 1, w=1 / cpus)
                off = float(np.abs((start + slope * sizes) / cpus - 1).max())
                found.append(Line(kind, method, float(start), float(slope), off))
    return found


def text(start: Sequence[Start], measured: Sequence[Measured]) -> str:
    """The table for people."""
    told = ["start-up            rounds   CPU s  wall s  anon MiB"]
    for call in start:
        aim = f"  <= {_HELP_S} s wall: {_verdict(call.wall, _HELP_S)}" if call.call == "--help" else ""
        told.append(f"{call.call:20}{call.rounds:5}{call.cpu:9.3f}{call.wall:8.3f}{call.anonymous_mib:10.1f}{aim}")
    told += ["", "GB a side  pair             kind    method           rounds    CPU s   wall s    units  anon MiB  target"]
    for row in measured:
        numbers = f"{row.rounds:5}{row.cpu:10.3f}{row.wall:9.3f}{row.units:9.2f}{row.anonymous_mib:10.1f}"
        told.append(f"{row.gigabytes:7.2f}    {row.pair:17}{row.kind:8}{row.method:16}{numbers}  {target_of(row, measured)}".rstrip())
    fitted = lines(measured)
    if fitted:
        told += [
            "",
            "growth: CPU s = start + slope * GB a side (trainer/engine; check: checkpoints)",
            "kind    method     start    slope  farthest size off by",
        ]
        told += [f"{fit.kind:8}{fit.method:8}{fit.start:8.3f}{fit.slope:9.3f}  {fit.off:.1%}" for fit in fitted]
    return "\n".join(told)


def as_data(start: Sequence[Start], measured: Sequence[Measured]) -> dict[str, Any]:
    """The same as data, with the machine that it was measured on."""
    rows = [{**row._asdict(), "target": target_of(row, measured)} for row in measured]
    fitted = [fit._asdict() for fit in lines(measured)]
    return {"machine": machine(), "start": [call._asdict() for call in start], "measured": rows, "growth": fitted}


def machine() -> dict[str, Any]:
    """Processor, memory, system and versions."""
    models = {line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": time.strftime("%Y-%m-%d"), "processor": sorted(models), "cores": os.cpu_count(), "memory_gib": round(memory, 1),
        "system": platform.release(), "python": platform.python_version(), "numpy": np.__version__,
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(("OPENBLAS_", "OMP_", "MKL_"))},
    }  # fmt: skip
