"""Files that people write: the field map, the waivers, what a run asked for. A key that nobody knows is refused, with the nearest one."""

import difflib
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence

from msprobe_files.errors import DumpError
from msprobe_files.units import load_json

from dump_collection import files

from .table import HYPER, PRIORITIES

FIELD_MAP, WAIVERS = "param_alignment_field_map/1", "param_alignment_waivers/1"


class Row(NamedTuple):
    """One field that a person joined. ``infer`` None: that side has no key; ``expected`` (where ``has_expected``) then stands for it."""

    canonical: str
    train: Optional[str]
    infer: Optional[str]
    expected: Any
    has_expected: bool
    priority: str
    note: Optional[str]


class Waiver(NamedTuple):
    """A difference that the user lets pass, and why."""

    item: str
    reason: str


def field_map(path: str) -> List[Row]:
    """The rows of a field map. Raises DumpError with the path in the file of what is wrong."""
    name = Path(path).name
    return [_row(value, "%s: fields[%d]" % (name, at)) for at, value in enumerate(_listed(path, FIELD_MAP, "fields"))]


def waivers(path: str) -> List[Waiver]:
    """The waivers that a user wrote. Raises DumpError with the path in the file of what is wrong."""
    found = []
    for at, value in enumerate(_listed(path, WAIVERS, "waivers")):
        where = "%s: waivers[%d]" % (Path(path).name, at)
        _known(value, ("item", "reason", "by"), where)
        for key in ("item", "reason"):
            if not isinstance(value.get(key), str) or not value[key].strip():
                _refuse("%s.%s" % (where, key), "expected a text, found %r" % (value.get(key),), "Name the item and the user's reason")
        if value.get("by", "user") != "user":
            _refuse(where + ".by", 'expected "user", found %r' % (value["by"],), "Only the user waives a difference: ask")
        found.append(Waiver(value["item"], value["reason"]))
    return found


def requested(path: str) -> Dict[str, Any]:
    """What the run asked for: an object of names and values, nested or dotted. Raises DumpError where it is empty or none."""
    value = load_json(path)
    value.pop("schema", None)
    if not value:
        _refuse(Path(path).name, "it asks for nothing", 'Write the fields that the run sets, like {"attention_softmax_in_fp32": true}')
    return value


def _listed(path: str, schema: str, key: str) -> List[Dict[str, Any]]:
    value = files.read(path, schema)
    name = Path(path).name
    _known(value, ("schema", key), name)
    rows = value.get(key)
    if not isinstance(rows, list) or any(not isinstance(row, dict) for row in rows):
        _refuse("%s: %s" % (name, key), "expected a list of objects", "See references/param-alignment.md")
    return rows


def _row(value: Dict[str, Any], where: str) -> Row:
    _known(value, ("canonical", "train", "infer", "infer_expected", "priority", "note"), where)
    texts = {key: value.get(key) for key in ("canonical", "train", "infer", "note")}
    for key, text in texts.items():
        if text is not None and (not isinstance(text, str) or not text.strip()):
            _refuse("%s.%s" % (where, key), "expected a text, found %r" % (text,), "Write a dotted path or null")
    if texts["canonical"] is None or (texts["train"] is None and texts["infer"] is None):
        _refuse(where, "canonical, and a path of at least one side, are needed", "Name the field and where it stands")
    priority = value.get("priority", HYPER)
    if priority not in PRIORITIES:
        _refuse(where + ".priority", "expected one of %s, found %r" % (", ".join(PRIORITIES), priority), "Choose one of them")
    canonical = str(texts["canonical"])
    expected = value.get("infer_expected")
    return Row(
        canonical if "." in canonical else "config." + canonical, texts["train"], texts["infer"], expected, expected is not None, priority,
        texts["note"],
    )  # fmt: skip


def _known(value: Dict[str, Any], keys: Sequence[str], where: str) -> None:
    for key in value:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, 1)
            advice = "Did you mean %r? Known: %s" % (near[0], ", ".join(keys)) if near else "Known: %s" % ", ".join(keys)
            _refuse(where, "unknown key %r" % key, advice)


def _refuse(where: str, why: str, advice: str) -> NoReturn:
    raise DumpError("Cannot use %s: %s. %s." % (where, why, advice))
