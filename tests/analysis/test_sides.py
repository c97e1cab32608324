"""A side: its digest, what a name means on it, and what may not be compared."""

import hashlib
import os
import shutil
from pathlib import Path

import dumping
import numpy as np
import pytest
from dump_analysis import comparable, sides
from dump_analysis.sides import Side
from dumping import Tensor, of, output_of, outputs, write_unit
from msprobe_files.errors import DumpError
from msprobe_files.operands import Source

ONE = {"a": of([1.0, 2.0])}


def opened(*paths: Path, label: str = "train") -> Side:
    return sides.open_side(label, [str(path) for path in paths])


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- digests ---


def test_the_digest_of_one_unit_is_that_of_its_dump_json(tmp_path: Path) -> None:
    """From every path that leads there."""
    unit = write_unit(tmp_path / "d", outputs(ONE))
    wanted = hashlib.sha256((unit / "dump.json").read_bytes()).hexdigest()
    for path in (tmp_path / "d", unit.parent, unit, unit / "dump_tensor_data", unit / "dump.json"):
        assert opened(path).digest == wanted


def test_the_digest_of_several_units_is_over_their_sorted_lines(tmp_path: Path) -> None:
    """Sorted as text: rank10 before rank2. The order of the paths is nothing to it."""
    folders = [
        write_unit(tmp_path / str(at), outputs({"a": of([float(at)])}), step=at % 2, rank=rank) for at, rank in enumerate((2, 10, 0))
    ]
    lines = [
        f"{folder.parent.name}/{folder.name} {hashlib.sha256((folder / 'dump.json').read_bytes()).hexdigest()}\n" for folder in folders
    ]
    assert opened(*folders).digest == opened(*folders[::-1]).digest == digest_of("".join(sorted(lines)))


def test_the_digest_without_a_dump_json_is_over_names_and_sizes(tmp_path: Path) -> None:
    unit = write_unit(tmp_path, outputs({"b": of([1.0] * 100), "a": of([1.0])}), listed=False)
    files = {path.name: path.stat().st_size for path in (unit / "dump_tensor_data").iterdir()}
    assert len(files) == 2
    assert opened(unit).digest == digest_of("".join(f"{name} {files[name]}\n" for name in sorted(files)))
    assert not opened(unit).units[0].order_known


def test_a_changed_dump_json_changes_the_digest_and_a_copy_does_not(tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "a", outputs(ONE))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before = opened(unit).digest
    assert opened(tmp_path / "b").digest == before
    (unit / "dump.json").write_text((unit / "dump.json").read_text() + " ")
    assert opened(unit).digest != before


# --- units ---


def test_a_path_given_twice_is_one_unit(tmp_path: Path) -> None:
    unit = write_unit(tmp_path, outputs(ONE))
    assert len(opened(tmp_path, unit, unit / "dump.json").units) == 1


def test_a_side_of_several_folders_holds_all_their_units(tmp_path: Path) -> None:
    """Parts that lie apart, in the order of steps and ranks."""
    paths = [
        write_unit(tmp_path / name, outputs(ONE), step=step, rank=rank) for name, step, rank in (("x", 1, 0), ("y", 0, 1), ("z", 0, 0))
    ]
    assert [(unit.place.step, unit.place.rank) for unit in opened(*paths).units] == [(0, 0), (0, 1), (1, 0)]


def test_an_empty_side_says_what_to_check(tmp_path: Path) -> None:
    side = opened(tmp_path, label="infer")
    assert (side.units, side.by_name) == ((), {})
    reason = sides.empty_reason(side)
    assert reason is not None
    assert reason.startswith("the infer dump holds no tensors")
    assert [reason.index(word) for word in ("graph mode", "hook", "installed", "rank")] == sorted(
        reason.index(word) for word in ("graph mode", "hook", "installed", "rank")
    )
    assert sides.empty_reason(opened(write_unit(tmp_path / "d", outputs(ONE)))) is None


# --- names ---


def test_a_name_means_its_tensor(tmp_path: Path) -> None:
    side = opened(write_unit(tmp_path, outputs({"a": of([1.0]), "ab": of([2.0])})))
    place = sides.resolve(side, Source(output_of("a"), None, None, None))
    assert place is not None
    assert (place.record.name, place.unit.place.rank) == (output_of("a"), 0)
    assert sides.resolve(side, Source(output_of("c"), None, None, None)) is None


