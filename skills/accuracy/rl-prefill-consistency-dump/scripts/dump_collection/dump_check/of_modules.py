"""Checks of what the modules recorded: embedding, head, msprobe's release, when inputs were taken, eager mode."""

import os
from typing import Any, Dict, List, Optional, Set, Tuple

from msprobe_files import pt_archive, release
from msprobe_files.errors import DumpError
from msprobe_files.units import Record, Unit, tensor_path

from dump_collection.dump_check import embedding, modules
from dump_collection.dump_check.card import Card
from dump_collection.dump_check.checks import Check, Finding, over
from dump_collection.dump_check.judged import Judged, Pair
from dump_collection.dump_check.of_tokens import unasked_because
from dump_collection.dump_check.sides import shown
from dump_collection.wording import word

# release.release_of -> the releases it leaves, as numbers from 1 (8.1) to 5 (26.2)
_RELEASES: Dict[str, Tuple[int, int]] = {
    "<=8.3": (1, 2), "<=26.0": (1, 3), "26.0": (3, 3), "26.1": (4, 4), ">=26.1": (4, 5), ">=26.2": (5, 5), "unknown": (1, 5),
}  # fmt: skip


def inputs_of(judged: Judged) -> str:
    """When a side took its module inputs: ``pre_call``, ``post_call``, or ``unknown`` where its units do not agree."""
    told = {release.inputs_are(unit) for unit in judged.units} - {release.UNKNOWN}
    return told.pop() if len(told) == 1 else release.UNKNOWN


def checks_of_modules(pair: Pair, inputs: Dict[str, str], card: Card) -> List[Check]:
    """What the modules of both sides recorded, and how."""
    missing = [judged.label for judged in pair.both if not judged.units]
    unasked = word("nothing_to_look_at", side=missing[0]) if missing else None

    def each(look: Any) -> List[Finding]:
        return [look(judged) if judged.units else (None, word("nothing_to_look_at", side=judged.label)) for judged in pair.both]

    return [
        over("embedding_shape", 4, [(None, unasked) if unasked else _embedding_shape(pair)]),
        over("head_present", 6, each(lambda judged: _head(judged, pair))),
        over("weights_by_module", 6, each(_weights), shuts=False),
        over("same_dtype", 4, [(None, unasked) if unasked else _same_dtype(pair)], shuts=False),
        over("same_msprobe", 1, [(None, unasked) if unasked else _same_msprobe(pair, inputs, card)]),
        over("inputs_before_call", 6, each(lambda judged: _inputs(judged, inputs[judged.label])), shuts=False),
        over("eager", 4, [_eager(judged, card) for judged in pair.both]),
    ]


# --- embedding ---


def _embedding_shape(pair: Pair) -> Finding:
    """Equal width, and a row for each joined token; rows that another check explains are named there."""
    unasked = unasked_because(pair)
    if unasked is not None or pair.match is None:
        return None, unasked or word("nothing_without_ids")
    shapes, rows = {}, {}
    for label in ("train", "infer"):
        outputs = [part.forward.output for part in pair.match.sequence(label).parts]
        shapes[label] = [[size for size in output.shape or () if size != 1] for output in outputs]
        rows[label] = sum(len(part.ids) for part in pair.match.sequence(label).parts)
    widths = {shape[-1] for found in shapes.values() for shape in found if shape}
    if len(widths) > 1:
        return False, word("widths_differ", train=shapes["train"], infer=shapes["infer"])
    cached = any(tokens.positions and tokens.positions[0] > 0 for tokens in (pair.match.train, pair.match.infer))
    if (rows["train"] != rows["infer"] and not cached) or _padded(pair):
        return False, word("rows_differ", train=shapes["train"], infer=shapes["infer"])
    return True, word("shapes", train=shapes["train"], infer=shapes["infer"])


def _padded(pair: Pair) -> bool:
    """Whether rows of the embedding's output are padding on one side only."""
    if pair.match is None:
        return False
    padding = [sum(pair.match.cut_of(part.forward).padding for part in pair.match.sequence(label).parts) for label in ("train", "infer")]
    return padding[0] != padding[1]


# --- head ---


def _head(judged: Judged, pair: Pair) -> Finding:
    """An output as wide as the vocabulary, after the last layer: by the embedding's rows, else wider than any id."""
    calls = [call for one in pair.both for unit in one.units for call in embedding.calls_of(unit)]
    own = [call for unit in judged.units for call in embedding.calls_of(unit)]
    vocabulary = max((call.table[0] for call in own if call.table), default=0)
    width = next(((call.output.shape or (0,))[-1] for call in calls), 0)
    least = max((one for forward in judged.forwards for one in forward.ids.values), default=0) + 1
    if not calls:
        return None, word("no_vocabulary", side=judged.label)
    for unit in judged.units:
        found = _wide_output(unit, least, vocabulary, width, len(judged.units))
        if found is not None:
            return True, word("head", side=judged.label, n=(found.shape or (0,))[-1])
    if vocabulary == width:
        return None, word("no_vocabulary", side=judged.label)
    if any(unit.interrupted for unit in judged.units):
        return None, word("cut_before_head", side=judged.label)
    layers = [modules.layers_of(unit) for unit in judged.units]
    if all(one.entries and modules.ancestors_missing(unit, one) for unit, one in zip(judged.units, layers)):
        return False, word("head_taken_by_verl", side=judged.label)
    return False, word("no_head", side=judged.label, vocabulary=vocabulary or least)


