"""A pair of weights as the parts that are compared: rows of both sides that stand for the same, whatever the layouts."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from dump_collection.params import roles
from dump_collection.params.pairing import Pair
from dump_collection.params.places import Piece
from dump_collection.params.structure import general, is_padded
from dump_collection.wording import word

from .layouts import Stated, is_said, taken_apart, turns_note, turns_of
from .matrices import Files, Matrix, equal, matrix_of, picked, rows_of
from .orders import ALIKE, Order, found_order, misread, stretches

Orders = Dict[str, Order]


class Part(NamedTuple):
    """Rows of both sides, of one size. ``note``: what was done to bring them together; ``misread``: as `orders.misread` says it."""

    name: str
    pair: Pair
    train: Matrix
    infer: Matrix
    keys: Tuple[List[str], List[str]]
    note: Optional[Dict[str, Any]]
    misread: Optional[Tuple[str, str]] = None


def parts_of(files: Files, pair: Pair, orders: Orders, stated: Stated) -> List[Part]:
    """The parts of a pair whose shapes fit. Raises DumpError where a side cannot be read.

    ``orders``: of fused matrices, as found so far; a bias has that of its weight.
    """
    train, infer = matrix_of(pair.train), matrix_of(pair.infer)
    if is_padded(pair):
        return [_unpadded(pair, train, infer)]
    turned = turns_of(files, pair, train, infer) if str(pair.role).endswith("gate_up") else None
    if turned is not None:
        return _by_turns(pair, train, infer, *turned, stated)
    if pair.role is None or roles.parts_of(pair.role)[1:] == () or roles.parts_of(pair.role)[-1] != "v":
        return _side_by_side(pair, train, infer, pair.parts)
    order, borne_out = _order(files, pair, train, infer, orders)
    wrong = misread(order, pair, stated.kv_groups) if borne_out else None
    if wrong is not None:
        return [_misread(pair, train, infer, order, wrong)]
    if not order.side:
        return _side_by_side(pair, train, infer, pair.parts)
    names = pair.parts or tuple(zip((_named(pair, part) for part in roles.parts_of(pair.role)), order.sizes))
    laid = [picked(one, stretches(order, side)) for one, side in ((train, "train"), (infer, "infer"))]
    note = word("laid_by_group", side=order.side, groups=order.groups)
    return [part._replace(note=note, keys=_of_groups(part, order)) for part in _side_by_side(pair, laid[0], laid[1], names)]


def _order(files: Files, pair: Pair, train: Matrix, infer: Matrix, orders: Orders) -> Tuple[Order, bool]:
    """The order of a fused pair's rows, and whether its rows bear it out: of unrelated weights no order says anything."""
    stem, _, kind = pair.name.rpartition(".")
    if kind == "bias" and stem in orders:
        return orders[stem], True
    usual = orders.get(general(stem))
    sizes = [rows for _, rows in pair.parts]
    for guess in [usual] if usual is not None else [ALIKE]:
        laid = [picked(one, stretches(guess, side)) if guess.side else one for one, side in ((train, "train"), (infer, "infer"))]
        if laid[0].rows == laid[1].rows == train.rows and equal(files, laid[0], laid[1]):
            orders[stem] = orders[general(stem)] = guess
            return guess, True
    order, borne_out = found_order(train, infer, sizes, usual)
    if borne_out:
        orders[general(stem)] = order
        orders[stem] = order
    return order, borne_out


def _side_by_side(pair: Pair, train: Matrix, infer: Matrix, parts: Sequence[Tuple[str, int]]) -> List[Part]:
    found, start = [], 0
    for name, rows in parts or ((pair.name, train.rows),):
        cut = start, start + rows
        keys = tuple(_keys(side, *cut) for side in (pair.train, pair.infer))
        found.append(Part(name, pair, rows_of(train, *cut), rows_of(infer, *cut), (keys[0], keys[1]), None))
        start += rows
    return found


def _keys(pieces: Sequence[Piece], start: int, stop: int) -> List[str]:
    """The parameters that hold some rows, with the rows where it is not all of them."""
    found, above = [], 0
    for piece in pieces:
        first, last = max(start - above, 0), min(stop - above, piece.rows)
        if first < last:
            own = (
                ""
                if piece.start == 0 and piece.rows * piece.columns == _elements(piece)
                else "[%d]" % (piece.start // (piece.rows * piece.columns))
            )
            found.append(piece.parameter.name + own + ("" if last - first == piece.rows else "[%d:%d]" % (first, last)))
        above += piece.rows
    return found


def _of_groups(part: Part, order: Order) -> Tuple[List[str], List[str]]:
    """The keys of a part whose rows are spread over the groups of one side's matrix."""
    fused = part.pair.train if order.side == "train" else part.pair.infer
    key = ["%s[%s of each group]" % (fused[0].parameter.name, part.name.split(".")[-2])]
    return (key, part.keys[1]) if order.side == "train" else (part.keys[0], key)


def _elements(piece: Piece) -> int:
    count = 1
    for size in piece.parameter.shape:
        count *= size
    return count


def _unpadded(pair: Pair, train: Matrix, infer: Matrix) -> Part:
    rows = min(train.rows, infer.rows)
    side = "train" if train.rows > rows else "infer"
    note = word("shape_padded", side=side, rows=max(train.rows, infer.rows) - rows)
    keys = _keys(pair.train, 0, rows), _keys(pair.infer, 0, rows)
    return Part(pair.name, pair, rows_of(train, 0, rows), rows_of(infer, 0, rows), keys, note)


def _by_turns(pair: Pair, train: Matrix, infer: Matrix, side: str, block: int, stated: Stated) -> List[Part]:
    """Gate and up, of which one side's matrix holds so many rows in turn: misread where no configuration says so."""
    laid = [taken_apart(one, block) if name == side else one for one, name in ((train, "train"), (infer, "infer"))]
    note, wrong = turns_note(side, block, stated), None if is_said(side, block, stated) else (side, "turns")
    return [part._replace(note=note, misread=wrong) for part in _side_by_side(pair, laid[0], laid[1], pair.parts)]


def _misread(pair: Pair, train: Matrix, infer: Matrix, order: Order, wrong: Tuple[str, str]) -> Part:
    """The fused matrix as one, whose rows are in another order than they are read in."""
    side, reads = wrong
    note = word("misread_%s" % reads, side=side or word("one_of_both"))
    keys = _keys(pair.train, 0, train.rows), _keys(pair.infer, 0, infer.rows)
    laid = [picked(one, stretches(order, name)) if order.side else one for one, name in ((train, "train"), (infer, "infer"))]
    return Part(_named(pair, "qkv"), pair, laid[0], laid[1], keys, note, wrong)


def _named(pair: Pair, part: str) -> str:
    """A canonical name beside the pair's own."""
    stem, _, kind = pair.name.rpartition(".")
    return "%s%s.%s" % (stem[: len(stem) - len(str(pair.role))], part, kind)
