"""Modules of both sides joined layer by layer: by shapes; where several fit, by equal names, usual roles, contents, likeness of names."""

import difflib
from collections import Counter
from itertools import combinations
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import roles
from .places import Kinds, Layer, Modules

Likeness = Callable[[str, str], Tuple[float, float]]  # (train, infer module) -> share of equal rows, where in the larger one they begin
Names = Tuple[str, ...]
_MOST_PARTS = 3  # of a fused matrix whose parts no usual role names


class Join(NamedTuple):
    """Modules of both sides that hold the same: each side one fused matrix, or its parts in the order of their rows.

    ``role``: the usual one, None where none is known.  ``basis``: name, role, contents, shape.
    """

    role: Optional[str]
    train: Names
    infer: Names
    basis: str


class Joined(NamedTuple):
    """``unfit``: joined by name or role though shapes do not fit."""

    joins: Tuple[Join, ...]
    unfit: Tuple[Join, ...]
    train_only: Names
    infer_only: Names


def pair_layers(train: Sequence[Layer], infer: Sequence[Layer]) -> List[Tuple[Optional[Layer], Optional[Layer]]]:
    """Layers of both sides in pairs; None where a side lacks one. Stacks pair by name, else where they have as many layers alike."""
    pairs: List[Tuple[Optional[Layer], Optional[Layer]]] = []
    stacks = [_stacks(side) for side in (train, infer)]
    for mine, theirs in _pair_stacks(*stacks):
        left, right = stacks[0].get(mine, []), stacks[1].get(theirs, [])
        numbers = [[layer.number for layer in side] for side in (left, right)]
        if set(numbers[0]) != set(numbers[1]) and len(left) == len(right):  # counted from another number
            pairs += list(zip(left, right))
            continue
        by_number = [{layer.number: layer for layer in side} for side in (left, right)]
        pairs += [
            (by_number[0].get(number), by_number[1].get(number)) for number in sorted({*numbers[0], *numbers[1]}, key=lambda n: n or 0)
        ]
    return pairs


def _stacks(layers: Iterable[Layer]) -> Dict[str, List[Layer]]:
    found: Dict[str, List[Layer]] = {}
    for layer in layers:
        found.setdefault("" if layer.number is None else layer.stack, []).append(layer)
    return found


def _pair_stacks(train: Dict[str, List[Layer]], infer: Dict[str, List[Layer]]) -> List[Tuple[str, str]]:
    pairs = [(name, name) for name in train if name in infer]
    left = [name for name in train if name not in infer]
    right = [name for name in infer if name not in train]
    for mine in sorted(left, key=lambda name: -len(train[name])):
        best = max(right, key=lambda theirs: _alike(train[mine], infer[theirs]), default=None)
        if best is not None and _alike(train[mine], infer[best]) > 0:
            pairs.append((mine, best))
            right.remove(best)
        else:
            pairs.append((mine, ""))
    return [(mine, theirs) if theirs or not mine else (mine, "\0") for mine, theirs in pairs] + [("\0", name) for name in right]


def _alike(train: Sequence[Layer], infer: Sequence[Layer]) -> float:
    """How many columns' worth of rows two stacks share in their first layers, and whether they have as many layers."""
    sizes = [Counter(size for _, size in _sizes(layers[0].modules)) for layers in (train, infer)]
    shared = sum((sizes[0] & sizes[1]).values())
    return shared + (0.5 if len(train) == len(infer) and shared else 0.0)


def _sizes(modules: Modules) -> List[Tuple[str, int]]:
    return [(name, piece.columns) for name, kinds in modules.items() for pieces in kinds.values() for _, piece in pieces]


def join(train: Modules, infer: Modules, in_layer: bool, likeness: Optional[Likeness] = None) -> Joined:
    """The modules of a layer, or of what stands outside all layers, joined."""
    left, right = dict(train), dict(infer)
    joins: List[Join] = []

    def take(found: Iterable[Join]) -> None:
        for one in found:
            joins.append(one)
            for names, modules in ((one.train, left), (one.infer, right)):
                for name in names:
                    del modules[name]

    take(
        [
            Join(roles.role_of(name, in_layer), (name,), (name,), "name")
            for name in left
            if name in right and _fits([left[name]], [right[name]])
        ]
    )
    by_role = _by_role(left, right, in_layer)
    take([one for one in by_role if _fits([left[name] for name in one.train], [right[name] for name in one.infer])])
    if likeness is not None:
        take(_by_contents(left, right, in_layer, likeness))
    take(_by_shape(left, right, in_layer))
    take(_by_sum(left, right, in_layer))
    unfit = [one for one in by_role if all(name in left for name in one.train) and all(name in right for name in one.infer)]
    named = {name for one in unfit for name in one.train}
    unfit += [Join(roles.role_of(name, in_layer), (name,), (name,), "name") for name in left if name in right and name not in named]
    for one in unfit:
        for names, modules in ((one.train, left), (one.infer, right)):
            for name in names:
                modules.pop(name, None)
    return Joined(tuple(joins), tuple(unfit), tuple(left), tuple(right))


def total(modules: Sequence[Kinds], kind: str) -> Tuple[int, int, int]:
    """Experts, rows of each, columns, of modules side by side; columns -1 where they differ."""
    pieces = [piece for module in modules for piece in module.get(kind, [])]
    experts = {expert for expert, _ in pieces}
    columns = {piece.columns for _, piece in pieces}
    rows = sum(piece.rows for _, piece in pieces)
    return len(experts), rows // max(1, len(experts)), columns.pop() if len(columns) == 1 else -1


