"""Replay on dumps of real frameworks: what is right follows to the last element, each fault is found where it is known to be."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.replay.formulas import FORMULAS
from laying import Sample

# Variants read from the frameworks' code and measured apart from this one: (operator, side) -> names.
VARIANTS = {
    "qwen2-hf-vllm-clean": {
        ("rms_norm", "train"): {"cast_before_weight"},
        ("rms_norm", "infer"): {"cast_before_weight", "add_unrounded+cast_before_weight"},
        ("linear", "train"): {"bias_in_acc", "plain"},
        ("linear", "infer"): {"bias_in_acc", "plain"},
        ("rotary_attention", "train"): {"rotated_stepwise+flash"},  # 14 keys: none is in a vector that the fast exponential takes
        ("rotary_attention", "infer"): {"rotated_once+float32"},
    },
    "qwen2-hf-vllm-padding": {
        ("rotary_attention", "train"): {"rotated_stepwise+flash_fast_exp"},  # 22 keys, the last eight of them masked
        ("rotary_attention", "infer"): {"rotated_once+float32"},
    },
    "qwen2-hf-vllm_no_weights-two_requests": {("rotary_attention", "infer"): {"rotated_once+float32"}},
    "qwen2-hf-sglang-clean": {
        ("rms_norm", "infer"): {"cast_after_weight", "add_unrounded+cast_after_weight"},
        ("rotary_attention", "train"): {"rotated_stepwise+flash"},
        ("rotary_attention", "infer"): {"rotated_stepwise+flash"},
    },
    "qwen2-hf-sglang512-clean": {("rms_norm", "train"): {"cast_before_weight"}},
    "qwen2-megatron_tp1-sglang-clean": {
        ("rms_norm", "train"): {"cast_after_weight"},
        ("linear", "train"): {"bias_after_cast", "plain"},
        ("linear", "infer"): {"bias_in_acc", "plain"},
        ("rotary", "train"): {"rotated_stepwise"},
        ("rotary", "infer"): {"rotated_stepwise"},
        ("attention", "train"): {"eager_scaled_inside"},
        ("attention", "infer"): {"flash"},
    },
    "qwen2-fsdp2_rank0-vllm-clean": {("linear", "train"): {"bias_in_acc", "plain"}},
    "qwen2-fsdp1_rank0-vllm-clean": {("linear", "train"): {"bias_in_acc", "plain"}},
}


def replayed(pair: Sample, folder: Path, *, proposed: bool = False, configs: dict[str, str | None] | None = None) -> ReplayResults:
    """Stages 2 and 4; ``proposed``: with the mapping that the dumps tell, else with the one beside the sample."""
    train, infer = pipeline.open_pair([str(pair.train)], [str(pair.infer)])
    mapping, _ = pipeline.mapping_step(train, infer, None if proposed else pair.mapping)
    return pipeline.replay_step(train, infer, mapping, "0" * 64, folder / pipeline.REPLAY, configs or {}, quiet=True)[0]


def verdicts(results: ReplayResults, verdict: str) -> list[str]:
    return [module.module for module in results.modules if module.verdict == verdict]


@pytest.mark.parametrize("proposed", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_a_clean_pair_follows_to_the_last_element(sample: Callable[[str], Sample], tmp_path: Path, name: str, proposed: bool) -> None:
    """A bound that is too tight, a variant that is missing, a tensor that is cut wrongly."""
    results = replayed(sample(name), tmp_path, proposed=proposed)
    assert verdicts(results, "logic") == []
    for counts in results.calibration.values():
        assert {operator: count.unexplained for operator, count in counts.items()} == dict.fromkeys(counts, 0)
        assert counts["linear"].modules >= 6
    for (operator, side), names in VARIANTS[name].items():
        assert {getattr(module, side).variant for module in results.modules if module.operator == operator} == names


def test_weights_that_one_side_lacks_are_borrowed(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """FSDP1 keeps the weights of its linears in flat parameters, even the head's, which the engine did not record at all."""
    results = replayed(sample("qwen2-fsdp1_rank0-vllm-clean"), tmp_path, proposed=True)
    linears = {module.module: module for module in results.modules if module.operator == "linear"}
    assert {module.train.weights for module in linears.values()} == {"recorded"}
    assert linears["lm_head"].verdict == "same"
    assert {name for name, module in linears.items() if module.infer.weights == "borrowed"} == {"lm_head"}
    assert {weight.status for weight in results.weights} == {"EXACT"}


