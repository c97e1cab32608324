"""The rotary embedding: one meaning under transformers' nested keys and Megatron's scattered ones.

transformers 5 holds it in ``rope_parameters``, 4 in ``rope_theta`` and ``rope_scaling``. Megatron-core 0.16.1 builds YaRN only where
``position_embedding_type`` (with latent attention: ``rope_type``) says so, and reads ``yarn_*`` by getattr only then; Llama-3's scaling is
``rope_scaling`` with constants in code; the linear one is ``seq_len_interpolation_factor``.
"""

import math
from typing import Any, Callable, Dict, Optional, Tuple

from .configs import MEGATRON, Config
from .models import implied, model_type
from .readings import DEFAULT, NOWHERE, NULL, SET, UNSTATED, Reading, as_float32, default, first, keys_of, of_value, value_of

_NESTS = ("rope_parameters.", "rope_parameters.full_attention.", "rope_scaling.")
_TYPES = tuple(nest + name for nest in _NESTS for name in ("rope_type", "type"))
_PLAIN = ("default", "mrope", "rope", "none")
_LLAMA3 = {"low_freq": 1.0, "high_freq": 4.0, "orig_max": 8192}  # RotaryEmbedding._apply_scaling of megatron-core 0.16.1
_IN_CODE = "a constant in megatron-core's rotary code (0.16.1): no field holds it"
_LARGEST = 1e9
_BETAS = {"beta_fast": 32, "beta_slow": 1}  # where a configuration has none: _compute_yarn_parameters of transformers


def is_mla(config: Config) -> bool:
    """Whether attention is latent (MLA); a part of Megatron's fields may hold its numbers without the switch."""
    if config.dialect != MEGATRON:
        return bool(value_of(config, "kv_lora_rank"))
    if config.found("multi_latent_attention"):
        return bool(value_of(config, "multi_latent_attention"))
    return value_of(config, "kv_lora_rank", "qk_pos_emb_head_dim", "rotary_scaling_factor") is not None


def _asked(config: Config) -> Tuple[str, ...]:
    """The key of the rope's type, and the type."""
    place = first(config, _TYPES)
    return (place[0], str(place[1]).lower()) if place and place[1] is not None else ()


def is_yarn(config: Config) -> bool:
    """Whether this side builds YaRN."""
    return pos_embedding(config).meaning == "yarn"


def pos_embedding(config: Config) -> Reading:
    """rope, yarn, mrope, or what else Megatron knows."""
    if config.dialect == MEGATRON:
        place = first(config, ("rope_type",) if is_mla(config) else ("position_embedding_type",))
        if place:
            return of_value(place[0], place[1], str(place[1]).lower().rpartition(".")[2])
        return default("yarn", "MLATransformerConfig's own default") if is_mla(config) else NOWHERE
    asked = _asked(config)
    sections = first(config, tuple(nest + "mrope_section" for nest in _NESTS))
    plain = "mrope" if sections and sections[1] is not None else "rope"
    if asked:
        return of_value(asked[0], asked[1], "yarn" if asked[1] == "yarn" else plain)
    for name in ("rope_scaling", "rope_parameters"):
        if config.found(name):
            return of_value(config.found(name)[0][0], None, plain, "null: plain rope")
    return default(plain) if rope_theta(config).stated else NOWHERE


def rope_type(config: Config) -> Reading:
    """How plain rope is scaled: default, linear, llama3, dynamic, longrope. YaRN is a position embedding of its own."""
    if is_yarn(config):
        return default("default", "YaRN")
    if config.dialect == MEGATRON:
        scaled, divisor = first(config, ("rope_scaling",)), first(config, ("seq_len_interpolation_factor",))
        if scaled and scaled[1]:
            return of_value(scaled[0], scaled[1], "llama3")
        if divisor:
            return of_value(divisor[0], divisor[1], "default" if divisor[1] in (None, 1) else "linear")
        return of_value(scaled[0], scaled[1], "default") if scaled else NOWHERE
    asked = _asked(config)
    if asked:
        return of_value(asked[0], asked[1], "default" if asked[1] in _PLAIN else asked[1])
    seen = pos_embedding(config)
    return seen._replace(meaning="default") if seen.stated else NOWHERE


