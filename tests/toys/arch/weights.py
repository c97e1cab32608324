"""One set of weights for both sides, bfloat16, by the names of boundaries; and the prompt."""

import torch
from torch import Tensor

from .shapes import FAULTY_LAYER, HEADS, HIDDEN, LAYERS, LOW_KEY, LOW_QUERY, MIDDLE, SHARED, TOKENS, WIDTH, WORDS, Architecture, Fault


def weights(architecture: Architecture, fault: Fault | None) -> dict[str, Tensor]:
    """Every weight of a side, ``….weight`` [out, in] and ``….bias``."""
    random = torch.Generator().manual_seed(7)

    def draw(*shape: int, deviation: float) -> Tensor:
        return (torch.randn(*shape, generator=random) * deviation).to(torch.bfloat16)

    made = {"embedding.weight": draw(WORDS, HIDDEN, deviation=1.0 / architecture.embedding_multiplier)}
    if not architecture.rotated:
        made["positions.weight"] = draw(2 * TOKENS, HIDDEN, deviation=0.5)
    for layer in range(LAYERS):
        for name, (rows, columns) in _matrices(architecture).items():
            made[f"layers.{layer}.{name}.weight"] = draw(rows, columns, deviation=columns**-0.5)
            if architecture.bias:
                made[f"layers.{layer}.{name}.bias"] = draw(rows, deviation=0.2)
        if architecture.experts:
            count = architecture.experts
            made[f"layers.{layer}.router.weight"] = draw(count, HIDDEN, deviation=HIDDEN**-0.5)
            made[f"layers.{layer}.experts.gate_up"] = draw(count, 2 * MIDDLE, HIDDEN, deviation=HIDDEN**-0.5)
            made[f"layers.{layer}.experts.down"] = draw(count, HIDDEN, MIDDLE, deviation=MIDDLE**-0.5)
        for name, size in _norms(architecture).items():
            made.update({f"layers.{layer}.{name}.{kind}": value for kind, value in _gain(architecture, draw, size).items()})
    made.update({f"final_norm.{kind}": value for kind, value in _gain(architecture, draw, HIDDEN).items()})
    made["lm_head.weight"] = made["embedding.weight"] if architecture.tied else draw(WORDS, HIDDEN, deviation=HIDDEN**-0.5)
    if fault in ("kv_swapped", "all_kv_swapped"):
        for layer in range(LAYERS) if fault == "all_kv_swapped" else (FAULTY_LAYER,):
            _exchange(architecture, made, f"layers.{layer}.")
    return made


def _matrices(architecture: Architecture) -> dict[str, tuple[int, int]]:
    own = HEADS * WIDTH
    made = {"q": (own, HIDDEN), "k": (architecture.groups * WIDTH, HIDDEN), "v": (architecture.groups * WIDTH, HIDDEN)}
    if architecture.latent:
        made = {"q_a": (LOW_QUERY, HIDDEN), "q_b": (HEADS * (WIDTH + SHARED), LOW_QUERY)}
        made |= {"kv_a": (LOW_KEY + SHARED, HIDDEN), "kv_b": (2 * own, LOW_KEY)}
    made |= {"o_proj": (HIDDEN, own)} | ({"gate": (MIDDLE, HIDDEN)} if architecture.gated else {})
    return made | {"up": (MIDDLE, HIDDEN), "down": (HIDDEN, MIDDLE)}


def _norms(architecture: Architecture) -> dict[str, int]:
    made = {} if architecture.norms == "end" else {"input_norm": HIDDEN, "post_norm": HIDDEN}
    if architecture.parallel == "one_norm":
        del made["post_norm"]
    made |= {} if architecture.norms == "start" else {"attn_post_norm": HIDDEN, "mlp_post_norm": HIDDEN}
    made |= {"q_norm": WIDTH, "k_norm": WIDTH} if architecture.qk_norm else {}
    return made | ({"q_a_norm": LOW_QUERY, "kv_a_norm": LOW_KEY} if architecture.latent else {})


def _gain(architecture: Architecture, draw, size: int) -> dict[str, Tensor]:  # type: ignore[no-untyped-def]
    gain = {"weight": 1 + draw(size, deviation=0.1)}
    return gain | {"bias": draw(size, deviation=0.1)} if architecture.layer_norm else gain


def _exchange(architecture: Architecture, made: dict[str, Tensor], stem: str) -> None:
    """The rows of k and of v, as a loader that takes one for the other."""
    if architecture.latent:
        heads = made[f"{stem}kv_b.weight"].view(HEADS, 2, WIDTH, LOW_KEY)
        made[f"{stem}kv_b.weight"] = heads.flip(1).reshape(2 * HEADS * WIDTH, LOW_KEY)
        return
    for kind in ("weight", "bias") if architecture.bias else ("weight",):
        one, other = f"{stem}k.{kind}", f"{stem}v.{kind}"
        made[one], made[other] = made[other], made[one]


def prompt() -> tuple[Tensor, Tensor]:
    """Token ids and positions, int64 [tokens]."""
    return torch.randint(1, WORDS, (TOKENS,), generator=torch.Generator().manual_seed(8)), torch.arange(TOKENS)
