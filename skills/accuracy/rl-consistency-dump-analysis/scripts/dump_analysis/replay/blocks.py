"""A module's record in parts that bound memory, and a small part that is spread evenly over it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import heads
from dump_analysis.replay.formulas import Formula, Given
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import CannotReplay, Matrix
from dump_analysis.wording import word

# Elements. Small blocks stay in a processor's cache; products need large ones, or more time goes into reading weights than into products.
_BLOCK = 1 << 16
_INPUTS, _WEIGHTS, _SUMS = 1 << 23, 1 << 22, 1 << 21
_MOST_TOKENS, _OUTPUTS = 2048, 1 << 24
_SAMPLE, _SAMPLED_TOKENS, _SAMPLED_COLUMNS = 1 << 15, 64, 128
_FEWEST_ROUTED, _SAMPLED_ROUTED = 4, 16  # tokens of a mixture of experts: each reads experts of its own


class Block(NamedTuple):
    """A part of a module: what a formula is given and what was recorded [tokens, columns]; where it starts.

    Numbers may be as they are stored: float32 holds those of 16 bits exactly.
    """

    given: Given
    recorded: Array
    token: int
    column: int

    def wide(self, config: Mapping[str, float]) -> tuple[Given, Array]:
        """The same in float64, with these constants."""
        inputs = tuple(made.astype(np.float64) for made in self.given.inputs)
        weights = {name: made.astype(np.float64) for name, made in self.given.weights.items()}
        return self.given._replace(inputs=inputs, weights=weights, config=dict(config)), self.recorded.astype(np.float64)

    def of_tokens(self, picked: Array) -> "Block":
        """Some tokens of it."""
        given = self.given._replace(inputs=tuple(made[picked] for made in self.given.inputs))
        return self._replace(given=given, recorded=self.recorded[picked])


def spans(total: int, step: int) -> Iterator[tuple[int, int]]:
    """``0 … total`` in steps."""
    return ((start, min(total, start + step)) for start in range(0, total, step))


def rows_in_cache(columns: int) -> int:
    """How many rows make a block that stays in a processor's cache."""
    return max(1, _BLOCK // max(columns, 1))


def blocks(work: Work, formula: Formula, config: Mapping[str, float], grid: str) -> Iterator[Block]:
    """The whole module: by tokens, and where rows of the weights make columns, by those too; by heads, if it has any."""
    if work.heads is not None:
        for part in heads.parts(work.output, work.inputs, work.weights, work.heads):
            yield Block(Given(part.inputs, part.weights, grid, dict(config)), part.recorded, part.token, part.column)
        return
    if work.experts is not None:
        for start, stop in spans(work.output.rows, work.experts.tokens_at_once()):
            yield of_tokens(work, np.arange(start, stop), grid, config)
        return
    weight = work.weights.get("weight")
    if formula.by_weight_rows and weight is not None:
        yield from _by_weight_rows(work, formula, config, grid)
        return
    for start, stop in spans(work.output.rows, rows_in_cache(_widest(work))):
        inputs = tuple(made.stored(start, stop) for made in work.inputs)
        yield Block(_of_tokens(work, formula, inputs, config, grid), work.output.stored(start, stop), start, 0)


def of_tokens(work: Work, picked: Array, grid: str, config: Mapping[str, float] = MappingProxyType({})) -> Block:
    assert work.experts is not None
    inputs = tuple(_rows_of(made, picked) for made in work.inputs)
    return Block(Given(inputs, {}, grid, dict(config), work.experts.loaded()), _rows_of(work.output, picked), int(picked[0]), 0)


def _by_weight_rows(work: Work, formula: Formula, config: Mapping[str, float], grid: str) -> Iterator[Block]:
    length = work.weights["weight"].columns
    most = min(_MOST_TOKENS, max(1, _INPUTS // length), max(1, _OUTPUTS // work.output.columns))
    for start, stop in spans(work.output.rows, most):
        inputs = tuple(made.stored(start, stop) for made in work.inputs)
        recorded = work.output.stored(start, stop)
        for low, high in spans(work.output.columns, max(1, min(_WEIGHTS // length, _SUMS // (stop - start)))):
            weights = {name: _weight_rows(name, made, low, high, name in formula.whole) for name, made in work.weights.items()}
            yield Block(Given(inputs, weights, grid, dict(config)), recorded[:, low:high], start, low)


def _weight_rows(name: str, made: Matrix, low: int, high: int, whole: bool) -> Array:
    """Rows of a matrix, which may be one; of a vector, which is one row, its elements, or all of them."""
    if whole:
        return made.stored(0, 1)[0]
    return made.stored(low, high) if name == "weight" or made.rows > 1 else made.stored(0, 1)[0, low:high]


def _of_tokens(work: Work, formula: Formula, inputs: tuple[Array, ...], config: Mapping[str, float], grid: str) -> Given:
    if formula.operator == "embedding":
        return Given(*_with_ids(work, inputs), grid, dict(config))
    vectors = {name: made.stored(0, made.rows)[0] if made.rows == 1 else made.stored(0, made.rows) for name, made in work.weights.items()}
    return Given(inputs, vectors, grid, dict(config))


def _with_ids(work: Work, inputs: tuple[Array, ...]) -> tuple[tuple[Array, ...], dict[str, Array]]:
    """Ids counted anew among the weight's rows that they name: of a large table only those are read. Raises CannotReplay."""
    table = work.weights["weight"]
    named, ids = np.unique(inputs[0].astype(np.int64), return_inverse=True)
    if named.min() < 0 or named.max() >= table.rows:
        raise CannotReplay(word("replay_ids_beyond", entry=work.entry, largest=int(named.max()), rows=table.rows))
    return (ids.reshape(-1, 1),), {"weight": _rows_of(table, named)}


def _widest(work: Work) -> int:
    return max([work.output.columns, *(made.columns for made in work.inputs)])


# --- a sample ---


def sample(work: Work, formula: Formula, grid: str, tokens: Array | None = None) -> Block:
    """A part of some ten thousand elements at most where rows are not too long: tokens, and rows of the weights, at equal distances.

    ``tokens``: those among which it is taken. Of a module that works on heads the first part.
    """
    if work.heads is not None:
        return next(blocks(work, formula, {}, grid))
    among = np.arange(work.output.rows) if tokens is None else tokens
    if work.experts is not None:
        return of_tokens(work, _spread(among, max(_FEWEST_ROUTED, min(_SAMPLED_ROUTED, _SAMPLE // (4 * work.output.columns)))), grid)
    weight = work.weights.get("weight")
    if not formula.by_weight_rows or weight is None:
        picked = _spread(among, max(4, _SAMPLE // _widest(work)))
        inputs = tuple(_rows_of(made, picked) for made in work.inputs)
        return Block(_of_tokens(work, formula, inputs, {}, grid), _rows_of(work.output, picked), 0, 0)
    picked, columns = _spread(among, _SAMPLED_TOKENS), _spread(np.arange(work.output.columns), _SAMPLED_COLUMNS)
    weights = {
        name: _rows_of(made, columns)
        if name == "weight" or made.rows > 1
        else made.stored(0, 1)[0][slice(None) if name in formula.whole else columns]
        for name, made in work.weights.items()
    }
    inputs = tuple(_rows_of(made, picked) for made in work.inputs)
    return Block(Given(inputs, weights, grid, {}), _rows_of(work.output, picked)[:, columns], 0, 0)


def _spread(among: Array, count: int) -> Array:
    """Some of these numbers, at equal distances."""
    found: Array = among if len(among) <= count else among[np.linspace(0, len(among) - 1, count).astype(np.int64)]
    return found


def _rows_of(made: Matrix, picked: Array) -> Array:
    if len(picked) and picked[-1] - picked[0] == len(picked) - 1:
        return made.stored(int(picked[0]), int(picked[-1]) + 1)
    return np.concatenate([made.stored(int(at), int(at) + 1) for at in picked])
