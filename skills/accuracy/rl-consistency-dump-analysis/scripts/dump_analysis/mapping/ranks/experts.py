"""Experts of a stage of several ranks: modules that run the tokens routed to them, each with rows of its own.

Under expert parallelism every rank numbers its experts from 0 (Megatron-core ``local_experts``): experts of ranks that share
neither inputs nor weights are others, and are numbered on. Ranks that run the same rows hold shards or copies of the same experts.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from msprobe_files import names
from msprobe_files.operands import Operand

from dump_analysis import floats
from dump_analysis.mapping.ranks.stages import Rank, near
from dump_analysis.mapping.recorded.nodes import Recorded, SideNodes, Window
from dump_analysis.mapping.recorded.records import nodes_of, picked_tokens
from dump_analysis.mapping.recorded.token_rows import matrix_ops
from dump_analysis.tensors import same_file

_SAMPLE = 32  # rows of an expert
_SAME = 0.5  # of the experts of one number that two ranks hold alike

Spot = tuple[tuple[str, ...], int]  # path of a list of experts, number in it


class Experts(NamedTuple):
    """Ranks with nothing but some experts' records, and how far the numbers of these are from those of the assembled dump."""

    ranks: list[Rank]
    shift: int


class Apart(NamedTuple):
    """A stage without its experts, and these. ``groups``: numbers of the ranks that hold the same experts."""

    stage: list[Rank]
    experts: list[Experts]
    groups: list[list[int]]


def experts_apart(stage: Sequence[Rank]) -> Apart:
    """Take the experts out of a stage of several ranks; nothing is taken where it has none."""
    spots = _routed(stage) if len(stage) > 1 else {}
    if not spots:
        return Apart(list(stage), [], [list(range(len(stage)))])
    groups: list[list[int]] = []
    for number, rank in enumerate(stage):
        home = next((group for group in groups if _same_experts(stage[group[0]], rank, spots)), None)
        if home is None:
            groups.append([number])
        else:
            home.append(number)
    local = _local(stage, spots, len(groups))
    made = [
        Experts(ranks, at * local) for at, group in enumerate(groups) for ranks in _of_group([stage[number] for number in group], spots)
    ]
    rest = [_only(rank, [entry for entry in rank.member.unit.entries if entry not in spots], rank.nodes.window) for rank in stage]
    return Apart(rest, made, groups)


def renumbered(entry: str, shift: int) -> str:
    """An expert's entry with its number moved on."""
    parsed = names.parse_entry(entry)
    at = _number_at(parsed.path)
    if at is None or not shift:
        return entry
    return names.entry_text(parsed._replace(path=(*parsed.path[:at], str(int(parsed.path[at]) + shift), *parsed.path[at + 1 :])))


def around(apart: Apart, stage: Sequence[Rank]) -> set[str]:
    """The entries of a stage whose modules contain experts that were taken out."""
    taken = {one.spot.entry for experts in apart.experts for rank in experts.ranks for one in rank.member.records.activations}
    above = {path[:at] for entry in taken for path in [names.parse_entry(entry).path] for at in range(1, _number_at(path) or 1)}
    above |= {path[: _number_at(path)] for entry in taken for path in [names.parse_entry(entry).path]}
    every = {entry for rank in stage for entry in rank.member.unit.entries}
    return {entry for entry in every if names.parse_entry(entry).path in above}


def _number_at(path: tuple[str, ...]) -> int | None:
    """Where the number of an expert stands: the first one below a layer's."""
    layer = names.layer_position(path)
    return None if layer is None else next((at for at in range(layer + 2, len(path)) if path[at].isdigit()), None)


def _spot(entry: str) -> Spot | None:
    parsed = names.parse_entry(entry)
    at = _number_at(parsed.path) if parsed.kind == "module" else None
    return None if at is None else (parsed.path[:at], int(parsed.path[at]))


