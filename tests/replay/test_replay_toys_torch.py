"""Replay on the toys: every fault of an operator that is recomputed is found at its place, on its side, and nothing else is."""

import json
from pathlib import Path

import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from toys import mapping
from toys.pairs import Dumped, Toys
from toys.switches import FAULTS, LAYERS, ROUNDINGS, Side, Switches

SIDES: list[Side] = ["train", "infer"]
ATTENTION = [f"layers.{layer}.attn_core" for layer in range(LAYERS)]
# What is put in where replay looks, in layer 1: the modules that are no longer right, or whose weights differ.
FOUND = {
    "eps": ["layers.1.input_norm"],
    "norm_gain_twice": ["layers.1.input_norm"],
    "missing_bias": ["layers.1.q", "layers.1.k", "layers.1.v"],
    "kv_swapped": ["layers.1.k", "layers.1.v"],
    "one_channel": ["layers.1.o_proj"],
    "missing_residual": ["layers.1.resid_attn"],
    "gate_up_order": ["layers.1.act_mul"],
    "updated_weight": ["layers.1.down"],
    "one_token": ["layers.1.down"],
    "embedding_multiplier": ["embedding"],
    "altered_token": ["layers.1.q"],
    "altered_channel": ["layers.1.gate"],
    "altered_stream": ["layers.1.input_norm"],
    "residual_row_lost": ["layers.1.resid_attn"],
    "residual_of_norm": ["layers.1.resid_attn"],
    "other_norm": ["layers.1.gate"],
    "rope_base": ATTENTION,
    "angles_bf16": ATTENTION,
    "attention_scale": ["layers.1.attn_core"],
    "scale_up": ["layers.1.attn_core"],
    "mask_off_by_one": ["layers.1.attn_core"],
    "window_off_by_one": ["layers.1.attn_core"],
    "padding_left_in": ["layers.1.attn_core"],
    "interleaved_rotation": ATTENTION,
    "attention_scaled": ["layers.1.attn_core"],
    "gelu": ["layers.1.act_mul"],
}
ROUNDED = {
    "head_fp32": ["lm_head"],
    "norm_cast_order": ["layers.1.input_norm"],
    "partial_sums": ["layers.1.o_proj", "layers.1.down"],
    "fused_add_unrounded": ["layers.1.post_norm"],
    "fused_activation": ["layers.1.act_mul"],
    "rope_stepwise": ATTENTION,
    "probs_rounded": ["layers.1.attn_core"],
    "norms_bfloat16": ["layers.1.input_norm", "layers.1.post_norm"],
}
NOT_OF_A_MODULE = ["positions_off_by_one"]  # each side rotates by the positions that it was given
# The dumps hold no proof of who is right.
_OPEN = ("kv_swapped", "updated_weight", "embedding_multiplier", "rope_base", "window_off_by_one")
SIDE_OPEN = {(name, side) for name in _OPEN for side in SIDES}
SIDE_OPEN.add(("interleaved_rotation", "train"))  # the engine's table is not recorded, so that only the trainer's bears its side out


def replayed(dumped: Dumped, folder: Path) -> ReplayResults:
    """Stages 2 and 4 with the mapping that is written by hand."""
    (folder / "rows.json").write_text(json.dumps(mapping.rows(dumped.on)))
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    full, _ = pipeline.mapping_step(train, infer, folder / "rows.json")
    results, told = pipeline.replay_step(train, infer, full, "0" * 64, folder / pipeline.REPLAY, {}, quiet=True)
    assert told.errors == []
    return results


def of(results: ReplayResults, verdict: str) -> dict[str, ModuleReplay]:
    """The modules of one verdict."""
    return {module.module: module for module in results.modules if module.verdict == verdict}


def sides_named(module: ModuleReplay) -> set[str]:
    return {sentence.values["side"] for sentence in module.evidence if "side" in sentence.values}


def test_every_switch_is_sorted() -> None:
    """A new switch must be put where it belongs."""
    assert sorted([*FOUND, *ROUNDED, *NOT_OF_A_MODULE]) == sorted([*FAULTS, *ROUNDINGS])


