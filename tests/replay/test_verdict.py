"""The truth table: what the statuses of both sides make of a pair, and whom they name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from dump_analysis.artefacts.replay_results import Direction, Residual
from dump_analysis.replay.formulas import FORMULAS, Given, Variant
from dump_analysis.replay.heads import Heads
from dump_analysis.replay.modules import Work
from dump_analysis.replay.noise import Noise
from dump_analysis.replay.one_side import Constant, Replayed, Unreplayed
from dump_analysis.replay.recorded import Matrix
from dump_analysis.replay.residual import Where
from dump_analysis.replay.trials import Trial, Tried
from dump_analysis.replay.usual import Norms, norms_of
from dump_analysis.replay.verdict import Judged, Weight, judge
from dump_analysis.wording import word

SIDES = ("train", "infer")
OUTPUT: Any = Matrix("x", "bfloat16", 10, 100, None)  # type: ignore[arg-type]
WEIGHT = Weight("layers.0.q.weight", 3, 64)
EVERYWHERE, ONE_COLUMN = Where(tuple(range(10)), tuple(range(100)), 10, 100), Where(tuple(range(10)), (7,), 10, 100)
NOT_REPLAYED = Unreplayed("entry", word("replay_no_formula", module="x"))


def _run(_given: Given) -> tuple[Any, ...]:
    return ()


def side(
    *, left: int = 0, variant: str = "a", function: str = "", fault: bool = False, eps: Constant | None = None, borrowed: bool = False,
    where: Where | None = EVERYWHERE, operator: str = "linear", stated: Mapping[str, float] | None = None, grid: str = "bfloat16",
    residual: Residual | None = None,
) -> Replayed:  # fmt: skip
    """A side of 1000 elements, ``left`` of which nothing explains."""
    work = Work("entry", (), (operator,), OUTPUT, (), {}, "borrowed" if borrowed else "recorded", (), "pre_call")
    trial = Trial(FORMULAS[operator], Variant(variant, "", _run, function=function), {"eps": eps.value} if eps else {}, fault)
    holding = frozenset({variant}) if not left and not fault else frozenset()
    constants = {"eps": eps} if eps else {}
    return Replayed(work, grid, Tried(trial, 1000, 990, left), holding, constants, dict(stated or {}), residual, where if left else None)


def eps(value: float) -> Constant:
    return Constant(value, (value * 0.9, value * 1.1), False)


def judged(
    train: Replayed | Unreplayed, infer: Replayed | Unreplayed, *weights: Weight, others: Sequence[Replayed] = (), single: bool = False,
    stated: Mapping[str, Mapping[str, float]] | None = None,
) -> Judged:  # fmt: skip
    """A pair among ``others``, which stand on each side and are of the same operator; ``stated``: by each side's configuration."""
    norms: dict[str, Norms] = {}
    for label, one in (("train", train), ("infer", infer)):
        norms[label] = norms_of([*others, *([one] if isinstance(one, Replayed) else [])], (stated or {}).get(label, {}))
    return judge(train, infer, weights, norms, single=single)


USUAL = [side() for _ in range(3)]
OFF = side(left=500)


def test_the_table() -> None:
    """Every line of it: (train, infer, differing weights) -> verdict and side."""
    mistake = side(variant="bias_missing", fault=True)
    table: list[tuple[Replayed | Unreplayed, Replayed | Unreplayed, tuple[Weight, ...], str, str]] = [
        (side(), side(), (), "same", "unknown"),
        (side(), side(variant="b"), (), "rounding", "unknown"),
        (side(), side(grid="float32"), (), "rounding", "unknown"),
        (side(variant="add_rounded+a"), side(), (), "same", "unknown"),
        (side(), side(), (WEIGHT,), "logic", "unknown"),
        (side(), side(variant="1+a", function="1+w"), (), "logic", "infer"),
        (side(operator="rms_norm"), side(operator="layer_norm"), (), "logic", "unknown"),
        (side(), side(operator="soft_capped_linear"), (), "unknown", "unknown"),
        (side(), OFF, (), "logic", "infer"),
        (OFF, side(), (), "logic", "train"),
        (side(), mistake, (), "logic", "infer"),
        (mistake, mistake, (), "logic", "both"),
        (OFF, OFF, (), "unknown", "unknown"),
        (side(), side(left=500, borrowed=True), (), "logic", "unknown"),
        (NOT_REPLAYED, side(), (), "unknown", "unknown"),
        (NOT_REPLAYED, OFF, (), "unknown", "unknown"),
        (NOT_REPLAYED, NOT_REPLAYED, (), "unknown", "unknown"),
        (NOT_REPLAYED, side(), (WEIGHT,), "logic", "unknown"),
    ]
    for train, infer, weights, verdict, named in table:
        found = judged(train, infer, *weights, others=USUAL)
        assert (found.verdict, found.side) == (verdict, named)
        assert found.evidence or verdict in ("same", "unknown")
        assert found.would_decide or (verdict, named) != ("unknown", "unknown")


