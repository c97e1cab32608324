"""What can be switched on either side, and where it must show.

A *fault* makes one side compute another function (or the same with other inputs or weights); a *rounding* variant computes the same
function and rounds elsewhere, as real kernels do; a *setting* is a property of a model that some faults need, and gives equal values
where both sides have it (``padded``, ``gain_less_one``: also where only one has it). A *sampling* switch changes what is made of
logits, and no model.

``put_in`` is the boundary whose value a switch is the first to change, ``seen`` the first boundary that both sides record and that
therefore differs: the rotation is recorded by the engine alone, so what is put in there is seen behind the attention. ``N`` stands
for the layer; a switch without it acts on the whole model.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Side = Literal["train", "infer"]
Kind = Literal["fault", "rounding", "setting", "sampling"]

LAYERS, DEEP_LAYERS = 3, 6
EPS, FAULTY_EPS = 1e-6, 1e-5
ROPE_BASE, FAULTY_ROPE_BASE = 10_000.0, 1_000_000.0
WINDOW = 8
PADDING = 4
TEMPERATURE = 0.7


class Switch(NamedTuple):
    """One thing that can be switched. ``seen`` "": at ``put_in``.

    ``against``: the setting that the other side has in a pair; ``weights``: those that then differ.
    """

    name: str
    kind: Kind
    put_in: str
    changes: str
    seen: str = ""
    against: str | None = None
    weights: tuple[str, ...] = ()

    def of_layer(self, layer: int) -> "Switch":
        """With the layer's number for N, and ``seen`` filled in."""
        put_in, seen, *weights = (name.replace(".N.", f".{layer}.") for name in (self.put_in, self.seen or self.put_in, *self.weights))
        return self._replace(put_in=put_in, seen=seen, weights=tuple(weights))


