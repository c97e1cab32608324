"""Ranks of one step as pipeline stages, each a group of shards or replicas; and what entries of later stages are called."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand

from dump_analysis import floats
from dump_analysis.mapping.ranks.members import Member, Step
from dump_analysis.mapping.recorded.columns import relative
from dump_analysis.mapping.recorded.nodes import SideNodes
from dump_analysis.mapping.recorded.records import nodes_of, picked_tokens
from dump_analysis.tensors import BLOCK_BYTES, Files, Tensor, cut_stream, same_file, varies

_EQUAL = 0.2  # of two ranks' vectors that are not constant, or of their activations, makes them shards or copies of one stage
_ROW_SHARDS = 0.3  # of their activations hold a part of the tokens: sequence parallel
_SAMPLE = 32
_HEAD = 1024  # elements
COPY = 0.25  # relative L2 of copies that should be equal and are not; shards have nothing in common (about 1.4)
_ALL = 0.9  # of the activations make a rank a copy


class Rank(NamedTuple):
    """A member with its sampled activations."""

    member: Member
    nodes: SideNodes

    @property
    def number(self) -> int:
        return self.member.unit.place.rank


def opened(step: Step) -> list[Rank]:
    """The members of a step, sampled at the same tokens of its window."""
    window = step.window
    count = window.stop - window.start
    picked = picked_tokens(np.arange(count), count, _SAMPLE)
    return [Rank(member, nodes_of(member.records, window, picked, Operand([], "cat", 0), None)) for member in step.members]


def stages_of(ranks: Sequence[Rank]) -> list[list[Rank]]:
    """Ranks grouped: those of one group hold shards or copies of the same modules; groups follow each other as their ranks do."""
    stages: list[list[Rank]] = []
    for rank in ranks:
        home = next((stage for stage in stages if _one_stage(stage[0], rank)), None)
        if home is None:
            stages.append([rank])
        else:
            home.append(rank)
    return stages


class Chain(NamedTuple):
    """Stages in the order in which the hidden states pass through them. ``loose``: those that follow none of them."""

    stages: list[list[Rank]]
    loose: list[list[Rank]]


def chained(stages: list[list[Rank]]) -> Chain:
    """Stages in the order of the data: each takes what another one returned and it did not make itself.

    A stage that nothing leads to is loose. Raises DumpError where two stages feed each other: interleaved stages.
    """
    follows = {(a, b) for a in range(len(stages)) for b in range(len(stages)) if a != b and _feeds(stages[a], stages[b])}
    if any((b, a) in follows for a, b in follows):
        raise DumpError(
            "Cannot put pipeline stages together: two of them feed each other (interleaved, virtual stages). Hand one model chunk a rank."
        )
    first = next((at for at in range(len(stages)) if stages[at][0].member.integers.ids), 0)
    order = [first]
    while (after := next((b for a, b in sorted(follows) if a == order[-1] and b not in order), None)) is not None:
        order.append(after)
    return Chain([stages[at] for at in order], [stages[at] for at in range(len(stages)) if at not in order])


def _feeds(one: Sequence[Rank], other: Sequence[Rank]) -> bool:
    """Whether a rank of the other stage takes a tensor that a rank of this one returned and that the other one did not make."""
    made = set().union(*(_begins(rank, returned=True) for rank in one))
    return any((_begins(rank, returned=False) - _begins(rank, returned=True)) & made for rank in other)


def _begins(rank: Rank, *, returned: bool) -> set[tuple[tuple[int, ...], bytes]]:
    """Shape and first bytes of what a rank's modules return, or take: of float tensors that are not all zero there."""
    found: set[tuple[tuple[int, ...], bytes]] = set()
    files = Files()
    try:
        for one in rank.member.records.activations:
            if (one.spot.io == "output") == returned and floats.FORMATS[one.tensor.dtype].kind == "float":
                found.add((one.tensor.shape, cut_stream(files, one.tensor, ()).read(0, min(one.tensor.elements, _HEAD)).tobytes()))
    except DumpError:
        return found  # what cannot be read leads nowhere
    finally:
        files.close()
    return {key for key in found if any(key[1])}


class Copies(NamedTuple):
    """The ranks of a stage that differ, and (copy, what it is a copy of) for the others: data parallel ranks with the same prompt."""

    ranks: list[Rank]
    copies: list[tuple[Rank, Rank]]


def without_copies(stage: Sequence[Rank]) -> Copies:
    """The ranks of a stage of which no earlier one holds the same, and the copies, which may differ a little by a fault."""
    kept: list[Rank] = []
    copies: list[tuple[Rank, Rank]] = []
    for rank in stage:
        twin = next((one for one in kept if _is_copy(one, rank)), None)
        if twin is None:
            kept.append(rank)
        else:
            copies.append((rank, twin))
    return Copies(kept, copies)


