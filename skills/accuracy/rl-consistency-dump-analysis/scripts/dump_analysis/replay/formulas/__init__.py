"""The operators that can be recomputed, one a file; a new one is its file and one line here."""

from dump_analysis.replay.formulas import (
    activation,
    attention,
    embedding,
    expert_choice,
    gated_activation,
    layer_norm,
    linear,
    log_prob,
    log_softmax,
    norm_linear,
    residual_add,
    rms_norm,
    rotary,
    rotary_attention,
    rotary_table,
    routed_experts,
    router_shares,
    scaled_linear,
    soft_capped_linear,
)
from dump_analysis.replay.formulas.kinds import Emulated, Formula, Given, Variant

__all__ = ["FORMULAS", "Emulated", "Formula", "Given", "Variant"]

_MODULES = (
    activation,
    attention,
    embedding,
    expert_choice,
    gated_activation,
    layer_norm,
    linear,
    log_prob,
    log_softmax,
    norm_linear,
    residual_add,
    rms_norm,
    rotary,
    rotary_attention,
    rotary_table,
    routed_experts,
    router_shares,
    scaled_linear,
    soft_capped_linear,
)
FORMULAS: dict[str, Formula] = {module.FORMULA.operator: module.FORMULA for module in _MODULES} | {
    formula.operator: formula for formula in (rotary_table.ANGLES, routed_experts.AS_RECORDED)
}
