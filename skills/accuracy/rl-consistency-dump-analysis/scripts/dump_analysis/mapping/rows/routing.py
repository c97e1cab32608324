"""Places of routed experts that are no nodes of the tokens: what routers chose, and what single experts compute."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.gaps import Extra
from dump_analysis.mapping.rows.chosen import Choice, choices_of, rows_of_choices
from dump_analysis.mapping.rows.expert_places import LayerExperts, layer_experts, rows_of_experts
from dump_analysis.mapping.rows.weight_gaps import Routed
from dump_analysis.mapping.rows.weight_rows import WeightRow

_NUMBERED = re.compile(r"(layers\.(\d+)\.experts\.)(\d+)(\..+)")


class RoutedPlaces(NamedTuple):
    """Rows and gaps. ``dropped``: names of joined rows that a gap says better; ``weights``: with the experts' true numbers."""

    extras: list[Extra]
    dropped: set[str]
    weights: list[WeightRow]


def routed_places(joined: JoinedSides, names: Sequence[str], layers: Mapping[int, Routed], weights: Sequence[WeightRow]) -> RoutedPlaces:
    """The rows and gaps of the layers with routed experts. ``weights``: all rows of weights, experts in the order of their runs."""
    layers = {layer: routed._replace(experts=_count(layer, routed.experts, weights)) for layer, routed in layers.items()}
    choices = choices_of(joined, layers)
    chosen = rows_of_choices(joined, names, choices)
    found = _experts(joined, names, layers, choices, weights)
    at = {name: n for n, name in enumerate(names)}
    extras = [*chosen.extras, *(Extra(at[f"layers.{layer}.moe.out"] - 1, item) for layer, item in rows_of_experts(found))]
    return RoutedPlaces(extras, chosen.dropped, _renumbered(weights, found))


def _count(layer: int, known: int, weights: Sequence[WeightRow]) -> int:
    """How many experts a layer has: as many as its router has rows, where the logits do not tell."""
    routers = [row.train.tensor.shape[0] for row in weights if row.name == f"layers.{layer}.router.weight"]
    return known or next(iter(routers), 0)


def _experts(
    joined: JoinedSides,
    names: Sequence[str],
    layers: Mapping[int, Routed],
    choices: Mapping[int, tuple[Choice, Choice]],
    weights: Sequence[WeightRow],
) -> list[LayerExperts]:
    at = {name: n for n, name in enumerate(names)}
    found = []
    for layer, routed in sorted(layers.items()):
        taken = at.get(f"layers.{layer}.post_norm.out", at.get(f"layers.{layer}.resid_attn"))
        if taken is not None:
            hidden = joined.rows[taken].train, joined.rows[taken].infer
            found.append(layer_experts(joined, layer, routed, hidden, choices[layer], weights))
    return found


def _renumbered(weights: Sequence[WeightRow], layers: Sequence[LayerExperts]) -> list[WeightRow]:
    """Experts that were counted in the order of their runs bear their numbers: some may not have run."""
    numbers = {one.layer: (one.numbers("train"), one.numbers("infer")) for one in layers}
    made: list[WeightRow] = []
    for row in weights:
        match = _NUMBERED.fullmatch(row.name)
        train, infer = numbers.get(int(match[2]), ({}, {})) if match is not None else ({}, {})
        number = train.get(row.train.entry, infer.get(row.infer.entry))
        made.append(row if match is None or number is None else row._replace(name=f"{match[1]}{number}{match[4]}"))
    return made if len({row.name for row in made}) == len(made) else list(weights)
