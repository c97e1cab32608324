"""The metrics that a training log states: read line by line, never computed.

Lines are text with ``key:value`` or ``key=value`` pairs (verl: ``step:1 - training/rollout_probs_diff_mean:0.004``),
a printed dict (slime: ``step 0: {'train/train_rollout_logprob_abs_diff': 0.0127}``) or JSON. Keys are known by their end.
"""

import codecs
import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from msprobe_files.errors import DumpError

from .artefacts.conclusion import EndToEndMetric, LogMetric, LogStatus, Metrics
from .wording import word

PREFILL = "prefill_logprob_diff"
RESPONSE = ("rollout_probs_diff", "train_rollout_logprob_abs_diff")
_BARE = RESPONSE[1]  # slime writes its mean under the bare name
_EVERY_KEY = "_diff"  # in each of the keys: a cheap look before the expression
_BLOCK, _LONGEST_LINE = 1 << 20, 1 << 24  # bytes, characters
_LONGEST_PREFIX = 120

_PAIR = re.compile(
    rf"(?P<family>{PREFILL}|{'|'.join(RESPONSE)})(?:_(?P<part>valid|mean|max|std))?[\"']?\s*[:=]\s*[\"']?"
    r"(?:(?:(?:np|numpy)\.\w+|(?:torch\.)?tensor)\(\s*(?P<wrapped>[^\s,()]*)|(?P<plain>[^\s,;{}\[\]()\"'|]*))"
)
_STEPS = (
    re.compile(r"(?<![\w/.-])step\s*[:=]\s*(\d{1,18})(?:\.0*)?(?![\w.])", re.IGNORECASE | re.ASCII),
    re.compile(r"(?<![\w/.-])step\s+(\d{1,18})\s*[/:]", re.IGNORECASE | re.ASCII),
    re.compile(r"[\"'](?:train/)?step[\"']\s*:\s*(\d{1,18})(?:\.0*)?(?![\w.])", re.ASCII),
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf|infinity)|null|none", re.IGNORECASE | re.ASCII)  # JSON has null where Python has NaN
_ROUNDED_ZERO = re.compile(r"[+-]?0?\.(0{2,})")  # Python writes an exact zero 0.0: more decimals come from a format such as %.3f
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PREFIX_SIGNS = frozenset("/._@-")


class Log(NamedTuple):
    """What a log states. ``digest``: sha-256 of its bytes; ``warnings``: lines for the user."""

    path: str
    digest: str
    metrics: Metrics
    warnings: list[str]


class _Value(NamedTuple):
    """One value as written. ``number``: None for NaN, infinity and null; ``below``: the bound where a rounded zero is printed."""

    number: float | None
    below: float | None
    text: str
    line: int


class _Point(NamedTuple):
    """One step of a metric; a None among the numbers was not stated, or is only known to be below a bound."""

    step: int | None
    status: LogStatus
    numbers: dict[str, float | None]
    below: dict[str, float]


class _Series:
    """One metric under one full key: its values by step, in the order of the log; a step that is stated again takes the later value."""

    def __init__(self, prefix: str, family: str) -> None:
        self.prefix, self.family = prefix, family
        self.steps: list[tuple[int | None, dict[str, _Value]]] = []
        self._at: dict[int | None, int] = {}

    def add(self, step: int | None, part: str, value: _Value) -> None:
        at = self._at.get(step)
        if at is None or (step is None and part in self.steps[at][1]):  # lines without a step: a value that comes again opens the next
            self._at[step] = at = len(self.steps)
            self.steps.append((step, {}))
        self.steps[at][1][part] = value


