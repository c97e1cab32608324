"""What a side recorded of its log-probabilities: the logits that they are of, and the words that were looked up.

Told by shapes: an entry without parameters that was handed a row of logits a token and returns one value a token, or one a word. The
logits are those that another entry returned, where what was handed over is these times one number: what happens between the two belongs to
the log-probabilities.
"""

from typing import NamedTuple

import numpy as np
from msprobe_files import release
from msprobe_files.units import Record

from dump_analysis import floats
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.boundaries import layer_of
from dump_analysis.floats import Array
from dump_analysis.replay.modules import Pair, Work
from dump_analysis.replay.own_weights import elements, parameters
from dump_analysis.replay.places import LOGITS
from dump_analysis.replay.recorded import CannotReplay, Cut, Matrix, beside, cut_of, matrix_of, place_of
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files
from dump_analysis.wording import word

_INPUTS = ("input", "kwargs")
_ROUNDED = 2.0**-6  # of bfloat16 quotients


class _Head(NamedTuple):
    """Where a side's logits are recorded: as [-1, width]; ``columns``: those of real words, in the mapping's order."""

    place: Place
    width: int
    columns: Array


def log_prob_work(files: Files, pair: Pair, row: Row, label: str) -> Work | None:
    """The work of log-probabilities; None for a value that is none. Raises CannotReplay where labels are not known."""
    if row.boundary == LOGITS or layer_of(row.boundary) is not None:
        return None
    side, operand = pair.side(label), row.train if label == "train" else row.infer
    place = place_of(side, operand.sources[0])
    records = place.unit.entries[place.record.entry]
    if place.record.category != "output" or parameters(records):
        return None
    head = _head(pair, label)
    logits = next((record for record in records if head is not None and _is_logits(record, head.width)), None)
    if head is None or logits is None:
        return None
    count = elements(logits) // head.width
    chosen = elements(place.record) == count
    if not chosen and elements(place.record) != elements(logits):
        return None
    cut = cut_of(side, operand, 1 if chosen else None)
    if not chosen and cut.width != head.width:
        return None
    handed = beside(side, place, logits)
    return _work(files, pair, label, cut, _logits_before(files, side, handed, head.width), head, handed if chosen else None)


def _head(pair: Pair, label: str) -> _Head | None:
    row = pair.rows.get(LOGITS)
    if row is None:
        return None
    cut = cut_of(pair.side(label), row.train if label == "train" else row.infer)
    return _Head(cut.place, cut.width, cut.columns)


def _is_logits(record: Record, width: int) -> bool:
    return record.category in _INPUTS and record.file is not None and _is_wide(record, width)


def _is_wide(record: Record, width: int) -> bool:
    return not floats.is_integer(record.dtype) and bool(record.shape) and (record.shape or (0,))[-1] == width


def _logits_before(files: Files, side: Side, handed: Place, width: int) -> Place:
    """The recorded logits that were handed over times one number; what was handed over where they are, or where none were recorded."""
    rows = elements(handed.record) // width
    given = matrix_of(files, handed, width).read(0, 1)
    scaled = handed
    for entry, records in handed.unit.entries.items():
        made = [record for record in records if record.category == "output" and record.file is not None and _is_wide(record, width)]
        for record in made if entry != handed.record.entry else ():
            if elements(record) // width not in (rows, rows + 1):
                continue
            place = beside(side, handed, record)
            before = matrix_of(files, place, width).read(0, 1)
            if np.array_equal(before, given):
                return handed
            scaled = place if _are_proportional(before, given) else scaled
    return scaled


def _are_proportional(before: Array, given: Array) -> bool:
    square = float((before * before).sum())
    factor = float((before * given).sum()) / square if square else 0.0
    return factor > 0.0 and bool(np.allclose(given, factor * before, rtol=_ROUNDED, atol=0.0))


def _work(files: Files, pair: Pair, label: str, cut: Cut, logits: Place, head: _Head, chosen: Place | None) -> Work:
    """``chosen``: the entry's own logits where one word a token is looked up."""
    padding = np.setdiff1d(np.arange(head.width), head.columns)
    rows = cut.rows
    labels: Matrix | None = None
    if chosen is not None:
        labels, rows = _labels(files, pair, label, chosen, rows, len(head.columns))
    inputs = [matrix_of(files, logits, head.width, rows, head.columns), *([labels] if labels is not None else [])]
    if len(padding):
        inputs.append(matrix_of(files, logits, head.width, rows, padding))
    columns = None if chosen is not None else cut.columns
    output = matrix_of(files, cut.place, cut.width, rows, columns)
    operators = ("log_softmax",) if chosen is None else ("log_prob",)
    return Work(cut.place.record.entry, (), operators, output, tuple(inputs), {}, "absent", (), release.inputs_are(cut.place.unit))


def _labels(files: Files, pair: Pair, label: str, handed: Place, rows: Array, words: int) -> tuple[Matrix, Array]:
    """The word that is looked up at each row, and the rows at which one is: what the entry was handed, else the ids one token on."""
    count = elements(handed.record) // (handed.record.shape or (1,))[-1]
    own = handed.unit.entries[handed.record.entry]
    record = next((one for one in own if one.category in _INPUTS and floats.is_integer(one.dtype) and elements(one) == count), None)
    if record is not None and record.file is not None:
        place, at = beside(pair.side(label), handed, record), rows
    else:
        place, at, rows = _next_ids(pair, label, rows)
    ids = matrix_of(files, place, 1, at).read(0, len(at))[:, 0] if len(at) else np.zeros(0)
    known = (ids >= 0) & (ids < words)  # a label that is left out of the loss is no word
    if not known.any():
        raise CannotReplay(word("replay_no_labels", side=label, entry=handed.record.entry))
    return matrix_of(files, place, 1, at[known]), rows[known]


def _next_ids(pair: Pair, label: str, rows: Array) -> tuple[Place, Array, Array]:
    """Of each row the next token of its sequence in the recorded ids, and the rows that have one."""
    row = pair.rows.get("input_ids")
    if row is None or pair.tokens is None:
        raise CannotReplay(word("replay_no_labels", side=label, entry=LOGITS))
    ids = cut_of(pair.side(label), row.train if label == "train" else row.infer, 1)
    sequences = getattr(pair.tokens, label)
    follows = np.array([any(start <= at and at + 1 < stop for _, start, stop in sequences) for at in rows], bool)
    return ids.place, rows[follows] + 1, rows[follows]
