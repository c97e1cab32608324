"""What a difference looks like, and how it grows: said as such, never as a verdict."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis import causes, chain, conclusion, divergence, gate
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults, Direction
from dump_analysis.artefacts.common import FileDigest, SideLabel
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.semantic_mapping import SemanticMapping, Unmapped
from dumping import bits, compared, of, of_bits, outputs, row_of, side_of

Array = np.ndarray[Any, Any]


def bf16(values: Array) -> Array:
    """The nearest bfloat16, ties to even, as float64."""
    raw = np.asarray(values, "<f4").view("<u4").astype("<u8")
    return (((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16 << 16).astype("<u4")).view("<f4").astype("f8")


def looks(root: Path, train: Array, infer: Array) -> str:
    found = compared(root, of_bits(bits(train, "bfloat16"), "bfloat16"), of_bits(bits(infer, "bfloat16"), "bfloat16"))
    seen = causes.fingerprint(found)
    assert seen is not None
    return seen.kind


def norm(x: Array, eps: float, gain: Array, *, cast_first: bool = False) -> Array:
    scaled = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    return bf16((bf16(scaled) if cast_first else scaled) * gain)


@pytest.mark.parametrize("rms", [1.0, 0.1])
def test_an_eps_fault_is_one_sided_at_any_size(tmp_path: Path, rms: float) -> None:
    """1e-5 for 1e-6: 0.1 % of the elements by one ULP at RMS 1, a third of them at 0.1. Catches a reading by density."""
    draw = np.random.default_rng(1)
    x, gain = bf16(draw.standard_normal((256, 1024)) * rms), bf16(1 + draw.standard_normal(1024) / 10)
    assert looks(tmp_path, norm(x, 1e-5, gain), norm(x, 1e-6, gain)) == "fp_one_sided"


def test_cast_order_is_two_sided(tmp_path: Path) -> None:
    """A quarter of the elements differ and none of it is a constant: dense must not read as one-sided."""
    draw = np.random.default_rng(2)
    x, gain = bf16(draw.standard_normal((256, 1024))), bf16(1 + draw.standard_normal(1024) / 10)
    assert looks(tmp_path, norm(x, 1e-6, gain), norm(x, 1e-6, gain, cast_first=True)) == "fp_two_sided"


def test_partial_sums_are_two_sided(tmp_path: Path) -> None:
    """Two halves of a product rounded before they are added (tensor parallel 2): 38 % differ."""
    draw = np.random.default_rng(3)
    left, right = draw.standard_normal((2, 256, 256))
    assert looks(tmp_path, bf16(left + right), bf16(bf16(left) + bf16(right))) == "fp_two_sided"


def test_a_soft_cap_leans_to_one_side(tmp_path: Path) -> None:
    """tanh(x / 50) · 50 on one side, behind a product that mixes signs: two thirds of what differs is smaller."""
    draw = np.random.default_rng(4)
    capped = np.tanh((x := draw.standard_normal((512, 512)) * 8) / 50) * 50
    mixed = draw.standard_normal((512, 512)) * 0.25
    assert looks(tmp_path, bf16(x + mixed), bf16(capped + mixed)) in ("fp_leaning", "fp_one_sided")


def test_few_elements_tell_nothing(tmp_path: Path) -> None:
    """15 elements that all grew: a coin falls so, too."""
    train = np.arange(1.0, 65.0).reshape(4, 16)
    infer = train.copy()
    infer[0, :15] += 1
    assert looks(tmp_path, train, infer) == "fp_few"


def result(name: str, order: int, **measured: Any) -> BoundaryResult:
    return BoundaryResult(name, order, "NOT_EXACT", shape=[4, 4], max_abs_diff=measured.pop("max_abs_diff", 1.0), **measured)


@pytest.mark.parametrize(("smaller", "larger", "kind"), [
    (16, 0, "fp_one_sided"), (0, 15, "fp_few"), (600, 400, "fp_two_sided"), (6001, 3999, "fp_leaning"), (9999, 1, "fp_leaning"),
    (70, 30, "fp_two_sided"),
])  # fmt: skip
def test_each_side_of_each_threshold(smaller: int, larger: int, kind: str) -> None:
    """A lean counts where it is both large (a fifth) and clear (ten standard errors)."""
    z = (smaller - larger) / (smaller + larger) ** 0.5
    seen = causes.fingerprint(result("a", 0, direction=Direction(smaller, larger, z)))
    assert seen is not None
    assert seen.kind == kind


def test_what_was_not_measured_looks_like_nothing() -> None:
    assert causes.fingerprint(result("a", 0)) is None


def concluded(root: Path, train: dict[str, Array], infer: dict[str, Array]) -> Conclusion:
    left, right = (
        side_of(root, label, outputs({name: of(value) for name, value in side.items()}))
        for label, side in (("train", train), ("infer", infer))
    )
    compared_rows, _ = gate.compare([row_of(name, at) for at, name in enumerate(train)], [], left, right)
    mapping = SemanticMapping(boundaries=[], weights=[], unmapped=Unmapped([], []))
    found = BoundaryResults(
        train=SideLabel("train", left.digest), infer=SideLabel("infer", right.digest), mapping=FileDigest("0" * 64),
        boundaries=compared_rows, weights=[], first_divergence=divergence.first_divergence(compared_rows, mapping, left, right),
        counts=divergence.counts(compared_rows), overall=divergence.overall(compared_rows, []),
    )  # fmt: skip
    return conclusion.conclude(found, mapping, None, [])


def test_a_finding_left_open_says_what_it_looks_like_and_proves_nothing(tmp_path: Path) -> None:
    """Character and side stay unknown, the pair undecided; the sentence says that it is a fingerprint."""
    a = np.random.default_rng(5).standard_normal((8, 16)).astype("f4")
    names = ["layers.0.input_norm.out", "layers.0.resid_mlp", "layers.1.resid_mlp"]
    found = concluded(tmp_path, dict.fromkeys(names, a), {name: a * np.float32(1 + 0.01 * at) for at, name in enumerate(names)})
    (finding,) = found.findings
    assert (finding.character, finding.side, finding.confirmed_by, found.consistency) == (
        "unknown",
        "unknown",
        ["fingerprint"],
        "undecided",
    )
    said = {sentence.kind: sentence for sentence in finding.evidence}
    assert "not proven" in said["fp_one_sided"].text
    assert said["growth"].values["layers"] == [0, 1]
    assert said["growth"].values["rel_l2"] == [pytest.approx(0.01, rel=1e-3), pytest.approx(0.02, rel=1e-3)]
    assert (finding.size.unequal, finding.size.smaller, finding.size.larger) == (128, 128, 0)
    about = {hypothesis.name: hypothesis for hypothesis in found.hypotheses}
    assert {about[name].state for name in ("config", "kernel_order")} == {"open"}
    assert "by fingerprint" in about["config"].because.text


def test_growth_follows_the_residual_stream() -> None:
    """The stream after the MLP, else after attention, else what was measured last in the layer; layers in their order."""
    rows = [
        result("layers.1.resid_attn", 3, rel_l2=0.3),
        result("layers.1.post_norm.out", 4, rel_l2=0.4),
        result("layers.0.resid_attn", 0, rel_l2=0.1),
        result("layers.0.resid_mlp", 1, rel_l2=0.2),
        result("layers.2.q.out", 5, rel_l2=0.5),
        result("layers.3.q.out", 6),
        result("final_norm.out", 7, rel_l2=0.9),
    ]
    links = chain.growth(rows)
    assert [(link.layer, link.boundary, link.rel_l2) for link in links] == [
        (0, "layers.0.resid_mlp", 0.2), (1, "layers.1.resid_attn", 0.3), (2, "layers.2.q.out", 0.5),
    ]  # fmt: skip
    assert chain.worded(links[:1]) is None
