"""Both configurations field by field: the table, then keys of equal names, keys that nobody declares, and sources that contradict."""

from typing import AbstractSet, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import attention, experts, rotary
from .configs import MEGATRON, UNDECLARED, Config
from .judged import DIFF, EXACT, MISSING_SIDE, Item, keys_used, notes
from .models import fixed_by_class, implied, model_type
from .padding import pads
from .readings import NOWHERE, UNSTATED, Reading, default, first, normal, of_value, same
from .table import BY_NAME, DERIVED, FIELDS, HYPER, NO_EFFECT, NO_EFFECT_NAMES, NO_EFFECT_PREFIXES, SWITCH, Field

_COMPUTED: Dict[str, Callable[[Config], Reading]] = {**rotary.COMPUTED, **attention.COMPUTED, **experts.COMPUTED}
_OFF = (None, False, 0, "rope", "mrope", "default", "none", "nope", "learned_absolute", "softmax")
_READS_LENGTH = ("dynamic", "longrope")
_SEVERAL = {"rope_theta": ["rope_parameters.rope_theta", "rope_scaling.rope_theta", "rope_theta", "rotary_base"]}  # of computed fields
_ASIDE = frozenset(
    (
        "layer_types", "max_window_layers", "use_sliding_window", "sliding_window", "window_size", "window_attn_skip_freq", "rope_theta",
        "moe_layer_freq", "first_k_dense_replace", "mlp_only_layers", "decoder_sparse_step", "norm_topk_prob", "rope_scaling",
        "topk_method",
        "n_group", "topk_group", "n_shared_experts", "moe_intermediate_size", "intermediate_size", "head_dim", "num_key_value_heads",
        "num_query_groups", "kv_channels", "ffn_hidden_size", "rotary_base", "rope_interleave", "rotary_interleaved",
    )
)  # fmt: skip  # names that computed fields read where their module is on


class Pair(NamedTuple):
    """One field as both sides have it."""

    train: Reading
    infer: Reading


def compare(train: Config, infer: Config, spoken_for: Sequence[Item] = ()) -> List[Item]:
    """Every field that a comparison consumes. ``spoken_for``: items of a field map, which win over the table's of the same name or keys.

    A field that neither side states gives no item; nor does one whose module neither side has.
    """
    stated = {item.canonical for item in spoken_for}
    taken = {side: set(keys_used(list(spoken_for), side)) for side in ("train", "infer")}
    pairs = {field.name: Pair(read(train, field), read(infer, field)) for field in FIELDS}
    items: Dict[str, Item] = {}
    for field in FIELDS:
        item = _judged(field, pairs[field.name], pairs, items)
        if item:
            items[field.name] = item
    found = [item for item in items.values() if item.canonical not in stated and not _taken(item, taken)]
    found += [item for config in (train, infer) for item in _contradictions(config, stated)]
    found += _undeclared(train, infer, [*spoken_for, *found])
    return [*found, *_of_equal_names(train, infer, [*spoken_for, *found])]


def _taken(item: Item, taken: Dict[str, Set[str]]) -> bool:
    """Whether a field map already joined all places of an item; what is computed from them is another value."""
    keys = [(side, key) for side in ("train", "infer") for key in getattr(item, side).keys]
    return item.priority != DERIVED and bool(keys) and all(key in taken[side] for side, key in keys)


def read(config: Config, field: Field) -> Reading:
    """What one side says of a field of the table."""
    if field.name in _COMPUTED:
        return _COMPUTED[field.name](config)
    fixed = None if config.dialect == MEGATRON else fixed_by_class(config, field.name)
    if fixed is not None:
        names = [path for name in field.hf.split() for path, _ in config.found(name)]
        note = "model_type %s builds it whatever the key says" % model_type(config)
        return Reading(tuple(names), fixed, "default", normal(fixed, field.form), note)
    place = first(config, field.names(config.dialect == MEGATRON))
    if place:
        path, value = place
        return of_value(path, value, _meaning(field, value), None, not path.startswith(UNDECLARED))
    if config.dialect == MEGATRON:
        return NOWHERE
    known, value = implied(config, field.name) if field.implied else (False, None)
    if known:
        return Reading((), value, "default", normal(value, field.form), "implied by model_type %s" % model_type(config))
    return default(field.absent) if field.absent is not UNSTATED else NOWHERE


