"""What an architecture is, the list of them, and the faults that one side may have."""

from dataclasses import dataclass
from typing import Literal

HIDDEN, HEADS, WIDTH, MIDDLE, WORDS, LAYERS, TOKENS = 64, 4, 16, 96, 160, 3, 24
LOW_QUERY, LOW_KEY, SHARED = 40, 24, 8  # of latent attention: columns of q_a and of kv_a without and with rotation

Fault = Literal["kv_swapped", "all_kv_swapped", "missing_residual"]
FAULTS: list[Fault] = ["kv_swapped", "all_kv_swapped", "missing_residual"]
FAULTY_LAYER = 1


@dataclass(frozen=True)
class Architecture:
    """Options of the decoder.

    ``fused``: the trainer's q, k and v in one matrix, as three blocks or group by group; ``turned``: its matrices are [in, out].
    ``gate_fused``: its gate and up in one matrix.  ``rotated``: columns of a head that are rotated, 0: positions are learned.
    ``norms``: where a block has them.  ``parallel``: attention and MLP read the same stream, through ``norms`` of their own or
    through one.  ``adds_in_norm``: the engine's norms add the stream first and return it too.  ``padded``: rows of zeros behind the
    engine's embedding.  ``experts``: of a mixture, of which a token takes ``top_k`` with the shares that ``router`` computes, times
    ``routed_scale``; ``exchanged``: two of them stand for each other.
    """

    groups: int = 2
    latent: bool = False
    fused: Literal["", "blocks", "groups"] = ""
    turned: bool = False
    gate_fused: bool = False
    layer_norm: bool = False
    gated: bool = True
    activation: Literal["silu", "gelu"] = "silu"
    bias: bool = False
    rotated: int = WIDTH
    norms: Literal["start", "both", "end"] = "start"
    parallel: Literal["", "one_norm", "two_norms"] = ""
    qk_norm: bool = False
    embedding_multiplier: float = 1.0
    residual_multiplier: float = 1.0
    logits_divisor: float = 1.0
    tied: bool = False
    padded: int = 0
    adds_in_norm: bool = True
    experts: int = 0
    top_k: int = 2
    router: Literal["softmax_normalised", "softmax_of_all", "sigmoid_normalised"] = "softmax_normalised"
    routed_scale: float = 1.0
    exchanged: bool = False


def _plain(**options: object) -> Architecture:
    """Without gate, LayerNorm with biases everywhere, as GPT-2 and its kin."""
    made: dict[str, object] = {"layer_norm": True, "gated": False, "activation": "gelu", "bias": True, "adds_in_norm": False, **options}
    return Architecture(**made)  # type: ignore[arg-type]


ARCHITECTURES = {
    "grouped": Architecture(bias=True),
    "one_group": Architecture(groups=1, padded=32),
    "all_heads": Architecture(groups=HEADS, tied=True, padded=8),
    "grouped_interleaved": Architecture(fused="groups", gate_fused=True, qk_norm=True),
    "latent": Architecture(latent=True),
    "turned": _plain(groups=HEADS, fused="blocks", turned=True, rotated=0, tied=True),
    "parallel_one_norm": _plain(groups=1, fused="blocks", parallel="one_norm", rotated=WIDTH // 2, bias=False),
    "parallel_two_norms": _plain(groups=HEADS, fused="groups", parallel="two_norms", rotated=WIDTH // 4),
    "both_norms": Architecture(norms="both", activation="gelu", embedding_multiplier=8.0, tied=True, padded=32),
    "end_norms": Architecture(norms="end", groups=HEADS, qk_norm=True, adds_in_norm=False),
    "multipliers": Architecture(embedding_multiplier=12.0, residual_multiplier=0.22, logits_divisor=8.0, tied=True, adds_in_norm=False),
    "part_rotated": Architecture(rotated=WIDTH // 2, fused="blocks", gate_fused=True),
}

# Mixtures of experts; a pair of two of them is faulty, and its two sides tell what each computes.
MIXTURES = {
    "mixture": Architecture(experts=6),
    "mixture_of_three": Architecture(experts=6, top_k=3),
    "mixture_not_normalised": Architecture(experts=6, router="softmax_of_all"),
    "mixture_of_sigmoids": Architecture(experts=6, router="sigmoid_normalised"),
    "mixture_scaled": Architecture(experts=6, routed_scale=2.5),
    "mixture_scaled_twice": Architecture(experts=6, routed_scale=6.25),
    "mixture_exchanged": Architecture(experts=6, exchanged=True),
}