def test_exchanged_weights_leave_each_side_right(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """The pair cannot prove who is right; both follow from their own weights, so that nothing else is wrong."""
    results = replayed(sample("qwen2-hf-vllm-kv_swapped"), tmp_path)
    logic = {module.module: module for module in results.modules if module.verdict == "logic"}
    assert sorted(logic) == ["layers.1.k", "layers.1.v"]
    for module in logic.values():
        assert (module.train.unexplained, module.infer.unexplained) == (0, 0)
        assert [sentence.kind for sentence in module.would_decide] == ["replay_checkpoint"] * len(module.would_decide) != []


def test_an_eps_is_found_from_what_was_computed(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Where activations are small enough to show it; nobody is accused without a configuration."""
    results = replayed(sample("qwen2-hf-vllm-rms_eps"), tmp_path)
    assert verdicts(results, "logic")[0] == "layers.0.input_norm"
    module = next(module for module in results.modules if module.module == "layers.0.input_norm")
    assert (module.train.config["eps"].value, module.infer.config["eps"].value) == (1e-6, 1e-5)
    assert [sentence.kind for sentence in module.would_decide] == ["replay_config_decides"]
    assert module.operator == "rms_norm"


def test_a_side_that_is_not_what_its_configuration_says_is_named(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Both configurations state 1e-6, as the trainer computes."""
    (tmp_path / "config.json").write_text(json.dumps({"rms_norm_eps": 1e-6}))
    stated = str(tmp_path / "config.json")
    results = replayed(sample("qwen2-hf-vllm-rms_eps"), tmp_path, configs={"train": stated, "infer": stated})
    module = next(module for module in results.modules if module.module == "layers.0.input_norm")
    assert module.verdict == "logic"
    assert [(sentence.kind, sentence.values.get("side")) for sentence in module.evidence[1:]] == [("replay_constant_stated", "infer")]
    assert (module.train.config["eps"].source, module.infer.config["eps"].source) == ("config", "inferred")


def test_a_norm_inside_a_linear_is_held_against_both_modules_of_the_other_side(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """A chain that is judged against the other side's linear alone, whose input is no boundary; and a bound that breaks behind a norm."""
    results = replayed(sample("qwen2-megatron_te_shaped-sglang-clean"), tmp_path, proposed=True)
    chains = [module for module in results.modules if module.operator == "norm_linear"]
    assert [module.module.rpartition(".")[2] for module in chains] == ["q", "k", "v", "gate", "up"] * 2
    for module in chains:
        assert module.verdict in ("same", "rounding")
        assert (module.train.unexplained, module.infer.unexplained) == (0, 0)
        assert (len(module.train.via), len(module.infer.via)) == (0, 1)
        assert 1e-6 in (module.train.config["eps"].value, module.infer.config["eps"].value)


def test_what_no_formula_knows_is_not_convicted(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Experts whose router the declared mapping does not name: unknown, with what is missing."""
    results = replayed(sample("qwen3_moe-megatron_tp1-sglang-clean"), tmp_path)
    assert verdicts(results, "logic") == []
    assert verdicts(results, "unknown")
    assert all(module.would_decide for module in results.modules if module.verdict == "unknown")


def test_experts_of_a_trainer_and_an_engine_follow(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """One records shares of all experts and no logits, and its experts one by one; the other logits, and stacked experts."""
    results = replayed(sample("qwen3_moe-megatron_tp1-sglang-clean"), tmp_path, proposed=True)
    assert verdicts(results, "logic") == verdicts(results, "unknown") == []
    made = next(module for module in results.modules if module.module == "layers.0.moe")
    assert (made.verdict, made.train.unexplained, made.infer.unexplained) == ("rounding", 0, 0)
    assert made.train.variant == "softmax_normalised+silu+weighted_inside+summed_stepwise"
    assert made.infer.variant == "softmax_normalised+silu+experts_rounded+summed_once"
    assert (made.train.config["top_k"].value, made.infer.config["top_k"].value) == (2, 2)


def test_a_base_that_differs_is_found_where_angles_and_what_was_turned_tell_it(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """The trainer recorded its angles, the engine what it turned; nobody's configuration is known, so nobody is accused."""
    results = replayed(sample("qwen2-megatron_tp1-sglang-rope_theta"), tmp_path, proposed=True)
    assert verdicts(results, "logic") == [f"layers.{layer}.{name}" for layer in (0, 1) for name in ("q_rope", "k_rope")]
    for module in results.modules:
        if module.verdict == "logic":
            assert (module.train.config["rope_theta"].value, module.infer.config["rope_theta"].value) == (50000.0, 10000.0)
            assert [said.kind for said in module.would_decide] == ["replay_config_decides"]


def test_attention_of_a_kernel_that_is_not_in_the_list_is_no_fault(
    sample: Callable[[str], Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new kernel: here the trainer's own, taken off the list. What it leaves is noise, and says so."""
    for operator in ("attention", "rotary_attention"):
        formula = FORMULAS[operator]
        kept = {kind: tuple(one for one in getattr(formula, kind) if "flash" not in one.name) for kind in ("variants", "faults")}
        monkeypatch.setitem(FORMULAS, operator, formula._replace(**kept))
    results = replayed(sample("qwen2-hf-vllm-clean"), tmp_path)
    assert verdicts(results, "logic") == []
    for module in results.modules:
        if module.operator == "rotary_attention":
            assert (module.verdict, module.train.variant, module.train.basis) == ("rounding", None, "noise_model")
            assert [said.kind for said in module.evidence] == ["replay_noise"]
            assert module.infer.basis == "variant"