@pytest.mark.parametrize("left", [0, 1, 2])
def test_one_element_is_chance(left: int) -> None:
    """One element and two millionths more may lie outside by chance."""
    assert judged(side(left=left), side(), others=USUAL).verdict == ("same" if left < 2 else "logic")


def test_a_kernel_that_nothing_explains_is_no_fault() -> None:
    """All layers of a side alike, or the only module of its kind: nobody is convicted."""
    alike = judged(side(left=500), side(), others=[side(left=500), side(left=400)])
    assert (alike.verdict, [sentence.kind for sentence in alike.would_decide]) == ("unknown", ["replay_kernel"])
    assert judged(OFF, side(), others=USUAL, single=True).verdict == "unknown"
    in_a_column = judged(side(left=10, where=ONE_COLUMN), side(), others=USUAL, single=True)
    assert (in_a_column.verdict, in_a_column.side) == ("logic", "train")


def off_by(gain: float, left_over: float) -> Replayed:
    """A side that nothing explains, of which a line with this gain leaves this share of the residual."""
    line = Residual(against="truth", gain=gain, offset=0.0, stderr=1e-3, direction=Direction(500, 500), left_over=left_over)
    return side(left=500, residual=line)


def test_the_only_module_of_its_kind_is_off_where_others_vouch_for_its_kernel() -> None:
    """Three that follow vouch for a record that is about what the formula makes; not for one that a line makes of it, as a scale would."""
    near, halved, on_a_line = off_by(1.01, 0.9), off_by(0.5, 0.9), off_by(1.01, 0.1)
    found = judged(near, side(), others=USUAL, single=True)
    assert (found.verdict, found.side) == ("logic", "train")
    assert judged(near, side(), others=USUAL[:2], single=True).verdict == "unknown"
    for one in (halved, on_a_line, OFF):
        assert judged(one, side(), others=USUAL, single=True).verdict == "unknown"
        assert judged(one, side(), others=USUAL).verdict == "logic"


def test_constants_that_both_allow_are_no_difference() -> None:
    """Intervals that overlap, as where activations are large."""
    wide = Constant(1e-6, (1e-9, 1e-4), False)
    assert judged(side(eps=wide, operator="rms_norm"), side(eps=eps(1e-5), operator="rms_norm")).verdict == "same"


def test_constants_apart_name_whoever_strays() -> None:
    """From the constant that its configuration states, or that holds in its other layers; both or none: nobody is named."""
    small, large = side(eps=eps(1e-6), operator="rms_norm"), side(eps=eps(1e-5), operator="rms_norm")
    found = judged(small, large)
    assert (found.verdict, found.side, [said.kind for said in found.would_decide]) == ("logic", "unknown", ["replay_config_decides"])
    among = judged(small, large, others=[small, small, small])
    assert (among.verdict, among.side, among.evidence[-1].values) == ("logic", "infer", {"side": "infer", "name": "eps", "value": 1e-6})
    against = side(eps=eps(1e-5), operator="rms_norm", stated={"eps": 1e-6})
    assert judged(small, against).side == "infer"
    assert judged(against, small).side == "train"


def test_another_function_in_one_layer_names_the_side() -> None:
    found = judged(side(variant="1+a", function="1+w"), side(), others=USUAL)
    assert (found.verdict, found.side) == ("logic", "train")


def ended(operator: str, name: str, value: float) -> Replayed:
    """A side that bounds or scales its logits by this value where it hands them out."""
    return side(operator=operator)._replace(constants={name: Constant(value, (value * 0.999, value * 1.001), False)})


@pytest.mark.parametrize(("operator", "name"), [("soft_capped_linear", "soft_cap"), ("scaled_linear", "logits_scale")])
def test_what_one_side_does_to_its_logits_the_other_does_where_it_states_it(operator: str, name: str) -> None:
    """The other side may bound or scale its logits after its head, where nothing is recorded: its configuration says whether it does."""
    one = ended(operator, name, 30.0)
    found = judged(one, side())
    assert (found.verdict, [said.kind for said in found.would_decide]) == ("unknown", [f"replay_{name}"])
    same = judged(one, side(), stated={"infer": {name: 30.0}})
    assert (same.verdict, [said.kind for said in same.evidence], same.would_decide) == ("same", [f"replay_{name}_stated"], ())
    for stated in ({"infer": {name: 50.0}}, {"train": {name: 30.0}}):
        assert judged(one, side(), stated=stated).verdict == "unknown"
    assert judged(side(), one, stated={"train": {name: 30.0}}).verdict == "same"
    assert judged(one, one).verdict == "same"
    assert judged(one, side(), WEIGHT, stated={"infer": {name: 30.0}}).verdict == "logic"