def read(path: str) -> Log:
    """The metrics of a training log.

    ``mean``, ``max`` and ``std`` are those of one step, the last that was measured; ``by_step`` holds the mean of
    every measured step in the order of the log (step None where the line names none). Statuses: ``measured``;
    ``not_run`` where ``valid`` is 0, whatever stands beside it; ``evidence_missing`` where the key is absent, or where a
    response metric is 0 without ``valid``. A zero that was printed rounded becomes None with a note that names the bound.

    Raises DumpError where the file cannot be read, or naming the line where a value is no number.
    """
    shown = os.path.basename(path)
    digest = hashlib.sha256()
    found: dict[tuple[str, str], _Series] = {}
    for number, line in _lines(path, digest):
        if _EVERY_KEY in line:
            for segment in line.split("\r"):  # progress bars
                _records(segment, number, shown)
                _take(_COLOUR.sub("", segment), number, shown, found)
    prefill = _best([series for series in found.values() if series.family == PREFILL], shown)
    response = _best([series for series in found.values() if series.family in RESPONSE], shown)
    warnings = [line for chosen in (prefill, response) if chosen for line in _also_there(chosen[0], found, shown)]
    return Log(path, digest.hexdigest(), Metrics(_log_metric(prefill, shown), _end_to_end(response, shown)), warnings)


# --- lines ---


def _lines(path: str, digest: "hashlib._Hash") -> Iterator[tuple[int, str]]:
    """Pieces of lines with their numbers, counted by line feeds; ``digest`` is fed with the file's bytes."""
    number, rest = 1, ""
    decoder: codecs.IncrementalDecoder | None = None
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                decoder = decoder or _decoder(block)
                text = rest + decoder.decode(block)
                end = max(text.rfind("\n"), text.rfind("\r")) + 1
                pieces, rest = text[:end].split("\n"), text[end:]
                yield from enumerate(pieces, number)
                number += len(pieces) - 1
                if len(rest) > _LONGEST_LINE:
                    raise DumpError(f"Cannot read {path}: line {number} has more than {_LONGEST_LINE} characters. Hand the log as text.")
    except OSError as error:
        raise DumpError(f"Cannot read {path}: {error.strerror or error}. Check --train-log.") from None
    yield number, rest + (decoder.decode(b"", True) if decoder else "")


def _decoder(head: bytes) -> codecs.IncrementalDecoder:
    """PowerShell's ``>`` writes UTF-16; whatever else is no UTF-8 becomes replacement signs: keys and numbers are ASCII."""
    of_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return codecs.getincrementaldecoder("utf-16" if of_utf16 else "utf-8")(errors="replace")


def _records(line: str, number: int, shown: str) -> None:
    """Raise DumpError where one line holds several JSON objects: their steps could not be told apart."""
    if line.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(json.loads(line), list):
                raise DumpError(f"Cannot read {shown}: line {number} is a JSON list. Hand a log with one JSON object a line.")


def _take(line: str, number: int, shown: str, found: dict[tuple[str, str], _Series]) -> None:
    """Put the values of one line where they belong."""
    step = _step(line)
    for pair in _PAIR.finditer(line):
        family, part = pair["family"], pair["part"]
        if part is None and family != _BARE:
            continue
        prefix = _prefix(line, pair.start())
        key = f"{prefix}{family}" + (f"_{part}" if part else "")
        value = _value(pair["plain"] if pair["wrapped"] is None else pair["wrapped"], number, key, shown)
        found.setdefault((prefix, family), _Series(prefix, family)).add(step, part or "mean", value)


def _prefix(line: str, end: int) -> str:
    start = end
    while start > max(0, end - _LONGEST_PREFIX) and (line[start - 1].isalnum() or line[start - 1] in _PREFIX_SIGNS):
        start -= 1
    return line[start:end]


def _step(line: str) -> int | None:
    for form in _STEPS:
        if step := form.search(line):
            return int(step[1])
    return None


def _value(text: str, line: int, key: str, shown: str) -> _Value:
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        rounded = _ROUNDED_ZERO.fullmatch(text)
        return _Value(float(text), 0.5 * 10.0 ** -len(rounded[1]) if rounded else None, text, line)
    if _NO_NUMBER.fullmatch(text):
        return _Value(None, None, text, line)
    raise DumpError(f"Cannot read {shown}: line {line}: {key} is {text[:40]!r}, which is no number. Mend or remove the line.")


# --- what the values mean ---


