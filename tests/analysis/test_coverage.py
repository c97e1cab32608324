"""Which gaps hide nothing because what lies around them was recomputed, and which keep a pair open."""

import pytest
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import FileDigest, SideLabel
from dump_analysis.artefacts.replay_results import Edge, How, ModuleReplay, ReplayResults, SideReplay, Span, Verdict
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.coverage import Coverage, open_points
from dump_analysis.wording import word
from msprobe_files import operands

LABEL, DIGEST = SideLabel("train", "0" * 64), FileDigest("0" * 64)
ORDER = ["input_norm.out", "q.out", "k.out", "v.out", "q_rope.out", "core_attn.out", "o_proj.out"]
STARTS = [f"layers.0.{name}.out" for name in ("q", "k", "v")]


def entry_of(name: str) -> str:
    return f"Module.{name}.M.forward.0"


def module(name: str, verdict: Verdict = "rounding", operator: str = "linear", span: "Span | None" = None) -> ModuleReplay:
    side = SideReplay(entry_of(name), [], "plain", 1.0, 1.0, 0, 8, "variant", {}, "recorded", None, "pre_call")
    return ModuleReplay(name, span, operator, verdict, side, side, None, [], [])


def attention(verdict: Verdict = "rounding") -> ModuleReplay:
    return module("layers.0.core_attn", verdict, "attention", Span(STARTS, "layers.0.core_attn.out"))


def layer(verdict: Verdict = "rounding", operator: str = "linear") -> list[ModuleReplay]:
    """A layer of three linears, attention and one linear more, all with this verdict."""
    linears = [module(f"layers.0.{name}", verdict, operator) for name in ("q", "k", "v", "o_proj")]
    return [*linears, attention(verdict)]


def replay(*modules: ModuleReplay, edges: tuple[Edge, ...] = ()) -> ReplayResults:
    return ReplayResults(train=LABEL, infer=LABEL, mapping=DIGEST, modules=list(modules), edges=list(edges), weights=[], calibration={})


def results(*missing: str) -> BoundaryResults:
    """A layer's boundaries, these of which one side does not have; other names come last."""
    names = [*(f"layers.0.{name}" for name in ORDER), *(name for name in missing if name.removeprefix("layers.0.") not in ORDER)]
    rows = [
        BoundaryResult(name, at, "MISSING" if name in missing else "NOT_EXACT", reason=word("no_reason") if name in missing else None)
        for at, name in enumerate(names)
    ]
    return BoundaryResults(
        train=LABEL, infer=LABEL, mapping=DIGEST, boundaries=rows, weights=[], first_divergence=None, counts={}, overall="nonzero"
    )


def covered(gap: str, *modules: ModuleReplay) -> "str | None":
    found = results(gap)
    return Coverage(found, replay(*modules)).covered_by(next(row for row in found.boundaries if row.boundary == gap))


@pytest.mark.parametrize("verdict", ["same", "rounding"])
def test_a_gap_in_a_stretch_that_follows_hides_nothing(verdict: Verdict) -> None:
    """q may be rotated before v is made; what lies before the stretch, or in another layer, is not in it."""
    assert covered("layers.0.q_rope.out", *layer(verdict)) == "layers.0.core_attn.out"
    assert covered("layers.0.core_attn.out", *layer(verdict)) == "layers.0.core_attn.out"
    assert covered("layers.0.q.out", *layer(verdict)) is None
    assert covered("layers.1.q_rope.out", *layer(verdict)) is None


@pytest.mark.parametrize("verdict", ["logic", "unknown"])
def test_a_gap_in_a_stretch_that_does_not_follow_may_hide_what_it_is(verdict: Verdict) -> None:
    for gap in ("layers.0.q_rope.out", "positions", "layers.0.q.weight", "layers.0.q.out.other_tokens", "layers.0.fused.weight"):
        assert covered(gap, *layer(verdict)) is None, gap
    assert covered("layers.0.input_norm.out", *layer(verdict, "norm_linear")) is None


def test_a_norm_inside_a_linear_is_covered_by_the_linear() -> None:
    """By the module that follows it, if that one normalises; not by another."""
    assert covered("layers.0.input_norm.out", *layer(operator="norm_linear")) == "layers.0.q"
    assert covered("layers.0.input_norm.out", *layer()) is None
    assert covered("layers.0.input_norm.out", module("layers.0.o_proj", operator="norm_linear"), module("layers.0.q")) is None


def test_what_all_modules_bear_out() -> None:
    """Positions and weights of other names, where every module follows; one that does not may have computed with them."""
    assert covered("positions", *layer()) == "layers.0.core_attn.out"
    assert covered("layers.0.fused.weight", *layer()) is not None
    one_open = [*layer(), module("layers.1.q", "unknown")]
    assert covered("positions", *one_open) is None
    assert covered("layers.0.fused.weight", *one_open) is None
    assert covered("layers.0.q.weight", *one_open) == "layers.0.q"
    assert covered("layers.1.q.weight", *one_open) is None
    assert covered("layers.0.q.out.other_tokens", *one_open) == "layers.0.q"
    assert covered("positions", *(one for one in layer() if one.span is None)) is None


def edge(side: str, given: str, how: How) -> Edge:
    return Edge("train" if side == "train" else "infer", given, [], how, 0)


def named(boundary: str, source: str) -> SemanticMapping:
    return SemanticMapping(boundaries=[Row(boundary, 0, operands.parse(source), operands.parse(source))])


def test_an_input_of_unknown_origin_is_settled_by_what_makes_it_or_takes_nothing_from_it() -> None:
    given = f"{entry_of('layers.0.o_proj')}.input.0"
    mapping = named("layers.0.core_attn.out", given)
    good, bad = (Coverage(results(), replay(*layer(verdict)), mapping) for verdict in ("rounding", "unknown"))
    assert good.is_settled(edge("train", given, "unknown"))
    assert not bad.is_settled(edge("train", given, "unknown"))
    assert bad.is_settled(edge("train", given, "copy"))
    assert not good.is_settled(edge("train", given, "altered"))
    unnamed = Coverage(results(), replay(*layer()), None)
    assert not unnamed.is_settled(edge("train", given, "unknown"))
    assert unnamed.is_settled(edge("train", f"{entry_of('layers.0.wrapper')}.input.0", "unknown"))  # no module was recomputed from it


def test_what_keeps_a_pair_open() -> None:
    """A side that was cut short, a gap, an input that was altered; without replay the whole is open."""
    found = results("layers.0.q.out", "layers.0.q_rope.out")
    altered = edge("infer", f"{entry_of('layers.0.q')}.input.0", "altered")
    shown = replay(*layer(), edges=(altered,))
    points = open_points(found, Coverage(found, shown), shown, ["infer"])
    assert [point.kind for point in points] == ["open_cut", "open_gaps", "open_edges"]
    assert points[1].values["names"] == ["layers.0.q.out"]
    assert points[2].values["names"] == [f"infer: {altered.input}"]
    assert [point.kind for point in open_points(found, Coverage(found, None), None, [])] == ["needs_replay"]
    whole = results()
    assert open_points(whole, Coverage(whole, replay(*layer())), replay(*layer()), []) == []
