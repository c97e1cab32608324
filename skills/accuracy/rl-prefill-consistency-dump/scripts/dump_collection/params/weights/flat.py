"""Flat parameters of FSDP1, cut into the weights that they hold: each is looked for by its rows, what is not found by the holes left.

A unit's parameters lie in it one after the other, in the order of the trainer's own modules, then padding
(torch.distributed.fsdp FlatParameter); neither names nor shapes are recorded.
"""

from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.weight_grids import rounded

from dump_collection.params import roles
from dump_collection.params.pairing import Pair, Paired
from dump_collection.params.places import FLAT, Piece, Place, matrix_of, pieces_of, place_of
from dump_collection.params.sources import Parameter, Side

from .matrices import Files, Matrix, read
from .matrices import matrix_of as laid

_BLOCK = 1 << 20  # elements searched at once
_HEAD = 4  # elements of a window that are looked for first
_WINDOW = 16
_WINDOWS = 128  # of a weight, at most
_NOWHERE = -1


class Stretch(NamedTuple):
    """Elements ``start`` … ``stop`` of a weight lie in the flat parameter from ``at`` on."""

    start: int
    stop: int
    at: int


def unflattened(files: Files, train: Side, infer: Side, flat: Sequence[Parameter]) -> Paired:
    """The other side's weights paired with where a flat parameter holds them; in `train_only` or `infer_only` what is not found.

    Two sides of flat parameters are paired as they are.
    """
    names = [{one.name: one for one in side.parameters if one.name.split(".")[-1] == FLAT} for side in (train, infer)]
    if names[0] and names[1]:
        pairs = [_as_they_are(one, names[1][name]) for name, one in names[0].items() if name in names[1]]
        lacking = [tuple(one for name, one in names[at].items() if name not in names[1 - at]) for at in (0, 1)]
        return Paired(tuple(pairs), lacking[0], lacking[1], ())
    on_train = bool(names[0])
    other = infer if on_train else train
    found: List[Pair] = []
    lost: List[Parameter] = []
    for one in flat:
        layer = place_of(one.name).layer
        inside = [parameter for parameter in other.parameters if place_of(parameter.name).layer == layer and 0 not in parameter.shape]
        pieces = [piece for parameter in inside for piece in pieces_of(parameter, place_of(parameter.name))]
        for (expert, piece), stretches in zip(pieces, _placed(files, one, [piece for _, piece in pieces])):
            if stretches:
                found.append(_pair(one, piece, expert, stretches, on_train))
            else:
                lost.append(piece.parameter)
    left = tuple(dict.fromkeys(lost))
    return Paired(tuple(found), () if on_train else left, left if on_train else (), tuple(flat))


def _as_they_are(train: Parameter, infer: Parameter) -> Pair:
    pieces = [Piece(one, 0, *matrix_of(one.shape)) for one in (train, infer)]
    return Pair(train.name, None, place_of(train.name).layer, None, (pieces[0],), (pieces[1],), (), train.shape == infer.shape)


