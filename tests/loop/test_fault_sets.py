"""The sets themselves: what they hold is known, apart, and varied enough to prove something."""

from __future__ import annotations

from collections import Counter

from toys.switches import FAULTS, LAYERS, ROUNDINGS, SWITCHES

from loop import fault_sets

# Faults that need another model on the other side, that are no local fault of a recorded module, or that another one stands for.
LEFT_OUT = {
    "window_off_by_one", "padding_left_in", "embedding_multiplier", "head_fp32", "positions_off_by_one", "residual_of_norm", "other_norm",
    "altered_token", "altered_channel", "altered_stream", "interleaved_rotation", "norms_bfloat16",
}  # fmt: skip
FIFTY = [fault_sets.drawn(seed) for seed in range(50)]


def test_every_switch_of_the_toys_is_in_or_out() -> None:
    assert {*fault_sets.LOGIC, *fault_sets.ROUNDING} | LEFT_OUT == {*FAULTS, *ROUNDINGS}
    assert not LEFT_OUT & {*fault_sets.LOGIC, *fault_sets.ROUNDING}


def test_where_a_fault_shows_is_where_its_switch_says() -> None:
    """Two tables of one fact: the first boundary here, and where the toys' own tests see it differ."""
    for name in (*fault_sets.LOGIC, *fault_sets.ROUNDING):
        layer = 0 if name in fault_sets.WHOLE_MODEL else 2
        assert fault_sets.Fault(name, "train", layer).boundaries[0] == SWITCHES[name].of_layer(layer).seen


def test_no_two_faults_stand_at_one_place() -> None:
    for one in FIFTY:
        places = Counter(place for fault in one.faults for place in fault.also)
        assert max(places.values(), default=1) == 1, one
        assert len({fault.name for fault in one.faults}) == len(one.faults)


def test_fifty_sets_hold_every_switch_both_sides_and_every_k() -> None:
    assert [fault_sets.drawn(seed) for seed in range(50)] == FIFTY, "not seeded"
    assert Counter(one.k for one in FIFTY) == dict.fromkeys(range(5), 10)
    drawn = [fault for one in FIFTY for fault in one.faults]
    assert {fault.name for fault in drawn} == {*fault_sets.LOGIC, *fault_sets.ROUNDING}
    assert {(fault.side, fault.character) for fault in drawn} == {(s, c) for s in ("train", "infer") for c in ("logic", "rounding")}
    assert {fault.layer for fault in drawn} == set(range(LAYERS))
    mixed = [one for one in FIFTY if one.of("logic") and one.of("rounding")]
    assert len(mixed) > 20
