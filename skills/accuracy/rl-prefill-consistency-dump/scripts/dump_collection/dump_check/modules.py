"""Modules of a unit told by where they stand and what they hold: decoder layers, calls, what ran after the last layer."""

from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from msprobe_files import names
from msprobe_files.units import Record, Unit

FLOATS = frozenset(("float64", "float32", "float16", "bfloat16"))
Key = Tuple[str, ...]


class Layers(NamedTuple):
    """``entries``: layer number -> its forward entries, by call; ``last``: number of the last recorded layer."""

    entries: Dict[int, Dict[int, str]]
    top: Key  # the path above the layer number

    @property
    def last(self) -> Optional[int]:
        return max(self.entries) if self.entries else None


def layers_of(unit: Unit) -> Layers:
    """The decoder layers: modules whose path ends in a number with a name before it, as `names.layer_position` counts.

    Where several stacks are numbered (a vision tower beside the decoder), the one with the most modules below it counts.
    """
    stacks: Dict[Key, Dict[int, Dict[int, str]]] = {}
    below: Dict[Key, int] = {}
    for entry in unit.entries:
        parsed = names.parse_entry(entry)
        if parsed.kind != "module" or parsed.direction != "forward":
            continue
        path = names.plain_path(parsed.path)
        at = names.layer_position(path)
        if at is None:
            continue
        below[path[:at]] = below.get(path[:at], 0) + 1
        if at == len(path) - 1 and not is_recomputed(unit, entry):
            stacks.setdefault(path[:at], {}).setdefault(int(path[at]), {})[parsed.call] = entry
    if not stacks:
        return Layers({}, ())
    top = max(stacks, key=lambda key: (below[key], len(stacks[key])))
    return Layers(stacks[top], top)


def layer_calls(layers: Layers) -> int:
    """How often most decoder layers were called in one unit; 0 without layers."""
    counts = sorted(len(calls) for calls in layers.entries.values())
    return counts[len(counts) // 2] if counts else 0


def is_recomputed(unit: Unit, entry: str) -> bool:
    """A forward that a backward pass ran again (activation checkpointing): its parent is a backward entry."""
    parent = (unit.trace or {}).get(entry)
    return parent is not None and names.parse_entry(parent).direction == "backward"


def repeated(unit: Unit) -> List[str]:
    """Forward entries of modules with a call number above 0, recomputed ones left out."""
    found = []
    for entry in unit.entries:
        parsed = names.parse_entry(entry)
        if parsed.kind == "module" and parsed.direction == "forward" and parsed.call > 0 and not is_recomputed(unit, entry):
            found.append(entry)
    return found


def outputs(unit: Unit, entry: str) -> List[Record]:
    """The recorded floating-point outputs of an entry."""
    return [record for record in unit.entries[entry] if record.category == "output" and record.dtype in FLOATS and record.shape]


def after_layers(unit: Unit, layers: Layers) -> List[str]:
    """Module entries outside every layer that ended after the last layer did, earliest first."""
    if layers.last is None:
        order = list(unit.entries)
        return [entry for entry in order if names.parse_entry(entry).kind == "module"]
    order = list(unit.entries)
    end = max(order.index(entry) for entry in layers.entries[layers.last].values())
    found = []
    for entry in order[end + 1 :]:
        parsed = names.parse_entry(entry)
        if parsed.kind == "module" and parsed.direction == "forward" and names.layer_position(names.plain_path(parsed.path)) is None:
            found.append(entry)
    return found


def ancestors_missing(unit: Unit, layers: Layers) -> bool:
    """Whether the module that holds the stack of layers, and every module above it, was not recorded.

    msprobe 8.3.1 to 26.2.0 skips the second and the last of ``named_modules()`` where ``verl`` is imported
    (``is_verl`` in module_processor.py): the inner model and the head.
    """
    if len(layers.top) < 2:
        return False
    recorded: Set[Key] = {names.plain_path(names.parse_entry(entry).path) for entry in list(unit.trace or unit.entries)}
    return not any(layers.top[:length] in recorded for length in range(1, len(layers.top)))
