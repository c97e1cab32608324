"""Replay of ranks, stages and steps: rows said of the assembled dump are the same values, and every module follows from them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.assembly_plan import Assembled, PartAt, SidePlan, UnitAt
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.assembly import assemble, expanded
from dump_analysis.floats import Array
from dump_analysis.replay.assembled import gathered, whole_pair
from dump_analysis.replay.recorded import value_of
from dump_analysis.sides import Side, open_side
from dump_analysis.tensors import Files
from dumping import of, output_of, outputs, write_unit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laying import SAMPLES, Sample
from msprobe_files.operands import Op, Operand, OperandError, Source

SEVERAL = sorted(path.parent.relative_to(SAMPLES).as_posix() for path in SAMPLES.glob("several/*/pair.json"))


def opened(pair: Sample) -> tuple[Side, Side, SemanticMapping]:
    train, infer = pipeline.open_pair([str(pair.train)], [str(pair.infer)])
    return train, infer, pipeline.mapping_step(train, infer, None)[0]


def values(side: Side, operand: Operand) -> Array:
    files = Files()
    try:
        matrix = value_of(files, side, operand)
        return matrix.read(0, matrix.rows)
    finally:
        files.close()


@pytest.mark.parametrize("name", SEVERAL)
def test_a_row_of_the_assembled_dump_holds_the_values_of_the_units(sample: Callable[[str], Sample], name: str) -> None:
    """A part in the wrong place, heads or gate and up out of order, a token twice: the values are read by two ways and are equal."""
    train, infer, mapping = opened(sample(name))
    whole = whole_pair(mapping, train, infer)
    assert whole.left_out == {}
    assert [row.boundary for row in whole.mapping.boundaries] == [row.boundary for row in mapping.boundaries]
    rows: list[tuple[Row, Row]] = list(zip(mapping.boundaries, whole.mapping.boundaries, strict=True))
    rows += zip(mapping.weights, whole.mapping.weights, strict=True)
    for given_row, said in rows:
        for side, made in ((train, whole.train), (infer, whole.infer)):
            one, two = values(side, getattr(given_row, side.label)), values(made, getattr(said, side.label))
            assert np.array_equal(one.reshape(-1), two.reshape(-1), equal_nan=True), (side.label, given_row.boundary)


@pytest.mark.parametrize("name", SEVERAL)
def test_every_module_of_a_clean_pair_follows(sample: Callable[[str], Sample], name: str, tmp_path: Path) -> None:
    """Shards read as one, partial sums rounded by ranks, chunks as tokens, stages as layers; nothing is convicted for lying on several."""
    train, infer, mapping = opened(sample(name))
    results, _ = pipeline.replay_step(train, infer, mapping, "0" * 64, tmp_path / pipeline.REPLAY, {}, quiet=True)
    attention = ("attn_core", "q_rope", "k_rope")
    left = {module.module for module in results.modules if module.verdict not in ("same", "rounding")}
    assert {name for name in left if not name.endswith(attention)} == set()
    for counts in results.calibration.values():
        assert not any(count.unexplained for count in counts.values())
        assert counts["linear"].modules >= 6


def test_the_ranks_partial_sums_are_named(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Row-parallel linears of two ranks: each rank's sum is rounded, then their sum; the others are one sum."""
    train, infer, mapping = opened(sample("several/qwen3-megatron_tp2-sglang_tp2-clean"))
    results, _ = pipeline.replay_step(train, infer, mapping, "0" * 64, tmp_path / pipeline.REPLAY, {}, quiet=True)
    found = {module.module: (module.train.variant, module.infer.variant) for module in results.modules if module.operator == "linear"}
    for name, variants in found.items():
        wanted = "partials_2_rounded" if name.endswith(("o_proj", "down")) else "plain"
        assert variants == (wanted, wanted), name
    # What the artefact calls entries is what the units call them.
    recorded = {entry for unit in train.units for entry in unit.entries}
    assert {module.train.entry for module in results.modules} <= recorded


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_cut_of_an_assembled_tensor_is_found_again(data: st.DataObject, tmp_path: Path) -> None:
    """Said of the units and back: the same values, whatever tokens, heads and columns are cut out of however many ranks."""
    ranks, tokens, heads, width = (data.draw(st.integers(1, high), label=name) for name, high in _SIZES.items())
    folder = tmp_path / f"{ranks}-{tokens}-{heads}-{width}"
    draw = np.random.default_rng(ranks + tokens)
    for rank in range(ranks):
        write_unit(folder, outputs({"m": of(draw.standard_normal((tokens, heads, width)))}), rank=rank)
    side, name = open_side("train", [str(folder)]), output_of("m")
    order = [PartAt(rank=rank, dump_step=0, name=name) for rank in range(ranks)]
    plan = SidePlan(units=[UnitAt(0, rank) for rank in range(ranks)], tensors=[Assembled(name=name, how="cat", axis=1, order=order)])
    whole = assemble(side, plan)
    first, last = sorted(data.draw(st.lists(st.integers(0, ranks * heads * width), min_size=2, max_size=2, unique=True), label="columns"))
    taken = data.draw(st.lists(st.integers(0, tokens - 1), min_size=1, unique=True), label="tokens")
    flat = Op("reshape", shape=(tokens, ranks * heads * width))
    operand = Operand(
        [Source(name, None, None, (flat, Op("take", axis=0, picked=tuple(taken)), Op("slice", axis=1, start=first, stop=last)))]
    )
    try:
        units = expanded(operand, whole.side)
        back = gathered(units, whole)
    except OperandError:  # what no flat operand says, or what is no cut in rows and columns: refused, never wrong
        return
    assert np.array_equal(values(side, units).reshape(-1), values(whole.side, back).reshape(-1))


_SIZES = {"ranks": 3, "tokens": 4, "heads": 3, "width": 4}


def test_what_is_no_part_of_the_assembled_dump_is_refused(tmp_path: Path) -> None:
    for rank in range(2):
        write_unit(tmp_path, outputs({"m": of(np.zeros((2, 2))), "n": of(np.zeros((2, 2)))}), rank=rank)
    order = [PartAt(rank=rank, dump_step=0, name=output_of("m")) for rank in range(2)]
    tensors = [Assembled(name=output_of("m"), how="cat", axis=1, order=order)]
    whole = assemble(open_side("train", [str(tmp_path)]), SidePlan(units=[UnitAt(0, 0), UnitAt(0, 1)], tensors=tensors))
    with pytest.raises(OperandError, match="no part of the assembled dump"):
        gathered(Operand([Source(output_of("n"), 0, 0, ())]), whole)
