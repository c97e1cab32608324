"""What recomputing has shown, as findings: one cause in many modules is one finding.

A module is `logic`, `rounding` or `unknown` by its own evidence; what differs there only because its inputs do is no finding.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dump_analysis import causes
from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult
from dump_analysis.artefacts.common import Modules, Worded
from dump_analysis.artefacts.conclusion import ChainLink, Finding, Fix, RuledOut, Size
from dump_analysis.artefacts.replay_results import ConfigValue, ModuleReplay, ReplayResults, SideReplay
from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.findings.compared import begins, evidence
from dump_analysis.findings.making import finding
from dump_analysis.findings.variants import in_words
from dump_analysis.replay.places import module_of
from dump_analysis.wording import word

# Evidence that says which cause a verdict has, what names it best first, and which of its values modules of one cause have alike.
_CAUSES = {
    "replay_head_tied": ("side",),
    "replay_qkv_read_in_groups": ("side", "groups"),
    "replay_qkv_read_in_blocks": ("side",),
    "replay_rows_shifted": ("side", "by"),
    "replay_experts_exchanged": ("side", "experts"),
    "replay_experts_shifted": ("side", "by"),
    "replay_fits_offsets": ("side",),
    "replay_fits_unchanged": ("side",),
    "replay_fits_without": ("side",),
    "replay_fits_addend": ("side", "factor"),
    "replay_fits_gain": ("side", "factor"),
    "replay_fits_columns": ("side", "at"),
    "replay_fits_tokens": ("side", "at"),
    "replay_altered": ("side",),
    "replay_not_altered": ("side",),
    "replay_elsewhere": ("side",),
    "replay_constants": ("name",),
    "replay_constant_alone": ("side", "name"),
    "replay_bias_alone": ("side",),
    "replay_gain_twice": ("side",),
    "replay_gain_never": ("side",),
    "replay_functions": ("train", "infer"),
    "replay_mistake": ("side", "variant"),
    "replay_unexplained": ("side",),
}
# What one cause does at several places; of all others nothing tells that it is one.
_ANYWHERE = (
    "replay_constants", "replay_constant_alone", "replay_functions", "replay_mistake", "replay_fits_offsets", "replay_bias_alone",
    "replay_gain_twice", "replay_gain_never", "replay_qkv_read_in_groups", "replay_qkv_read_in_blocks", "replay_experts_exchanged",
    "replay_experts_shifted",
)  # fmt: skip
_ROUNDING_PARTS = 6  # evidence sentences of a finding


class Seen(NamedTuple):
    """A module that was recomputed, and the boundary whose value it makes, as that was compared."""

    module: ModuleReplay
    result: BoundaryResult


def seen(replay: ReplayResults, boundaries: Sequence[BoundaryResult]) -> list[Seen]:
    """The recomputed modules whose boundary was compared, in the order of the boundaries."""
    by_name = {module.module: module for module in replay.modules}
    found = [(by_name.get(module_of(result.boundary)), result) for result in boundaries]
    return [Seen(module, result) for module, result in found if module is not None]


def of_replay(found: Sequence[Seen], modules: dict[str, Modules], inputs_part_at: int | None = None) -> list[Finding]:
    """The findings that rest on replay. Weights that differ are findings of their own, and none of these.

    ``inputs_part_at``: the token from which ids or positions differ: what is not decided and differs only from there on may follow from
    that.
    """
    groups = _with_lost(_together(one for one in found if one.module.verdict == "logic" and _cause_of(one) is not None))
    made = [_with_chain(_logic(group, modules), group, found) for group in groups]
    rounded = _groups((one for one in found if one.module.verdict == "rounding" and _adds(one)), _rounding_key)
    made += [_with_chain(_rounding(group, modules), group, found) for group in rounded]
    left = _groups((one for one in found if one.module.verdict == "unknown" and _is_open(one.result, inputs_part_at)), _unknown_key)
    return made + [_unknown(group, modules) for group in left]


def _is_open(result: BoundaryResult, inputs_part_at: int | None) -> bool:
    first = begins(result)
    return result.status in DIVERGED and (inputs_part_at is None or first is None or first < inputs_part_at)


# --- taking together ---


def _groups(found: Iterable[Seen], key: Callable[[Seen], object]) -> list[list[Seen]]:
    groups: dict[object, list[Seen]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return list(groups.values())


def _cause_of(one: Seen) -> Worded | None:
    """The sentence that says what a module's own cause is; None where only its weights differ."""
    found = {told.kind: told for told in reversed(one.module.evidence)}
    return next((found[kind] for kind in _CAUSES if kind in found), None)


