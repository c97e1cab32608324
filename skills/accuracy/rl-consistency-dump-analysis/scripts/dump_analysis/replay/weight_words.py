"""What kind of difference two weights have, in sentences."""

from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_order import Order

from dump_analysis.artefacts.common import Worded
from dump_analysis.wording import word

_MOST_RUNS = 64  # listed


def told(name: str, how: Difference) -> list[Worded]:
    """The sentence of a weight's kind."""
    facts = how.facts
    if "infer" in facts:
        return [word("weight_nonfinite", weight=name, train=facts["train"], infer=facts["infer"])]
    if "zeros" in facts:
        return [word("weight_zeros", weight=name, side=facts["zeros"], other=_other(facts["zeros"]))]
    if how.kind == "one_added":
        return [word("weight_one_added", weight=name, side=facts["side"], other=_other(facts["side"]))]
    if how.kind == "rounded":
        kind = "weight_cut_off" if facts["towards_zero"] else "weight_rounded"
        return [word(kind, weight=name, side=facts["side"], other=_other(facts["side"]), format=facts["format"])]
    if how.kind == "swapped":
        axis = word("weight_rows") if facts["axis"] == "rows" else word("weight_columns")
        return [word("weight_swapped", weight=name, axis=axis, order=_order(facts["order"]), moved=facts["moved"])]
    if how.kind == "one_ulp":
        return [word("weight_one_ulp", weight=name, format=facts["format"], unequal=how.unequal, of=how.of,
                     smaller=facts["smaller"], larger=facts["larger"])]  # fmt: skip
    if how.kind == "scaled":
        return [_scaled(name, how)]
    if how.kind == "quantised":
        block = _block(*facts["block"])
        return [word("weight_quantised", weight=name, side=facts["side"], other=_other(facts["side"]), levels=facts["levels"], block=block)]
    if how.kind == "partial":
        return [_partial(name, how)]
    kind = "weight_small_update" if how.kind == "small_update" else "weight_different"
    return [word(kind, weight=name, rel_l2=facts["rel_l2"], cosine=facts["cosine"], unequal=how.unequal, of=how.of)]


def _scaled(name: str, how: Difference) -> Worded:
    facts = how.facts
    if facts["by"] == "whole":
        return word("weight_scaled", weight=name, low=facts["low"], high=facts["high"])
    each = word("weight_each_row") if facts["by"] == "row" else word("weight_each_column")
    runs, of = _runs(how), len(how.keys[0])
    return word("weight_scaled_each", weight=name, each=each, low=facts["low"], high=facts["high"], runs=runs, of=of)


def _partial(name: str, how: Difference) -> Worded:
    rows = word("weight_rows") if len(how.keys[0]) < how.of else word("weight_elements")
    way = word("weight_way_small") if how.within == "small_update" else word("weight_way_different")
    count, of = sum(stop - start for start, stop in how.rows), len(how.keys[0])
    return word("weight_partial", weight=name, rows=rows, runs=_runs(how), count=count, of=of, rel_l2=how.facts["rel_l2"], way=way)


def _other(side: str) -> str:
    return "infer" if side == "train" else "train"


def _runs(how: Difference) -> list[str]:
    """The first stretches of rows that differ."""
    return [f"{start}–{stop - 1}" if stop - start > 1 else str(start) for start, stop in how.rows[:_MOST_RUNS]]


def _order(order: Order) -> Worded:
    if order.kind == "halves":
        return word("order_halves")
    if order.kind == "reversed":
        return word("order_reversed")
    if order.kind == "blocks":
        return word("order_blocks", block=order.block) if order.block > 1 else word("order_any")
    kind = "order_interleaved" if order.kind == "interleaved" else "order_deinterleaved"
    return word(kind, block=order.block, parts=order.parts, within=order.within)


def _block(high: int | None, wide: int | None) -> Worded:
    if wide is None:
        return word("block_row") if high == 1 else word("block_whole")
    return word("block_of_row", wide=wide) if high == 1 else word("block_of_both", high=high, wide=wide)