def test_a_clean_pair_follows_on_both_sides(toys: Toys, tmp_path: Path) -> None:
    """A false alarm, a variant that is told apart from its equal, and a module that is left out without a word."""
    results = replayed(toys.both(), tmp_path)
    assert len(of(results, "same")) == len(results.modules) == 1 + 13 * LAYERS + 2
    for module in of(results, "same").values():
        for side in (module.train, module.infer):
            assert (side.unexplained, side.explained, side.basis, side.residual) == (0, 1.0, "variant", None)
            assert side.of > 0
            assert side.bit_equal is not None
            assert side.bit_equal > 0.995
    for counts in results.calibration.values():
        assert set(counts) == {"embedding", "rms_norm", "linear", "residual_add", "gated_activation", "rotary_attention"}
        assert not any(operator.unexplained for operator in counts.values())


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", FOUND)
def test_a_fault_is_found_at_its_place(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """Another place (what the fault leads to is no fault), a side that is not proven, or none where it is."""
    results = replayed(toys.pair(name, side), tmp_path)
    logic = of(results, "logic")
    # The engine's norm after attention adds: what is lost there is lost for the norm and for the stream.
    also = ["layers.1.post_norm"] if (name, side) == ("missing_residual", "infer") else []
    assert list(logic) == [*FOUND[name], *also]
    for module in logic.values():
        assert module.side == ("unknown" if (name, side) in SIDE_OPEN else side)
        if module.evidence[-1].kind != "replay_table_layout":  # that names the side that is right
            assert sides_named(module) == (set() if (name, side) in SIDE_OPEN else {side})
        assert bool(module.would_decide) == ((name, side) in SIDE_OPEN)
    assert list(of(results, "rounding")) == []
    assert list(of(results, "unknown")) == []


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ROUNDED)
def test_a_rounding_point_is_named(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """A rounding that is called a fault, or one that is not seen."""
    results = replayed(toys.pair(name, side), tmp_path)
    rounding = of(results, "rounding")
    assert list(rounding) == ROUNDED[name]
    for module in rounding.values():
        assert module.train.variant != module.infer.variant
        assert [sentence.kind for sentence in module.evidence] == ["replay_variants"]
    assert not of(results, "logic")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", NOT_OF_A_MODULE)
def test_positions_are_no_fault_of_attention(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """Positions that differ between the sides must not be pinned on the modules that follow them."""
    results = replayed(toys.pair(name, side), tmp_path)
    assert len(of(results, "same")) == len(results.modules)


MISTAKES = {"angles_bf16": "products_bfloat16", "mask_off_by_one": "mask_one_ahead", "padding_left_in": "others_seen"}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_attention_is_named(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    module = of(replayed(toys.pair(name, side), tmp_path), "logic")["layers.1.attn_core"]
    assert [said.kind for said in module.evidence] == ["replay_mistake"]
    assert module.evidence[0].values["variant"].partition("+")[0] == MISTAKES[name]
    assert getattr(module, side).unexplained == 0


CONSTANTS = {
    "rope_base": ("rope_theta", 1e6, 1e4), "attention_scale": ("attention_scale", 32**-0.5, 0.25),
    "window_off_by_one": ("attention_window", 9.0, 8.0),
}  # fmt: skip


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_of_attention_is_found(toys: Toys, tmp_path: Path, name: str, side: Side) -> None:
    """Its value on both sides, each inside an interval that leaves the other out; nothing is configured."""
    module = of(replayed(toys.pair(name, side), tmp_path), "logic")["layers.1.attn_core"]
    constant, faulty, right = CONSTANTS[name]
    for label in SIDES:
        value, other = (faulty, right) if label == side else (right, faulty)
        found = getattr(module, label).config[constant]
        assert found.value == pytest.approx(value, rel=1e-6)
        low, high = found.interval
        assert low <= value <= high
        assert not low <= other <= high


def test_a_stretch_says_from_where_to_where(toys: Toys, tmp_path: Path) -> None:
    """The trainer recorded no rotated q and k: rotation and attention are one, on both sides."""
    module = next(one for one in replayed(toys.both(), tmp_path).modules if one.module == "layers.1.attn_core")
    assert module.operator == "rotary_attention"
    assert module.span is not None
    assert (module.span.start, module.span.to) == ([f"layers.1.{name}.out" for name in "qkv"], "layers.1.attn_core.out")


def test_several_faults_are_all_found(toys: Toys, tmp_path: Path) -> None:
    """One pair of dumps shows every independent fault, whatever came before it."""
    dumped = toys.both(
        train=Switches((("gate_up_order", 0), ("one_token", 2))), infer=Switches((("eps", 1), ("one_channel", 1), ("missing_bias", 2)))
    )
    logic = of(replayed(dumped, tmp_path), "logic")
    expected = {
        "layers.0.act_mul": "train", "layers.1.input_norm": "infer", "layers.1.o_proj": "infer", "layers.2.q": "infer",
        "layers.2.k": "infer", "layers.2.v": "infer", "layers.2.down": "train",
    }  # fmt: skip
    assert {name: sides_named(module) for name, module in logic.items()} == {name: {side} for name, side in expected.items()}


def test_both_sides_at_fault_are_both_named(toys: Toys, tmp_path: Path) -> None:
    """Mistakes that are known by name prove themselves on each side."""
    dumped = toys.both(Switches((("missing_bias", 1),)), Switches((("missing_bias", 1),)))
    logic = of(replayed(dumped, tmp_path), "logic")
    assert {name: sides_named(module) for name, module in logic.items()} == {name: set(SIDES) for name in FOUND["missing_bias"]}


@pytest.mark.parametrize("side", SIDES)
def test_tokens_and_columns_that_do_not_follow_are_listed(toys: Toys, tmp_path: Path, side: Side) -> None:
    token = of(replayed(toys.pair("one_token", side), tmp_path), "logic")["layers.1.down"]
    assert [sentence.values["tokens"] for sentence in token.evidence if sentence.kind == "replay_only_tokens"] == [[11]]
    column = of(replayed(toys.pair("one_channel", side), tmp_path), "logic")["layers.1.o_proj"]
    assert [sentence.values["columns"] for sentence in column.evidence if sentence.kind == "replay_only_columns"] == [[7]]
    fits = [sentence.values for sentence in column.evidence if sentence.kind == "replay_fits_columns"]
    assert [(values["side"], values["at"], values["factors"]) for values in fits] == [(side, [7], [1.02])]
    residual = getattr(column, side).residual
    assert residual.column.gain == pytest.approx([1.0, 1.02], abs=2e-3)


@pytest.mark.parametrize("side", SIDES)
def test_a_constant_has_its_interval(toys: Toys, tmp_path: Path, side: Side) -> None:
    """The true value lies in it, the other side's does not."""
    module = of(replayed(toys.pair("eps", side), tmp_path), "logic")["layers.1.input_norm"]
    found = getattr(module, side).config["eps"]
    low, high = found.interval
    assert found.value == 1e-5
    assert 2e-6 < low <= 1e-5 <= high < 2e-5
    assert found.source == "inferred"


LOG_PROBS = Switches((("log_probs", 0),))


def test_log_probs_follow_from_the_logits(toys: Toys, tmp_path: Path) -> None:
    """Labels or logits of another token, on either side: 23 of 24 tokens have one after them."""
    (module,) = [one for one in replayed(toys.both(LOG_PROBS, LOG_PROBS), tmp_path).modules if one.module == "logprobs"]
    assert (module.operator, module.verdict) == ("log_prob", "same")
    assert (module.train.of, module.train.unexplained, module.infer.of, module.infer.unexplained) == (23, 0, 23, 0)


def test_log_probs_of_every_word_follow_from_the_logits(toys: Toys, tmp_path: Path) -> None:
    """A row of logits for another row, or columns that are looked up where all are returned."""
    every = Switches((("all_words", 0),))
    (module,) = [one for one in replayed(toys.both(every, every), tmp_path).modules if one.module == "logprobs"]
    assert (module.operator, module.verdict) == ("log_softmax", "same")
    assert (module.train.of, module.train.unexplained, module.infer.of, module.infer.unexplained) == (23 * 128, 0, 23 * 128, 0)


@pytest.mark.parametrize("name", ["temperature", "divided_logits"])
@pytest.mark.parametrize("side", SIDES)
def test_a_temperature_is_found_and_the_model_is_right(toys: Toys, tmp_path: Path, side: Side, name: str) -> None:
    """Log-probabilities of divided logits: what differs is their meaning, and neither the model nor a kernel.

    With divided_logits the module is handed what was divided, and follows from its own inputs on both sides.
    """
    results = replayed(toys.pair(name, side), tmp_path)
    assert list(of(results, "logic")) == ["logprobs"]
    found = {one: getattr(of(results, "logic")["logprobs"], one).config["temperature"] for one in SIDES}
    assert [found[one].value for one in SIDES] == [0.7 if one == side else 1.0 for one in SIDES]
    low, high = found[side].interval
    assert low <= 0.7 <= high
    assert high - low < 1e-3
    assert [said.kind for said in of(results, "logic")["logprobs"].would_decide] == ["replay_sampling_decides"]
    assert list(of(results, "unknown")) == []
    assert list(of(results, "rounding")) == []


@pytest.mark.parametrize("side", SIDES)
def test_gains_that_are_stored_less_one_are_the_same_gains(toys: Toys, tmp_path: Path, side: Side) -> None:
    """1 + w against w: neither a weight that differs nor another function, where the gains that both apply are equal."""
    less = Switches((("gain_less_one", 0),))
    results = replayed(toys.both(less) if side == "train" else toys.both(infer=less), tmp_path)
    assert list(of(results, "logic")) == list(of(results, "rounding")) == []
    norms = [module for module in results.modules if module.operator == "rms_norm"]
    assert [module.verdict for module in norms] == ["same"] * (2 * LAYERS + 1)
    assert {(said.kind, said.values["side"]) for module in norms for said in module.evidence} == {("replay_gain_less_one", side)}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_one_that_is_added_twice_is_said_so(toys: Toys, tmp_path: Path, side: Side, stored: bool) -> None:
    """Gains that hold their one already, on a side that stores them as they are, or less one and then adds two."""
    faulty = Switches((("norm_gain_twice", 1), *((("gain_less_one", 0),) if stored else ())))
    results = replayed(toys.both(faulty) if side == "train" else toys.both(infer=faulty), tmp_path)
    assert list(of(results, "logic")) == ["layers.1.input_norm"]
    said = {(sentence.kind, sentence.values.get("side")) for sentence in of(results, "logic")["layers.1.input_norm"].evidence}
    assert stored or ("replay_gain_twice", side) in said


@pytest.mark.parametrize("side", SIDES)
def test_a_bias_that_is_handed_on_is_no_bias_lost(toys: Toys, tmp_path: Path, side: Side) -> None:
    """Outputs with and without a bias mean different things: no fault is named, and none is ruled out there."""
    handed = Switches((("bias_handed_on", 1),))
    results = replayed(toys.both(handed) if side == "train" else toys.both(infer=handed), tmp_path)
    assert list(of(results, "logic")) == []
    unknown = of(results, "unknown")
    assert sorted(set(unknown) - set(ATTENTION)) == ["layers.1.k", "layers.1.q", "layers.1.v"]
    assert [said.kind for said in unknown["layers.1.q"].would_decide] == ["replay_bias_left"]
    both = of(replayed(toys.both(handed, handed), tmp_path), "same")
    assert {"layers.1.q", "layers.1.k", "layers.1.v"} <= set(both)


def test_padding_is_not_recomputed(toys: Toys, tmp_path: Path) -> None:
    """Rows that the mapping cuts off count nowhere."""
    padded = Switches((("padded", 0),))
    one, two = replayed(toys.both(padded, padded), tmp_path), replayed(toys.both(), tmp_path)
    assert [(module.module, module.train.of, module.infer.of) for module in one.modules] == [
        (module.module, module.train.of, module.infer.of) for module in two.modules
    ]
    assert not of(one, "logic")