def _together(found: Iterable[Seen]) -> list[list[Seen]]:
    def key(one: Seen) -> object:
        told = _cause_of(one)
        if told is None:
            return None
        place = None if told.kind in _ANYWHERE else place_of(one.result.boundary)
        # A mistake is the same wherever the variant rounds.
        return told.kind, one.module.side, place, *(str(told.values[name]).partition("+")[0] for name in _CAUSES[told.kind])

    return _groups(found, key)


def _with_lost(groups: Sequence[list[Seen]]) -> list[list[Seen]]:
    """A norm that adds first and loses an addend says of its result what the sum says that the same call returns: one cause."""
    sums = {(one.module.side, _entry(one)): group for group in groups for one in group if one.module.operator == "residual_add"}
    kept = []
    for group in groups:
        lost = [one for one in group if _loses(one) and (one.module.side, _entry(one)) in sums]
        for one in lost:
            sums[one.module.side, _entry(one)].append(one)
        left = [one for one in group if one not in lost]
        kept += [group] if not lost else [left] if left else []
    return kept


def _loses(one: Seen) -> bool:
    told = _cause_of(one)
    return told is not None and told.kind == "replay_mistake" and "_input_lost" in str(told.values["variant"])


def _entry(one: Seen) -> str | None:
    """The call of the side at fault that makes a module's value."""
    return {"train": one.module.train.entry, "infer": one.module.infer.entry}.get(one.module.side)


def _rounding_key(one: Seen) -> object:
    return one.module.operator, one.module.train.variant, one.module.infer.variant


def _unknown_key(one: Seen) -> object:
    return tuple(sorted({told.kind for told in one.module.would_decide}))


def _adds(one: Seen) -> bool:
    """Whether the difference of two ways of rounding shows in the dumps at all, or decides near ties there."""
    return one.result.status != "EXACT" and (one.module.local is None or one.module.local.unequal > 0 or bool(_flips(one)))


def _flips(one: Seen) -> list[Worded]:
    """Tokens that chose other experts at near ties."""
    return [told for told in one.module.evidence if told.kind in ("replay_flips", "replay_flips_after")]


# --- findings ---


def _logic(group: Sequence[Seen], modules: dict[str, Modules]) -> Finding:
    told, side = _cause_of(group[0]), group[0].module.side
    if told is None:
        raise ValueError(f"{group[0].module.module} has no cause of its own")
    alike = [one for one in group if (own := _cause_of(one)) is not None and own.kind == told.kind]
    cause = _constants(group, str(told.values["name"])) if told.kind == "replay_constants" else _in_one_cause(alike, told)
    proofs = [each for one in group for each in one.module.evidence if each.kind != "replay_weights_differ"]
    seen_there = _hints(group[0].result) if told.kind == "replay_unexplained" else []  # nothing names it: what it looks like
    made = finding(
        [one.result for one in group], modules, character="logic", cause=cause, evidence=[*_once(proofs), *seen_there], side=side,
        confirmed_by="replay",
    )  # fmt: skip
    stated = next((each for each in proofs if each.kind == "replay_constant_stated"), None)
    fix = _fix(stated) if stated is not None else None
    by_config = made.confirmed_by + (["config"] if stated is not None else [])
    return _replace(made, size=_size(group), confirmed_by=by_config, resolvable="unknown" if side == "unknown" else "yes", fix=fix)


def _in_one_cause(group: Sequence[Seen], told: Worded) -> Worded:
    if len(group) == 1:
        return told
    return word("replay_in_modules", cause=told, n=len(group), modules=[one.module.module for one in group])


def _constants(group: Sequence[Seen], name: str) -> Worded:
    """The constant as the module tells it that leaves the fewest values possible."""
    narrowest = min(group, key=lambda one: _width(one.module.train.config.get(name)) + _width(one.module.infer.config.get(name)))
    told = _cause_of(narrowest)
    train, infer = (told.values.get(side) if told is not None else None for side in ("train", "infer"))
    return word("replay_cause_constant", operator=narrowest.module.operator, name=name, train=train, infer=infer)


def _width(value: ConfigValue | None) -> float:
    """How far apart the values are that would do as well, relative to their place; an interval may be open at one end."""
    ends = value.interval or [] if value is not None else []
    return float(ends[1] / ends[0]) if len(ends) == 2 and ends[0] > 0 else float("inf")


def _fix(stated: Worded) -> Fix:
    values = {key: stated.values[key] for key in ("side", "name", "value")}
    return Fix(stated.values["side"], word("fix_constant", **values), word("expect_equal_constant", name=stated.values["name"]))


