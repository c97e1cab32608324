"""What else a row might be where values alone do not decide it: equal tensors of other layers, equal vectors of other modules."""

from collections.abc import Sequence

from msprobe_files.errors import DumpError

from dump_analysis.artefacts.common import Worded
from dump_analysis.boundaries import place_of
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded.nodes import Node, SideNodes
from dump_analysis.mapping.rows.weight_rows import WeightRow
from dump_analysis.tensors import Files, cut_stream, elements_of
from dump_analysis.wording import word


def by_place(joined: JoinedSides, names: Sequence[str], doubtful: set[str]) -> dict[str, Worded]:
    """Names whose layer the stream does not tell -> that they were numbered by place, and what they might be instead."""
    found = {}
    for name, row in zip(names, joined.rows, strict=True):
        if name in doubtful:
            equal = [*_elsewhere(joined.train, row.train), *_elsewhere(joined.infer, row.infer)]
            others = sorted(other for other in doubtful if other != name and place_of(other) == place_of(name))
            candidates = equal or others
            why = word("layer_by_place")
            found[name] = word("candidates", what=why, candidates=candidates) if candidates else why
    return found


def _elsewhere(side: SideNodes, node: Node) -> list[str]:
    """Outputs of the same values that neither lie around nor inside the module that returned them first."""
    times = side.records.times
    returned = [spot for spot in node.spots if spot.io == "output" and "[" not in spot.path]
    if not returned:
        return []
    first = first_spot(node) if first_spot(node).io == "output" else returned[0]
    start, end = times.start[first.entry], times.end[first.entry]
    apart = [spot for spot in returned if times.start[spot.entry] > end or times.end[spot.entry] < start]
    return [f"{side.records.side.label} {spot.entry}.output.{spot.path}" for spot in apart]


def equal_vectors(rows: Sequence[WeightRow]) -> dict[str, Worded]:
    """Rows of vectors whose values stand in other rows too (gains that were never trained): those rows."""
    groups: dict[tuple[str, bytes], list[str]] = {}
    for row in rows:
        tensor = row.train.tensor
        if len(tensor.shape) == 1:
            files = Files()
            try:
                stream = cut_stream(files, tensor, ())
                groups.setdefault((tensor.dtype, stream.read(0, elements_of(stream)).tobytes()), []).append(row.name)
            except DumpError:
                continue  # the comparison says what is wrong with the file
            finally:
                files.close()
    return {
        name: word("candidates", what=word("by_module"), candidates=[other for other in names if other != name])
        for names in groups.values()
        if len(names) > 1
        for name in names
    }