def rope_theta(config: Config) -> Reading:
    if config.dialect == MEGATRON:
        names: Tuple[str, ...] = ("rotary_base", "rope_theta")
    else:
        names = tuple(nest + "rope_theta" for nest in _NESTS) + ("rope_theta", "rotary_emb_base", "rotary_base")
    place = first(config, names)
    return of_value(place[0], place[1], place[1] if place[1] is not None else UNSTATED) if place else NOWHERE


def _local_theta(config: Config) -> Reading:
    """The base of sliding layers where they have one of their own (Gemma 3)."""
    place = first(config, ("rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq", "rotary_base_local"))
    return of_value(place[0], place[1], place[1]) if place and place[1] is not None else NOWHERE


def rope_factor(config: Config) -> Reading:
    """By how much positions are stretched; 1 where they are not."""
    if config.dialect != MEGATRON:
        place = first(config, tuple(nest + "factor" for nest in _NESTS))
        return of_value(place[0], place[1], place[1]) if place and place[1] is not None else default(1.0)
    for name in ("rotary_scaling_factor",) if is_mla(config) else ("yarn_rotary_scaling_factor",):
        place = first(config, (name,))
        if place and place[1] is not None:
            return of_value(place[0], place[1], place[1])
    scaled = first(config, ("rope_scaling_factor",))
    if value_of(config, "rope_scaling") and scaled:
        return of_value(scaled[0], scaled[1], scaled[1])
    place = first(config, ("seq_len_interpolation_factor",))
    return of_value(place[0], place[1], 1.0 if place[1] is None else place[1]) if place else NOWHERE


def _original(config: Config) -> Reading:
    """The length that the model was trained for before positions were stretched."""
    if config.dialect == MEGATRON:
        if rope_type(config).meaning == "llama3":
            return default(_LLAMA3["orig_max"], _IN_CODE)
        place = first(config, ("original_max_position_embeddings",) if is_mla(config) else ("yarn_original_max_position_embeddings",))
        return of_value(place[0], place[1], place[1]) if place and place[1] is not None else NOWHERE
    place = first(config, tuple(nest + "original_max_position_embeddings" for nest in _NESTS))
    if place and place[1] is not None:
        return of_value(place[0], place[1], place[1])
    if not is_yarn(config) and rope_type(config).meaning not in ("llama3", "longrope"):
        return NOWHERE
    longest = first(config, ("max_position_embeddings",))
    return Reading((longest[0],), longest[1], DEFAULT, longest[1], "not given: the longest length stands in") if longest else NOWHERE


def _llama3(name: str) -> Callable[[Config], Reading]:
    def read(config: Config) -> Reading:
        if config.dialect == MEGATRON:
            return default(_LLAMA3[name], _IN_CODE) if rope_type(config).meaning == "llama3" else NOWHERE
        place = first(config, tuple(nest + name + "_factor" for nest in _NESTS))
        return of_value(place[0], place[1], place[1]) if place else NOWHERE

    return read


def _yarn_number(name: str, missing: Any = UNSTATED) -> Callable[[Config], Reading]:
    """A number of YaRN that both sides may leave out."""

    def read(config: Config) -> Reading:
        names = (name,) if is_mla(config) else ("yarn_" + name,)
        place = first(config, names if config.dialect == MEGATRON else tuple(nest + name for nest in _NESTS))
        if place and place[1] is not None:
            return of_value(place[0], place[1], place[1])
        return Reading((place[0],), None, NULL, missing) if place else (default(missing) if missing is not UNSTATED else NOWHERE)

    return read


def _truncate(config: Config) -> Reading:
    """Whether YaRN's correction range is rounded to whole numbers."""
    name = "yarn_correction_range_round_to_int"
    place = first(config, (name,) if config.dialect == MEGATRON else tuple(nest + "truncate" for nest in _NESTS))
    return of_value(place[0], place[1], place[1] is not False) if place else default(True)


def mscale(factor: float, weight: float) -> float:
    """YaRN's magnitude factor, 0.1·weight·ln(factor) + 1 beyond factor 1 (arXiv 2309.00071, DeepSeek's yarn_get_mscale)."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _number(config: Config, name: str) -> Optional[float]:
    value = YARN[name](config).meaning
    return float(value) if _is_factor(value) else None


def _is_factor(value: Any) -> bool:
    """Whether a value is a number that a scale could be made of."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST


