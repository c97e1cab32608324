"""Mixture of experts: which layers have it, how wide it is, and what the router computes, by what pairs of fields mean together."""

from typing import Any, Callable, Dict

from .attention import count, ffn_dim, layers
from .configs import MEGATRON, Config
from .models import implied, model_type
from .readings import DEFAULT, NOWHERE, NULL, SET, UNSTATED, Reading, default, first, keys_of, of_value, together, value_of

_WIDTH = ("moe_intermediate_size", "moe_ffn_hidden_size")
_PATTERN = ("mlp_layer_types", "first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step", "mlp_only_layers")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "num_moe_experts")


def _width(config: Config) -> Reading:
    """Rows of an expert's gate; where it is not given, a dense layer's."""
    place = first(config, _WIDTH)
    if place and place[1] is not None:
        return of_value(place[0], place[1], place[1])
    dense = ffn_dim(config)
    if not dense.stated:
        return NOWHERE
    note = "not given: as a dense layer"
    return Reading((place[0],) if place else (), None, NULL if place else DEFAULT, dense.meaning, note)


def _moe_layers(config: Config) -> Reading:
    """Which layers have experts, as a list of 0 and 1."""
    number = layers(config)
    if not number or value_of(config, *_EXPERTS) is None:
        return NOWHERE
    keys = keys_of(config, *(("moe_layer_freq",) if config.dialect == MEGATRON else _PATTERN))
    if not keys:
        return default([1] * number, "no field says which layers: all") if config.dialect != MEGATRON else NOWHERE
    value = together(config, *(config.relative(key) for key in keys))
    pattern = _pattern(config, number)
    dense = [layer for layer, on in enumerate(pattern) if not on] if pattern is not UNSTATED else None
    note = None if dense is None else "dense layers: %s" % (", ".join(map(str, dense)) or "none")
    return Reading(keys, value, SET, pattern, note)


def _pattern(config: Config, number: int) -> Any:
    """transformers 5 lists kinds. DeepSeek: from first_k_dense_replace on, every moe_layer_freq-th.

    Qwen: every decoder_sparse_step-th but mlp_only_layers.
    """
    frequency = value_of(config, "moe_layer_freq")
    kinds = value_of(config, "mlp_layer_types")
    if isinstance(kinds, list):
        return [int(kind == "sparse") for kind in kinds]
    if isinstance(frequency, list):
        return [int(bool(one)) for one in frequency]
    dense, step, alone = (value_of(config, name) for name in ("first_k_dense_replace", "decoder_sparse_step", "mlp_only_layers"))
    if any(not isinstance(one or 1, int) or one == 0 for one in (frequency, step)) or not isinstance(dense or 0, int):
        return UNSTATED
    if not isinstance(alone or [], list):
        return UNSTATED
    every, start, step, alone = frequency or 1, dense or 0, step or 1, alone or []
    on = [layer >= start and layer % every == 0 and (layer + 1) % step == 0 and layer not in alone for layer in range(number)]
    return [int(one) for one in on]


def _shared_width(config: Config) -> Reading:
    """Rows of the shared experts' gate together: Megatron and Qwen state the product, DeepSeek the number of experts."""
    place = first(config, ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"))
    if place:
        return of_value(place[0], place[1], place[1] or 0)
    number = first(config, ("n_shared_experts", "num_shared_experts"))
    if not number:
        return default(0) if config.dialect != MEGATRON else NOWHERE
    width, experts = count(config, *_WIDTH), count(config, "n_shared_experts", "num_shared_experts")
    whole: Any = 0 if not number[1] else (experts * width if experts and width else UNSTATED)
    return of_value(number[0], number[1], whole, "times the width of an expert: %s" % whole if number[1] else None)


def _shared(config: Config) -> Reading:
    width = _shared_width(config)
    return width._replace(meaning=bool(width.meaning), note=None) if width.stated else width


def _weights(config: Config) -> Reading:
    """Whether the chosen experts' weights sum to one.

    softmax over all, top-k, divided by their sum equals softmax over the chosen: ``norm_topk_prob`` true is Megatron's soft-max after
    top-k. Megatron's soft-max before top-k keeps the shares of all experts; its sigmoid scores are always divided by their sum.
    """
    score = value_of(config, "scoring_func", "moe_router_score_function")
    if config.dialect == MEGATRON:
        place = first(config, ("moe_router_pre_softmax", "norm_topk_prob"))
        if score == "sigmoid":
            keys = keys_of(config, "moe_router_score_function", "moe_router_pre_softmax")
            return Reading(keys, score, SET, True, "sigmoid scores of the chosen experts are divided by their sum")
        if not place:
            return NOWHERE
        if place[0].endswith("norm_topk_prob"):
            return of_value(place[0], place[1], bool(place[1]))
        before = "soft-max before top-k: weights keep the shares of all experts"
        return of_value(place[0], place[1], not place[1], before if place[1] else "soft-max after top-k: weights sum to one")
    place = first(config, ("norm_topk_prob",))
    if place:
        return of_value(place[0], place[1], bool(place[1]), "weights %s to sum to one" % ("divided" if place[1] else "not divided"))
    before_top_k = first(config, ("moe_router_pre_softmax",))
    if before_top_k:
        return of_value(before_top_k[0], before_top_k[1], not before_top_k[1])
    return _by_class(config, "router_norm_topk")


def _groups(*names: str) -> Callable[[Config], Reading]:
    """Groups of experts; one group is none."""

    def read(config: Config) -> Reading:
        place = first(config, names)
        if place:
            return of_value(place[0], place[1], None if place[1] == 1 else place[1])
        return default(None) if config.dialect != MEGATRON else NOWHERE

    return read


def _bias(config: Config) -> Reading:
    """Whether a bias of its own (no gradient) decides which experts are chosen."""
    place = first(config, ("moe_router_enable_expert_bias",))
    if place:
        return of_value(place[0], place[1], bool(place[1]))
    method = first(config, ("topk_method",))
    return of_value(method[0], method[1], method[1] == "noaux_tc") if method else _by_class(config, "router_bias")


def _balancing(config: Config) -> Reading:
    """Of the ways to balance, sinkhorn alone changes which experts a forward takes."""
    place = first(config, ("moe_router_load_balancing_type",))
    if place:
        kinds = place[1] if isinstance(place[1], list) else [place[1]]
        return of_value(place[0], place[1], "sinkhorn" in kinds, None if "sinkhorn" in kinds else "changes the loss, not the forward")
    return default(False) if config.dialect != MEGATRON else NOWHERE


def _by_class(config: Config, name: str) -> Reading:
    known, value = implied(config, name)
    return default(value, "implied by model_type %s" % model_type(config)) if known else NOWHERE


COMPUTED: Dict[str, Callable[[Config], Reading]] = {
    "moe_ffn": _width,
    "moe_layers": _moe_layers,
    "shared_experts": _shared,
    "shared_ffn": _shared_width,
    "router_norm_topk": _weights,
    "router_groups": _groups("n_group", "moe_router_num_groups"),
    "router_group_topk": _groups("topk_group", "moe_router_group_topk"),
    "router_bias": _bias,
    "router_lb": _balancing,
}
