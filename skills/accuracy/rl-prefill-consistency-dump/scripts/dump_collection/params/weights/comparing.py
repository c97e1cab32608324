"""The weights of both sides compared: equal, or different in which way, and from which cause."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.weight_kinds import Difference, difference

from dump_collection.params import roles
from dump_collection.params.items import Compared, Item, item, side_of
from dump_collection.params.padding import PADDED_TO
from dump_collection.params.pairing import Pair, Paired, pair_up
from dump_collection.params.places import Piece, place_of
from dump_collection.params.places import matrix_of as matrix_shape
from dump_collection.params.ranks import rank_by_rank
from dump_collection.params.sources import Parameter, Side, read_side
from dump_collection.params.structure import VOCABULARY, is_padded, tied_to
from dump_collection.wording import word

from .contents import likeness_of
from .exchanges import exchanged
from .flat import unflattened
from .found import Found
from .grouping import grouped
from .layouts import UNSTATED, Pairings, Stated, relaid
from .matrices import Files, Matrix, equal, matrix_of, weight_of
from .parts import Orders, Part, parts_of
from .previous import stale_sides
from .told import told


def compare(train_paths: Sequence[str], infer_paths: Sequence[str], previous: Optional[str] = None, stated: Stated = UNSTATED) -> Compared:
    """Compare the values of two built models' weights, whatever their layouts.

    Paths: checkpoints or dumps.  ``previous``: an earlier checkpoint, which alone proves that a weight is stale.  ``stated``: what
    the configurations say of how rows are read.  Raises DumpError where a path holds no values, or a file of a checkpoint is
    missing or cut.
    """
    return compare_sides(read_side("train", train_paths), read_side("infer", infer_paths), previous, stated)


def compare_sides(train: Side, infer: Side, previous: Optional[str] = None, stated: Stated = UNSTATED) -> Compared:
    """The same of two sides that were read."""
    for side in (train, infer):
        if not side.valued:
            raise DumpError(
                "Cannot compare weights: the %s side gives names and shapes only. Hand a checkpoint, or a dump of tensors." % side.label
            )
    try:
        return rank_by_rank(train, infer, lambda mine, theirs: _compare(mine, theirs, previous, stated))
    except ModuleNotFoundError as error:  # equal weights are compared without
        raise DumpError(
            "Cannot say how weights differ: %s is not installed. Run 'python3 -m pip install numpy', or hand lists of names and shapes."
            % error.name
        ) from None


def _compare(train: Side, infer: Side, previous: Optional[str], stated: Stated) -> Compared:
    files = Files()
    try:
        paired = pair_up(train, infer, likeness_of)
        if paired.flat:
            paired = unflattened(files, train, infer, paired.flat)
        found = _of_pairs(files, paired.pairs, stated)
        found += _of_flat(paired, train) if paired.flat else _of_heads(files, paired, train, infer)
        found = _with_tied(files, found)
        found = exchanged(found)
        found = stale_sides(files, found, previous) if previous is not None else found
    finally:
        files.close()
    found = _one_gain(found)
    return Compared(_items(found), grouped(found), (), ())


# --- one pair ---


def _of_pairs(files: Files, pairs: Sequence[Pair], stated: Stated) -> List[Found]:
    orders: Orders = {}
    pairings: Pairings = {}
    found: List[Found] = []
    for pair in pairs:
        if not pair.fits and not is_padded(pair):
            continue  # layer (b) says so
        try:
            parts = parts_of(files, pair, orders, stated)
            found += [relaid(files, (part.train, part.infer), _of_part(files, part), stated, pairings) for part in parts]
        except DumpError as error:
            found.append(_unread(pair, error))
    return found


def _of_part(files: Files, part: Part) -> Found:
    made = Found(part.name, part.pair, part.keys, (part.train.dtype, part.infer.dtype), (part.train.rows, part.train.columns))
    note = part.note
    how = None if equal(files, part.train, part.infer) else difference(weight_of(files, part.train), weight_of(files, part.infer))
    if part.misread is not None:
        return made._replace(status="DIFF", kind="swapped", note=note, side=part.misread[0])
    if how is None:
        if part.train.dtype != part.infer.dtype:
            note = note or word("equal_in_two_formats", train=part.train.dtype, infer=part.infer.dtype)
        return made._replace(note=note)
    return _judged(made, how, note)


def _judged(made: Found, how: Difference, note: Optional[Dict[str, Any]]) -> Found:
    """What a difference says: a gain with the one added and a copy in a coarser format are the same weights in another form."""
    sentence = told(how)
    router = str(made.pair.role).startswith("router")
    gain = made.name.endswith(".weight") and (made.pair.role is None or made.pair.role.endswith("norm"))
    if how.kind == "one_added" and gain:
        return made._replace(kind=how.kind, note=sentence, side=how.facts["side"])
    if how.kind == "rounded" and made.dtypes[0] != made.dtypes[1] and not router:
        return made._replace(kind=how.kind, note=sentence, side=how.facts["side"])
    if router and how.kind == "rounded":
        sentence = word("router_rounded", how=sentence)
    elif made.pair.role == "router_correction":
        sentence = word("router_unsynced", how=sentence)
    return made._replace(status="DIFF", kind=how.kind, note=sentence, how=how, side=str(how.facts.get("side", "")), laid=note)


def _unread(pair: Pair, error: DumpError) -> Found:
    keys = tuple(list(dict.fromkeys(piece.parameter.name for piece in side)) for side in (pair.train, pair.infer))
    dtypes = tuple(str(side[0].parameter.dtype) for side in (pair.train, pair.infer))
    note = word("unreadable", why=str(error))
    return Found(pair.name, pair, (keys[0], keys[1]), (dtypes[0], dtypes[1]), (0, 0), "MISSING_SIDE", "unreadable", note)


def _of_flat(paired: Paired, train: Side) -> List[Found]:
    """What of flat parameters, and of the other side's weights, was not brought together."""
    found = []
    for side, lacking in (("train", paired.train_only), ("infer", paired.infer_only)):
        for one in lacking:
            piece = Piece(one, 0, *matrix_shape(one.shape))
            keys = ([one.name], []) if side == "train" else ([], [one.name])
            pair = Pair(one.name, None, place_of(one.name).layer, None, (piece,), (piece,), (), True)
            found.append(
                Found(
                    one.name,
                    pair,
                    keys,
                    (str(one.dtype),) * 2,
                    (piece.rows, piece.columns),
                    "MISSING_SIDE",
                    "unreadable",
                    word("not_in_flat", side=side),
                )
            )
    for one in paired.flat:
        held = [piece for pair in paired.pairs for side in (pair.train, pair.infer) for piece in side if piece.parameter is one]
        left = one.shape[0] - sum(piece.rows * piece.columns for piece in held)
        if left >= PADDED_TO:
            piece = Piece(one, 0, left, 1)
            pair = Pair(one.name, None, place_of(one.name).layer, None, (piece,), (piece,), (), True)
            keys = ([one.name], []) if one in train.parameters else ([], [one.name])
            found.append(
                Found(one.name, pair, keys, (str(one.dtype),) * 2, (left, 1), "MISSING_SIDE", "one_side", word("flat_rest", left=left))
            )
    return found