def _point(series: _Series, step: int | None, values: dict[str, _Value], shown: str) -> _Point:
    """The values of one step judged together: ``valid`` rules the others wherever it stands in the line."""
    valid = values.get("valid")
    if valid is not None and valid.number == 0:
        return _Point(step, "not_run", {"valid": 0.0}, {})
    for part in ("valid", "mean", "max"):  # the std of one token is NaN
        if part in values and values[part].number is None:
            raise DumpError(
                f"Cannot read {shown}: line {values[part].line}: {series.prefix}{series.family}_{part} is {values[part].text}, which is no "
                "number, and valid is not 0. Look for NaN or infinity at that step first, or remove the line."
            )
    of_zeros = not any(values[part].number for part in ("mean", "max", "std") if part in values)
    if "mean" not in values or (valid is None and of_zeros and series.family in RESPONSE):
        return _Point(step, "evidence_missing", {}, {})
    below = {part: value.below for part, value in values.items() if value.below is not None}
    return _Point(step, "measured", {part: None if part in below else value.number for part, value in values.items()}, below)


def _best(candidates: list[_Series], shown: str) -> tuple[_Series, list[_Point]] | None:
    """The series that says most; of equal ones the first of `RESPONSE`, then the one with more steps, then the first in the log."""
    judged = [(series, [_point(series, step, values, shown) for step, values in series.steps]) for series in candidates]
    ranks = {"measured": 0, "not_run": 1, "evidence_missing": 2}

    def rank(one: tuple[_Series, list[_Point]]) -> tuple[int, int, int]:
        series, points = one
        known = RESPONSE.index(series.family) if series.family in RESPONSE else 0
        return min(ranks[point.status] for point in points), known, -sum(point.step is not None for point in points)

    return min(judged, key=rank, default=None)


def _also_there(chosen: _Series, found: dict[tuple[str, str], _Series], shown: str) -> list[str]:
    prefixes = sorted(prefix for prefix, family in found if family == chosen.family)
    if len(prefixes) < 2:
        return []
    keys = ", ".join(prefix + chosen.family for prefix in prefixes)
    return [f"{shown} states {chosen.family} under {len(prefixes)} keys ({keys}); {chosen.prefix}{chosen.family} is used"]


def _log_metric(chosen: tuple[_Series, list[_Point]] | None, shown: str) -> LogMetric:
    if chosen is None:
        return LogMetric("evidence_missing", note=word("log_lacks", file=shown, keys=[PREFILL]))
    series, points = chosen
    source = f"{shown}: {series.prefix}{series.family}"
    measured = [point for point in points if point.status == "measured"]
    if not measured:
        status: LogStatus = "not_run" if any(point.status == "not_run" for point in points) else "evidence_missing"
        kind = {"not_run": "log_not_computed", "evidence_missing": "log_untold"}[status]
        return LogMetric(status, source=source, note=word(kind, metric=series.family))
    last = measured[-1]
    note = None
    if last.below:
        note = word("log_rounded", metric=series.family, parts=list(last.below), bound=max(last.below.values()))
    return LogMetric(
        "measured",
        mean=last.numbers.get("mean"),
        max=last.numbers.get("max"),
        std=last.numbers.get("std"),
        step=last.step,
        by_step=[[point.step, point.numbers["mean"]] for point in measured],
        source=source,
        note=note,
    )


def _end_to_end(chosen: tuple[_Series, list[_Point]] | None, shown: str) -> EndToEndMetric:
    if chosen is None:
        return EndToEndMetric("evidence_missing", note=word("log_lacks", file=shown, keys=list(RESPONSE)))
    series, points = chosen
    found = _log_metric(chosen, shown)
    said = [point.numbers.get("valid") for point in points if point.status == found.status]
    return EndToEndMetric(
        found.status,
        name=series.family,
        mean=found.mean,
        max=found.max,
        std=found.std,
        valid=said[-1] if said else None,
        step=found.step,
        by_step=found.by_step,
        source=found.source,
        note=found.note,
    )