_CORE = "layers.0.attn_core.out"
_KV = ("layers.N.k.weight", "layers.N.k.bias", "layers.N.v.weight", "layers.N.v.bias")
_LIST = [
    Switch("eps", "fault", "layers.N.input_norm.out", "the input norm adds 1e-5 to the mean square, not 1e-6"),
    Switch("norm_gain_twice", "fault", "layers.N.input_norm.out", "the input norm adds 1 to a gain that already holds it"),
    Switch("missing_bias", "fault", "layers.N.q.out", "q, k and v are made without their biases"),
    Switch("kv_swapped", "fault", "layers.N.k.out", "rows of k and v were exchanged when weights were loaded", weights=_KV),
    Switch("rope_base", "fault", "layers.0.q_rope.out", "the rotary base is 1e6, not 1e4", seen=_CORE),
    Switch("angles_bf16", "fault", "layers.0.q_rope.out", "position * frequency is rounded to bfloat16", seen=_CORE),
    Switch("attention_scale", "fault", "layers.N.attn_core.out", "scores are divided by sqrt(2 D), not by sqrt(D)"),
    Switch("mask_off_by_one", "fault", "layers.N.attn_core.out", "a token sees the next one too"),
    Switch("window_off_by_one", "fault", "layers.N.attn_core.out", "a token sees 9 keys, not the window of 8", against="window"),
    # The side has padding, the other none; the mapping cuts its rows off, so 24 tokens are compared with 24.
    Switch("padding_left_in", "fault", "layers.N.attn_core.out", "four padding tokens before the prompt are attended to"),
    Switch("one_channel", "fault", "layers.N.o_proj.out", "channel 7 of o_proj's result is 1.02 times what it should be"),
    Switch("missing_residual", "fault", "layers.N.resid_attn", "what came into the layer is not added to its attention"),
    Switch("gate_up_order", "fault", "layers.N.act_mul.out", "the activation is put on up, not on gate"),
    Switch(
        "updated_weight", "fault", "layers.N.down.out", "every weight of down_proj moved by 2^-13, as by an optimizer's step",
        weights=("layers.N.down.weight",),
    ),
    Switch("one_token", "fault", "layers.N.down.out", "down_proj's result for token 11 is 1.02 times what it should be"),
    Switch("altered_token", "fault", "layers.N.q.out", "token 11 is multiplied by 1.02 between the input norm and q, k, v"),
    Switch("altered_channel", "fault", "layers.N.gate.out", "channel 7 is multiplied by 1.02 between post_norm and gate, up"),
    Switch("altered_stream", "fault", "layers.N.input_norm.out", "what comes into the layer is multiplied by 1.02 in token 11"),
    Switch("residual_row_lost", "fault", "layers.N.resid_attn", "what came into the layer is not added to its attention in token 11"),
    Switch("other_norm", "fault", "layers.N.gate.out", "gate and up read what the input norm returned, not post_norm"),
    Switch("residual_of_norm", "fault", "layers.N.resid_attn", "to the attention is added what the input norm returned"),
    Switch("positions_off_by_one", "fault", "positions", "positions count from 1"),
    Switch(
        "embedding_multiplier", "fault", "embedding.out", "embeddings are multiplied by sqrt(50), not by that in bfloat16",
        against="embedding_scaled",
    ),
    Switch("head_fp32", "fault", "logits", "logits are not rounded to bfloat16; the mapping casts the other side's to float32"),
    Switch("norm_cast_order", "rounding", "layers.N.input_norm.out", "the input norm multiplies by its gain before it rounds"),
    Switch("rope_stepwise", "rounding", "layers.0.q_rope.out", "the rotation's products are rounded before they are added", seen=_CORE),
    Switch("probs_rounded", "rounding", "layers.N.attn_core.out", "probabilities are rounded to bfloat16 before they meet v"),
    Switch("partial_sums", "rounding", "layers.N.o_proj.out", "o_proj and down_proj are two partial sums, each rounded, then added"),
    Switch("fused_add_unrounded", "rounding", "layers.N.post_norm.out", "the norm after attention normalises the sum before it is rounded"),
    Switch("fused_activation", "rounding", "layers.N.act_mul.out", "the activation is not rounded before it is multiplied by up"),
    Switch("norms_bfloat16", "rounding", "layers.N.input_norm.out", "norms of layer N round each step: squares, mean, root and product"),
    Switch("padded", "setting", "", "four padding tokens stand before the prompt and are masked; the mapping cuts their rows off"),
    Switch("window", "setting", "", "attention of layer N looks back over 8 keys"),
    Switch("embedding_scaled", "setting", "", "embeddings are multiplied by 7.0625, the square root of 50 in bfloat16"),
    Switch("blocked_attention", "setting", "", "attention of all layers walks blocks of 5 keys from the last, and keeps sums in float16"),
    Switch("cut_attention", "setting", "", "attention of all layers walks blocks of 5 keys from the last, and cuts each to 8 bits"),
    Switch("truncated_sums", "setting", "", "sums of products of all linears are cut to 14 bits after each addition"),
    Switch("blocked_sums", "setting", "", "sums of products of all linears are kept in float16, by blocks of 5 terms"),
    Switch("interleaved_rotation", "fault", "layers.0.q_rope.out", "neighbouring channels are turned, not both halves", seen=_CORE),
    Switch("attention_scaled", "fault", "layers.N.attn_core.out", "what attention returns is 1.4142 times what it should be"),
    Switch("gelu", "fault", "layers.N.act_mul.out", "the activation is gelu, approximated by tanh, not silu"),
    Switch("scale_up", "fault", "layers.N.attn_core.out", "scores are 1 % larger"),
    Switch("small_embeddings", "setting", "", "embeddings are 0.3125 times as large, which leaves a stream of RMS 0.02"),
    Switch("fused_in_groups", "setting", "", "the trainer holds q, k and v in one matrix, group by group: its heads of q, its k, its v"),
    Switch("fused_in_blocks", "setting", "", "the trainer's rows of q, then of k, then of v, were written where fused_in_groups reads"),
    Switch("deep", "setting", "", "there are 6 layers of sharp attention, and each adds more to the stream than the one before"),
    Switch("tied_head", "setting", "", "the head is the embedding"),
    Switch("pairs_apart", "setting", "", "rows of q and k stand in the order that interleaved_rotation reads rightly"),
    Switch("stream_scaled", "setting", "", "embeddings are multiplied by 7.0625 between their module and the first layer"),
    Switch("log_probs", "setting", "", "log-probabilities of the prompt are made of the logits of all tokens but the last"),
    Switch("gain_less_one", "setting", "", "gains of norms are stored less one, which is added when they are used"),
    Switch("bias_handed_on", "setting", "", "q, k and v hand their biases on with their outputs, and attention adds them"),
    Switch("divided_logits", "sampling", "logprobs", "logits are divided by 0.7 and stored before they are handed on", against="log_probs"),
    Switch("rolled_labels", "setting", "", "log-probabilities of all rows, of the token after each, which is no argument of their module"),
    Switch("all_words", "setting", "", "log-probabilities are those of every word", against="log_probs"),
    Switch("temperature", "sampling", "logprobs", "logits are divided by 0.7 before the softmax", against="log_probs"),
]  # fmt: skip
SWITCHES = {switch.name: switch for switch in _LIST}
FAULTS = [switch.name for switch in _LIST if switch.kind == "fault"]
ROUNDINGS = [switch.name for switch in _LIST if switch.kind == "rounding"]


@dataclass(frozen=True)
class Switches:
    """What is switched on one side: (name, layer) pairs. Nothing: the clean model."""

    on: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        unknown = [name for name, _ in self.on if name not in SWITCHES]
        if unknown:
            raise ValueError(f"no such switch: {', '.join(unknown)}; there are {', '.join(SWITCHES)}")
        if any(not 0 <= layer < self.layers for _, layer in self.on):
            raise ValueError(f"no such layer: {self.on}; there are {self.layers}, from 0")

    def has(self, name: str, layer: int | None = None) -> bool:
        """Whether it is on; ``layer`` None: on any layer."""
        return any(one == name and layer in (None, at) for one, at in self.on)

    @property
    def layers(self) -> int:
        """How many layers the model has."""
        return DEEP_LAYERS if self.has("deep") else LAYERS

    @property
    def padding(self) -> int:
        """How many padding tokens stand before the prompt."""
        return PADDING if self.has("padded") or self.has("padding_left_in") else 0


CLEAN = Switches()


class Pair(NamedTuple):
    """What is switched on both sides."""

    train: Switches
    infer: Switches


def pair_with(name: str, side: Side, layer: int = 1) -> Pair:
    """One switch on one side, and on the other what it is to be seen against."""
    against = SWITCHES[name].against
    faulty, other = Switches(((name, layer),)), Switches(((against, layer),) if against else ())
    return Pair(faulty, other) if side == "train" else Pair(other, faulty)
