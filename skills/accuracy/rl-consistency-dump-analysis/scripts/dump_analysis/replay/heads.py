"""A module that works on heads, in parts that bound memory: one head and some of its tokens, with the keys that they may see."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.recorded import Matrix

_PART = 1 << 20  # elements of one array: 8 MiB of float64
_UNKEYED, _OF_KEYS = 3, (1, 2, 4, 7, 8)  # most inputs of a part without keys; inputs that hold a row a key
_BY_KEY = ("key", "value", "key_table")
_HELD = 1 << 24  # elements of one input that are held as float32 at a time: 64 MiB

Role = Literal["query", "key", "value", "table", "key_table", "position"]


class Sequence(NamedTuple):
    """Rows ``start … stop`` of the output are one sequence, whose keys are rows ``first … last`` of what is read by key.

    ``before`` and ``after``: how many of these keys stand around those of the sequence: padding, or other sequences. ``apart``: a right
    kernel is not handed them.
    """

    start: int
    stop: int
    first: int
    last: int
    before: int = 0
    after: int = 0
    apart: bool = False


class Heads(NamedTuple):
    """``width``: columns of a head of q and k, ``made``: of the output; ``roles``: what each input of the work is.

    Several query heads share one of k and v. Tables and positions hold one row a token, whatever the head. ``laid_out``: the function
    of a rotation for which a recorded table holds each angle twice; None where none was recorded, or where it holds each once.
    """

    width: int
    made: int
    roles: tuple[Role, ...]
    sequences: tuple[Sequence, ...]
    laid_out: str | None = None


class Part(NamedTuple):
    """What a formula is given of one head, the weights of that head, what was recorded, and where it starts."""

    inputs: tuple[Array, ...]
    weights: dict[str, Array]
    recorded: Array
    token: int
    column: int


def parts(output: Matrix, inputs: tuple[Matrix, ...], weights: dict[str, Matrix], heads: Heads) -> Iterator[Part]:
    """The output by sequences, heads and rows. With keys, numbers of the rows [R, 1] and which keys count [T, 1] are given, too."""
    count = output.columns // heads.made
    for sequence in heads.sequences:
        reads = [_reader(matrix, role, sequence) for role, matrix in zip((*heads.roles, "query"), (*inputs, output), strict=True)]
        for head in range(count):
            own = {name: made.read(0, made.rows).reshape(-1)[head : head + 1] for name, made in weights.items()}
            by_head = zip(heads.roles, inputs, reads, strict=False)
            read = [_of_head(one(), role, matrix, heads, head, count) for role, matrix, one in by_head]
            recorded = reads[-1]()[:, head * heads.made : (head + 1) * heads.made].astype(np.float64)
            yield from _by_rows(read, own, recorded, heads, sequence, head)


def _reader(matrix: Matrix, role: str, sequence: Sequence) -> Callable[[], Array]:
    """The rows of a sequence, or its keys, held as float32, which loses nothing, where they are few enough."""
    start, stop = (sequence.first, sequence.last) if role in _BY_KEY else (sequence.start, sequence.stop)
    if (stop - start) * matrix.columns > _HELD:
        return lambda: matrix.read(start, stop)
    held = matrix.read(start, stop).astype(np.float32)
    return lambda: held


def _of_head(rows: Array, role: Role, matrix: Matrix, heads: Heads, head: int, count: int) -> Array:
    """The columns of the head, of its group for keys and values; all of a table."""
    if role in ("table", "key_table", "position"):
        return rows.astype(np.float64)
    width = heads.made if role == "value" else heads.width
    group = head * (matrix.columns // width) // count
    return rows[:, group * width : (group + 1) * width].astype(np.float64)


def _by_rows(read: list[Array], weights: dict[str, Array], recorded: Array, heads: Heads, sequence: Sequence, head: int) -> Iterator[Part]:
    length, keyed = len(recorded), "key" in heads.roles
    step = max(1, _PART // max(sequence.last - sequence.first if keyed else heads.width, 1))
    for start in range(0, length, step):
        rows = slice(start, min(length, start + step))
        inputs = _keyed(read, heads.roles, sequence, rows) if keyed else tuple(one[rows] for one in read)
        yield Part(inputs, weights, recorded[rows], sequence.start + start, head * heads.made)


def _keyed(read: list[Array], roles: tuple[Role, ...], sequence: Sequence, rows: slice) -> tuple[Array, ...]:
    """q, k, v, numbers of the rows, which keys count, then tables of the rows and tables of the keys."""
    total = sequence.last - sequence.first
    numbers = np.arange(rows.start, rows.stop, dtype=np.float64)[:, None] + sequence.before
    # 0: padding, -1: keys of others
    counts = np.full((total, 1), -1.0 if sequence.apart else 0.0)
    counts[sequence.before : total - sequence.after] = 1.0
    own = [one if role in _BY_KEY else one[rows] for role, one in zip(roles, read, strict=True)]
    return (*own[:3], numbers, counts, *own[3:])


def cut_to(inputs: tuple[Array, ...], rows: slice) -> tuple[Array, ...]:
    """What a formula is given, cut to some of its rows; keys and their tables stay whole."""
    keyed = len(inputs) > _UNKEYED
    return tuple(one if keyed and at in _OF_KEYS else one[rows] for at, one in enumerate(inputs))
