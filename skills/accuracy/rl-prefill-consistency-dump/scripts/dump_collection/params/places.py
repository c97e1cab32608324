"""Where a parameter stands: in which layer, in which expert, in which module; matrices of both sides put into one form."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files import names

from .sources import Parameter, Shape

# The leaf's own name: layer_norm_weight, w13_weight, weight7 (grouped experts of Megatron-Core), bias.
_LEAF = re.compile(r"^(?P<stem>.*?)_?(?P<kind>weight|bias)(?P<expert>[0-9]*)$")
_NUMBER = re.compile(r"[0-9]{1,9}\Z")
_EXPERTS = re.compile(r"expert")
FLAT = "_flat_param"  # torch FSDP1: the parameters of a unit, one after the other


class Place(NamedTuple):
    """``stack``: the path before the layer number, ``module``: the path below it (or the whole), an expert's number as E."""

    stack: str
    layer: Optional[int]
    module: str
    expert: Optional[int]
    kind: str


class Piece(NamedTuple):
    """A matrix of a parameter: ``rows`` of ``columns`` elements from element ``start`` on; of a vector each element is a row.

    ``turned``: it is stored [columns, rows].
    """

    parameter: Parameter
    start: int
    rows: int
    columns: int
    turned: bool = False


Kinds = Dict[str, List[Tuple[Optional[int], Piece]]]  # weight | bias -> (expert, piece)
Modules = Dict[str, Kinds]  # by the module's path


class Layer(NamedTuple):
    """The modules of one layer, or those outside all (``number`` None)."""

    stack: str
    number: Optional[int]
    modules: Modules


def place_of(name: str) -> Place:
    """Where a parameter's name says that it stands."""
    parts = tuple(name.split("."))
    at = names.layer_position(parts)
    stack, layer, below = ("", None, parts) if at is None else (".".join(parts[:at]), int(parts[at]), parts[at + 1 :])
    expert, path = None, list(below[:-1])
    for index, part in enumerate(path):
        if _NUMBER.match(part) and any(_EXPERTS.search(before) for before in path[:index]):
            expert, path[index] = int(part), "E"
            break
    leaf = _LEAF.match(below[-1]) if below else None
    if leaf is None:
        return Place(stack, layer, ".".join(path + list(below[-1:])), expert, "weight")
    if leaf.group("expert"):
        expert = int(leaf.group("expert"))
    return Place(stack, layer, ".".join(path + ([leaf.group("stem")] if leaf.group("stem") else [])), expert, leaf.group("kind"))


def layers_of(parameters: Sequence[Parameter]) -> List[Layer]:
    """The layers of a side, those outside all layers first, others by stack and number."""
    found: Dict[Tuple[str, Optional[int]], Modules] = {}
    for parameter in parameters:
        place = place_of(parameter.name)
        modules = found.setdefault((place.stack, place.layer), {})
        pieces = modules.setdefault(place.module, {}).setdefault(place.kind, [])
        pieces.extend(pieces_of(parameter, place))
    order = sorted(found, key=lambda key: (key[1] is not None, key[0], key[1] or 0))
    return [Layer(stack, number, found[stack, number]) for stack, number in order]


def pieces_of(parameter: Parameter, place: Place) -> List[Tuple[Optional[int], Piece]]:
    """A stack of experts' matrices as a piece for each of them, anything else as one."""
    shape = parameter.shape
    stacked = len(shape) == (3 if place.kind == "weight" else 2) and _EXPERTS.search(place.module) is not None
    if place.expert is None and stacked and "shared_expert" not in place.module:
        rows, columns = matrix_of(shape[1:])
        return [(expert, Piece(parameter, expert * rows * columns, rows, columns)) for expert in range(shape[0])]
    rows, columns = matrix_of(shape)
    return [(place.expert, Piece(parameter, 0, rows, columns))]


def matrix_of(shape: Shape) -> Tuple[int, int]:
    """Rows and columns of a shape: all axes but the last are rows; a vector, and what has one column, is a column."""
    kept = [size for size in shape if size != 1]
    if len(kept) < 2:
        return (kept[0] if kept else 1), 1
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return rows, shape[-1]
