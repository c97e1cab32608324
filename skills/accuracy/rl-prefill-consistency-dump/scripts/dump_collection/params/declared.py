"""What people state beside the table: fields they joined, values a run asked for, attributes of built modules."""

import difflib
import re
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from .comparison import read
from .configs import UNDECLARED, Config, shown
from .configs import of as config_of
from .judged import DIFF, EXACT, MISSING_SIDE, NOT_EFFECTIVE, Item, notes
from .readings import DEFAULT, NOWHERE, SET, UNSTATED, Reading, normal, of_value, same
from .table import BY_NAME, FIELDS, HYPER, SWITCH
from .written import Row

_LAYER = re.compile(r"(?<=\.)(?:\d+|\*)(?=\.)")
_ATTRIBUTES = {"eps": "norm_eps", "variance_epsilon": "norm_eps", "epsilon": "norm_eps", "base": "rope_theta"}
# Further spellings of fields that are computed, as a run may ask for them.
_ASKED = {
    "rope_theta": "rope_theta", "rotary_base": "rope_theta", "num_key_value_heads": "num_kv_heads", "num_query_groups": "num_kv_heads",
    "head_dim": "head_dim", "kv_channels": "head_dim", "intermediate_size": "ffn_dim", "ffn_hidden_size": "ffn_dim",
    "moe_intermediate_size": "moe_ffn", "moe_ffn_hidden_size": "moe_ffn", "norm_topk_prob": "router_norm_topk",
    "sliding_window": "sliding_window", "attention_bias": "attn_bias", "n_group": "router_groups", "topk_group": "router_group_topk",
}  # fmt: skip
_PREFIX = "config."


def by_map(rows: Sequence[Row], train: Config, infer: Config, table: Sequence[Item]) -> Tuple[List[Item], List[str]]:
    """The items of a field map, and a warning for each row that no side has. ``table``: what the built-in table says, for its meanings."""
    built = {item.canonical: item for item in table}
    items, warnings = [], []
    for row in rows:
        item = built.get(row.canonical)
        if item and not row.has_expected and _stands(row.train, item.train, train) and _stands(row.infer, item.infer, infer):
            priority = item.priority if item.kind in NOT_EFFECTIVE else row.priority
            items.append(item._replace(priority=priority, note=notes(item.note, row.note)))
            continue
        found = _joined(row, train, infer)
        if found:
            items.append(found)
        else:
            warnings.append("%s: neither side has %s; nothing was compared" % (row.canonical, row.train or row.infer))
    return items, warnings


def _stands(path: Any, reading: Reading, config: Config) -> bool:
    """Whether the table read the same place as the map, or the map's place is not there and the table knows better."""
    if path is None:
        return not reading.keys
    places = [place for place, _ in config.found(path)]
    return any(place in reading.keys for place in places) or not places


def _joined(row: Row, train: Config, infer: Config) -> Any:
    form = BY_NAME[row.canonical[len(_PREFIX) :]].form if row.canonical[len(_PREFIX) :] in BY_NAME else "number"
    sides = [_at(config, path, form) for config, path in ((train, row.train), (infer, row.infer))]
    if not row.has_expected and not any(side.keys for side in sides):
        return None
    expected = Reading((), row.expected, DEFAULT, normal(row.expected, form), "expected by the field map")
    status, kind, note = "", "value", None
    if row.has_expected and not sides[1].keys:
        sides[1] = expected
    elif row.has_expected and not same(sides[1].meaning, expected.meaning):
        status, kind, note = DIFF, "expectation", "the field map expects %s on the infer side" % shown(row.expected)
    if not status:
        lacking = [name for name, side in zip(("train", "infer"), sides) if not side.stated]
        if lacking:
            status, note = MISSING_SIDE, "the %s side has no such key" % lacking[0]
        else:
            status = EXACT if same(sides[0].meaning, sides[1].meaning) else DIFF
            kind = "switch" if status == DIFF and row.priority == SWITCH else "value"
    return Item(
        row.canonical, sides[0], sides[1], status, row.priority, kind, notes(note, sides[1].note, row.note), root=row.canonical
    )  # fmt: skip


