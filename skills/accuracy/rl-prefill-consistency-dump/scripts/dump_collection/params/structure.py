"""Layer (b): names and shapes of both built models, through the layouts that either side uses. The standard library alone."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError

from dump_collection.wording import word

from . import roles
from .items import Compared, Item, item, runs, side_of
from .padding import PADDED_TO, pads
from .pairing import Pair, pair_up
from .places import Piece, place_of
from .ranks import rank_by_rank
from .sources import Parameter, Side, read_side

_NUMBERS = re.compile(r"(?<=\.)[0-9]+(?=\.)")
VOCABULARY = ("embedding", "lm_head")


def compare(train_paths: Sequence[str], infer_paths: Sequence[str]) -> Compared:
    """Compare two built models by names and shapes.

    Paths: JSON lists of name and shape, checkpoints, or dumps. Items: one for each kind of weight and shape, layers taken together.
    Raises DumpError where a path is none of these.
    """
    return compare_sides(read_side("train", train_paths), read_side("infer", infer_paths))


def compare_sides(train: Side, infer: Side) -> Compared:
    """The same of two sides that were read."""
    return rank_by_rank(train, infer, _compare)


def _compare(train: Side, infer: Side) -> Compared:
    paired = pair_up(train, infer)
    if paired.flat:
        return _of_flat(train, infer, paired.flat)
    items = _of_pairs(paired.pairs)
    only: List[List[str]] = [[], []]
    for at, (lacking, side, other) in enumerate(((paired.train_only, train, infer), (paired.infer_only, infer, train))):
        for one in _of_one_side(lacking, side, other):
            items.append(one.item)
            only[at] += one.keys
    return Compared(tuple(items), _groups(items), tuple(only[0]), tuple(only[1]))


def is_padded(pair: Pair) -> bool:
    """Whether a vocabulary's matrices differ only in rows that pad it."""
    rows = sorted(sum(piece.rows for piece in side) for side in (pair.train, pair.infer))
    columns = {piece.columns for piece in pair.train + pair.infer}
    return pair.role in VOCABULARY and len(columns) == 1 and pads(rows[1], rows[0])


def tied_to(lacking: Parameter, other: Side) -> Optional[Parameter]:
    """The other side's embedding, where a side's head has no partner and could be it."""
    place = place_of(lacking.name)
    if place.layer is not None or roles.role_of(place.module, False) != "lm_head" or place.kind != "weight":
        return None
    found = [
        one
        for one in other.parameters
        if place_of(one.name).layer is None and roles.role_of(place_of(one.name).module, False) == "embedding"
    ]
    if len(found) != 1 or len(found[0].shape) != 2 or found[0].shape[1:] != lacking.shape[1:]:
        return None
    piece = [Piece(one, 0, one.shape[0], one.shape[1]) for one in (lacking, found[0])]
    same = lacking.shape == found[0].shape or is_padded(Pair("", "lm_head", None, None, (piece[0],), (piece[1],), (), True))
    return found[0] if same else None


# --- pairs ---


def _of_pairs(pairs: Sequence[Pair]) -> List[Item]:
    """An item for each kind of weight and both its shapes; of one that differs in some layers only, one for each of these."""
    kinds: Dict[str, Dict[Tuple[Any, Any], List[Pair]]] = {}
    for pair in pairs:
        shapes = tuple(tuple(piece.parameter.shape for piece in _once(side)) for side in (pair.train, pair.infer))
        kinds.setdefault(general(pair.name), {}).setdefault((shapes[0], shapes[1]), []).append(pair)
    items = []
    for name, by_shape in kinds.items():
        for found in by_shape.values():
            layers = sorted({pair.layer for pair in found if pair.layer is not None})
            shown = name if len(by_shape) == 1 else re.sub(r"\.N\.", ".%s." % ",".join(runs(layers)), name, count=1)
            items.append(_of_alike(shown, found))
    return items


def _of_alike(name: str, pairs: Sequence[Pair]) -> Item:
    pair = pairs[0]
    train, infer = (_shown(side) for side in (pair.train, pair.infer))
    if pair.fits:
        turned = any(piece.turned for piece in pair.train + pair.infer)
        return item(name, train, infer, "EXACT", "structure", None, word("shape_turned") if turned else None)
    if is_padded(pair):
        rows = [sum(piece.rows for piece in side) for side in (pair.train, pair.infer)]
        side = "train" if rows[0] > rows[1] else "infer"
        return item(name, train, infer, "EXACT", "structure", "padded", word("shape_padded", side=side, rows=abs(rows[0] - rows[1])))
    return item(name, train, infer, "DIFF", "structure", "shape", word("shape_unlike"))


def _shown(pieces: Sequence[Piece]) -> Dict[str, Any]:
    parameters = [piece.parameter for piece in _once(pieces)]
    shapes = [list(one.shape) for one in parameters]
    return side_of([general(one.name) for one in parameters], shapes[0] if len(shapes) == 1 else shapes)


def _once(pieces: Sequence[Piece]) -> List[Piece]:
    return list({piece.parameter.name: piece for piece in pieces}.values())


