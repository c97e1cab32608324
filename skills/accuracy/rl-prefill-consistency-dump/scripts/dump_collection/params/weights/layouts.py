"""Layouts under which two sides may hold the same rows: channels of rotary pairs, and gate and up by turns.

A permutation alone does not tell a layout from a fault: it is one where the configurations say that the sides read rows so.
Sources: rotary pairs are halves of a head (transformers' rotate_half) or neighbours (Megatron-Core's rotary_interleaved,
vLLM's is_neox_style=False); gate and up by turns are gpt-oss's checkpoint and Megatron-Core's moe_mlp_glu_interleave_size.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_order import order_of, permutation, runs_of
from msprobe_files.weight_walk import row_keys

from dump_collection.params.pairing import Pair
from dump_collection.wording import word

from .contents import nearness, sample_of
from .found import Found
from .matrices import Files, Matrix, equal, picked, rows_of

_SIDES = ("train", "infer")
_MOST = 0.5  # of equal rows, or of their mean cosine
Pairings = Dict[str, Tuple[str, int]]  # a layer -> the side whose rotary pairs are neighbours, and the width of a head


class Stated(NamedTuple):
    """What the configurations say of how rows are read; None where they do not.

    ``kv_groups``: heads of keys. Of train and infer: ``neighbours``, whether rotary pairs are neighbours; ``turns``, how many rows of gate
    and of up stand in turn.
    """

    kv_groups: Optional[int] = None
    neighbours: Tuple[Optional[bool], Optional[bool]] = (None, None)
    turns: Tuple[Optional[int], Optional[int]] = (None, None)


UNSTATED = Stated()


# --- what a difference is ---


def relaid(files: Files, sides: Tuple[Matrix, Matrix], found: Found, stated: Stated, pairings: Pairings) -> Found:
    """A weight that differs, as the layout under which it is the same, if there is one; a bias has that of its layer's weights."""
    stem, _, last = found.name.rpartition(".")
    layer, _, role = stem.rpartition(".")
    if found.status == "EXACT" or role not in ("q", "k", "gate_up"):
        return found
    if role == "gate_up":
        turned = _turned(found)
        return found if turned is None else _by_turns(found, *turned, stated)
    known = pairings.get(layer) if last == "bias" else _pairing(found.how)
    if known is None or (last == "bias" and not _equal_apart(files, sides, *known)):
        return found
    pairings[layer] = known
    side, width = known
    said = stated.neighbours == (side == "train", side == "infer")
    note = word("rotary_neighbours" if said else "rotary_unsaid", side=side, width=width)
    if not said:
        return found._replace(kind="swapped", note=note, side=side)
    return found._replace(status="EXACT", kind="neighbours", note=note, side=side, how=None)


def _pairing(how: Optional[Difference]) -> Optional[Tuple[str, int]]:
    order = how.facts["order"] if how is not None and how.kind == "swapped" and how.facts["axis"] == "rows" else None
    if order is None or (order.block, order.parts) != (1, 2) or order.kind not in ("interleaved", "deinterleaved"):
        return None
    return ("infer" if order.kind == "interleaved" else "train"), order.within


def _equal_apart(files: Files, sides: Tuple[Matrix, Matrix], side: str, width: int) -> bool:
    """Whether the sides hold the same once one's neighbours are taken apart into halves."""
    rows = sides[0].rows
    if rows % width:
        return False
    places = [start + at for start in range(0, rows, width) for first in (0, 1) for at in range(first, width, 2)]
    laid = [picked(one, runs_of(places)) if name == side else one for one, name in zip(sides, _SIDES)]
    return equal(files, laid[0], laid[1])


def _turned(found: Found) -> Optional[Tuple[str, int]]:
    """Of two fused matrices: which side has gate and up by turns, and of how many rows."""
    how = found.how
    order = how.facts["order"] if how is not None and how.kind == "swapped" and how.facts["axis"] == "rows" else None
    if order is None or order.parts != 2 or order.within != found.size[0]:
        return None
    return ("infer" if order.kind == "interleaved" else "train"), order.block


def _by_turns(found: Found, side: str, block: int, stated: Stated) -> Found:
    note = turns_note(side, block, stated)
    if not is_said(side, block, stated):
        return found._replace(note=note, side=side)
    return found._replace(status="EXACT", kind="turns", note=note, side=side, how=None)


# --- gate and up, apart on one side ---


def turns_of(files: Files, pair: Pair, train: Matrix, infer: Matrix) -> Optional[Tuple[str, int]]:
    """Which side holds gate and up in one matrix by turns, and of how many rows; None where they stand one above the other."""
    apart, half = [len(side) == 2 for side in (pair.train, pair.infer)], train.rows // 2
    if apart[0] == apart[1] or train.rows % 2 or equal(files, *(rows_of(one, half, half + 1) for one in (train, infer))):
        return None
    return _sought_turns(apart, train, infer)


def _sought_turns(apart: Sequence[bool], train: Matrix, infer: Matrix) -> Optional[Tuple[str, int]]:
    import numpy as np

    fused, plain = (infer, train) if apart[0] else (train, infer)
    samples = sample_of(plain), sample_of(fused)
    keys = row_keys(samples[0]), row_keys(samples[1])
    if float((keys[0] == keys[1]).mean()) > _MOST:
        return None
    side, half = "infer" if apart[0] else "train", train.rows // 2
    places = permutation(*keys)
    order = order_of(places) if places is not None else None
    if order is not None:
        by_turns = order.kind == "interleaved" and order.parts == 2 and order.within == train.rows
        return (side, order.block) if by_turns else None
    blocks = [1 << power for power in range(half.bit_length()) if half % (1 << power) == 0 and 1 << power < half]
    near = {block: nearness(samples[1], samples[0][np.asarray(_in_turn(half, block))]) for block in blocks}
    best = max(near, key=lambda block: near[block], default=None)
    return (side, best) if best is not None and near[best] > max(_MOST, nearness(samples[1], samples[0])) else None


def _in_turn(half: int, block: int) -> List[int]:
    """Which row of gate above up stands at each row of the two by turns."""
    return [part * half + start + at for start in range(0, half, block) for part in (0, 1) for at in range(block)]


def taken_apart(matrix: Matrix, block: int) -> Matrix:
    """Gate above up, of a matrix that has them by turns."""
    return picked(matrix, [(start, start + block) for first in (0, block) for start in range(first, matrix.rows, 2 * block)])


def is_said(side: str, block: int, stated: Stated) -> bool:
    """Whether the configurations say that this side alone reads gate and up by turns of so many rows."""
    return stated.turns == ((block, None) if side == "train" else (None, block))


def turns_note(side: str, block: int, stated: Stated) -> Dict[str, Any]:
    """The sentence of it."""
    return word("laid_by_turns" if is_said(side, block, stated) else "turns_unsaid", side=side, block=block)
