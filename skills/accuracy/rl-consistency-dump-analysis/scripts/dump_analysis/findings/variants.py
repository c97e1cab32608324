"""The variants of replay in a practitioner's words: where each rounds."""

import re

from dump_analysis.artefacts.common import Worded
from dump_analysis.wording import word

_WORDED = {
    "plain": "variant_plain",
    "bias_in_acc": "variant_bias_in_acc",
    "bias_after_cast": "variant_bias_after_cast",
    "cast_first": "variant_cast_first",
    "cast_before_weight": "variant_cast_before_weight",
    "cast_after_weight": "variant_cast_after_weight",
    "rstd_rounded": "variant_rstd_rounded",
    "all_rounded": "variant_all_rounded",
    "all_rounded_and_root": "variant_root_rounded",
    "1+w": "variant_less_one",
    "add_rounded": "variant_add_rounded",
    "add_unrounded": "variant_add_unrounded",
    "act_rounded": "variant_act_rounded",
    "act_float32": "variant_act_float32",
    "float32_inside": "variant_float32_inside",
    "stepwise": "variant_stepwise",
    "rounded_once": "variant_rounded_once",
    "stepwise_ends_first": "variant_ends_first",
    "stepwise_branches_first": "variant_branches_first",
    "product_rounded": "variant_product_rounded",
    "product_float32": "variant_product_float32",
    "scaled_stepwise": "variant_scaled_stepwise",
    "scaled_once": "variant_scaled_once",
    "cap_stepwise": "variant_cap_stepwise",
    "cap_once": "variant_cap_once",
    "rotated_stepwise": "variant_rotated_stepwise",
    "rotated_once": "variant_rotated_once",
    "table_float32": "variant_table_float32",
    "interleaved": "variant_interleaved",
    "eager": "variant_eager",
    "eager_scaled_inside": "variant_eager_scaled_inside",
    "flash": "variant_flash",
    "flash_fast_exp": "variant_flash_fast_exp",
    "float32": "variant_float32",
    "probabilities_rounded": "variant_probabilities_rounded",
    "softmax_normalised": "variant_softmax_normalised",
    "softmax_of_all": "variant_softmax_of_all",
    "sigmoid_normalised": "variant_sigmoid_normalised",
    "sigmoid": "variant_sigmoid",
    "experts_rounded": "variant_experts_rounded",
    "experts_float32": "variant_experts_float32",
    "output_float32": "variant_output_float32",
    "shares_rounded": "variant_shares_rounded",
    "products_rounded": "variant_products_rounded",
    "weighted_inside": "variant_weighted_inside",
    "shared_added": "variant_shared_added",
    "shared_added_once": "variant_shared_added_once",
    "summed_once": "variant_summed_once",
    "summed_stepwise": "variant_summed_stepwise",
    "logits_float32": "variant_logits_float32",
    "logits_rounded": "variant_logits_rounded",
    "greatest_logits": "variant_greatest_logits",
}
_FLASH = re.compile(r"flash_([0-9]+)")
_PARTIALS = re.compile(r"partials_([0-9]+)_rounded")
_OF_A_FORMAT = (
    (re.compile(r"cast_to_([a-z0-9]+)_before_weight"), "variant_cast_to"),
    (re.compile(r"scaled_([a-z0-9]+)"), "variant_scaled"),
)


def in_words(variant: str) -> Worded | str:
    """A variant's parts in words, joined; a part that has none stays as it is named.

    A variant is named by its parts with "+" between them, the format last after a space where the two sides' differ.
    """
    name, _, grid = variant.partition(" ")
    parts: list[Worded | str] = [_part(part) for part in name.split("+")]
    if grid:
        parts.append(word("variant_stored", format=grid))
    return parts[0] if len(parts) == 1 else word("variant_parts", parts=parts)


def _part(name: str) -> Worded | str:
    partials = _PARTIALS.fullmatch(name)
    if partials:
        return word("variant_partials", n=int(partials.group(1)))
    for pattern, kind in _OF_A_FORMAT:
        if found := pattern.fullmatch(name):
            return word(kind, format=found.group(1))
    flash = _FLASH.fullmatch(name)
    if flash:
        return word("variant_flash_blocks", n=int(flash.group(1)))
    return word(_WORDED[name]) if name in _WORDED else name
