"""What a difference of two weights is called, in words, and what tells its cause from others."""

from typing import Any, Dict, Tuple

from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_order import Order

from dump_collection.params.items import runs
from dump_collection.wording import word

_MOST_RUNS = 16  # listed
_CAUSE = ("side", "format", "levels", "order", "axis")  # what tells causes of one kind apart

Worded = Dict[str, Any]


def told(how: Difference) -> Worded:
    """The sentence of a difference; its numbers have six digits."""
    facts = how.facts
    if how.kind == "different" and "infer" in facts:
        return word("weight_nonfinite", train=facts["train"], infer=facts["infer"])
    if "zeros" in facts:
        return word("weight_zeros", side=facts["zeros"])
    if how.kind == "one_added":
        return word("weight_one_added", side=facts["side"])
    if how.kind == "rounded":
        return word("weight_cut_off" if facts["towards_zero"] else "weight_rounded", side=facts["side"], format=facts["format"])
    if how.kind == "swapped":
        return word("weight_swapped", axis=word("weight_" + facts["axis"]), order=_order(facts["order"]), moved=facts["moved"])
    if how.kind == "one_ulp":
        return word(
            "weight_one_ulp", unequal=how.unequal, of=how.of, format=facts["format"], smaller=facts["smaller"], larger=facts["larger"]
        )
    if how.kind == "scaled":
        return word("weight_scaled_" + facts["by"], low=_digits(facts["low"]), high=_digits(facts["high"]))
    if how.kind == "quantised":
        return word("weight_quantised", side=facts["side"], levels=facts["levels"], block=_block(*facts["block"]))
    sizes = {"unequal": how.unequal, "of": how.of, "rel_l2": _digits(facts["rel_l2"])}
    if how.kind == "partial":
        rows = [row for start, stop in how.rows[: 2 * _MOST_RUNS] for row in range(start, stop)]
        way = word("weight_way_" + how.within)
        shown = runs(rows)[:_MOST_RUNS] + (["…"] if len(how.rows) > _MOST_RUNS else [])
        unit = word("weight_rows" if len(how.keys[0]) < how.of else "weight_elements")
        return word("weight_partial", rows=shown, count=len(how.keys[0]), unit=unit, way=way, **sizes)
    return word("weight_" + how.kind, cosine=_digits(facts["cosine"]), **sizes)


def cause_of(kind: str, sentence: Worded) -> Tuple[str, ...]:
    """What weights of one cause have in common."""
    values = sentence["values"]
    return (kind, sentence["kind"]) + tuple(_text(values[key]) for key in _CAUSE if key in values)


def _text(value: Any) -> str:
    return str(value["text"]) if isinstance(value, dict) else str(value)


def _order(order: Order) -> Worded:
    if order.kind in ("interleaved", "deinterleaved"):
        return word("order_" + order.kind, block=order.block, parts=order.parts, within=order.within)
    if order.kind == "blocks":
        return word("order_blocks", block=order.block) if order.block > 1 else word("order_any")
    return word("order_" + order.kind)


def _block(high: Any, wide: Any) -> Worded:
    if wide is None:
        return word("block_row") if high == 1 else word("block_whole")
    return word("block_of_both", high=high, wide=wide)


def _digits(number: float) -> float:
    return float("%.6g" % number)