def general(name: str) -> str:
    """A name with layer's and expert's numbers as N."""
    return _NUMBERS.sub("N", name)


# --- what one side alone has ---


class _Only(NamedTuple):
    """An item about parameters that one side lacks; ``keys``: their names, empty where that is no difference of the models."""

    item: Item
    keys: List[str]


def _of_one_side(lacking: Sequence[Parameter], side: Side, other: Side) -> List[_Only]:
    alike: Dict[Tuple[str, Any], List[Parameter]] = {}
    for one in lacking:
        alike.setdefault((general(one.name), one.shape), []).append(one)
    return [_lacking(name, found, side, other) for (name, _), found in alike.items()]


def _lacking(name: str, found: Sequence[Parameter], side: Side, other: Side) -> _Only:
    here = side_of([name], list(found[0].shape))
    tied = tied_to(found[0], other)
    there = side_of([tied.name] if tied is not None else [], list(tied.shape) if tied is not None else None)
    train, infer = (here, there) if side.label == "train" else (there, here)
    names = [one.name for one in found]
    if tied is not None:
        note = word("head_of_embedding" if other.whole else "head_not_recorded", side=other.label)
        return _Only(item("lm_head.weight", train, infer, "EXACT", "structure", "tied", note), [])
    if roles.MADE_ANEW.search(name):
        return _Only(item(name, train, infer, "MISSING_SIDE", "no_effect", "made_anew", word("made_anew", other=other.label)), [])
    if roles.predicts_further(name):
        return _Only(item(name, train, infer, "MISSING_SIDE", "no_effect", "predicts_further", word("predicts_further")), names)
    if _is_packed(name, side, other):
        return _Only(item(name, train, infer, "MISSING_SIDE", "structure", "packed", word("packed", side=side.label)), names)
    numbers = [layer for layer in (place_of(one).layer for one in names) if layer is not None]
    where = word("in_layers", layers=runs(sorted(set(numbers)))) if numbers else word("outside_layers")
    note = (
        word("only_on", side=side.label, where=where)
        if other.whole
        else word("not_recorded", side=side.label, other=other.label, where=where)
    )
    return _Only(item(name, train, infer, "MISSING_SIDE", "structure", "one_side", note), names)


def _is_packed(name: str, side: Side, other: Side) -> bool:
    """Whether it is a part of a quantised weight, or a weight that the other side may hold in such parts."""
    if roles.PACKED.search(name):
        return True
    packs = any(roles.PACKED.search(one.name) for one in other.parameters)
    return packs and not any(roles.PACKED.search(one.name) for one in side.parameters) and roles.of_linear(place_of(name).module)


# --- flat parameters ---


def _of_flat(train: Side, infer: Side, flat: Sequence[Parameter]) -> Compared:
    """Flat parameters have no inner shapes: how many elements a layer has is compared."""
    side, other = (train, infer) if flat[0] in train.parameters else (infer, train)
    if any(one.name.endswith(flat[0].name.split(".")[-1]) for one in other.parameters):
        raise DumpError("Cannot compare two sides of flat parameters by shapes: they have no inner names. Hand a checkpoint of one side.")
    items = []
    for one in flat:
        layer = place_of(one.name).layer
        inside = [parameter for parameter in other.parameters if place_of(parameter.name).layer == layer]
        count, given = sum(_elements(parameter) for parameter in inside), _elements(one)
        here, there = side_of([one.name], list(one.shape)), side_of([parameter.name for parameter in inside], count)
        sides = (here, there) if side is train else (there, here)
        left = given - count
        embeddings = [_elements(parameter) for parameter in inside if roles.role_of(place_of(parameter.name).module, False) == "embedding"]
        if 0 <= left < PADDED_TO:
            status, note = "EXACT", word("flat_elements", left=left)
        elif left in embeddings and not other.whole:
            status, note = "EXACT", word("flat_head", other=other.label)
        else:
            status, note = "DIFF", word("flat_unlike", given=given, count=count)
        items.append(item("layers.%d" % layer if layer is not None else "outside_layers", *sides, status, "structure", "flat", note))
    return Compared(tuple(items), _groups(items), (), ())


def _elements(parameter: Parameter) -> int:
    count = 1
    for size in parameter.shape:
        count *= size
    return count


# --- groups ---


def _groups(items: Sequence[Item]) -> Tuple[Dict[str, Any], ...]:
    """Shapes that do not fit together, and what each side lacks, together."""
    causes = {"shape": word("cause_shape"), "flat": word("cause_shape"), "one_side": word("cause_one_side"), "packed": word("cause_packed")}
    groups: Dict[Tuple[str, bool], List[str]] = {}
    for one in items:
        if one["status"] != "EXACT" and one["kind"] in causes:
            apart = one["kind"] != "packed" and one["train"]["state"] == "absent"
            groups.setdefault((one["kind"], apart), []).append(one["canonical"])
    return tuple({"items": names, "cause": causes[kind], "impact": word("impact_structure")} for (kind, _), names in groups.items())