def _rounding(group: Sequence[Seen], modules: dict[str, Modules]) -> Finding:
    module = group[0].module
    train, infer = (_way(side) for side in (module.train, module.infer))
    cause = word("replay_cause_rounding", operator=module.operator, train=train, infer=infer)
    told = [
        word(
            "replay_both_explained", module=one.module.module,
            train=one.module.train.unexplained, of_train=one.module.train.of, by_train=_way(one.module.train),
            infer=one.module.infer.unexplained, of_infer=one.module.infer.of, by_infer=_way(one.module.infer),
        )
        for one in group[:_ROUNDING_PARTS]
    ]  # fmt: skip
    told += [each for one in group for each in _flips(one)]
    made = finding(
        [one.result for one in group], modules, character="rounding", side="both", cause=cause, evidence=told, confirmed_by="replay"
    )
    return _replace(made, size=_size(group), ruled_out=_ruled_out(group), resolvable="no")


def _way(side: SideReplay) -> Worded | str:
    """How a side computes; what no variant explains but leaves no more than noise is a kernel that is not in the list."""
    return in_words(side.variant) if side.variant is not None else word("variant_not_listed")


def _ruled_out(group: Sequence[Seen]) -> list[RuledOut]:
    """Constants that a value holds in on both sides, with what the tightest module leaves possible."""
    found = []
    for name in group[0].module.train.config:
        known = [one for one in group if all(_has_interval(side, name) for side in (one.module.train, one.module.infer))]
        if not known:
            continue
        best = min(known, key=lambda one: _width(one.module.train.config[name]) + _width(one.module.infer.config[name])).module
        train, infer = (list(side.config[name].interval or ()) for side in (best.train, best.infer))
        because = word("replay_interval_holds", name=name, module=best.module, train=train, infer=infer)
        found.append(RuledOut(word("replay_another_constant", name=name), because))
    return found


def _has_interval(side: SideReplay, name: str) -> bool:
    """Whether a constant is known to lie between two numbers."""
    return name in side.config and side.config[name].interval is not None


def _unknown(group: Sequence[Seen], modules: dict[str, Modules]) -> Finding:
    first = group[0].result
    cause = word("replay_cause_unknown", n=len(group), modules=[one.module.module for one in group], why=_once(_reasons(group))[:2])
    looks = causes.fingerprint(first)
    own = [told for one in group for told in one.module.evidence]
    told = [evidence(first), *([looks] if looks is not None else []), *_hints(first), *_once(own)]
    return finding([one.result for one in group], modules, character="unknown", cause=cause, evidence=told, confirmed_by="fingerprint")


def _hints(result: BoundaryResult) -> list[Worded]:
    return result.where.hints if result.where is not None else []


def _reasons(group: Sequence[Seen]) -> list[Worded]:
    return [told for one in group for told in one.module.would_decide]


def _once(told: Sequence[Worded]) -> list[Worded]:
    """Each sentence once, the first ones of many."""
    return list({one.text: one for one in told}.values())[: 2 * _ROUNDING_PARTS]


# --- size and growth ---


def _size(group: Sequence[Seen]) -> Size:
    """The finding's own effect, from equal inputs, over all its modules."""
    added = [one.module.local for one in group if one.module.local is not None]
    unexplained = sum((side.unexplained or 0) for one in group for side in (one.module.train, one.module.infer))
    if not added:
        return Size(None, None, unexplained=unexplained)
    ulps = [one.ulp_max for one in added if one.ulp_max is not None]
    return Size(
        sum(one.unequal for one in added), sum(one.of for one in added), max(ulps, default=None),
        sum(one.smaller for one in added), sum(one.larger for one in added), unexplained,
    )  # fmt: skip


def _with_chain(made: Finding, group: Sequence[Seen], found: Sequence[Seen]) -> Finding:
    """The place of the finding's first boundary through all layers: what it adds there, and what came in."""
    place = place_of(made.boundary)
    own = {one.module.module for one in group}
    links = []
    for one in found:
        layer = layer_of(one.result.boundary)
        if layer is not None and place_of(one.result.boundary) == place:
            links.append(_link(layer, one, mine=one.module.module in own))
    return _replace(made, chain=links)


def _link(layer: int, one: Seen, *, mine: bool) -> ChainLink:
    if one.module.local is None:
        return ChainLink(layer, None if mine or one.module.verdict != "same" else 0.0, None if mine else _carried(one))
    return ChainLink(layer, one.module.local.rel_l2 if mine else 0.0, one.module.local.propagated)


def _carried(one: Seen) -> float | None:
    return 0.0 if one.result.status == "EXACT" else one.result.rel_l2


def _replace(made: Finding, **fields: object) -> Finding:
    return msgspec.structs.replace(made, **fields)
