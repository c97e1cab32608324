"""Both sides' parameters brought together: which matrices of train and infer hold the same, what each is called, what one side lacks."""

from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from . import roles
from .joining import Join, Joined, Likeness, join, pair_layers
from .places import FLAT, Kinds, Layer, Modules, Piece, layers_of
from .sources import Parameter, Side

LikenessOf = Callable[[Layer, Layer], Likeness]  # what tells, of a pair of layers, whether modules hold equal rows
_NO_LAYER = Layer("", None, {})


class Pair(NamedTuple):
    """What both sides hold of one weight. ``name``: its canonical name; ``train``, ``infer``: the matrices whose rows make it up.

    ``parts``: the canonical names of the parts, as q, k and v, and how many rows each has, where a side keeps them apart.
    """

    name: str
    role: Optional[str]
    layer: Optional[int]
    expert: Optional[int]
    train: Tuple[Piece, ...]
    infer: Tuple[Piece, ...]
    parts: Tuple[Tuple[str, int], ...]
    fits: bool


class Paired(NamedTuple):
    """``train_only``, ``infer_only``: parameters with no partner, in the order of their layers. ``flat``: of sharded trainers."""

    pairs: Tuple[Pair, ...]
    train_only: Tuple[Parameter, ...]
    infer_only: Tuple[Parameter, ...]
    flat: Tuple[Parameter, ...]


def pair_up(train: Side, infer: Side, likeness: Optional[LikenessOf] = None) -> Paired:
    """Every parameter of both sides in a pair, or as one side's alone.

    Where a side holds flat parameters, which have no inner names, there are no pairs: `flat` says which they are.
    """
    flat = tuple(one for one in train.parameters + infer.parameters if one.name.split(".")[-1] == FLAT)
    if flat:
        return Paired((), (), (), flat)
    sides = [layers_of([one for one in side.parameters if 0 not in one.shape]) for side in (train, infer)]
    main = _main_stack(sides[0]) or _main_stack(sides[1])
    pairs: List[Pair] = []
    only: Tuple[List[Parameter], List[Parameter]] = ([], [])
    solved: Dict[object, Joined] = {}
    for mine, theirs in pair_layers(*sides):
        left, right = mine or _NO_LAYER, theirs or _NO_LAYER
        inside = (mine or right).number is not None
        key = _signature(left.modules), _signature(right.modules), inside
        if key not in solved:
            solved[key] = join(left.modules, right.modules, inside, likeness(left, right) if likeness is not None else None)
        found = solved[key]
        for one, fits in [(one, True) for one in found.joins] + [(one, False) for one in found.unfit]:
            pairs += _pairs_of(one, left, right, fits, main)
        for lacking, layer, into in ((found.train_only, left, only[0]), (found.infer_only, right, only[1])):
            into += [piece.parameter for name in lacking for pieces in layer.modules[name].values() for _, piece in pieces]
        _bias_of_one(found, left, right, only)
    return Paired(tuple(pairs), tuple(dict.fromkeys(only[0])), tuple(dict.fromkeys(only[1])), flat)


def _signature(modules: Modules) -> Tuple[object, ...]:
    return tuple(
        (name, kind, len(pieces), pieces[0][1].rows, pieces[0][1].columns)
        for name, kinds in modules.items()
        for kind, pieces in kinds.items()
    )


def _main_stack(layers: Sequence[Layer]) -> str:
    """The stack of layers whose names need not say which it is: the one with the most elements."""
    sizes: Dict[str, int] = {}
    for layer in layers:
        pieces = [piece for kinds in layer.modules.values() for found in kinds.values() for _, piece in found]
        if layer.number is not None:
            sizes[layer.stack] = sizes.get(layer.stack, 0) + sum(piece.rows * piece.columns for piece in pieces)
    return max(sizes, key=lambda stack: sizes[stack]) if sizes else ""


def _bias_of_one(found: Joined, train: Layer, infer: Layer, only: Tuple[List[Parameter], List[Parameter]]) -> None:
    """A bias whose module has none on the other side."""
    for one in found.joins + found.unfit:
        sides = [[layer.modules[name] for name in names] for names, layer in ((one.train, train), (one.infer, infer))]
        for kind in ("weight", "bias"):
            holds = [any(kind in kinds for kinds in side) for side in sides]
            if holds[0] != holds[1]:
                at = 0 if holds[0] else 1
                only[at].extend(piece.parameter for kinds in sides[at] for _, piece in kinds.get(kind, []))


def _pairs_of(one: Join, train: Layer, infer: Layer, fits: bool, main: str) -> List[Pair]:
    """The weight and the bias of joined modules, of each expert apart."""
    found = []
    for kind in ("weight", "bias"):
        sides = [_by_expert([layer.modules[name] for name in names], kind) for names, layer in ((one.train, train), (one.infer, infer))]
        if not sides[0] or not sides[1]:
            continue
        experts = sorted({*sides[0], *sides[1]}, key=lambda expert: -1 if expert is None else expert)
        for expert in experts:
            mine, theirs = sides[0].get(expert, ()), sides[1].get(expert, ())
            stem = _stem(train, expert, main)
            last = one.role or _own(one.train[0])
            sized = _turned_to_fit(mine, theirs)
            parts = _parts(one, stem, kind, *sized)
            whole = fits and sum(piece.rows for piece in sized[0]) == sum(piece.rows for piece in sized[1])
            found.append(Pair(stem + last + "." + kind, one.role, train.number, expert, sized[0], sized[1], parts, whole))
    return found


def _by_expert(modules: Sequence[Kinds], kind: str) -> Dict[Optional[int], Tuple[Piece, ...]]:
    found: Dict[Optional[int], List[Piece]] = {}
    for kinds in modules:
        for expert, piece in kinds.get(kind, []):
            found.setdefault(expert, []).append(piece)
    return {expert: tuple(pieces) for expert, pieces in found.items()}


def _own(module: str) -> str:
    return module.replace("experts.E.", "").replace("experts.", "") if "experts" in module else module


def _stem(layer: Layer, expert: Optional[int], main: str) -> str:
    """What stands before a role in a canonical name."""
    stack = "" if layer.number is None else ("layers" if layer.stack == main else layer.stack) + ".%d." % layer.number
    return stack + ("" if expert is None else "experts.%d." % expert)


def _turned_to_fit(train: Tuple[Piece, ...], infer: Tuple[Piece, ...]) -> Tuple[Tuple[Piece, ...], Tuple[Piece, ...]]:
    """A single matrix of infer turned where only so it fits train's."""
    if len(train) != 1 or len(infer) != 1:
        return train, infer
    mine, theirs = train[0], infer[0]
    if (mine.rows, mine.columns) != (theirs.rows, theirs.columns) == (mine.columns, mine.rows):
        return train, (theirs._replace(rows=theirs.columns, columns=theirs.rows, turned=True),)
    return train, infer


def _parts(one: Join, stem: str, kind: str, train: Sequence[Piece], infer: Sequence[Piece]) -> Tuple[Tuple[str, int], ...]:
    """Names and rows of the parts, from the side that keeps them apart; empty where neither does."""
    apart = max((train, infer), key=len)
    named = roles.parts_of(one.role) if one.role is not None else ()
    if len(apart) < 2:
        return ()
    names = named if len(named) == len(apart) else [_own(name) for name in (one.train if apart is train else one.infer)]
    return tuple(("%s%s.%s" % (stem, name, kind), piece.rows) for name, piece in zip(names, apart))
