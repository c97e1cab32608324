"""What the rows by place leave over: gains inside fused linears, experts, tied heads; and weights that one side alone recorded."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msprobe_files.units import Record

from dump_analysis.artefacts.common import Worded
from dump_analysis.boundaries import layer_of
from dump_analysis.mapping.contents.weight_samples import Cut, agree, same_bytes
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.recorded.nodes import Parameter, SideNodes
from dump_analysis.mapping.rows.experts import expert_rows, experts_of, router_row
from dump_analysis.mapping.rows.weight_rows import Made, WeightRow
from dump_analysis.wording import word


class Places(NamedTuple):
    """What is known of entries. ``names``: side -> entry -> prefix of its weights; ``experts``: layer -> its routed experts."""

    made: Sequence[Made]
    names: Mapping[str, Mapping[str, str]]
    experts: Mapping[int, "Routed"]


class Routed(NamedTuple):
    """The routed experts of a layer: how many, and between which times of each side their entries run."""

    experts: int
    train: tuple[float, float]
    infer: tuple[float, float]


def routed_of(joined: JoinedSides, names: Sequence[str]) -> dict[int, Routed]:
    """The layers with routed experts, and when each side runs them: between the MLP's norm (or the stream) and the experts' sum."""
    at = dict(zip(names, joined.rows, strict=True))
    found: dict[int, Routed] = {}
    for name, row in at.items():
        layer = layer_of(name)
        if layer is None or not name.endswith(".moe.out"):
            continue
        before = at.get(f"layers.{layer}.post_norm.out") or at.get(f"layers.{layer}.resid_attn")
        router = at.get(f"layers.{layer}.router.logits")
        windows = [(getattr(before, side).ready if before else 0.0, getattr(row, side).time) for side in ("train", "infer")]
        found[layer] = Routed(router.train.width if router else 0, windows[0], windows[1])
    return found


class MissingWeight(NamedTuple):
    """A weight without a row. ``train``, ``infer``: names of recorded tensors of it."""

    name: str
    reason: Worded
    train: list[str]
    infer: list[str]


def left_rows(
    places: Places, modules: Mapping[tuple[str, str], tuple[float, str]], rows: Sequence[WeightRow], train: SideNodes, infer: SideNodes
) -> list[WeightRow]:
    """Rows of parameters that no row by place holds: gains inside fused linears, modules whose values are not joined, experts, tied heads.

    ``modules``: (train entry, infer entry) -> what their weights have in common (`join.JoinedSides`).
    """
    found = list(rows)
    found += _fused_gains(places, found, train, infer)
    for layer, routed in sorted(places.experts.items()):
        inside = [
            _inside(side, window, _left(side, found, label))
            for label, side, window in (("train", train, routed.train), ("infer", infer, routed.infer))
        ]
        count = _expert_count(routed, [*inside[0], *inside[1]])
        experts = [experts_of(side, parameters, count) for side, parameters in zip((train, infer), inside, strict=True)]
        found += expert_rows(f"layers.{layer}.", experts[0], experts[1])
        if not any(row.name == f"layers.{layer}.router.weight" for row in found):
            found += router_row(f"layers.{layer}.", inside[0], inside[1], count or max(map(len, experts)))
    found += _joined_modules(places, modules, found, train, infer)
    found += _tied_heads(places, found, train, infer)
    return found[len(rows) :]


def _left(side: SideNodes, rows: Sequence[WeightRow], label: str) -> list[Parameter]:
    held = {getattr(row, label).record.name for row in rows}
    return [parameter for parameter in side.parameters if parameter.record.name not in held]


def _inside(side: SideNodes, window: tuple[float, float], parameters: Sequence[Parameter]) -> list[Parameter]:
    times = side.records.times
    return [p for p in parameters if window[0] <= times.start[p.entry] and times.end[p.entry] <= window[1]]


def _fused_gains(places: Places, rows: Sequence[WeightRow], train: SideNodes, infer: SideNodes) -> list[WeightRow]:
    """A gain that one side keeps in the linear that the norm feeds, against the other side's norm before that linear."""
    found: list[WeightRow] = []
    free = {"train": _left(train, rows, "train"), "infer": _left(infer, rows, "infer")}
    for made in places.made:
        if made.train is None or made.infer is None:
            continue
        for label, other, side in (("train", "infer", infer), ("infer", "train", train)):
            entry = getattr(made, label).entry
            inside = next((p for p in free[label] if p.entry == entry and len(p.tensor.shape) == 1), None)
            before = _norm_before(side, getattr(made, other).entry)
            gain = next((p for p in free[other] if p.entry == before and len(p.tensor.shape) == 1), None)
            if inside is None or gain is None or inside.tensor.shape != gain.tensor.shape:
                continue
            free[label].remove(inside)
            free[other].remove(gain)
            name = places.names[other].get(gain.entry, gain.record.name.removesuffix(".weight"))
            pair = (inside, gain) if label == "train" else (gain, inside)
            equal = agree(*(Cut(parameter.tensor, ()) for parameter in pair))
            found.append(WeightRow(f"{name}.weight", *pair, (), (), equal, False, 0.99 if equal else made.confidence))
    return found