def _routed(stage: Sequence[Rank]) -> dict[str, Spot]:
    """Entry -> its place in a list of modules, of lists some of whose modules take other rows than the tokens."""
    found = {entry: spot for rank in stage for entry in rank.member.unit.entries if (spot := _spot(entry)) is not None}
    routed = set()
    for rank in stage:
        window = rank.nodes.window
        for one in rank.member.records.activations:
            if one.spot.entry in found and one.spot.io == "input" and floats.FORMATS[one.tensor.dtype].kind == "float":
                other = matrix_ops(one.tensor.shape, window) is None and prod(one.tensor.shape[:-1]) * len(stage) != window.total
                routed |= {names.layer_pattern(found[one.spot.entry][0])} if other else set()
    return {entry: spot for entry, spot in found.items() if names.layer_pattern(spot[0]) in routed}


def _first_inputs(rank: Rank, spots: dict[str, Spot]) -> dict[Spot, Recorded]:
    """What each expert takes first."""
    found: dict[Spot, Recorded] = {}
    for one in sorted(rank.member.records.activations, key=lambda one: one.spot.time):
        if one.spot.entry in spots and one.spot.io != "output":
            found.setdefault(spots[one.spot.entry], one)
    return found


def _same_experts(one: Rank, other: Rank, spots: dict[str, Spot]) -> bool:
    """Whether experts of one number are the same on two ranks: they take the same rows, or hold the same weights."""
    ours, theirs = (_first_inputs(rank, spots) for rank in (one, other))
    rows = [
        ours[at].tensor.shape == theirs[at].tensor.shape and same_file(ours[at].tensor, theirs[at].tensor) for at in ours.keys() & theirs
    ]
    held = [{(p.entry, p.path): p.tensor for p in rank.member.records.parameters if p.entry in spots} for rank in (one, other)]
    weights = [held[0][key].shape == held[1][key].shape and near([held[0][key], held[1][key]]) for key in held[0].keys() & held[1]]
    return any(told and sum(told) >= _SAME * len(told) for told in (rows, weights))


def _local(stage: Sequence[Rank], spots: dict[str, Spot], groups: int) -> int:
    """How many experts a rank has: as many as a router returns columns for, else the highest number that ran and one."""
    most = max(number for _, number in spots.values()) + 1
    widths = sorted({one.tensor.shape[-1] for one in stage[0].member.records.activations if one.tensor.shape})
    return next((width // groups for width in widths if width % groups == 0 and most <= width // groups < 2 * most), most)


def _of_group(ranks: Sequence[Rank], spots: dict[str, Spot]) -> list[list[Rank]]:
    """The experts of ranks that hold the same: all at once where one rank has them whole, else one by one, as each has its own rows."""
    if len(ranks) == 1:
        entries = [entry for entry in ranks[0].member.unit.entries if entry in spots]
        return [[_only(ranks[0], entries, ranks[0].nodes.window)]]
    found = []
    inputs = _first_inputs(ranks[0], spots)
    for spot in dict.fromkeys(spots.values()):
        entries = [entry for entry, at in spots.items() if at == spot]
        rows = prod(inputs[spot].tensor.shape[:-1]) if spot in inputs else 0
        if rows:
            found.append([_only(rank, entries, Window(0, rows, rows, 1)) for rank in ranks])
    return found


def _only(rank: Rank, entries: Sequence[str], window: Window) -> Rank:
    """A rank with the records of some entries."""
    kept = set(entries)
    records = rank.member.records._replace(
        activations=[one for one in rank.member.records.activations if one.spot.entry in kept],
        parameters=[one for one in rank.member.records.parameters if one.entry in kept],
    )
    picked = picked_tokens(np.arange(window.stop - window.start), window.stop - window.start, _SAMPLE)
    nodes: SideNodes = nodes_of(records, window, picked, Operand([], "cat", 0), None)
    return Rank(rank.member._replace(records=records), nodes)