def test_a_glob_must_hit_one(tmp_path: Path) -> None:
    """None: nowhere. One: that. Two: refused, with the candidates."""
    side = opened(write_unit(tmp_path, outputs({"a.x": of([1.0]), "b.x": of([2.0])})))
    assert sides.resolve(side, Source("Module.c*", None, None, None)) is None
    place = sides.resolve(side, Source("Module.b*output.?", None, None, None))
    assert place is not None
    assert place.record.name == output_of("b.x")
    with pytest.raises(DumpError, match=r"matches 2 tensors of train: .*a\.x.*b\.x.*Narrow it"):
        sides.resolve(side, Source("Module.*.x.*", None, None, None))


def test_a_name_that_holds_glob_signs_means_itself(tmp_path: Path) -> None:
    """A path like ``blocks[0]`` is recorded so; read as a glob it would hit the other one."""
    side = opened(write_unit(tmp_path, outputs({"b[0]": of([1.0]), "b0": of([2.0])})))
    place = sides.resolve(side, Source(output_of("b[0]"), None, None, None))
    assert place is not None
    assert place.record.name == output_of("b[0]")


def test_rank_and_step_choose_among_units(tmp_path: Path) -> None:
    """Without them two units that hold the name are refused, by name and by glob."""
    for step, rank in ((0, 0), (0, 1), (1, 0)):
        write_unit(tmp_path, outputs({"a": of([float(step)] * (rank + 1))}), step=step, rank=rank)
    side = opened(tmp_path)
    for step, rank in ((0, 0), (0, 1), (1, 0)):
        place = sides.resolve(side, Source(output_of("a"), rank, step, None))
        assert place is not None
        assert (place.unit.place.step, place.unit.place.rank) == (step, rank)
    assert sides.resolve(side, Source(output_of("a"), 1, None, None)) == sides.resolve(side, Source(output_of("a"), 1, 0, None))
    assert sides.resolve(side, Source(output_of("a"), 7, None, None)) is None
    for name in (output_of("a"), "Module.a*"):
        with pytest.raises(DumpError, match=r"3 units of train hold it \(step0/rank0, step0/rank1, step1/rank0\)"):
            sides.resolve(side, Source(name, None, None, None))


# --- what may not be compared ---


def test_c17_the_same_folder_is_refused_by_every_path(tmp_path: Path) -> None:
    """C17: a link, a path to a part of it, one common unit among several."""
    unit = write_unit(tmp_path / "d", outputs(ONE))
    other = write_unit(tmp_path / "e", outputs(ONE), rank=1)
    (tmp_path / "link").symlink_to(tmp_path / "d")
    train = opened(tmp_path / "d")
    for paths in ([unit], [unit / "dump.json"], [tmp_path / "link"], [tmp_path / "e", unit]):
        with pytest.raises(DumpError, match="both sides resolve to the same files"):
            comparable.check_comparable(train, opened(*paths, label="infer"))
    comparable.check_comparable(train, opened(other, label="infer"))


def test_c17_a_copy_elsewhere_is_compared(tmp_path: Path) -> None:
    write_unit(tmp_path / "d", outputs(ONE))
    shutil.copytree(tmp_path / "d", tmp_path / "e")
    comparable.check_comparable(opened(tmp_path / "d"), opened(tmp_path / "e", label="infer"))


def test_two_dumps_of_one_step_and_rank_are_refused(tmp_path: Path) -> None:
    """On either side; the folders are named, those of other ranks are not."""
    write_unit(tmp_path / "d", outputs(ONE), rank=1)
    unit = write_unit(tmp_path / "d", outputs(ONE))
    shutil.copytree(unit, unit.with_name("proc7"))
    double, single = opened(tmp_path / "d"), opened(write_unit(tmp_path / "e", outputs(ONE)), label="infer")
    assert sorted(comparable.duplicates(double)) == ["step0/proc7", "step0/rank0"]
    assert comparable.duplicates(single) == []
    for pair in ((double, single), (single, double)):
        with pytest.raises(DumpError, match=r"several dumps of train .*step0/proc7.* Hand one of them\."):
            comparable.check_comparable(*pair)


