"""A norm and a linear that are one module on one side and two on the other: both sides are recomputed from the norm's input on.

That a module normalises first is told by its parameters: beside its matrix it owns vectors as long as its input. The other side's norm
is the recorded entry that made, bit for bit, what its linear was handed.
"""

import numpy as np
from msprobe_files.units import Record

from dump_analysis import floats
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.replay.modules import Pair, Work
from dump_analysis.replay.own_weights import elements, parameters
from dump_analysis.replay.recorded import CannotReplay, Matrix, beside, cut_of, matrix_of, place_of
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files
from dump_analysis.wording import word

NORM_LINEAR = "norm_linear"
_WEIGHT, _BIAS = "norm_weight", "norm_bias"
_BLOCK = 1 << 18  # elements


def with_its_norm(files: Files, pair: Pair, row: Row, label: str, work: Work) -> Work:
    """The work of a linear with the norm before it, where that is inside it on either side; else as it is. Raises CannotReplay."""
    if "linear" not in work.operators or "weight" not in work.weights:
        return work
    width, other = work.weights["weight"].columns, "infer" if label == "train" else "train"
    own, theirs = (_inner(files, pair, row, one, width) for one in (label, other))
    if own:
        weights = {**work.weights, **own}
        unused = tuple(name for name in work.unused if name not in {_suffix(made) for made in own.values()})
        return work._replace(operators=(NORM_LINEAR,), weights=weights, unused=unused)
    return _two_modules(files, pair, row, label, work, theirs) if theirs else work


def _inner(files: Files, pair: Pair, row: Row, label: str, width: int) -> dict[str, Matrix]:
    """Gain and bias of the norm inside the entry that makes a row's value on a side; none where it holds no norm."""
    operand = row.train if label == "train" else row.infer
    place = place_of(pair.side(label), operand.sources[0])
    records = parameters(place.unit.entries[place.record.entry])
    if not any(record.suffix == "weight" and len(record.shape or ()) == 2 for record in records):
        return {}
    return _vectors(files, pair.side(label), place, [record for record in records if record.suffix not in ("weight", "bias")], width)


def _vectors(files: Files, side: Side, place: Place, records: list[Record], width: int) -> dict[str, Matrix]:
    """One or two vectors as a norm's gain and bias: the bias is the one that is called so."""
    fitting = [record for record in records if record.shape == (width,)]
    found = {_BIAS if record.suffix.endswith("bias") else _WEIGHT: record for record in fitting}
    if len(found) != len(records) or _WEIGHT not in found:
        return {}
    return {name: matrix_of(files, beside(side, place, record), width) for name, record in found.items()}


def _two_modules(files: Files, pair: Pair, row: Row, label: str, work: Work, borrowed: dict[str, Matrix]) -> Work:
    """A linear of its own, from the input of the norm that made its input."""
    side = pair.side(label)
    cut = cut_of(side, row.train if label == "train" else row.infer)
    place, width = cut.place, work.inputs[0].columns
    given = next((record for record in place.unit.entries[work.entry] if record.name == work.inputs[0].name), None)
    norm = _norm_of(files, side, beside(side, place, given), width) if given is not None else None
    if norm is None:
        raise CannotReplay(word("replay_norm_apart", side=label, entry=work.entry))
    entry, inputs = norm
    own = _vectors(files, side, place, parameters(place.unit.entries[entry]), width)
    return work._replace(
        via=(entry,),
        operators=(NORM_LINEAR,),
        inputs=tuple(matrix_of(files, beside(side, place, record), width, cut.rows) for record in inputs),
        weights={**work.weights, **(own or borrowed)},
        origin=work.origin if own else "borrowed",
    )


def _norm_of(files: Files, side: Side, place: Place, width: int) -> tuple[str, list[Record]] | None:
    """The first entry that returned what the linear was handed, and its inputs of the same size (one, or two that are added)."""
    size = elements(place.record)
    wanted = matrix_of(files, place, width)
    for entry, records in place.unit.entries.items():
        made = next((record for record in records if record.category == "output" and record.file is not None), None)
        if made is None or made.dtype != place.record.dtype or elements(made) != size:
            continue
        given = [record for record in records if record.category in ("input", "kwargs") and record.file is not None]
        same = [record for record in given if not floats.is_integer(record.dtype) and elements(record) == size]
        if same and _equal(matrix_of(files, beside(side, place, made), width), wanted):
            return entry, same
    return None


def _equal(one: Matrix, two: Matrix) -> bool:
    step = max(1, _BLOCK // two.columns)
    blocks = ((at, min(two.rows, at + step)) for at in range(0, two.rows, step))
    return all(np.array_equal(one.read(*block), two.read(*block), equal_nan=True) for block in blocks)


def weights_inside(pair: Pair, work: Work) -> set[str]:
    """The boundaries of the weights of a norm that is recomputed with the linear behind it."""
    names = {work.weights[name].name for name in (_WEIGHT, _BIAS) if name in work.weights}
    sources = {boundary: {source.name for side in (row.train, row.infer) for source in side.sources} for boundary, row in pair.rows.items()}
    return {boundary for boundary, found in sources.items() if boundary in pair.weights and found & names}


def _suffix(made: Matrix) -> str:
    return made.name.rpartition(".parameters.")[2]
