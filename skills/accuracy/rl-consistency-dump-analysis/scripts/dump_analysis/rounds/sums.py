"""Residual sums that add nothing of their own: on both sides the recorded sum is that of the recorded parts, to the last bit."""

from collections.abc import Mapping, Sequence

from msprobe_files.errors import DumpError
from msprobe_files.operands import OperandError

from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.pairs import Pair, find_pairs
from dump_analysis.replay.places import sources_of
from dump_analysis.rounds.values import digest_of, of_side
from dump_analysis.sides import Side
from dump_analysis.tensors import Files, Stream, SumStream, stream_of

_SIDES = ("train", "infer")


def adding_up(rows: Sequence[Row], train: Side, infer: Side) -> frozenset[str]:
    """The boundaries whose difference is that of what they add up, whatever a round would show."""
    pairs = {pair.row.boundary: pair for pair in find_pairs(rows, train, infer)[0]}
    files = Files()
    try:
        return frozenset(name for name in pairs if all(_adds_up(name, pairs, side, files) for side in _SIDES))
    finally:
        files.close()


def _adds_up(name: str, pairs: Mapping[str, Pair], side: str, files: Files) -> bool:
    made = sources_of(name, pairs)
    if made is None or made.operator != "residual_add":
        return False
    try:
        parts = [_stream(pairs[one], side, files) for one in made.boundaries]
        total = _stream(pairs[name], side, files)
        alike = all(part.shape == total.shape and part.dtype == total.dtype for part in parts)
        return alike and digest_of(SumStream(parts, total.shape)) == digest_of(total)
    except (OperandError, DumpError):
        return False  # the comparison says what is wrong with it


def _stream(pair: Pair, side: str, files: Files) -> Stream:
    operand, found = of_side(pair, side)
    return stream_of(files, operand, found.tensors)
