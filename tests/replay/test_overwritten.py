"""A real dump of msprobe 26.1, which took module inputs after the call: what its in-place norms were handed, where that is recorded."""

import shutil

import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from laying import SAMPLES

LATE = SAMPLES / "versions/26.1.0.post1/norms_infer"
INFER = "Module.model.layers.0"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> ReplayResults:
    """The engine against itself: both sides are the same bits, and nothing may be called a fault."""
    folder = tmp_path_factory.mktemp("late")
    shutil.copytree(LATE, folder / "copy")
    train, infer = pipeline.open_pair([str(LATE)], [str(folder / "copy")])
    mapping, _ = pipeline.mapping_step(train, infer, None)
    return pipeline.replay_step(train, infer, mapping, "0" * 64, folder / pipeline.REPLAY, {}, quiet=True)[0]


def made_by(results: ReplayResults, entry: str) -> ModuleReplay:
    return next(module for module in results.modules if module.infer.entry == entry and module.operator != "residual_add")


def test_inputs_are_the_values_that_add_up_to_what_was_returned(results: ReplayResults) -> None:
    """The last norm's are recorded: the MLP's result and the stream. The layers record neither, for they are overwritten too."""
    module = made_by(results, "Module.model.norm.RMSNorm.forward.0")
    assert (module.verdict, module.infer.inputs_are, module.infer.unexplained) == ("same", "post_call", 0)
    told = [one.values for one in module.evidence if one.kind == "replay_true_inputs"]
    assert [values["side"] for values in told] == ["train", "infer"]
    expected = {f"{INFER}.mlp.Qwen2MLP.forward.0.output.0", f"{INFER}.post_attention_layernorm.RMSNorm.forward.0.output.1"}
    assert set(told[0]["names"]) == expected


def test_inputs_that_no_module_returned_leave_no_verdict(results: ReplayResults) -> None:
    """B17: attention was not dumped, so that nothing is known of what the norm after it was handed."""
    module = made_by(results, f"{INFER}.post_attention_layernorm.RMSNorm.forward.0")
    assert module.verdict == "unknown"
    assert [(one.kind, one.values["side"]) for one in module.would_decide] == [
        ("replay_overwritten", "train"),
        ("replay_overwritten", "infer"),
    ]


def test_a_norm_that_works_on_its_own_output_is_recomputed_as_it_is(results: ReplayResults) -> None:
    """The first norm adds nothing and writes nowhere: its input is what it was."""
    module = made_by(results, f"{INFER}.input_layernorm.RMSNorm.forward.0")
    assert (module.verdict, module.evidence) == ("same", [])


def test_no_fault_is_claimed(results: ReplayResults) -> None:
    assert {module.verdict for module in results.modules} <= {"same", "unknown"}
    overwritten = [edge for edge in results.edges if edge.side == "infer" and edge.how == "unknown"]
    assert {edge.input.partition(".forward.")[0].rpartition(".")[0] for edge in overwritten} == {
        f"{INFER}.post_attention_layernorm",
        "Module.model.norm",
    }
