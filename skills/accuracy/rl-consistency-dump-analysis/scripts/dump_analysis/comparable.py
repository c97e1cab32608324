"""What must hold before two sides are compared at all."""

import os

from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.units import Record, Unit

from . import tensors
from .sides import Place, Side


def check_comparable(train: Side, infer: Side) -> None:
    """Refuse what would make a comparison meaningless. Raises DumpError.

    One folder against itself (always equal), two dumps of one step and rank (which one?), and a side
    whose layers all hold one captured buffer (C17, B18 of the public cases).
    """
    if _folders(train) & _folders(infer):
        raise DumpError("Cannot compare: both sides resolve to the same files. Hand the trainer's dump and the engine's.")
    for side in (train, infer):
        doubled = duplicates(side)
        if doubled:
            raise DumpError(
                f"Cannot compare: several dumps of {side.label} under one step and rank: {', '.join(doubled)}. Hand one of them."
            )
        captured = captured_layers(side)
        if captured:
            raise DumpError(
                f"Cannot compare: {captured} layer outputs on the {side.label} side are bitwise equal: captured buffer, not data. "
                "Dump again in eager mode, with a copy inside the hook."
            )


def _folders(side: Side) -> set[str]:
    places = [unit.place for unit in side.units if unit.entries]
    return {os.path.realpath(folder) for place in places for folder in (place.folder, place.tensor_folder)}


def duplicates(side: Side) -> list[str]:
    """Folders of units that share their step and rank with another, as short as tells them apart."""
    seen: dict[tuple[int, int], list[list[str]]] = {}
    for unit in side.units:
        seen.setdefault((unit.place.step, unit.place.rank), []).append(unit.place.folder.split(os.sep))
    return [name for found in seen.values() if len(found) > 1 for name in _tails(found)]


def _tails(folders: list[list[str]]) -> list[str]:
    """The last parts of each path, at least two, until no two are the same."""
    for parts in range(2, max(map(len, folders)) + 1):
        names = ["/".join(folder[-parts:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return ["/".join(folder) for folder in folders]


def captured_layers(side: Side) -> int:
    """How many layers hold one and the same output, where *all* of a unit's layers do; else 0.

    Under graph capture or buffer reuse the hook copies one final buffer into every layer's file. At
    least three layers; outputs of zeros (a dummy run) and single elements prove nothing.
    """
    for unit in side.units:
        paths = {names.parse_entry(entry).path for entry in unit.entries}
        parents = {path[:end] for path in paths for end in range(len(path))}
        stacks: dict[tuple[tuple[str, ...], int], list[list[Record]]] = {}
        for entry, records in unit.entries.items():
            parsed = names.parse_entry(entry)
            if parsed.direction == "forward" and names.layer_position(parsed.path) == len(parsed.path) - 1:
                outputs = [record for record in records if record.category == "output"]
                stacks.setdefault((names.layer_pattern(parsed.path), parsed.call), []).append(outputs)
        # A list of equal leaves (rotary tables) beside layers that hold modules is no stack of layers.
        deep = {pattern for pattern in map(names.layer_pattern, parents) if any(pattern == key[0] for key in stacks)}
        for layers in (found for key, found in stacks.items() if not deep or key[0] in deep):
            if len(layers) >= 3 and _all_equal(unit, layers):
                return len(layers)
    return 0


def _all_equal(unit: Unit, layers: list[list[Record]]) -> bool:
    """Whether every output of all layers is one and the same, and at least one holds more than one value."""
    first = layers[0]
    if not first or any(len(records) != len(first) for records in layers):
        return False
    try:
        headers = [[tensors.header(Place(unit, record)) for record in records] for records in layers]
        same = all(tensors.same_file(headers[0][at], layer[at]) for at in range(len(first)) for layer in headers[1:])
        return same and any(tensors.varies(header) for header in headers[0])
    except DumpError:
        return False  # what cannot be read is named by the comparison