def _fits(train: Sequence[Kinds], infer: Sequence[Kinds]) -> bool:
    """Whether the weights of modules side by side have one size; a matrix may be stored turned."""
    kind = "weight" if all("weight" in module for module in (*train, *infer)) else "bias"
    mine, theirs = total(train, kind), total(infer, kind)
    turned = len(train) == len(infer) == 1 and mine == (theirs[0], theirs[2], theirs[1])
    return mine[0] > 0 and -1 not in mine and (mine == theirs or turned)


def _by_role(train: Modules, infer: Modules, in_layer: bool) -> List[Join]:
    """Modules whose usual roles hold the same parts: q, k and v against qkv."""
    owners: List[Dict[str, str]] = []
    for modules in (train, infer):
        parts = [
            (part, name)
            for name in modules
            for role in [roles.role_of(name, in_layer)]
            if role is not None
            for part in roles.parts_of(role)
        ]
        often = Counter(part for part, _ in parts)
        owners.append({part: name for part, name in parts if often[part] == 1})  # two modules of one role: names do not tell them apart
    found: List[Join] = []
    done = set()
    for part in owners[0]:
        if part in done or part not in owners[1]:
            continue
        group = _closed(part, owners)
        done.update(group)
        if all(part in owner for part in group for owner in owners):
            role = group[0] if len(group) == 1 else roles.fused_role(group)
            sides = [tuple(dict.fromkeys(owner[part] for part in group)) for owner in owners]
            found.append(Join(role, sides[0], sides[1], "role"))
    return found


def _closed(part: str, owners: Sequence[Dict[str, str]]) -> List[str]:
    """The parts that modules of either side hold together with this one, in the order of a fused matrix."""
    group = [part]
    for one in group:
        for owner in owners:
            name = owner.get(one)
            group += [other for other, holder in owner.items() if holder == name is not None and other not in group]
    order = [inside for fused in roles.FUSED.values() for inside in fused]
    return sorted(group, key=lambda one: order.index(one.rpartition(".")[2]) if one.rpartition(".")[2] in order else -1)


def _by_contents(train: Modules, infer: Modules, in_layer: bool, likeness: Likeness) -> List[Join]:
    """Modules that hold equal rows: one for one, or the parts of a fused one."""
    shares = {(mine, theirs): likeness(mine, theirs) for mine in train for theirs in infer}
    edges = [pair for pair, (share, _) in sorted(shares.items(), key=lambda one: one[1][1]) if share > 0.5]
    found = []
    for one, other in ((0, 1), (1, 0)):
        for whole in dict.fromkeys(pair[one] for pair in edges):
            parts = [pair[other] for pair in edges if pair[one] == whole]
            alone = all(sum(pair[other] == part for pair in edges) == 1 for part in parts)
            sides = (whole,), tuple(parts)
            mine, theirs = sides if one == 0 else sides[::-1]
            fit = _fits([train[name] for name in mine], [infer[name] for name in theirs])
            if alone and fit and not (one == 1 and len(parts) == 1):
                role = roles.role_of(mine[0], in_layer) if len(mine) == 1 else None
                found.append(Join(role or (roles.role_of(theirs[0], in_layer) if len(theirs) == 1 else None), mine, theirs, "contents"))
    return found


def _by_shape(train: Modules, infer: Modules, in_layer: bool) -> List[Join]:
    """Of modules of one shape as many on both sides, those whose names are most alike."""
    found = []
    left = list(train)
    while left:
        mine = left.pop(0)
        ours = [mine] + [name for name in left if _fits([train[name]], [train[mine]])]
        theirs = [name for name in infer if _fits([train[mine]], [infer[name]])]
        left = [name for name in left if name not in ours]
        if len(ours) != len(theirs):
            continue
        ranked = sorted(((difflib.SequenceMatcher(None, a, b).ratio(), a, b) for a in ours for b in theirs), key=lambda one: -one[0])
        for _, one, other in ranked:
            if one in ours and other in theirs:
                found.append(Join(roles.role_of(one, in_layer) or roles.role_of(other, in_layer), (one,), (other,), "shape"))
                ours.remove(one)
                theirs.remove(other)
    return found


def _by_sum(train: Modules, infer: Modules, in_layer: bool) -> List[Join]:
    """A module whose rows are those of two or three of the other side together, where one choice alone fits."""
    found: List[Join] = []
    used: List[Set[str]] = [set(), set()]
    for one, (wholes, parts) in enumerate(((train, infer), (infer, train))):
        for whole in wholes:
            columns = total([wholes[whole]], "weight")[2]
            free = [name for name in parts if name not in used[1 - one] and total([parts[name]], "weight")[2] == columns]
            fits = [
                some
                for count in range(2, _MOST_PARTS + 1)
                for some in combinations(free, count)
                if _fits([parts[name] for name in some], [wholes[whole]])
            ]
            if len(fits) == 1 and whole not in used[one]:
                used[one].add(whole)
                used[1 - one].update(fits[0])
                sides = ((whole,), fits[0]) if one == 0 else (fits[0], (whole,))
                found.append(Join(roles.role_of(whole, in_layer), sides[0], sides[1], "shape"))
    return found
