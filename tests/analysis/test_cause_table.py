"""The table of causes: every row is reached by its own cause through the real measures, and says no more than they do."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.artefacts.replay_results import ModuleReplay, SideReplay, Verdict
from dump_analysis.boundaries import is_weight
from dump_analysis.causes import around, looks, ranking
from dump_analysis.causes.table import PLACES, TABLE, alternatives
from dump_analysis.wording import TABLE as WORDS
from dumping import bits, compared_all, of_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from running import SCRIPTS
from single_causes import MORE, SINGLE, Made

Array = np.ndarray[Any, Any]


def tensors(both: "tuple[Array, Array]", dtype: str) -> list[Any]:
    formats = dtype.split() * 2
    return [
        of_bits(value.astype(np.uint8) if one.startswith("float8") else bits(value, one), one)
        for value, one in zip(both, formats, strict=False)
    ]


def measured(root: Path, made: Made) -> tuple[BoundaryResult, list[BoundaryResult]]:
    """What the gate measures of the boundary, and of all."""
    rows = {**{name: (both, "int64" if both[0].dtype == np.int64 else "bfloat16") for name, both in made.around.items()}}
    rows[made.boundary] = made.both, made.dtype
    sides = {name: tensors(both, dtype) for name, (both, dtype) in rows.items()}
    results = compared_all(root, {name: pair[0] for name, pair in sides.items()}, {name: pair[1] for name, pair in sides.items()})
    return results[-1], results


def ranked(root: Path, made: Made, replay: "ModuleReplay | None" = None) -> list[ranking.Ranked]:
    result, found = measured(root, made)
    weights = [one for one in found if is_weight(one.boundary)]
    return ranking.ranked(result, [one for one in found if not is_weight(one.boundary)], weights, replay)


FAMILY = {cause.name: cause.family for cause in TABLE}


# --- each row ---


def test_every_row_has_its_own_cause_made_here() -> None:
    """A row that no measure can reach would be a promise; numbers, names and sources are what people cite."""
    assert set(SINGLE) == {cause.name for cause in TABLE}
    assert len({cause.rule for cause in TABLE}) == len(TABLE) == len(FAMILY)
    for cause in TABLE:
        assert all(re.fullmatch(r"[\w.-]+(/[\w.-]+)?#\d+", source) for source in cause.sources.split()), cause.name
        assert set(cause.places.split()) <= set(PLACES), cause.name


def test_the_reference_lists_every_rule_with_its_sources() -> None:
    """People cite a rule by its number and look it up there."""
    text = (SCRIPTS.parent / "references/analysis.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([A-Z]) \|.*\| (.*?) \|$", text, re.MULTILINE)
    told = {int(number): (family, sources) for number, family, sources in rows}
    assert told == {cause.rule: (cause.family, "、".join(cause.sources.split()) or "–") for cause in TABLE}


def test_every_sign_that_a_row_asks_for_is_measured_and_worded(tmp_path: Path) -> None:
    """A slip in a sign leaves a row that never fits, without an error."""
    asked = {sign for cause in TABLE for signs in (cause.needs, cause.usual) for choice in alternatives(signs) for sign in choice}
    seen: set[str] = set()
    for number, made in enumerate([*(build() for build in SINGLE.values()), *(build() for _, build in MORE.values())]):
        result, found = measured(tmp_path / str(number), made)
        weights = [one for one in found if is_weight(one.boundary)]
        seen |= looks.signs_of(result).keys() | around.signs_around(result, found, weights).keys()
    assert asked - seen == set()
    worded = {kind.removeprefix("trait.") for kind in WORDS if kind.startswith("trait.")}
    assert {sign for sign in asked | seen if not sign.endswith(".unknown")} <= worded
    assert {kind for kind in WORDS if kind.startswith("cause.")} == {cause.kind for cause in TABLE}


@pytest.mark.parametrize("name", MORE)
def test_each_cause_is_named_with_its_other_signs(name: str, tmp_path: Path) -> None:
    """The other side, a weight or an id that was compared, a head: what the first ones lack."""
    cause, build = MORE[name]
    assert cause in [one.cause.name for one in ranked(tmp_path, build())][:3]


@pytest.mark.parametrize("name", SINGLE)
def test_each_cause_is_among_the_first_that_its_own_fingerprint_names(name: str, tmp_path: Path) -> None:
    """Catches a row that asks for what no measure says, and one that others always hide: three are told."""
    names = [one.cause.name for one in ranked(tmp_path, SINGLE[name]())]
    assert name in names[:3], names


@pytest.mark.parametrize("name", SINGLE)
def test_rounding_and_faults_do_not_take_each_other_s_place(name: str, tmp_path: Path) -> None:
    """The first that is named for rounding is a rounding, for a fault a fault: what density and ULPs alone get wrong both ways."""
    first = ranked(tmp_path, SINGLE[name]())[0]
    assert (first.cause.family == "R") == (FAMILY[name] == "R"), first.cause.name


# --- what a ranking says ---


def test_the_best_has_least_against_it_and_says_both(tmp_path: Path) -> None:
    """Another rotary base leaves the slowest pair of channels alone, another pairing none: told apart by that, and said."""
    theta, pairing = ranked(tmp_path, SINGLE["rope_theta"]())[:2]
    assert (theta.cause.name, pairing.cause.name) == ("rope_theta", "rope_pairing")
    assert theta.speaks_against == ()
    (against,) = pairing.speaks_against
    assert "columns" in against.text
    assert any("the first token equal" in said.text for said in theta.speaks_for)
    assert (theta.experiment.kind, theta.refuted_by.kind) == ("confirm_config", "refute_config")


def test_a_window_and_a_lost_chunk_are_not_told_apart(tmp_path: Path) -> None:
    """Both leave earlier tokens exact: one fingerprint, two causes, and neither may be hidden by the other."""
    for name in ("window", "chunk_state"):
        assert {one.cause.name for one in ranked(tmp_path / name, SINGLE[name]())[:2]} == {"window", "chunk_state"}


def test_equal_weights_exclude_causes_by_weights(tmp_path: Path) -> None:
    """A permutation that the weights do not have is not one of the weights."""
    made = SINGLE["rows_reordered"]()
    assert "rows_reordered" in {one.cause.name for one in ranked(tmp_path / "unknown", made)}
    known = made._replace(around={"layers.0.q.weight": made.both[:1] * 2})
    assert not [one for one in ranked(tmp_path / "equal", known) if one.cause.family == "W"]


def test_rotation_that_is_equal_is_no_cause_behind_it(tmp_path: Path) -> None:
    made = SINGLE["attention_scale"]()
    rotated = {f"layers.0.{name}_rope.out": made.both[:1] * 2 for name in "qk"}
    before = {one.cause.name for one in ranked(tmp_path / "unknown", made)}
    after = {one.cause.name for one in ranked(tmp_path / "equal", made._replace(around=rotated))}
    assert before - after == {name for name in before if name.startswith("rope_")} != set()


def replayed(verdict: Verdict) -> ModuleReplay:
    side = SideReplay(None, [], None, None, None, None, 0, None, {}, "absent", None, "unknown")
    return ModuleReplay("layers.0.post_norm", None, "rms_norm", verdict, side, side, None, [], [])


@pytest.mark.parametrize(("verdict", "families"), [("unknown", {"C"}), ("logic", {"C"}), ("rounding", set()), ("same", set())])
def test_what_replay_decided_is_guessed_no_more(verdict: Verdict, families: set[str], tmp_path: Path) -> None:
    found = ranked(tmp_path, SINGLE["norm_eps"](), replayed(verdict))
    assert {one.cause.family for one in found} == families


def test_no_pair_of_values_breaks_a_ranking(tmp_path: Path) -> None:
    """Zeros, one row, one column, infinities, another shape: whatever the gate measures has signs or none."""

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(sorted({name for group in PLACES.values() for name in group})))
        rows, columns, more = (data.draw(st.integers(1, 5)) for _ in range(3))
        numbers = st.sampled_from([0.0, 1.0, -1.0, 1.5, 2.0**-126, np.inf, np.nan])
        both = [
            np.array(data.draw(st.lists(numbers, min_size=size * columns, max_size=size * columns))).reshape(size, columns)
            for size in (rows, data.draw(st.sampled_from([rows, more])))
        ]
        root = tmp_path / str(data.draw(st.integers(0, 10**9)))
        boundary = "layers.0.q.weight" if place == "weight" else f"layers.0.{place.replace('.N.', '.0.')}"
        for one in ranked(root, Made(boundary, (both[0], both[1]))):
            assert one.speaks_for
            assert one.worded.text

    judge()


def test_a_place_is_its_boundary_without_numbers() -> None:
    """Layers and experts share their causes."""
    assert around.place_in_table("layers.3.experts.17.out") == "experts.N.out"
    assert around.place_in_table("layers.0.q.weight") == "weight"
    assert [around.place_in_table(name) for name in ("logits", "layers.0.resid_mlp")] == ["logits", "resid_mlp"]