def _is_copy(one: Rank, other: Rank) -> bool:
    """Whether a rank holds nothing that another one does not hold too: experts and gathered columns are parts, though all else is equal."""
    pairs = [(node.sample, other.nodes.at[key].sample) for key, node in one.nodes.at.items() if key in other.nodes.at]
    alike = [left.shape == right.shape and relative(left, right) < COPY for left, right in pairs]
    ours, theirs = ({(p.entry, p.path): p.tensor for p in rank.member.records.parameters} for rank in (one, other))
    weights = [key in ours and ours[key].shape == tensor.shape and near([ours[key], tensor]) for key, tensor in theirs.items()]
    held = bool(alike) and set(other.nodes.at) <= set(one.nodes.at)
    return held and all(sum(told) >= _ALL * len(told) for told in (alike, weights))


def near(tensors: Sequence[Tensor]) -> bool:
    """Whether the first block of each differs little from the first one's: copies with a fault, not parts."""
    files = Files()
    try:
        count = min(tensors[0].elements, BLOCK_BYTES // tensors[0].item_size)
        read = [floats.values(cut_stream(files, tensor, ()).read(0, count), tensor.dtype).astype(np.float64) for tensor in tensors]
        return all(relative(read[0], other) < COPY for other in read[1:])
    finally:
        files.close()


def _one_stage(one: Rank, other: Rank) -> bool:
    """Whether two ranks of a step hold parts or copies of the same modules: by equal vectors, equal activations, or halved rows."""
    vectors = _equal_vectors(one.member, other.member)
    if vectors is not None:
        return vectors > _EQUAL
    if _row_shards(one, other) > _ROW_SHARDS:
        return True
    shared = [key for key in one.nodes.at if key in other.nodes.at]
    equal = sum(np.array_equal(one.nodes.at[key].sample, other.nodes.at[key].sample) for key in shared)
    return equal > _EQUAL * len(shared)


def _equal_vectors(one: Member, other: Member) -> float | None:
    """Share of equal ones among the vectors of the same name that are not constant: norms are copied, biases may be cut.

    None where fewer than two were recorded on both.
    """
    theirs = {(p.entry, p.path): p.tensor for p in other.records.parameters if len(p.tensor.shape) == 1}
    pairs = [
        (p.tensor, theirs[p.entry, p.path]) for p in one.records.parameters if (p.entry, p.path) in theirs and len(p.tensor.shape) == 1
    ]
    told = []
    for left, right in pairs:
        try:
            told += [left.shape == right.shape and same_file(left, right)] if varies(left) else []
        except DumpError:
            continue  # what cannot be read tells nothing
    return sum(told) / len(told) if len(told) > 1 else None


def _row_shards(one: Rank, other: Rank) -> float:
    """Share of the activations of which each of two ranks holds a part of the tokens."""
    length = one.nodes.window.total // one.nodes.window.batch
    theirs = {a.spot[1:4]: a.tensor.shape for a in other.member.records.activations}
    shapes = [(a.tensor.shape, theirs.get(a.spot[1:4])) for a in one.member.records.activations]
    parts = [left == right and any(1 < size < length and length % size == 0 for size in left[:2]) for left, right in shapes]
    return sum(parts) / max(1, len(parts))


# --- names of later stages ---


def renamings(stages: Sequence[Sequence[Rank]]) -> list[dict[str, str]]:
    """For each stage what its entries are called in the assembled dump: layers count on, other names that are taken get the stage's."""
    taken: set[str] = set()
    shift = 0
    found: list[dict[str, str]] = []
    for number, stage in enumerate(stages):
        entries = list(dict.fromkeys(entry for rank in stage for entry in rank.member.records.unit.entries))
        again = [entry for entry in entries if entry in taken and _layer(entry) is not None]
        own = {entry: _renamed(entry, shift if again else 0, number, taken) for entry in entries}
        found.append(own)
        layers = {layer for entry in own.values() if (layer := _layer(entry)) is not None}
        shift = max(layers, default=shift - 1) + 1
        taken |= set(own.values())
    return found


def _layer(entry: str) -> int | None:
    return names.layer_of(names.parse_entry(entry).path)


def _renamed(entry: str, shift: int, stage: int, taken: set[str]) -> str:
    parsed = names.parse_entry(entry)
    if parsed.kind != "module":
        return entry
    at = names.layer_position(parsed.path)
    if at is not None and shift:
        path = (*parsed.path[:at], str(int(parsed.path[at]) + shift), *parsed.path[at + 1 :])
        parsed = parsed._replace(path=path)
    # No later call: a module that is called twice tells of two forwards.
    return names.entry_text(parsed._replace(path=(f"stage{stage}", *parsed.path)) if names.entry_text(parsed) in taken else parsed)
