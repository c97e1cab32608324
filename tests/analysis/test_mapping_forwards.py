"""Several forwards of one model in a unit: which one is joined, on networks recorded here several times under one set of names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networks
import numpy as np
import pytest
from dump_analysis.mapping.joining.join import join
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.sides import open_side
from dumping import write_unit
from networks import LAYERS, TOKENS, WORDS, Array, Network, Recording

OTHER, THIRD = (np.random.default_rng(seed).integers(0, WORDS, TOKENS) for seed in (77, 78))
ROOT = "Module.loop.M.forward.0"
Entries = dict[str, dict[str, Any]]


def recorded(ids: Array | None = None, weights: dict[str, Array] | None = None) -> tuple[Recording, Recording]:
    """Trainer and engine of the plain network over the same ids."""
    held = networks.weights_of(Network()) if weights is None else weights
    with pytest.MonkeyPatch.context() as patch:
        if ids is not None:
            patch.setattr(networks, "ids", lambda: ids)
        return networks.trainer(Network(), held), networks.engine(Network(), held)


def moved() -> dict[str, Array]:
    """Weights of another policy."""
    rng = np.random.default_rng(1)
    held = networks.weights_of(Network())
    return {
        name: (value + 0.3 * np.abs(value).mean() * rng.standard_normal(value.shape)).astype(np.float32) for name, value in held.items()
    }


def numbered(entry: str, call: int) -> str:
    return entry.replace(".forward.0", f".forward.{call}")


def calls(*records: Recording) -> tuple[Entries, dict[str, str | None]]:
    """The forwards one after the other, as entries and trace."""
    entries: Entries = {}
    trace: dict[str, str | None] = {}
    for call, record in enumerate(records):
        entries |= {numbered(entry, call): slots for entry, slots in record.entries.items()}
        trace |= {numbered(entry, call): parent and numbered(parent, call) for entry, parent in record.trace.items()}
    return entries, trace


def written(root: Path, entries: Entries, trace: dict[str, str | None] | None) -> str:
    return str(write_unit(root, entries, trace=trace))


def join_written(train: str, infer: str) -> JoinedSides:
    return join(open_side("train", [train]), open_side("infer", [infer]))


def joined(root: Path, train: Sequence[Recording], infer: Sequence[Recording]) -> JoinedSides:
    return join_written(written(root / "train", *calls(*train)), written(root / "infer", *calls(*infer)))


def call_numbers(found: JoinedSides, side: str) -> set[str]:
    """The call numbers in all that is joined of a side: ids, positions, rows and modules."""
    made = getattr(found, side)
    names = [source.name for row in found.rows for source in getattr(row, side).sources]
    names += [operand.sources[0].name for operand in (made.ids, made.positions) if operand is not None]
    names += [f"{pair[side == 'infer']}.output.0" for pair in found.modules]
    return {name.split(".forward.")[1].split(".")[0] for name in names}


def count(record: Recording) -> int:
    return sum(len(slots[kind]) for slots in record.entries.values() for kind in slots)


def places(found: JoinedSides) -> set[tuple[str, str]]:
    """The joined rows by module and place, without call numbers."""

    def place(spot: Any) -> str:
        head, _, _ = spot.entry.partition(".forward.")
        return f"{head} {spot.io} {spot.path}"

    return {(place(row.train.spots[0]), place(row.infer.spots[0])) for row in found.rows}


@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_micro_batch_with_the_engines_tokens_is_joined_wherever_it_stands(tmp_path: Path, at: int) -> None:
    """Catches rows, positions or weights of another call than the one that the ids are of, and calls that nobody hears of."""
    ours, engine = recorded()
    others = [recorded(OTHER)[0], recorded(THIRD)[0]]
    found = joined(tmp_path, [*others[:at], ours, *others[at:]], [engine])
    assert call_numbers(found, "train") == {str(at)}
    assert places(found) == places(joined(tmp_path / "alone", [ours], [engine]))
    assert found.train.layers == LAYERS
    (remark,) = found.tokens.remarks
    assert remark.kind == "forward_by_ids"
    assert remark.values == {"side": "train", "n": 3, "entry": numbered(ours.roles["embedding"], at), "aside": 2 * count(ours)}
    assert found.tokens.alike is None


@pytest.mark.parametrize("actor", [0, 1])
def test_of_two_policies_over_the_same_tokens_the_one_with_the_engines_weights_is_joined(tmp_path: Path, actor: int) -> None:
    """Catches a comparison with the reference policy, whose ids are the actor's."""
    (policy, engine), (reference, _) = recorded(), recorded(weights=moved())
    found = joined(tmp_path, [policy, reference] if actor == 0 else [reference, policy], [engine])
    assert call_numbers(found, "train") == {str(actor)}
    assert [remark.kind for remark in found.tokens.remarks] == ["forward_by_weights"]
    assert found.tokens.remarks[0].values["entry"] == numbered(policy.roles["embedding"], actor)
    assert found.tokens.alike is None


