"""The six hypotheses with what replay has shown: excluded and supported only on grounds, open with what would decide."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from dump_analysis import causes
from dump_analysis.artefacts import io
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults, Direction, FirstDivergence, Overall, Unequal
from dump_analysis.artefacts.common import FileDigest, SideLabel, Worded
from dump_analysis.artefacts.conclusion import Conclusion, Hypothesis, HypothesisState
from dump_analysis.artefacts.replay_results import ConfigValue, Edge, ModuleReplay, ReplayResults, SideReplay, Verdict, WeightReplay
from dump_analysis.causes.six import NAMES
from dump_analysis.pipeline import CONCLUSION
from dump_analysis.weights import compared
from dump_analysis.wording import word
from laying import Sample
from running import run_command

EPS = ConfigValue(1e-6, [9e-7, 2e-6], "inferred")
Pair = dict[str, Any]


def side(variant: "str | None" = "plain", weights: Any = "recorded", **config: ConfigValue) -> SideReplay:
    basis: Any = "variant" if variant else None
    return SideReplay("Module.a.A.forward.0", [], variant, 1.0, 1.0, 0, 8, basis, config, weights, None, "pre_call")


def module(name: str, verdict: Verdict = "same", train: "SideReplay | None" = None, infer: "SideReplay | None" = None,
           evidence: Sequence[Worded] = (), left: Sequence[Worded] = ()) -> ModuleReplay:  # fmt: skip
    return ModuleReplay(name, None, "linear", verdict, train or side(), infer or side(), None, list(evidence), list(left))


def unknown(name: str) -> ModuleReplay:
    return module(name, "unknown", side(None), side(None), left=[word("replay_no_formula", module=name)])


def replay(*modules: ModuleReplay, weights: Sequence[WeightReplay] = (), edges: Sequence[Edge] = ()) -> ReplayResults:
    label, digest = SideLabel("train", "0" * 64), FileDigest("0" * 64)
    return ReplayResults(
        train=label, infer=label, mapping=digest, modules=list(modules), edges=list(edges), weights=list(weights), calibration={}
    )


def row(name: str, status: Any = "NOT_EXACT") -> BoundaryResult:
    differs = status == "NOT_EXACT"
    return BoundaryResult(
        name, 0, status, shape=[4, 8], unequal=Unequal(30 if differs else 0, 0.9 if differs else 0.0),
        direction=Direction(30, 0, 5.5) if differs else None, reason=word("no_reason") if status == "evidence_missing" else None,
    )  # fmt: skip


def results(*rows: BoundaryResult, weights: Sequence[BoundaryResult] = (), overall: Overall = "nonzero") -> BoundaryResults:
    first = next((one for one in rows if one.status == "NOT_EXACT"), None)
    label = SideLabel("train", "0" * 64)
    return BoundaryResults(
        train=label, infer=label, mapping=FileDigest("0" * 64), boundaries=list(rows), weights=list(weights),
        first_divergence=FirstDivergence(first.boundary, 0, True, []) if first else None, counts={}, overall=overall,
    )  # fmt: skip


def judged(found: BoundaryResults, shown: "ReplayResults | None") -> dict[str, Hypothesis]:
    made = causes.hypotheses(found, None, compared(found.weights), [], None, shown)
    assert [one.name for one in made[:6]] == list(NAMES)
    for one in made:
        assert one.because.text
        assert bool(one.would_decide) == (one.state == "open"), one.name
    return {one.name: one for one in made}


NORM = row("layers.0.input_norm.out")
VARIANTS = word("replay_variants", train="cast_before_weight", infer="cast_after_weight")
APART = word("replay_constants", name="eps", train=1e-6, infer=1e-5)

# modules, and the states of config, parallel_layout, kernel_order, randomness
CASES: dict[str, tuple[list[ModuleReplay], tuple[HypothesisState, HypothesisState, HypothesisState, HypothesisState]]] = {
    "all the same": (
        [module("a", "same", side(eps=EPS), side(eps=EPS)), module("b")],
        ("excluded", "excluded", "excluded", "excluded"),
    ),
    "rounded elsewhere": (
        [module("a", "rounding", side(eps=EPS), side("other", eps=EPS), [VARIANTS]), module("b")],
        ("excluded", "excluded", "supported", "excluded"),
    ),
    "one not recomputed": ([module("a", "same", side(eps=EPS), side(eps=EPS)), unknown("b")], ("open", "open", "open", "open")),
    "rounded elsewhere, one not recomputed": (
        [module("a", "rounding", side(eps=EPS), side("other", eps=EPS), [VARIANTS]), unknown("b")],
        ("open", "open", "supported", "open"),
    ),
    "another eps": (
        [module("a", "logic", side(eps=EPS), side(eps=ConfigValue(1e-5, [9e-6, 2e-5], "inferred")), [APART]), module("b")],
        ("supported", "open", "excluded", "excluded"),
    ),
    "constants apart without a sentence": (
        [module("a", "logic", side(eps=EPS), side(eps=ConfigValue(1e-5, None, "config")))],
        ("supported", "open", "excluded", "excluded"),
    ),
    "a side that does not follow": (
        [module("a", "same", side(eps=EPS), side(eps=EPS)), module("b", "logic", side(), side(None))],
        ("open", "open", "open", "open"),
    ),
    "a side that follows by a mistake": (
        [module("a", "logic", side(), side("bias_missing"), [word("replay_mistake", side="infer", variant="bias_missing", of=8)])],
        ("open", "open", "excluded", "excluded"),
    ),
    "weights that differ": (
        [
            module("a", "same", side(eps=EPS), side(eps=EPS)),
            module("b", "logic", evidence=[word("replay_weights_differ", weight="b.weight", unequal=1, of=8)]),
        ],
        ("excluded", "open", "excluded", "excluded"),
    ),
    "intervals without an upper end": (
        [
            module(
                "a", "logic", side(window=ConfigValue("none", [16.0], "inferred")), side(window=ConfigValue(32.0, [32.0, 33.0], "inferred"))
            )
        ],
        ("excluded", "open", "excluded", "excluded"),
    ),
    "a window that only one side has": (
        [module("a", "logic", side(window=ConfigValue("none", [16.0], "inferred")), side(window=ConfigValue(8.0, [8.0, 9.0], "inferred")))],
        ("supported", "open", "excluded", "excluded"),
    ),
    "ranks that add rounded parts": (
        [module("a", "rounding", side("partials_2_rounded"), side("plain"), [VARIANTS]), module("b", "same", side(eps=EPS), side(eps=EPS))],
        ("excluded", "supported", "supported", "excluded"),
    ),
    "ranks that add rounded parts on both sides": (
        [module("a", "same", side("partials_2_rounded", eps=EPS), side("partials_2_rounded", eps=EPS))],
        ("excluded", "excluded", "excluded", "excluded"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_replay_shows_decides_four_of_the_six(name: str) -> None:
    """Catches a hypothesis that is excluded though a module was not recomputed, and one that stays open though all were."""
    modules, states = CASES[name]
    found = judged(results(NORM), replay(*modules))
    assert tuple(found[one].state for one in ("config", "parallel_layout", "kernel_order", "randomness")) == states


def test_a_constant_on_which_no_record_depends_is_not_apart() -> None:
    """A window longer than the prompt: the sides state other values, and each explains both."""
    apart = module("a", "same", side(window=ConfigValue(128, None, "config")), side(window=ConfigValue(256, None, "config")))
    assert judged(results(NORM), replay(apart))["config"].state == "excluded"


def test_a_module_that_is_equal_on_both_sides_drew_nothing() -> None:
    """Not recomputed, but EXACT: dropout would differ."""
    known = results(row("layers.0.a.out", "EXACT"), row("layers.0.b.out"))
    shown = replay(unknown("layers.0.a"), module("layers.0.b"))
    assert judged(known, shown)["randomness"].state == "excluded"
    assert judged(known, shown)["config"].state == "open"


def test_without_replay_nothing_is_excluded_but_what_was_compared() -> None:
    found = judged(results(row("input_ids", "EXACT"), row("positions", "EXACT"), NORM), None)
    assert {name: found[name].state for name in NAMES} == {**dict.fromkeys(NAMES, "open"), "input_misaligned": "excluded"}
    assert {found[name].would_decide[0].kind for name in ("config", "kernel_order", "randomness")} == {"decide_by_replay"}


def test_equal_bit_for_bit_needs_no_order_and_no_chance() -> None:
    """Whatever replay could not recompute: nothing differs."""
    found = judged(results(row("a.out", "EXACT"), overall="exact"), replay(unknown("a")))
    assert {found[name].state for name in ("kernel_order", "randomness")} == {"excluded"}


# --- weights ---


def weight(name: str, kind: "str | None" = None, status: str = "EXACT") -> WeightReplay:
    return WeightReplay(name, "NOT_EXACT" if kind else status, kind, None)


def test_weights_that_differ_are_counted_by_kind() -> None:
    of = [row("layers.0.a.weight"), row("layers.1.a.weight"), row("layers.0.b.weight")]
    kinds = [
        weight("layers.0.a.weight", "small_update"),
        weight("layers.1.a.weight", "small_update"),
        weight("layers.0.b.weight", "partial"),
    ]
    found = judged(results(NORM, weights=of), replay(module("a"), weights=kinds))["weights_out_of_sync"]
    assert found.state == "supported"
    assert "2 small_update" in found.because.text
    assert "1 partial" in found.because.text


@pytest.mark.parametrize(
    ("modules", "state"),
    [
        ([module("lm_head", "same", side(), side(weights="borrowed"))], "excluded"),
        ([module("lm_head", "rounding", side(), side("other", "borrowed"), [VARIANTS])], "excluded"),
        ([module("lm_head", "logic", side(), side(None, "borrowed"))], "open"),
        ([unknown("lm_head")], "open"),
        ([], "open"),
    ],
)
def test_borrowed_weights_that_explain_are_equal_ones(modules: list[ModuleReplay], state: str) -> None:
    """A side that recorded no weight, and follows with the other's: only then is the gap no gap."""
    known = results(NORM, weights=[row("layers.0.q.weight", "EXACT"), row("lm_head.weight", "evidence_missing")])
    shown = replay(*modules, weights=[weight("layers.0.q.weight"), weight("lm_head.weight", status="evidence_missing")])
    assert judged(known, shown)["weights_out_of_sync"].state == state


