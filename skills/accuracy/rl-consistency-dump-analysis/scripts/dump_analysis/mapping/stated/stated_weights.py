"""Weights joined by what is stated of them: equal extremes, norms and means of equal shapes, or of parts that make up a fused one."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dump_analysis.mapping.contents.weights import Modules
from dump_analysis.mapping.recorded.nodes import Parameter
from dump_analysis.mapping.stated.stated import Stated
from dump_analysis.statistics import Facts, agreement, facts_of, is_order_blind, together

_MOST_PARTS = 3  # q, k, v


class Link(NamedTuple):
    """Parameters that hold the same values: one of each side, or one of a side and its parts in their order on the other."""

    train: tuple[Parameter, ...]
    infer: tuple[Parameter, ...]


def join_weights(train: Stated, infer: Stated) -> list[Link]:
    """The links between the parameters of two sides; what differs, and constants, which say nothing, have none."""
    left, right = _told(train), _told(infer)
    links = [Link((mine,), (theirs,)) for mine, theirs in _alike(left, right)]
    used = {id(parameter) for link in links for parameter in (*link.train, *link.infer)}
    mine, theirs = ([one for one in side if id(one) not in used] for side in (left, right))
    links += [Link(parts, (whole,)) for whole, parts in _fused(theirs, mine)]
    links += [Link((whole,), parts) for whole, parts in _fused(mine, theirs)]
    return links


def modules_of(links: Sequence[Link]) -> Modules:
    """The links as joins of the modules that hold the parameters."""
    found: Modules = {}
    for link in links:
        for mine in link.train:
            for theirs in link.infer:
                how = "rows" if len(mine.tensor.shape) > 1 else "vec"
                if found.get((mine.entry, theirs.entry), (0.0, "vec"))[1] == "vec":
                    found[mine.entry, theirs.entry] = (1.0, how)
    return found


def _told(side: Stated) -> list[Parameter]:
    """Parameters whose values tell them from others."""
    facts = [(parameter, facts_of(parameter.record)) for parameter in side.nodes.parameters]
    return [parameter for parameter, one in facts if one.digest is not None or (one.known and one.largest != one.smallest)]


def _alike(train: Sequence[Parameter], infer: Sequence[Parameter]) -> Iterator[tuple[Parameter, Parameter]]:
    """Equal ones in the order of their modules: several are one tied weight, or copies that the order tells apart."""
    at: dict[object, list[Parameter]] = defaultdict(list)
    for theirs in infer:
        at[_coarse(theirs)].append(theirs)
    for mine in train:
        found = next((theirs for theirs in at[_coarse(mine)] if are_equal(facts_of(mine.record), facts_of(theirs.record))), None)
        if found is not None:
            at[_coarse(mine)].remove(found)
            yield mine, found


def _coarse(parameter: Parameter) -> object:
    facts = facts_of(parameter.record)
    return parameter.tensor.shape, facts.largest, facts.smallest


def _fused(wholes: Sequence[Parameter], parts: Sequence[Parameter]) -> Iterator[tuple[Parameter, tuple[Parameter, ...]]]:
    """Neighbours of one kind that together have the rows and the statistics of a whole."""
    kinds: dict[object, list[Parameter]] = defaultdict(list)
    for part in parts:
        kinds[part.path, part.tensor.shape[1:]].append(part)
    for whole in wholes:
        kind = kinds[whole.path, whole.tensor.shape[1:]]
        for start in range(len(kind)):
            for stop in range(start + 2, min(len(kind), start + _MOST_PARTS) + 1):
                run = kind[start:stop]
                if sum(part.tensor.shape[0] for part in run) != whole.tensor.shape[0]:
                    continue
                if are_equal(together([facts_of(part.record) for part in run]), facts_of(whole.record)):
                    yield whole, tuple(run)


def are_equal(one: Facts, other: Facts) -> bool:
    """Whether two records are of the same values, as far as can be seen."""
    digests = (one.digest, other.digest)
    if None not in digests and one.elements == other.elements and len({is_order_blind(digest or "") for digest in digests}) == 1:
        return digests[0] == digests[1]
    extremes = (one.largest, one.smallest) == (other.largest, other.smallest)
    return extremes and one.largest is not None and agreement(one, other).agree == "yes"