def _meaning(field: Field, value: Any) -> Any:
    if field.form == "flag":
        return bool(value)
    if field.form == "some":  # none and zero are one
        return value or None
    return field.null if value is None else normal(value, field.form)


# --- one field ---


def _judged(field: Field, pair: Pair, pairs: Dict[str, Pair], before: Dict[str, Item]) -> Optional[Item]:
    train, infer = pair
    on = _modules_on(field, pairs)
    if not train.keys and not infer.keys and not _follows(field, pair, before):
        return None
    if on == (False, False):
        return None
    status, kind, note = _padding(field, pairs) or _verdict(field, pair, on)
    if not status:
        return None
    parents = [before[name] for name in field.under if name in before and before[name].shuts]
    switches = [parent for parent in parents if parent.priority == SWITCH]
    asked = kind == "requested_not_effective" and switches
    differs = status != EXACT
    stretched = field.name == "max_positions" and any(side.meaning in _READS_LENGTH for side in pairs["rope_type"])
    priority, told = (HYPER, "the rope scaling reads it") if stretched else (field.priority, field.note or None)
    return Item(
        "config." + field.name, train, infer, status, switches[0].priority if asked else priority, kind,
        notes(note, train.note, infer.note, told), field.module,
        root=parents[0].root if parents and differs else "config." + field.name,
        lost=differs and train.stated and field.lost is not UNSTATED and same(train.meaning, field.lost),
    )  # fmt: skip


def _follows(field: Field, pair: Pair, before: Dict[str, Item]) -> bool:
    """A computed field that no key states is worth an item where both sides have it, and it differs or its sources were compared."""
    train, infer = pair
    if not train.stated or not infer.stated:
        return False
    return not same(train.meaning, infer.meaning) or (
        field.priority == DERIVED and not field.name.startswith("rope_") and any(name in before for name in field.under)
    )


def _modules_on(field: Field, pairs: Dict[str, Pair]) -> Tuple[Optional[bool], Optional[bool]]:
    """Whether each side has the module: None where nothing says so; both False only where a key of one side says so."""
    parents = [pairs[name] for name in field.under if BY_NAME[name].priority == SWITCH]
    if not parents:
        return None, None
    train, infer = (_on([getattr(parent, side) for parent in parents]) for side in ("train", "infer"))
    if not train and not infer:
        said = any(getattr(parent, side).keys for parent in parents for side in ("train", "infer"))
        return (False, False) if said else (None, None)
    return train, infer


def _on(readings: List[Reading]) -> bool:
    return any(one.stated and one.in_force and not any(same(one.meaning, off) for off in _OFF) for one in readings)


def _verdict(field: Field, pair: Pair, on: Tuple[Optional[bool], Optional[bool]]) -> Tuple[str, str, Optional[str]]:
    """Status (empty: nothing to say), kind and note."""
    train, infer = pair
    equal = train.stated and infer.stated and same(train.meaning, infer.meaning)
    for side, reading in (("train", train), ("infer", infer)):
        if not reading.in_force:
            return DIFF, "undeclared", "set on the %s side, but no field of its config class: nothing reads it" % side
    for side, reading, here in (("train", train, on[0]), ("infer", infer, on[1])):
        if here is False and True in on and reading.keys and reading.value is not None and equal:
            return DIFF, "requested_not_effective", "equal numbers, but the %s side never reads its own: not in force" % side
    if equal:
        return EXACT, "value", None
    if train.stated and infer.stated:
        return DIFF, "switch" if field.priority == SWITCH else "value", _nearly(field, pair)
    stated, other = (train, "infer") if train.stated else (infer, "train")
    plain = field.name in ("pos_embedding", "rope_type") and stated.meaning in ("rope", "default")  # a TransformerConfig has neither key
    if not stated.stated or not stated.keys or field.both or plain:
        return "", "", None
    if field.absent is not UNSTATED and same(stated.meaning, field.absent):
        return EXACT, "value", "off; the %s side has no such field" % other
    told = "the %s side has no field for it" % other
    return MISSING_SIDE, "value", told + ("; its model class decides: state it in a field map (infer_expected)" if field.implied else "")


def _padding(field: Field, pairs: Dict[str, Pair]) -> Optional[Tuple[str, str, Optional[str]]]:
    """A vocabulary with its padding: GPTModel's own size, which stands where no key says how Megatron pads."""
    if field.name != "vocab_size":
        return None
    for side, other in (("train", "infer"), ("infer", "train")):
        sizes = [getattr(pairs["vocab_size"], name).meaning for name in (side, other)]
        if not getattr(pairs["padded_vocab"], side).stated and all(isinstance(size, int) for size in sizes) and pads(*sizes):
            note = "%d rows of %s pad the vocabulary: the same words, if its soft-max leaves these out" % (sizes[0] - sizes[1], side)
            return EXACT, "padded", note
    return None