def softmax_factors(config: Config) -> Tuple[float, ...]:
    """What YaRN multiplies the attention logits by: one number, or what each release of the same code would take.

    DeepSeek's code in transformers squares mscale(factor, mscale_all_dim). Megatron-core's latent attention took ``mscale`` in its place
    until Megatron-LM#1429 was mended, so where its two fields differ the configuration alone does not tell.
    """
    factor = rope_factor(config).meaning
    if not is_yarn(config) or not _is_factor(factor):
        return (1.0,)
    whole = _number(config, "rope_mscale_all_dim")
    if config.dialect != MEGATRON:
        return (as_float32(mscale(factor, whole) ** 2) if whole else 1.0,)
    if not is_mla(config):
        return (1.0,)
    part = _number(config, "rope_mscale")
    return tuple(sorted({as_float32(mscale(factor, weight or 0.0) ** 2) for weight in (part, whole)}))


def _softmax_factor(config: Config) -> Reading:
    if not is_yarn(config):
        return default(1.0)
    factors = softmax_factors(config)
    keys = tuple(key for name in ("rope_factor", "rope_mscale", "rope_mscale_all_dim") for key in YARN[name](config).keys)
    if len(factors) == 1:
        return Reading(keys, factors[0], SET if keys else DEFAULT, factors[0], "computed: YaRN's factor on the attention logits")
    note = "computed: releases differ in which of mscale and mscale_all_dim they take (Megatron-LM#1429): look at the installed code"
    return Reading(keys, list(factors), SET, factors, note)


def _cos_sin_factor(config: Config) -> Reading:
    """What YaRN multiplies cos and sin by: its own attention_factor, else mscale over mscale_all_dim where both are given."""
    factor = rope_factor(config).meaning
    if not is_yarn(config) or not _is_factor(factor):
        return default(1.0)
    keys = tuple(key for name in ("rope_factor", "rope_mscale", "rope_mscale_all_dim") for key in YARN[name](config).keys)
    given = first(config, tuple(nest + "attention_factor" for nest in _NESTS))
    if given and given[1] is not None:
        return of_value(given[0], given[1], as_float32(given[1]) if _is_factor(given[1]) else given[1])
    part, whole = _number(config, "rope_mscale"), _number(config, "rope_mscale_all_dim")
    both = part is not None and whole is not None if config.dialect == MEGATRON else bool(part and whole)
    value = as_float32(mscale(factor, part or 0.0) / mscale(factor, whole or 0.0) if both else mscale(factor, 1.0))
    return Reading(keys, value, SET, value, "computed: YaRN's factor on cos and sin")


def _interleaved(config: Config) -> Reading:
    """Whether neighbouring channels are rotated together, instead of the two halves."""
    if is_mla(config) and config.dialect == MEGATRON:
        value = value_of(config, "rotary_interleaved")
        return Reading(keys_of(config, "rotary_interleaved"), value, DEFAULT, True, "latent attention rotates neighbours by itself")
    place = first(config, ("rotary_interleaved", "rope_interleave"))
    if place:
        return of_value(place[0], place[1], bool(place[1]))
    other = first(config, ("is_neox_style",))
    if other:
        return of_value(other[0], other[1], not other[1])
    known, value = implied(config, "rotary_interleaved")
    return default(value, "implied by model_type %s" % model_type(config)) if known else NOWHERE


YARN: Dict[str, Callable[[Config], Reading]] = {
    "rope_factor": rope_factor,
    "rope_mscale": _yarn_number("mscale"),
    "rope_mscale_all_dim": _yarn_number("mscale_all_dim"),
}

COMPUTED: Dict[str, Callable[[Config], Reading]] = {
    "pos_embedding": pos_embedding,
    "rope_type": rope_type,
    "rope_theta": rope_theta,
    "rope_local_theta": _local_theta,
    "rope_orig_max": _original,
    "rope_low_freq": _llama3("low_freq"),
    "rope_high_freq": _llama3("high_freq"),
    "rope_truncate": _truncate,
    "rope_softmax_factor": _softmax_factor,
    "rope_cos_sin_factor": _cos_sin_factor,
    "rotary_interleaved": _interleaved,
    **{"rope_" + name: _yarn_number(name, missing) for name, missing in _BETAS.items()},
    **YARN,
}