def layers(root: Path, tensors: list[Tensor], path: str = "model.layers.{}") -> Side:
    """A side whose decoder layers return these tensors (and a block inside each that differs)."""
    made = {}
    for at, tensor in enumerate(tensors):
        made[path.format(at) + ".mlp"] = of([float(at)] * 4)
        made[path.format(at)] = tensor
    return opened(write_unit(root, outputs(made)))


def test_b18_equal_outputs_of_three_layers_are_a_captured_buffer(tmp_path: Path) -> None:
    """B18: graph capture copies one final buffer into each layer's file."""
    clean, captured = (
        layers(tmp_path / "a", [of([float(at), 1.0, 2.0]) for at in range(3)]),
        layers(tmp_path / "b", [of([3.0, 1.0, 2.0])] * 3),
    )
    assert (comparable.captured_layers(clean), comparable.captured_layers(captured)) == (0, 3)
    for pair in ((clean, captured), (captured, clean)):
        with pytest.raises(DumpError, match="3 layer outputs on the train side are bitwise equal: captured buffer, not data"):
            comparable.check_comparable(*pair)


PROVE_NOTHING = {
    "two layers": [of([1.0, 2.0, 3.0])] * 2,
    "zeros of a dummy run": [of([0.0] * 8)] * 4,
    "one element": [of([1.5], "bfloat16")] * 4,
    "no rows": [of(np.zeros((0, 4)))] * 3,
    "no columns": [of(np.zeros((4, 0)))] * 3,
    "one layer differs": [of([1.0, 2.0, 3.0])] * 3 + [of([1.0, 2.0, 3.5])],
    "the last element differs": [of([1.0] * 3000 + [float(at)]) for at in range(3)],
    "another length": [of([[1.0, 2.0, 3.0]])] * 2 + [of([[1.0, 2.0, 3.0, 4.0]])],
}


@pytest.mark.parametrize("tensors", PROVE_NOTHING.values(), ids=PROVE_NOTHING)
def test_b18_what_proves_no_captured_buffer(tmp_path: Path, tensors: list[Tensor]) -> None:
    assert comparable.captured_layers(layers(tmp_path, tensors)) == 0


def test_b18_layers_that_return_pairs(tmp_path: Path) -> None:
    """Both outputs are looked at: equal residuals beside differing branches are no capture."""
    for name, second, wanted in (("same", [5.0, 6.0, 7.0], 3), ("other", [], 0)):
        entries = {}
        for at in range(3):
            pair = [of([1.0, 2.0, 3.0]), of(second or [float(at), 6.0, 7.0])]
            entries[f"Module.model.layers.{at}.Layer.forward.0"] = {"output": pair}
        assert comparable.captured_layers(opened(write_unit(tmp_path / name, entries))) == wanted


def test_b18_beside_another_list_of_layers(tmp_path: Path) -> None:
    """A vision tower runs first and is sound; the language model's layers are captured."""
    tower = {f"visual.blocks.{at}": of([float(at), 1.0, 2.0]) for at in range(4)}
    model = {f"model.layers.{at}": of([7.0, 8.0, 9.0]) for at in range(3)}
    assert comparable.captured_layers(opened(write_unit(tmp_path, outputs({**tower, **model})))) == 3


def test_b18_in_one_of_several_units(tmp_path: Path) -> None:
    write_unit(tmp_path, outputs({f"layers.{at}": of([float(at), 2.0, 3.0]) for at in range(3)}))
    write_unit(tmp_path, outputs({f"model.layers.{at}": of([9.0, 2.0, 3.0]) for at in range(3)}), rank=1)
    assert comparable.captured_layers(opened(tmp_path)) == 3


def test_b18_costs_little_memory(tmp_path: Path) -> None:
    """Three equal outputs of 8 MiB: catches whole tensors held at once."""
    import tracemalloc

    side = layers(tmp_path, [dumping.of_bits(np.arange(1 << 22).astype("<u2"), "bfloat16")] * 3)
    tracemalloc.start()
    assert comparable.captured_layers(side) == 3
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_a_missing_layer_file_is_no_proof(tmp_path: Path) -> None:
    side = layers(tmp_path, [of([1.0, 2.0, 3.0])] * 3)
    os.unlink(tmp_path / "step0/rank0/dump_tensor_data" / f"{output_of('model.layers.1')}.pt")
    assert comparable.captured_layers(side) == 0