def _pair(flat: Parameter, piece: Piece, expert: Optional[int], stretches: Sequence[Stretch], on_train: bool) -> Pair:
    place = place_of(piece.parameter.name)._replace(expert=expert)
    role = roles.role_of(place.module, place.layer is not None)
    cut = tuple(Piece(flat, one.at, (one.stop - one.start) // piece.columns, piece.columns) for one in stretches)
    inside = roles.parts_of(role) if role is not None else ()
    stem = _stem(place)
    names = ["%s%s.%s" % (stem, part, place.kind) for part in inside] if len(inside) == len(cut) > 1 else []
    parts = tuple((name, one.rows) for name, one in zip(names, cut))
    sides = (cut, (piece,)) if on_train else ((piece,), cut)
    return Pair("%s%s.%s" % (stem, role or place.module, place.kind), role, place.layer, place.expert, sides[0], sides[1], parts, True)


def _stem(place: Place) -> str:
    layer = "layers.%d." % place.layer if place.layer is not None else ""
    return layer + ("experts.%d." % place.expert if place.expert is not None else "")


# --- where weights lie ---


def _placed(files: Files, flat: Parameter, pieces: Sequence[Piece]) -> List[List[Stretch]]:
    """Of each weight the stretches in which the flat parameter holds it; empty where it is not found."""
    (size,) = flat.shape
    whole = laid([Piece(flat, 0, size, 1)])
    sought = [_Sought(files, piece) for piece in pieces]
    votes = _search(files, whole, sought)
    placed = [one.stretches(files, whole, found) for one, found in zip(sought, votes)]
    _fill_gaps(placed, size)
    _fill(placed, pieces, size)
    return [_merged(stretches) for stretches in placed]


class _Sought:
    """A weight and its windows: elements at chosen places, of which none is constant."""

    def __init__(self, files: Files, piece: Piece) -> None:
        import numpy as np

        self.matrix, self.columns, self.size = laid([piece]), piece.columns, piece.rows * piece.columns
        self.width = min(_WINDOW, self.size) if piece.columns == 1 else min(_WINDOW, piece.columns)
        rows = piece.rows if piece.columns > 1 else max(1, piece.rows // self.width)
        chosen = np.unique(np.linspace(0, rows - 1, min(rows, _WINDOWS)).astype(np.int64))
        starts = chosen * (piece.columns if piece.columns > 1 else self.width)
        windows = np.stack([self.codes(files, int(start), int(start) + self.width) for start in starts])
        kept = (windows != windows[:, :1]).any(axis=1) if self.width > _HEAD else np.zeros(len(windows), bool)
        self.starts, self.windows = starts[kept], windows[kept]

    def codes(self, files: Files, start: int, stop: int) -> Any:
        return _codes(files, self.matrix, start, stop)

    def stretches(self, files: Files, flat: Matrix, found: Sequence[Tuple[int, int]]) -> List[Stretch]:
        """Found windows as stretches of one beginning each, as far as rows bear it out; what lies between two of them has no place yet."""
        begins = Counter(at - start for start, at in found)
        usual = {begin for begin, votes in begins.items() if votes > 1 or len(self.starts) == 1}
        made: List[Stretch] = []
        for start, at in sorted(found):
            if at - start not in usual:
                continue
            if made and made[-1].at - made[-1].start == at - start:
                made[-1] = made[-1]._replace(stop=start + self.width)
            else:
                made.append(Stretch(start, start + self.width, at))
        grown: List[Stretch] = []
        for index, one in enumerate(made):
            limits = grown[-1].stop if grown else 0, made[index + 1].start if index + 1 < len(made) else self.size
            grown.append(self._grown(files, flat, one, *limits))
        return _with_gaps(grown, self.size) if grown else []

    def _grown(self, files: Files, flat: Matrix, one: Stretch, least: int, most: int) -> Stretch:
        """A stretch with the whole rows before and after it that the flat parameter holds there, too."""
        begin, step = one.at - one.start, self.columns
        start = one.start
        while start - step >= least and self._alike(files, flat, start - step, start, begin):
            start -= step
        stop = -(-one.stop // step) * step
        while stop + step <= most and self._alike(files, flat, stop, stop + step, begin):
            stop += step
        return Stretch(start, stop, begin + start)

    def _alike(self, files: Files, flat: Matrix, start: int, stop: int, begin: int) -> bool:
        inside = begin + start >= 0 and begin + stop <= flat.rows
        return inside and bool((self.codes(files, start, stop) == _codes(files, flat, begin + start, begin + stop)).all())


def _with_gaps(stretches: Sequence[Stretch], size: int) -> List[Stretch]:
    """The stretches, and what is between, before and after them as stretches without a place."""
    made, done = [], 0
    for one in stretches:
        made += [Stretch(done, one.start, _NOWHERE)] if one.start > done else []
        made.append(one)
        done = one.stop
    return made + ([Stretch(done, size, _NOWHERE)] if done < size else [])


def _fill_gaps(placed: List[List[Stretch]], size: int) -> None:
    """Put gaps where a neighbour goes on, if nothing else lies there, else into the one hole of their size."""
    for stretches in placed:
        for at, one in enumerate(stretches):
            if one.at != _NOWHERE:
                continue
            length, holes = one.stop - one.start, _holes(placed, size)
            ahead = [stretches[at - 1].at + stretches[at - 1].stop - stretches[at - 1].start] if at and stretches[at - 1].at >= 0 else []
            behind = [stretches[at + 1].at - length] if at + 1 < len(stretches) and stretches[at + 1].at >= 0 else []
            free = [place for place in ahead + behind if any(start <= place and place + length <= stop for start, stop in holes)]
            exact = [start for start, stop in holes if stop - start == length]
            if free or len(exact) == 1:
                stretches[at] = one._replace(at=free[0] if free else exact[0])


def _merged(stretches: Sequence[Stretch]) -> List[Stretch]:
    """Stretches that go on in the flat parameter as one; nothing where one of them has no place."""
    made: List[Stretch] = []
    for one in stretches:
        if one.at == _NOWHERE:
            return []
        if made and made[-1].at + made[-1].stop - made[-1].start == one.at:
            made[-1] = made[-1]._replace(stop=one.stop)
        else:
            made.append(one)
    return made


def _codes(files: Files, matrix: Matrix, start: int, stop: int) -> Any:
    """Elements as bfloat16 bits, rounded where their format is finer: so masters and copies have the same."""
    import numpy as np

    first, last = start // matrix.columns, -(-stop // matrix.columns)
    numbers = read(files, matrix, first, last).reshape(-1)[start - first * matrix.columns : stop - first * matrix.columns]
    return (rounded(np.nan_to_num(numbers), "bfloat16").astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _search(files: Files, flat: Matrix, sought: Sequence[_Sought]) -> List[List[Tuple[int, int]]]:
    """(where in the weight, where in the flat parameter) of each window that is found in one place alone."""
    import numpy as np

    found: List[Dict[int, List[int]]] = [{} for _ in sought]
    known: Dict[bytes, List[Tuple[int, int]]] = {}
    first = np.zeros(1 << 16, bool)
    for number, one in enumerate(sought):
        for index, window in enumerate(one.windows):
            known.setdefault(window[:_HEAD].tobytes(), []).append((number, index))
            first[window[0]] = True
    for start in range(0, flat.rows, _BLOCK):
        block = _codes(files, flat, start, min(flat.rows, start + _BLOCK + _WINDOW - 1))
        for place in np.flatnonzero(first[block]).tolist():
            for number, index in known.get(block[place : place + _HEAD].tobytes(), ()) if place < _BLOCK else ():
                one = sought[number]
                if np.array_equal(block[place : place + one.width], one.windows[index]):
                    found[number].setdefault(int(one.starts[index]), []).append(start + place)
    return [[(start, places[0]) for start, places in one.items() if len(places) == 1] for one in found]


def _fill(placed: List[List[Stretch]], pieces: Sequence[Piece], size: int) -> None:
    """Put weights that were not found where the holes have their sizes: a stale one still has its place."""
    for at in sorted((at for at, stretches in enumerate(placed) if not stretches), key=lambda at: -pieces[at].rows * pieces[at].columns):
        wanted = pieces[at].rows * pieces[at].columns
        alike = sum(not placed[other] and pieces[other].rows * pieces[other].columns == wanted for other in range(len(pieces)))
        holes = _holes(placed, size)
        fits = [hole for hole in holes if hole[1] - hole[0] == wanted]
        if len(fits) == alike == 1:
            placed[at] = [Stretch(0, wanted, fits[0][0])]
            continue
        wide = _split(holes, wanted, pieces[at].columns)
        if alike == 1 and wide is not None:
            placed[at] = wide


def _split(holes: Sequence[Tuple[int, int]], wanted: int, columns: int) -> Optional[List[Stretch]]:
    """A fused matrix over the two or three neighbouring holes whose sizes add up to it; None where not one choice alone fits."""
    choices = []
    for count in (2, 3):
        for first in range(len(holes) - count + 1):
            some = holes[first : first + count]
            if sum(stop - start for start, stop in some) == wanted and all((stop - start) % columns == 0 for start, stop in some):
                choices.append(some)
    if len(choices) != 1:
        return None
    made, done = [], 0
    for start, stop in choices[0]:
        made.append(Stretch(done, done + stop - start, start))
        done += stop - start
    return made


def _holes(placed: Sequence[Sequence[Stretch]], size: int) -> List[Tuple[int, int]]:
    taken = sorted((one.at, one.at + one.stop - one.start) for stretches in placed for one in stretches if one.at != _NOWHERE)
    holes, end = [], 0
    for start, stop in [*taken, (size, size)]:
        if start > end:
            holes.append((end, start))
        end = max(end, stop)
    return holes