def _nearly(field: Field, pair: Pair) -> Optional[str]:
    """The commonest slip of the window: Megatron's left does not count the token itself."""
    train, infer = pair.train.meaning, pair.infer.meaning
    if field.name == "sliding_window" and isinstance(train, int) and isinstance(infer, int) and abs(train - infer) == 1:
        return "off by one: %d against %d tokens, the token itself included" % (train, infer)
    return None


# --- what the table does not name ---


def _contradictions(config: Config, names: Set[str]) -> Iterator[Item]:
    """One value that two places of one side state differently."""
    for field in FIELDS:
        spellings = (field.megatron if config.dialect == MEGATRON else field.hf).split()
        several = _SEVERAL.get(field.name, spellings)
        canonical = "config.%s.%s_sources" % (field.name, config.side)
        if field.name in ("model_type", "mla") or canonical in names:
            continue
        places = [place for name in several for place in config.found(name) if place[1] is not None]
        meanings = [_meaning(field, value) for _, value in places]
        if all(same(meanings[0], meaning) for meaning in meanings):
            continue
        told = Reading(tuple(path for path, _ in places), dict(places), "set", UNSTATED)
        sides = (told, NOWHERE) if config.side == "train" else (NOWHERE, told)
        note = "places of one side contradict each other; %s was compared" % places[0][0]
        yield Item(canonical, sides[0], sides[1], DIFF, field.priority, "conflict", note, field.module, root=canonical)


def _undeclared(train: Config, infer: Config, items: List[Item]) -> Iterator[Item]:
    """Attributes that were set on a provider and are no field of its class; what the table knows is already judged."""
    for config, other in ((train, infer), (infer, train)):
        taken = set(keys_used(items, config.side))
        for path in config.fields():
            value = config.leaves[path]
            if not path.startswith(UNDECLARED) or path in taken or not value or _read_by_code(config, path):
                continue
            name = path[len(UNDECLARED) :]
            beside = other.found(name)[:1]
            here = of_value(path, value, value, None, False)
            there = of_value(beside[0][0], beside[0][1], beside[0][1]) if beside else NOWHERE
            note = "set on the %s side, but no field of its config class: nothing reads it, unless a search of the code finds a reader"
            sides = (here, there) if config is train else (there, here)
            priority = SWITCH if isinstance(value, bool) else HYPER
            canonical = "config.extra." + name
            yield Item(canonical, sides[0], sides[1], DIFF, priority, "undeclared", note % config.side, root=canonical)


def _read_by_code(config: Config, path: str) -> bool:
    """GPTModel of megatron-core 0.16.1 reads ``yarn_*`` by getattr, and only where the position embedding is YaRN."""
    return path.startswith(UNDECLARED + "yarn_") and rotary.is_yarn(config)


def _of_equal_names(train: Config, infer: Config, items: List[Item]) -> Iterator[Item]:
    """Keys that both sides call the same and that no field of the table consumed."""
    known = _ASIDE | {name for field in FIELDS for name in field.hf.split() + field.megatron.split()}
    left = [_left(config, set(keys_used(items, config.side)), known) for config in (train, infer)]
    for name in sorted(set(left[0]) & set(left[1])):
        one, other = (config.leaves[left[at][name]] for at, config in enumerate((train, infer)))
        priority = SWITCH if isinstance(one, bool) and isinstance(other, bool) else HYPER
        if name in NO_EFFECT_NAMES or name.startswith(NO_EFFECT_PREFIXES):
            priority = NO_EFFECT
        status = EXACT if same(one, other) else DIFF
        readings = (of_value(left[0][name], one, one), of_value(left[1][name], other, other))
        yield Item("config." + name, readings[0], readings[1], status, priority, "same_name", None, root="config." + name)


def _left(config: Config, taken: Set[str], known: AbstractSet[str]) -> Dict[str, str]:
    paths = {config.relative(path): path for path in reversed(config.fields()) if not path.startswith(UNDECLARED)}
    return {name: path for name, path in paths.items() if path not in taken and name.partition(".")[0] not in known and name not in known}