def _joined_modules(
    places: Places, modules: Mapping[tuple[str, str], tuple[float, str]], rows: Sequence[WeightRow], train: SideNodes, infer: SideNodes
) -> list[WeightRow]:
    """Modules that their weights join although their values are none of one kind (a router's logits against its probabilities)."""
    found: list[WeightRow] = []
    left, right, routers = _left(train, rows, "train"), _left(infer, rows, "infer"), _routers(places, train, infer)
    for (one, other), (share, _) in sorted(modules.items(), key=lambda item: -item[1][0]):
        mine, theirs = [p for p in left if p.entry == one], [p for p in right if p.entry == other]
        for parameter in mine:
            twin = next((p for p in theirs if p.tensor.shape == parameter.tensor.shape and len(p.tensor.shape) < 3), None)
            if twin is None:
                continue
            left.remove(parameter)
            right.remove(twin)
            theirs.remove(twin)
            equal = agree(Cut(parameter.tensor, ()), Cut(twin.tensor, ()))
            name = _module_name(places, parameter, twin, routers)
            found.append(WeightRow(name, parameter, twin, (), (), equal, False, 0.99 if equal else round(share, 2)))
    return found


def _module_name(places: Places, left: Parameter, right: Parameter, routers: Mapping[str, int]) -> str:
    """The name of what either entry makes; a router is the matrix with a row an expert; other modules keep the trainer's name."""
    prefix = places.names["train"].get(left.entry) or places.names["infer"].get(right.entry)
    if prefix is None and left.entry in routers:
        prefix = f"layers.{routers[left.entry]}.router"
    if prefix is None:
        return left.record.name
    return f"{prefix}.{'weight' if len(left.tensor.shape) > 1 else left.path}"


def _routers(places: Places, train: SideNodes, infer: SideNodes) -> dict[str, int]:
    """Entry of the trainer -> its layer, for matrices with a row an expert beside experts."""
    found: dict[str, int] = {}
    for layer, routed in places.experts.items():
        inside = _inside(train, routed.train, train.parameters)
        count = _expert_count(routed, [*inside, *_inside(infer, routed.infer, infer.parameters)])
        found.update({p.entry: layer for p in inside if len(p.tensor.shape) == 2 and p.tensor.shape[0] == count})
    return found


def _expert_count(routed: Routed, parameters: Sequence[Parameter]) -> int:
    stacks = [parameter.tensor.shape[0] for parameter in parameters if len(parameter.tensor.shape) == 3]
    return stacks[0] if stacks else routed.experts


