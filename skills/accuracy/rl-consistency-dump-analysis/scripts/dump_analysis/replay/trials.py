"""Trying the variants of the formulas that fit on what a side recorded: block by block, how many elements each reproduces."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import emulate, heads
from dump_analysis.replay.formulas import FORMULAS, Formula, Given, Variant
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import CannotReplay, Matrix
from dump_analysis.wording import word

_BLOCK = 1 << 20  # float64 elements of one array: 8 MiB
_FALSE_ALARMS = 2e-6  # share of elements that the bounds of bounds.py leave out by chance


class Trial(NamedTuple):
    """A variant of a formula with constants. ``fault``: it computes something else, and names a mistake."""

    formula: Formula
    variant: Variant
    config: Mapping[str, float]
    fault: bool = False


class Tried(NamedTuple):
    """How many of ``of`` elements a trial reproduces bit for bit, and how many lie outside its interval."""

    trial: Trial
    of: int
    equal: int
    outside: int

    @property
    def explains(self) -> bool:
        return self.outside <= 1 + _FALSE_ALARMS * self.of


class Block(NamedTuple):
    """A part of a module: what a formula is given, and what was recorded [tokens, columns]; where it starts."""

    given: Given
    recorded: Array
    token: int
    column: int


def stored_grid(output: Matrix) -> str:
    """The format on whose grid the output lies: a float32 tensor may hold bfloat16 results. Raises CannotReplay for other formats."""
    if output.dtype not in emulate.FORMATS:
        raise CannotReplay(word("replay_format", name=output.name, dtype=output.dtype))
    if output.dtype != "float32":
        return output.dtype
    blocks = [(start, min(output.rows, start + _rows(output.columns))) for start in range(0, output.rows, _rows(output.columns))]
    for grid in emulate.GRIDS:
        if all(emulate.on_grid(output.read(*block), grid) for block in blocks):
            return grid
    return output.dtype


def _rows(columns: int) -> int:
    return max(1, _BLOCK // max(columns, 1))


# --- blocks ---


def blocks(work: Work, formula: Formula, config: Mapping[str, float], grid: str) -> Iterator[Block]:
    """The module in parts that bound memory: tokens, and where rows of the weights make columns, those too; heads, if it has any."""
    if work.heads is not None:
        for part in heads.parts(work.output, work.inputs, work.weights, work.heads):
            yield Block(Given(part.inputs, part.weights, grid, dict(config)), part.recorded, part.token, part.column)
        return
    widest = max([work.output.columns, *(made.columns for made in work.inputs)])
    weight = work.weights.get("weight")
    tokens = _rows(weight.columns if formula.by_weight_rows and weight is not None else widest)
    for start in range(0, work.output.rows, tokens):
        stop = min(work.output.rows, start + tokens)
        inputs = tuple(made.read(start, stop) for made in work.inputs)
        if formula.by_weight_rows and weight is not None:
            recorded = work.output.read(start, stop)
            for low in range(0, work.output.columns, _rows(weight.columns)):
                high = min(work.output.columns, low + _rows(weight.columns))
                weights = {name: _weight_rows(made, low, high, name in formula.whole) for name, made in work.weights.items()}
                yield Block(Given(inputs, weights, grid, dict(config)), recorded[:, low:high], start, low)
        else:
            given = _with_ids(work, inputs) if formula.operator == "embedding" else (inputs, _vectors(work))
            yield Block(Given(*given, grid, dict(config)), work.output.read(start, stop), start, 0)


def _weight_rows(made: Matrix, low: int, high: int, whole: bool) -> Array:
    """Rows of a matrix; of a vector, which is one row, its elements, or all of them."""
    if whole:
        return made.read(0, 1)[0]
    return made.read(low, high) if made.rows > 1 else made.read(0, 1)[0, low:high]


def _vectors(work: Work) -> dict[str, Array]:
    return {name: made.read(0, made.rows)[0] if made.rows == 1 else made.read(0, made.rows) for name, made in work.weights.items()}


def _with_ids(work: Work, inputs: tuple[Array, ...]) -> tuple[tuple[Array, ...], dict[str, Array]]:
    """Ids counted anew among the weight's rows that they name: of a large table only those are read. Raises CannotReplay."""
    table = work.weights["weight"]
    named, ids = np.unique(inputs[0].astype(np.int64), return_inverse=True)
    if named.min() < 0 or named.max() >= table.rows:
        raise CannotReplay(word("replay_ids_beyond", entry=work.entry, largest=int(named.max()), rows=table.rows))
    rows = np.concatenate([table.read(int(at), int(at) + 1) for at in named])
    return (ids.reshape(-1, 1).astype(np.float64),), {"weight": rows}


# --- trying ---


def trials_of(work: Work, formula: Formula, configs: Sequence[Mapping[str, float]], grid: str) -> list[Trial]:
    """Every variant that can run, with every set of constants."""
    found = []
    for config in configs or [{}]:
        given = next(blocks(work, formula, config, grid)).given
        found += [Trial(formula, variant, config) for variant in formula.fitting(given)]
        found += [Trial(formula, variant, config, True) for variant in formula.faults if variant.applies(given)]
    return found


def tried(work: Work, trials: Sequence[Trial], grid: str) -> list[Tried]:
    """What each trial reproduces. Of trials that fail only the nearest goes on, and none while another holds: the counts of one that was
    given up are of the part that it saw.
    """
    found = [Tried(trial, 0, 0, 0) for trial in trials]
    going = list(range(len(trials)))
    if not trials:
        return []
    for block in blocks(work, trials[0].formula, {}, grid):
        for at in going:
            seen, more = found[at], counted(trials[at], block)
            found[at] = Tried(seen.trial, seen.of + more.of, seen.equal + more.equal, seen.outside + more.outside)
        going = [at for at in going if found[at].explains] or [min(going, key=lambda at: found[at].outside)]
    return found


def counted(trial: Trial, block: Block) -> Tried:
    """What a trial reproduces of one block."""
    emulated = _emulated(trial, block)
    equal = emulate.bit_equal(block.recorded, emulated)
    left = 0 if equal.all() else int((~emulate.explained(block.recorded, emulated)).sum())
    return Tried(trial, block.recorded.size, int(equal.sum()), left)


def outside(trial: Trial, block: Block) -> Array:
    """Which elements of a block a trial leaves."""
    found: Array = ~emulate.explained(block.recorded, _emulated(trial, block))
    return found


def _emulated(trial: Trial, block: Block) -> emulate.Emulated:
    given = block.given._replace(config=dict(trial.config))
    return emulate.Emulated(*trial.variant.run(given)[0])


def formulas_of(work: Work) -> list[Formula]:
    """The formulas that the work can be, those that are known; every parameter must be used. Raises CannotReplay where none is left."""
    known = [FORMULAS[name] for name in work.operators if name in FORMULAS]
    found = [formula for formula in known if formula.consumes([*work.weights, *work.unused])]
    if known and not found:
        raise CannotReplay(word("replay_unused_parameters", entry=work.entry, names=list(work.unused)))
    if not found:
        raise CannotReplay(word("replay_no_formula", module=work.entry))
    return found