def test_logits_bounded_on_one_side_and_scaled_on_the_other_are_not_the_same() -> None:
    found = judged(ended("soft_capped_linear", "soft_cap", 30.0), ended("scaled_linear", "logits_scale", 0.5))
    assert (found.verdict, found.side) == ("logic", "unknown")


def turning(function: str, laid_out: str | None) -> Replayed:
    """A side that turns pairs as ``function`` says, and recorded a table laid out for another or the same, or none."""
    one = side(operator="rotary", function=function)
    return one._replace(work=one.work._replace(heads=Heads(8, 8, ("query",), (), laid_out)))


def test_pairs_that_a_recorded_table_bears_out_name_the_other_side() -> None:
    """A side whose own table is laid out for the pairs that it turns; where it is not, or both say so, nobody is named."""
    half, other = turning("", ""), turning("interleaved", None)
    found = judged(half, other)
    assert (found.verdict, found.side, found.evidence[-1].kind) == ("logic", "infer", "replay_table_layout")
    assert judged(other, half).side == "train"
    assert judged(turning("", "interleaved"), other).side == "unknown"
    assert judged(half, turning("interleaved", "interleaved")).side == "unknown"


def noisy(rms: float, scale: float = 0.25) -> Replayed:
    """A side whose kernel is not in the list."""
    one = side(left=500, where=None, operator="attention")
    constants = {"attention_scale": Constant(scale, (scale * 0.999, scale * 1.001), False)}
    return one._replace(noise=Noise(rms, 0.0, 0.5, 0.5, 4.0), constants=constants)


def test_noise_is_rounding_until_a_constant_or_its_size_says_otherwise() -> None:
    """A kernel of no list is no fault; a scale that differs, or a module far noisier than its like, is; a little noisier is not known."""
    usual = [noisy(0.6) for _ in range(3)]
    clean = noisy(0.6)._replace(best=side(operator="attention").best, noise=None)
    found = judged(noisy(0.6), clean, others=usual)
    assert (found.verdict, [said.kind for said in found.evidence]) == ("rounding", ["replay_noise"])
    assert (judged(noisy(0.6, 0.3), clean, others=usual).verdict, judged(noisy(0.6, 0.3), clean, others=usual).side) == ("logic", "train")
    assert judged(noisy(1.5), clean, others=usual).verdict == "unknown"
    gross = judged(noisy(9.0), clean, others=usual)
    assert (gross.verdict, gross.side) == ("logic", "train")


def test_evidence_of_weights_stands_beside_what_follows_from_them() -> None:
    """A weight that differs does not hide that one side does not follow from its own."""
    found = judged(side(), OFF, WEIGHT, others=USUAL)
    assert (found.verdict, found.side) == ("logic", "infer")
    assert [sentence.kind for sentence in found.evidence] == ["replay_weights_differ", "replay_unexplained"]
    assert [sentence.kind for sentence in found.would_decide] == ["replay_checkpoint"]


def test_norms_hold_what_most_modules_say() -> None:
    """Half of the modules is not most."""
    few = norms_of([side(eps=eps(1e-6), operator="rms_norm"), side(eps=eps(1e-5), operator="rms_norm")], {})
    assert (few.untrusted, few.constants) == (frozenset(), {})
    most = norms_of([*(side(eps=eps(1e-6), operator="rms_norm") for _ in range(3)), side(left=9, operator="rms_norm")], {})
    assert most.constants == {("rms_norm", "eps"): 1e-6}
    assert np.isclose(most.constants["rms_norm", "eps"], 1e-6)


def test_the_side_whose_configuration_states_another_activation_is_wrong() -> None:
    """One layer of two is no majority: what is stated says which activation is meant, also where most layers compute another."""
    silu, gelu = (side(variant=name, function=name, operator="gated_activation") for name in ("silu", "gelu_tanh"))
    both = {label: {"activation.silu": 1.0} for label in ("train", "infer")}
    found = judged(gelu, silu, stated=both)
    assert (found.verdict, found.side) == ("logic", "train")
    assert judged(silu, gelu, stated=both).side == "infer"
    assert judged(gelu, silu).side == "unknown"
    assert judged(gelu, silu, stated={"train": {"activation.gelu_tanh": 1.0}, "infer": {"activation.silu": 1.0}}).side == "unknown"


def test_modules_of_two_kinds_are_no_finding_but_a_doubt_of_the_mapping() -> None:
    found = judged(side(operator="embedding", function="a"), side(operator="rms_norm", function="b"))
    assert (found.verdict, [said.kind for said in found.would_decide]) == ("unknown", ["replay_joined_wrongly"])
    assert judged(side(operator="layer_norm", function="a"), side(operator="rms_norm", function="b")).verdict == "logic"