def _norm_before(side: SideNodes, entry: str) -> str | None:
    """The leaf entry that returns what an entry takes."""
    node = next((node for (reader, io, _), node in side.at.items() if reader == entry and io != "output"), None)
    if node is None:
        return None
    return next((spot.entry for spot in node.spots if spot.io == "output" and spot.leaf), None)


def _tied_heads(places: Places, rows: Sequence[WeightRow], train: SideNodes, infer: SideNodes) -> list[WeightRow]:
    """A head that only one side recorded and that is that side's embedding: against the other side's embedding."""
    embedding = next((row for row in rows if row.name == "embedding.weight"), None)
    if embedding is None or any(row.name == "lm_head.weight" for row in rows):
        return []
    for label, side in (("train", train), ("infer", infer)):
        heads = [p for p in _left(side, rows, label) if places.names[label].get(p.entry) == "lm_head" and len(p.tensor.shape) == 2]
        if heads and same_bytes(heads[0].tensor, getattr(embedding, label).tensor):
            tied = embedding._replace(name="lm_head.weight")
            return [tied._replace(train=heads[0]) if label == "train" else tied._replace(infer=heads[0])]
    return []


def missing_weights(places: Places, rows: Sequence[WeightRow], train: SideNodes, infer: SideNodes) -> list[MissingWeight]:
    """The weights that no row holds, each with the reason; what both sides have at one named place stands together.

    What has no place bears its record's name; that two records share a name says nothing, infer's is then marked.
    """
    found: dict[str, dict[str, list[Parameter]]] = {}
    named = {row.name for row in rows}
    for label, side in (("train", train), ("infer", infer)):
        for parameter in _left(side, rows, label):
            name = _missing_name(parameter, places.names[label], beside_matrix=_has_matrix(side, parameter.entry))
            own = parameter.record.name
            if name in named or name == own:
                name = f"{label}:{own}" if own in named or own in found else own
            found.setdefault(name, {"train": [], "infer": []})[label].append(parameter)
    return [_missing(places, name, sides["train"], sides["infer"], (train, infer)) for name, sides in found.items()]


def _missing(
    places: Places, name: str, train: Sequence[Parameter], infer: Sequence[Parameter], sides: tuple[SideNodes, SideNodes]
) -> MissingWeight:
    records = [[parameter.record.name for parameter in parameters] for parameters in (train, infer)]
    if train and infer:
        common = {parameter.tensor.shape for parameter in train} & {parameter.tensor.shape for parameter in infer}
        reason = word("not_joined" if common else "weights_do_not_fit", what=name)
    else:
        label, own = ("train", records[0][0]) if train else ("infer", records[1][0])
        what = own if name == f"{label}:{own}" else name
        reason = _reason(places, what, "infer", sides[1]) if train else _reason(places, what, "train", sides[0])
    return MissingWeight(name, reason, *records)


def _missing_name(parameter: Parameter, names: Mapping[str, str], *, beside_matrix: bool) -> str:
    prefix = names.get(parameter.entry)
    if prefix is None or len(parameter.tensor.shape) > 2:
        return parameter.record.name
    return f"{prefix}.bias" if len(parameter.tensor.shape) == 1 and beside_matrix else f"{prefix}.weight"


def _has_matrix(side: SideNodes, entry: str) -> bool:
    return any(parameter.entry == entry and len(parameter.tensor.shape) == 2 for parameter in side.parameters)


def _reason(places: Places, name: str, other: str, side: SideNodes) -> Worded:
    """Why the other side has none: it recorded the parameter empty, or none at all."""
    prefix = name.removesuffix(".weight").removesuffix(".bias")
    ends = [getattr(made, other) for made in places.made if made.prefix == prefix]
    records = [record for end in ends if end is not None for record in side.records.unit.entries.get(end.entry, ())]
    empty = [record for record in records if _is_empty(record)]
    return word("no_elements", side=other, name=empty[0].name) if empty else word("not_recorded", side=other, what=name)


def _is_empty(record: Record) -> bool:
    return record.category == "parameters" and (record.file is None or (record.shape is not None and 0 in record.shape))