def _at(config: Config, path: Any, form: str) -> Reading:
    places = config.found(path) if path else []
    return of_value(places[0][0], places[0][1], normal(places[0][1], form)) if places else NOWHERE


# --- what a run asked for ---


def by_request(asked: Dict[str, Any], train: Config) -> Iterator[Item]:
    """Each value that the run asked for against the one in force on the training side."""
    wanted = config_of(asked, "requested", "the request").leaves
    for name, value in wanted.items():
        reading, form = _in_force(name, train)
        canonical = "requested." + name
        if not reading.keys and not reading.stated:
            near = difflib.get_close_matches(name.rpartition(".")[2], sorted({train.relative(path) for path in train.fields()}), 1, 0.6)
            hint = "; the nearest name is %s" % near[0] if near else ""
            note = "requested %s; the effective configuration knows no such field%s" % (shown(value), hint)
        else:
            note = "requested %s, in force %s" % (shown(value), shown(reading.value))
        meets = reading.in_force and reading.stated and same(normal(value, form), reading.meaning)
        priority = SWITCH if isinstance(value, bool) else HYPER
        status, kind = (EXACT, "value") if meets else (DIFF, "requested_not_effective")
        yield Item(canonical, reading, NOWHERE, status, priority, kind, note, root=canonical, wanted={"value": value})


def _in_force(name: str, train: Config) -> Tuple[Reading, str]:
    """What is in force under a name, or under another spelling of its field; and the field's form."""
    spelled = [field for field in FIELDS if name in field.hf.split() + field.megatron.split() or _ASKED.get(name) == field.name]
    form = spelled[0].form if spelled else "any"
    places = train.found(name)
    if places:
        path, value = places[0]
        return of_value(path, value, normal(value, form), None, not path.startswith(UNDECLARED)), form
    return (read(train, spelled[0]), form) if spelled else (NOWHERE, form)


# --- built modules ---


def by_modules(train: Config, infer: Config) -> Iterator[Item]:
    """Attributes of built modules against the other side's, module by module, else against the other side's configuration.

    One item for a family (the same path in every layer): a constructor's default shows in one family alone.
    """
    for config, other in ((train, infer), (infer, train)):
        theirs = _families(other)
        for family, values in _families(config).items():
            if config is infer and family in _families(train):
                continue
            field = _field_of(family)
            if family in theirs:
                there = _together(theirs[family])
            elif field:
                there = read(other, BY_NAME[field])
            else:
                continue
            yield _of_family(family, values, there, field, config is train)


def _families(config: Config) -> Dict[str, Dict[str, Any]]:
    families: Dict[str, Dict[str, Any]] = {}
    for path, value in config.modules.items():
        families.setdefault(_LAYER.sub("N", path), {})[path] = value
    return families


def _field_of(family: str) -> str:
    attribute = family.rpartition(".")[2]
    spelled = [field.name for field in FIELDS if attribute in field.hf.split() + field.megatron.split()]
    return _ATTRIBUTES.get(attribute) or (spelled[0] if spelled else "")


def _together(values: Dict[str, Any]) -> Reading:
    distinct = list(values.values())
    if all(same(distinct[0], value) for value in distinct):
        return Reading(("modules." + _LAYER.sub("N", next(iter(values))),), distinct[0], SET, normal(distinct[0], "number"))
    return Reading(tuple("modules." + path for path in values), values, SET, [normal(value, "number") for value in distinct])


def _of_family(family: str, values: Dict[str, Any], there: Reading, field: str, of_train: bool) -> Item:
    here = _together(values)
    canonical = "config.modules." + family
    odd = sorted(path for path, value in values.items() if not there.stated or not same(normal(value, "number"), there.meaning))
    equal = not odd or (here.stated and there.stated and same(here.meaning, there.meaning))
    note = "read from the built modules" if equal else "built modules that differ: %s" % ", ".join(odd[:8])
    status = EXACT if equal else (DIFF if there.stated and there.meaning is not UNSTATED else MISSING_SIDE)
    kind, priority = ("value" if equal else "module"), (BY_NAME[field].priority if field else HYPER)
    module = BY_NAME[field].module if field else "all"
    sides = (here, there) if of_train else (there, here)
    return Item(canonical, sides[0], sides[1], status, priority, kind, note, module, root=canonical)