@pytest.mark.parametrize("bare", [False, True], ids=["with_weights", "second_without_weights"])
def test_two_calls_that_match_equally_are_named_both(tmp_path: Path, bare: bool) -> None:
    """Catches a choice for which nothing speaks, taken in silence: weights that a call did not record speak neither way."""
    train, engine = recorded()
    entries, trace = calls(train, train)
    if bare:
        entries = {entry: {**slots, "parameters": {}} if ".forward.1" in entry else slots for entry, slots in entries.items()}
    found = join_written(written(tmp_path / "train", entries, trace), engine.write(tmp_path / "infer"))
    assert call_numbers(found, "train") == {"0"}
    alike = found.tokens.alike
    assert alike is not None
    both = [numbered(train.roles["embedding"], call) for call in (0, 1)]
    assert alike.train == [f"{entry}.input.0" for entry in both]
    assert alike.infer == [f"{engine.roles['embedding']}.input.0"]
    assert alike.reason.values["entries"] == both
    assert [remark.kind for remark in found.tokens.remarks] == ["forwards_alike"]


def test_micro_batches_that_both_sides_ran_are_no_doubt(tmp_path: Path) -> None:
    """Catches a doubt between pairs that are all right, and a pair of different batches."""
    (ours, engine), (theirs, other), (_, third) = recorded(), recorded(OTHER), recorded(THIRD)
    found = joined(tmp_path, [theirs, ours], [third, engine, other])
    assert (call_numbers(found, "train"), call_numbers(found, "infer")) in (({"0"}, {"2"}), ({"1"}, {"1"}))
    assert found.tokens.alike is None
    assert [(remark.kind, remark.values["side"], remark.values["n"]) for remark in found.tokens.remarks] == [
        ("forward_by_ids", "train", 2),
        ("forward_by_ids", "infer", 3),
    ]


def test_without_construct_json_the_calls_are_told_apart_all_the_same(tmp_path: Path) -> None:
    """Catches a cut that needs the nesting."""
    ours, engine = recorded()
    entries, _ = calls(recorded(OTHER)[0], ours)
    found = join_written(written(tmp_path / "train", entries, None), engine.write(tmp_path / "infer"))
    assert call_numbers(found, "train") == {"1"}


@pytest.mark.parametrize("traced", [False, True], ids=["untraced", "traced"])
def test_what_runs_before_the_embedding_belongs_to_its_own_forward(tmp_path: Path, traced: bool) -> None:
    """Catches a cut by time alone: the positions' module of the second forward runs before its embedding."""
    ours, engine = recorded()
    made = calls(recorded(OTHER)[0], ours)
    positions = ours.roles["positions"]
    entries: Entries = {}
    trace: dict[str, str | None] = {}
    for call in (0, 1):
        mine = [entry for entry in made[0] if entry.endswith(f".forward.{call}")]
        first = numbered(positions, call)
        entries |= {entry: made[0][entry] for entry in [first, *mine]}
        trace |= {entry: made[1][entry] for entry in [first, *(one for one in made[1] if one.endswith(f".forward.{call}"))]}
    found = join_written(written(tmp_path / "train", entries, trace if traced else None), engine.write(tmp_path / "infer"))
    assert call_numbers(found, "train") == {"1"}
    assert found.train.positions is not None
    assert found.train.positions.sources[0].name == f"{numbered(positions, 1)}.input.0"


def test_a_loop_that_holds_all_forwards_hides_none_of_them(tmp_path: Path) -> None:
    """Catches calls of one parent taken for one forward, and the parent taken for part of one."""
    ours, engine = recorded()
    entries, trace = calls(recorded(OTHER)[0], ours)
    last = list(ours.entries.values())[-1]["output"]
    entries[ROOT] = {"input": [], "output": last, "parameters": {}}
    trace = {ROOT: None, **{entry: parent or ROOT for entry, parent in trace.items()}}
    found = join_written(written(tmp_path / "train", entries, trace), engine.write(tmp_path / "infer"))
    assert call_numbers(found, "train") == {"1"}
    assert ROOT not in found.train.records.times.start


@pytest.mark.parametrize("forwards", [1, 2])
def test_a_module_that_every_layer_calls_cuts_no_forward(tmp_path: Path, forwards: int) -> None:
    """Catches a cut at each call of one rotary under one name: three calls of it are one forward of three layers."""
    train, engine = recorded()
    _, other = recorded(OTHER)
    entries, trace = calls(*([other, engine][-forwards:]))
    rotary = {
        numbered(engine.roles[f"layers.{layer}.rotary"], call): f"Module.rotary.M.forward.{LAYERS * call + layer}"
        for call in range(forwards)
        for layer in range(LAYERS)
    }
    entries = {rotary.get(entry, entry): slots for entry, slots in entries.items()}
    trace = {rotary.get(entry, entry): parent for entry, parent in trace.items()}
    found = join_written(train.write(tmp_path / "train"), written(tmp_path / "infer", entries, trace))
    alone = joined(tmp_path / "alone", [train], [engine])
    assert len(found.rows) == len(alone.rows)
    kept = {entry for entry in found.infer.records.times.start if entry.startswith("Module.rotary")}
    assert kept == {f"Module.rotary.M.forward.{LAYERS * (forwards - 1) + layer}" for layer in range(LAYERS)}
    assert len(found.tokens.remarks) == forwards - 1