# --- heads ---


def _of_heads(files: Files, paired: Paired, train: Side, infer: Side) -> List[Found]:
    """A head that one side alone lists, against the other's embedding: what a side without a head of its own uses."""
    found = []
    for lacking, side, other in ((paired.train_only, train, infer), (paired.infer_only, infer, train)):
        for one in lacking:
            embedding = tied_to(one, other)
            if embedding is not None:
                sides = (one, embedding) if side is train else (embedding, one)
                found.append(_of_head(files, sides, side, other))
    return found


def _of_head(files: Files, sides: Tuple[Parameter, Parameter], side: Side, other: Side) -> Found:
    pieces = [Piece(one, 0, one.shape[0], one.shape[1]) for one in sides]
    pair = Pair("lm_head.weight", "lm_head", None, None, (pieces[0],), (pieces[1],), (), sides[0].shape == sides[1].shape)
    try:
        (part,) = parts_of(files, pair, {}, UNSTATED)
        made = _of_part(files, part)
    except DumpError as error:
        return _unread(pair, error)
    if made.status == "EXACT":
        return made._replace(kind="tied", note=word("head_of_embedding", side=other.label))
    if other.whole:
        return made._replace(note=word("head_tied", side=other.label, other=side.label, how=made.note), side=other.label)
    note = word("not_recorded", side=side.label, other=other.label, where=word("outside_layers"))
    return made._replace(status="MISSING_SIDE", kind="one_side", note=note, how=None)