# --- causes that fit, and other hypotheses ---


def test_the_first_divergence_is_asked_only_where_replay_leaves_it_open() -> None:
    """By fingerprint, not proven, with what would confirm and refute it; what replay has decided needs no guess."""
    one_sided = judged(results(NORM), None)["norm_eps"]
    assert (one_sided.state, [said.kind for said in one_sided.would_decide]) == ("open", ["confirm_config", "refute_config"])
    assert "not proven" in one_sided.because.text
    assert "rule 10 (C)" in one_sided.because.text
    assert "norm_eps" in judged(results(NORM), replay(unknown("layers.0.input_norm")))
    for verdict in ("same", "rounding", "logic"):
        assert "norm_eps" not in judged(results(NORM), replay(module("layers.0.input_norm", verdict, evidence=[VARIANTS])))


def test_an_altered_value_between_modules_is_a_hypothesis_of_its_own() -> None:
    edge = Edge("infer", "layers.0.b input", ["layers.0.a.out"], "altered", 3)
    assert judged(results(NORM), replay(module("a"), edges=[edge]))["code_between_modules"].state == "supported"


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("qwen2-hf-vllm-clean", {"weights_out_of_sync": "excluded", "input_misaligned": "excluded", "kernel_order": "supported"}),
        ("qwen2-hf-vllm-rms_eps", {"config": "supported", "weights_out_of_sync": "excluded", "input_misaligned": "excluded"}),
        ("qwen2-hf-vllm-token_diff", {"input_misaligned": "supported"}),
        ("qwen2-hf-vllm-kv_swapped", {"weights_out_of_sync": "supported"}),
    ],
)
def test_real_dumps_have_the_hypotheses_that_their_truth_has(
    name: str, states: dict[str, HypothesisState], diagnosed: Callable[[str], Path]
) -> None:
    """Read from the file that ``diagnose`` leaves; its findings are named by the hypotheses that they support."""
    found, _ = io.read(diagnosed(name) / CONCLUSION, Conclusion)
    of = {one.name: one for one in found.hypotheses}
    assert {one: of[one].state for one in states} == states
    known = {finding.id for finding in found.findings}
    for one in found.hypotheses:
        assert set(one.findings) <= known
        assert bool(one.would_decide) == (one.state == "open")
    assert all(of[one].findings for one, state in states.items() if state == "supported")


@pytest.mark.parametrize(("name", "first"), [("qwen2-hf-vllm-rms_eps", "norm_eps"), ("qwen2-hf-vllm-clean", "rope_rounded")])
def test_without_replay_the_first_guess_at_real_dumps_is_the_true_one(
    name: str, first: str, sample: Callable[[str], Sample], tmp_path: Path
) -> None:
    """Compared and concluded alone, a fault and a rounding: the first cause that fits is the true one, and it stays open."""
    pair = sample(name)
    where = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping)
    assert run_command("analyze_dump_boundaries.py", *where, "--output", tmp_path / "boundary_results.json").returncode == 0
    assert run_command("conclude.py", "--workdir", tmp_path).returncode == 0
    found, _ = io.read(tmp_path / CONCLUSION, Conclusion)
    assert (found.hypotheses[6].name, found.hypotheses[6].state) == (first, "open")
