"""What a mapping says something about: the tensors that it names, and those that equal one of them or the value of a row."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError, Source, shape_after

from dump_analysis import tensors
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.sides import Place, Side, resolve
from dump_analysis.tensors import Files, Stream, elements_of

_HEAD = 64  # elements that tell most unequal tensors apart


class _Key(NamedTuple):
    """A recorded tensor among all units of a side."""

    step: int
    rank: int
    name: str


def left_out(mapping: SemanticMapping, side: Side, asked: Sequence[Place]) -> list[str]:
    """The names of those of the tensors asked for that the mapping does not name and that equal, bit for bit and
    whatever their shape, neither a tensor that it names nor the value of one of its rows.

    What cannot be read equals nothing.
    """
    named = _named(mapping, side)
    rest = [place for place in asked if _key(place) not in named]
    if not rest:
        return []
    files = Files()
    try:
        known: dict[tuple[str, int, bytes], list[Stream]] = {}
        whole = [_whole(place) for place in named.values()]
        parts = [Operand([source]) for operand in _operands(mapping, side.label) if len(operand.sources) > 1 for source in operand.sources]
        for stream in _streams(side, [*whole, *parts, *_operands(mapping, side.label)], files):
            key = _fingerprint(stream)
            if key is not None:
                known.setdefault(key, []).append(stream)
        return [place.record.name for place in rest if not _is_known(side, place, known, files)]
    finally:
        files.close()


def partly_named(mapping: SemanticMapping, side: Side) -> list[str]:
    """Weights of which rows cut out less than all: the rest of a fused matrix may differ unseen."""
    cuts: dict[_Key, set[tuple[Op, ...]]] = {}
    places: dict[_Key, Place] = {}
    for source in (source for operand in _operands(mapping, side.label) for source in operand.sources):
        place = resolve(side, source)
        if place is not None and place.record.category == "parameters":
            cuts.setdefault(_key(place), set()).add(source.steps or ())
            places[_key(place)] = place
    return [key.name for key, steps in cuts.items() if _covers_less(places[key], steps)]


def _covers_less(place: Place, cuts: set[tuple[Op, ...]]) -> bool:
    try:
        tensor = tensors.header(place)
        return sum(math.prod(shape_after(steps, tensor.shape)) for steps in cuts) < tensor.elements
    except (DumpError, OperandError):
        return False  # the comparison itself says what is wrong with the file or the ops


def _operands(mapping: SemanticMapping, label: str) -> list[Operand]:
    return [getattr(row, label) for row in [*mapping.boundaries, *mapping.weights]]


def _named(mapping: SemanticMapping, side: Side) -> dict[_Key, Place]:
    """Every recorded tensor that the mapping names, in a row or in a reason why there is none."""
    found = [resolve(side, source) for operand in _operands(mapping, side.label) for source in operand.sources]
    uncompared = {name for row in mapping.evidence_missing for name in getattr(row, side.label)}
    places = [place for place in found if place is not None] + [place for name in uncompared for place in side.by_name.get(name, ())]
    return {_key(place): place for place in places}


def _key(place: Place) -> _Key:
    return _Key(place.unit.place.step, place.unit.place.rank, place.record.name)


def _whole(place: Place) -> Operand:
    return Operand([Source(place.record.name, place.unit.place.rank, place.unit.place.step, ())])


def _streams(side: Side, operands: Iterable[Operand], files: Files) -> Iterator[Stream]:
    """The operands that can be read."""
    for operand in operands:
        places = [resolve(side, source) for source in operand.sources]
        try:
            found = [tensors.header(place) for place in places if place is not None]
            if len(found) == len(places) and found:
                stream = tensors.stream_of(files, operand, found)
                if elements_of(stream):
                    yield stream
        except (DumpError, OperandError):
            continue  # what cannot be read equals nothing; the comparison itself says why


def _fingerprint(stream: Stream) -> tuple[str, int, bytes] | None:
    """Dtype, size and first elements; None where they cannot be read."""
    count = elements_of(stream)
    try:
        return stream.dtype, count, stream.read(0, min(count, _HEAD)).tobytes()
    except DumpError:
        return None


def _is_known(side: Side, place: Place, known: dict[tuple[str, int, bytes], list[Stream]], files: Files) -> bool:
    for stream in _streams(side, [_whole(place)], files):
        key = _fingerprint(stream)
        try:
            if key is not None and any(tensors.same(stream, twin) for twin in known.get(key, [])):
                return True
        except DumpError:
            continue  # what cannot be read equals nothing
    return False