def _wide_output(unit: Unit, least: int, vocabulary: int, width: int, ranks: int) -> Optional[Record]:
    """With tensor parallelism a rank's matrices and logits may be a part of the vocabulary."""
    for entry in modules.after_layers(unit, modules.layers_of(unit)):
        for record in modules.outputs(unit, entry):
            columns = (record.shape or (0,))[-1]
            owns = any(own.category == "parameters" and own.shape == (columns, width) for own in unit.entries[entry])
            if columns == vocabulary and (columns != width or owns):
                return record
            if columns != width and columns >= max(2, least) and (not vocabulary or columns <= vocabulary * ranks):
                return record
    return None


def _weights(judged: Judged) -> Finding:
    """FSDP1 with ``use_orig_params=False`` records one flat parameter for each wrapped module."""
    owned = [record for unit in judged.units for record in unit.records() if record.category == "parameters"]
    flat = [record.name for record in owned if "_flat_param" in record.suffix]
    if flat:
        return False, word("flat_parameters", side=judged.label, n=len(flat))
    return True, word("own_parameters", side=judged.label)


# --- dtype, msprobe ---


def _same_dtype(pair: Pair) -> Finding:
    """The dtype of the streams: of the first layer's, or of the embedding's, output."""
    told = [_stream(judged) for judged in pair.both]
    if None in told:
        return None, word("no_stream")
    if told[0] != told[1]:
        return False, word("dtypes_differ", train=told[0], infer=told[1])
    return True, word("one_dtype", dtype=told[0])


def _stream(judged: Judged) -> Optional[str]:
    for unit in judged.units:
        layers = modules.layers_of(unit).entries
        for number in sorted(layers):
            for entry in layers[number].values():
                for record in modules.outputs(unit, entry):
                    return record.dtype
    return None


def _same_msprobe(pair: Pair, inputs: Dict[str, str], card: Card) -> Finding:
    told = [sorted({release.release_of(unit, inputs[judged.label]) for unit in judged.units}) for judged in pair.both]
    ranges = [_RELEASES[name] for names_of in told for name in names_of]
    low, high = max(one[0] for one in ranges), min(one[1] for one in ranges)
    values = {"train": ", ".join(told[0]), "infer": ", ".join(told[1])}
    if low > high:
        return False, word("releases_differ", **values)
    if card.msprobe and len(set(card.msprobe)) > 1:
        return False, word("releases_differ_on_card", train=card.msprobe[0], infer=card.msprobe[1])
    if card.msprobe or (told[0] == told[1] and len(told[0]) == 1 and told[0][0] != release.UNKNOWN):
        return True, word("one_release", version=card.msprobe[0] if card.msprobe else told[0][0])
    return None, word("releases_open", **values)


def _inputs(judged: Judged, told: str) -> Finding:
    if told == release.POST_CALL or _before_26_2(judged, told):
        return False, word("post_call", side=judged.label)
    if told == release.PRE_CALL:
        return True, word("pre_call", side=judged.label)
    return None, word("inputs_unknown", side=judged.label)


def _before_26_2(judged: Judged, told: str) -> bool:
    """Every release before 26.2.0 takes inputs after the call."""
    return any(_RELEASES[release.release_of(unit, told)][1] < 5 for unit in judged.units)


# --- eager ---


def _eager(judged: Judged, card: Card) -> Finding:
    """Signs of a captured graph in the dump; without any, what the task card's baseline command says."""
    for unit in judged.units or judged.side.units:
        sign = _captured(unit)
        if sign is not None:
            return False, word(sign, side=judged.label, unit=shown(unit.place))
    stated = card.eager[judged.label]
    if stated is None:
        return None, word("card_silent", side=judged.label, value=card.command)
    return (True, word("card_eager", side=judged.label)) if stated else (False, word("card_graph", side=judged.label))


def _captured(unit: Unit) -> Optional[str]:
    if any("_orig_mod" in entry for entry in unit.entries):
        return "compiled"
    if os.path.basename(unit.place.folder).startswith("pid"):
        return "graph_folder"
    layers = modules.layers_of(unit)
    return "one_buffer" if len(layers.entries) > 2 and _one_buffer(unit, layers) else None


def _one_buffer(unit: Unit, layers: modules.Layers) -> bool:
    """Every layer's outputs are the same bytes, though not zero: one captured buffer, saved after the graph ran."""
    seen: Set[Tuple[bytes, ...]] = set()
    for calls in layers.entries.values():
        data = []
        for record in modules.outputs(unit, calls[min(calls)]):
            try:
                tensor = pt_archive.read_header(tensor_path(unit, record))
                data.append(pt_archive.read_bytes(tensor, 4096))
            except DumpError:
                return False
        if not data or all(one.count(0) == len(one) for one in data):
            return False
        seen.add(tuple(data))
    return len(seen) == 1