def _with_tied(files: Files, found: Sequence[Found]) -> List[Found]:
    """Where both sides' heads differ: whether one side's is its embedding and the other's is not."""
    by_role = {one.pair.role: one for one in found if one.pair.role in VOCABULARY}
    head, embedding = by_role.get("lm_head"), by_role.get("embedding")
    if head is None or embedding is None or head.status != "DIFF" or head.kind == "tied":
        return list(found)
    tied = []
    for label, one, other in (("train", head.pair.train, embedding.pair.train), ("infer", head.pair.infer, embedding.pair.infer)):
        if one[0].parameter.name != other[0].parameter.name and _alike(files, matrix_of(one), matrix_of(other)):
            tied.append(label)
    if len(tied) != 1:
        return list(found)
    note = word("head_tied", side=tied[0], other="infer" if tied[0] == "train" else "train", how=head.note)
    return [one._replace(note=note, side=tied[0]) if one is head else one for one in found]


def _alike(files: Files, one: Matrix, other: Matrix) -> bool:
    return (one.rows, one.columns) == (other.rows, other.columns) and equal(files, one, other)


# --- gains ---


def _one_gain(found: Sequence[Found]) -> List[Found]:
    """Where a norm adds the one in some layers and not in others: the fewer of them differ."""
    by_role: Dict[Optional[str], Dict[bool, List[Found]]] = {}
    for one in found:
        if one.status == "EXACT" and one.size[1] == 1 and str(one.pair.role).endswith("norm"):
            by_role.setdefault(one.pair.role, {}).setdefault(one.kind == "one_added", []).append(one)
    odd = {one.name for both in by_role.values() if len(both) == 2 for one in min(both.values(), key=len)}
    return [one._replace(status="DIFF", kind="one_added", note=word("gain_unlike_others")) if one.name in odd else one for one in found]


# --- items ---


def _items(found: Sequence[Found]) -> Tuple[Item, ...]:
    """An item for each weight; those of all experts of a layer that are equal in one."""
    items: List[Item] = []
    experts: Dict[Tuple[Any, ...], List[Found]] = {}
    for one in found:
        if one.pair.expert is not None and one.status == "EXACT":
            key = one.pair.layer, one.name.replace("experts.%d." % one.pair.expert, "experts."), one.kind
            experts.setdefault(key, []).append(one)
        else:
            items.append(_item(one.name, one))
    for (_, name, _), alike in experts.items():
        merged = alike[0]._replace(keys=(_together(alike, 0), _together(alike, 1)))
        items.append(_item(name, merged, len(alike)))
    return tuple(items)


def _together(alike: Sequence[Found], side: int) -> List[str]:
    names = list(dict.fromkeys(key.split("[")[0] for one in alike for key in one.keys[side]))
    return names if len(names) < 3 else [names[0], "…", names[-1]]


def _item(name: str, one: Found, experts: int = 0) -> Item:
    sides = []
    for keys, dtype in zip(one.keys, one.dtypes):
        value: Dict[str, Any] = {"dtype": dtype, "shape": [one.size[0]] if one.size[1] == 1 else list(one.size)}
        sides.append(side_of(keys, {**value, "experts": experts} if experts else value))
    no_value = roles.MADE_ANEW.search((one.keys[0] or one.keys[1])[0]) is not None and one.status != "EXACT"
    return item(
        name, sides[0], sides[1], one.status, "no_effect" if no_value and one.kind == "unreadable" else "weight", one.kind, one.note
    )
