"""Where a boundary's value can be seen on the target although the argument that its row names is overridden."""

from collections import defaultdict
from collections.abc import Iterable

from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Source

from dump_analysis import floats, tensors
from dump_analysis.artefacts.common import SideName
from dump_analysis.mapping.recorded.times import times_of
from dump_analysis.rounds.fitting import value_shape
from dump_analysis.rounds.values import Argument, Digest, Mapped, digest_of, of_side
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files, cut_stream

Seat = tuple[str, str]  # a call and its argument: entry, input.0
Made = dict[Digest | None, list[tuple[float, Place]]]  # outputs by their bytes, and when they were made


def seats_of(one: Mapped, target: SideName) -> list[Seat]:
    """The arguments that a boundary's row names on the target; none where it names outputs."""
    records = [place.record for place in of_side(one.pair, target)[1].places]
    return [(record.entry, f"{record.category}.{record.suffix}") for record in records if record.category in ("input", "kwargs")]


def outputs_of(known: Iterable[Mapped], target: SideName, side: Side, made: Made) -> dict[str, Operand]:
    """For each boundary whose row names an argument: an output with the same bytes, made before, which an override leaves as it came out.

    Boundaries without such an output are seen at their argument alone. An output that is another boundary's is none: a fault may have made
    the two equal, and another round makes them differ.
    """
    wanted = [one for one in known if one.digest is not None and seats_of(one, target)]
    taken = {(place.unit.place.folder, place.record.name) for one in known for place in of_side(one.pair, target)[1].places}
    found = {}
    for one in wanted:
        same = [(time, place) for time, place in made.get(one.digest, ()) if time <= one.time]
        before = [item for item in same if (item[1].unit.place.folder, item[1].record.name) not in taken]
        if before:
            operand, there = of_side(one.pair, target)
            shape = value_shape(operand, [tensor.shape for tensor in there.tensors])
            found[one.boundary] = Operand([source_at(side, max(before, key=lambda item: item[0])[1], (Op("reshape", shape=shape),))])
    return found


def handed_by(left: Iterable[Argument], made: Made) -> dict[str, frozenset[str]]:
    """For each call the calls that made its arguments of these, told by their bytes: of several the last one before it."""
    found: dict[str, set[str]] = defaultdict(set)
    for argument in left:
        unit = argument.place.unit
        start = times_of(unit).start[argument.entry]
        before = [(time, place.record.entry) for time, place in made.get(argument.digest, ()) if place.unit is unit and time <= start]
        if before:
            found[argument.entry].add(max(before)[1])
    return {entry: frozenset(calls) for entry, calls in found.items()}


def source_at(side: Side, place: Place, steps: tuple[Op, ...]) -> Source:
    """A tensor as an operand's source; a side of several units says which."""
    several = len(side.units) > 1
    where = place.unit.place
    return Source(place.record.name, where.rank if several else None, where.step if several else None, steps)


def outputs(side: Side, files: Files) -> Made:
    """Every float output by its bytes, with the time when it was made."""
    found: Made = defaultdict(list)
    for unit in side.units:
        times = times_of(unit)
        for record in unit.records():
            if record.category != "output" or record.file is None or record.refused is not None or record.entry not in times.end:
                continue
            try:
                tensor = tensors.header(Place(unit, record))
                if tensor.elements and floats.FORMATS[tensor.dtype].kind == "float":
                    found[digest_of(cut_stream(files, tensor, ()))].append((times.end[record.entry], Place(unit, record)))
            except DumpError:
                continue  # the comparison names the file and says why it cannot be read
    return found
