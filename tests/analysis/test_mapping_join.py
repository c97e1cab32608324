"""Two sides of one small model joined by what their tensors hold: separate weights against fused ones, under random names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dump_analysis.mapping.joining.join import join
from dump_analysis.mapping.joining.joined import Joined, JoinedSides
from dump_analysis.mapping.tokens.token_join import TokenJoin
from dump_analysis.sides import Side, open_side
from dumping import of, write_unit
from msprobe_files.errors import DumpError

TOKENS, HIDDEN, QUERY, KEY, MIDDLE, WORDS, LAYERS = 18, 24, 24, 12, 40, 90, 3
IDS = np.random.default_rng(0).permutation(WORDS)[:TOKENS]


def matrix(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def weights(*, exchanged: tuple[str, str] | None = None) -> dict[str, Any]:
    """The model's weights; in every layer two of them may be exchanged."""
    sizes = {"q": (QUERY, HIDDEN), "k": (KEY, HIDDEN), "v": (KEY, HIDDEN), "o": (HIDDEN, QUERY)}
    sizes |= {"gate": (MIDDLE, HIDDEN), "up": (MIDDLE, HIDDEN), "down": (HIDDEN, MIDDLE)}
    made = {"embedding": matrix(1, WORDS, HIDDEN), "head": matrix(2, WORDS, HIDDEN), "norm": 1 + matrix(3, HIDDEN) / 4}
    for layer in range(LAYERS):
        made |= {f"{name}{layer}": matrix(100 * layer + at, *shape) / 5 for at, (name, shape) in enumerate(sizes.items())}
        made |= {f"{name}{layer}": 1 + matrix(100 * layer + at, HIDDEN) / 4 for at, name in ((50, "norm_in"), (51, "norm_post"))}
        if exchanged is not None:
            one, other = (f"{name}{layer}" for name in exchanged)
            made[one], made[other] = made[other], made[one]
    return made


def norm(x: Any, gain: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True)) * gain


def attention(q: Any, k: Any, v: Any) -> Any:
    """Causal, two query heads to one key head; k is rotated by half turns that depend on the token."""
    turned = k * np.where(np.arange(len(k))[:, None] % 3 == 0, -1, 1)
    k, v = np.tile(turned, (1, QUERY // KEY)), np.tile(v, (1, QUERY // KEY))
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / 5, -np.inf)
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return (shares / shares.sum(1, keepdims=True) @ v).astype(np.float32), turned


class Unit:
    """Entries in the order of starts, with the nesting that construct.json tells."""

    def __init__(self, batched: bool) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.trace: dict[str, str | None] = {}
        self._batched = batched

    def add(self, name: str, inputs: list[Any], outputs: list[Any], parent: str | None = None, weight: Any = None) -> None:
        entry, outer = (None if one is None else f"Module.{hash_of(one)}.C.forward.0" for one in (name, parent))
        assert entry is not None
        self.trace[entry] = outer
        slots: dict[str, Any] = {"input": [self._of(x) for x in inputs], "output": [self._of(x) for x in outputs]}
        self.entries[entry] = slots if weight is None else {**slots, "parameters": {"w": of(weight)}}

    def _of(self, x: Any) -> Any:
        x = x[None] if self._batched else x
        return of(x, "int64") if x.dtype.kind == "i" else of(x.astype(np.float32))


def hash_of(name: str) -> str:
    """A word that says nothing, so that a row is known to the test alone."""
    return f"w{int.from_bytes(name.encode(), 'little') % 999983}"


def trainer(ids: Any, made: dict[str, Any], *, keeps: bool = True) -> Unit:
    """[1, tokens, columns], weights apart, the stream recorded as the norm's input; ``keeps`` False: attention is not added to it."""
    unit = Unit(batched=True)
    x = made["embedding"][ids]
    unit.add("embedding", [ids], [x], None, made["embedding"])
    for at in range(LAYERS):
        y = norm(x, made[f"norm_in{at}"])
        unit.add(f"norm_in{at}", [x], [y], None, made[f"norm_in{at}"])
        q, k, v = (y @ made[f"{name}{at}"].T for name in "qkv")
        for name, value in (("q", q), ("k", k), ("v", v)):
            unit.add(f"{name}{at}", [y], [value], None, made[f"{name}{at}"])
        core = attention(q, k, v)[0]
        out = core @ made[f"o{at}"].T
        unit.add(f"o{at}", [core], [out], None, made[f"o{at}"])
        x = x + out if keeps else out
        y = norm(x, made[f"norm_post{at}"])
        unit.add(f"norm_post{at}", [x], [y], None, made[f"norm_post{at}"])
        gate, up = (y @ made[f"{name}{at}"].T for name in ("gate", "up"))
        unit.add(f"gate{at}", [y], [gate], None, made[f"gate{at}"])
        unit.add(f"act{at}", [gate], [gate / (1 + np.exp(-gate))])
        unit.add(f"up{at}", [y], [up], None, made[f"up{at}"])
        product = gate / (1 + np.exp(-gate)) * up
        down = product @ made[f"down{at}"].T
        unit.add(f"down{at}", [product], [down], None, made[f"down{at}"])
        x = x + down
    y = norm(x, made["norm"])
    unit.add("norm", [x], [y], None, made["norm"])
    unit.add("head", [y], [y @ made["head"].T], None, made["head"])
    return unit


def engine(ids: Any, made: dict[str, Any], noise: float = 1e-4) -> Unit:
    """[tokens, columns], qkv and gate_up fused, the norm returns the stream too; every result a little off."""
    unit = Unit(batched=False)
    draw = np.random.default_rng(5)

    def off(x: Any) -> Any:
        return x * (1 + noise * draw.normal(size=x.shape)).astype(np.float32)

    x, out = made["embedding"][ids], None
    unit.add("embedding", [ids], [x], None, made["embedding"])
    for at in range(LAYERS):
        for name in ("norm_in", "norm_post"):
            stream = x if out is None else x + out
            y = off(norm(stream, made[f"{name}{at}"]))
            unit.add(f"{name}{at}", [x] if out is None else [out, x], [y] if out is None else [y, stream], None, made[f"{name}{at}"])
            x = stream
            parts = ("q", "k", "v") if name == "norm_in" else ("gate", "up")
            fused = np.vstack([made[f"{part}{at}"] for part in parts])
            both = off(y @ fused.T)
            unit.add("+".join(parts) + str(at), [y], [both], None, fused)
            if name == "norm_in":
                q, k, v = np.split(both, [QUERY, QUERY + KEY], 1)
                inner, turned = attention(q, k, v)
                unit.add(f"rope{at}", [q, k], [q * 1.5, turned])
                unit.add(f"core{at}", [q * 1.5, turned, v], [inner])
            else:
                gate, up = np.split(both, 2, 1)
                inner = off(gate / (1 + np.exp(-gate)) * up)
                unit.add(f"act{at}", [both], [inner])
            last = "o" if name == "norm_in" else "down"
            out = off(inner @ made[f"{last}{at}"].T)
            unit.add(f"{last}{at}", [inner], [out], None, made[f"{last}{at}"])
    y = off(norm(x + out, made["norm"]))
    unit.add("norm", [out, x], [y, x + out], None, made["norm"])
    unit.add("head", [y], [y @ made["head"].T], None, made["head"])
    return unit


def opened(root: Path, label: str, unit: Unit, *, traced: bool = True) -> Side:
    return open_side(label, [str(write_unit(root / label, unit.entries, trace=unit.trace if traced else None))])


def rows_at(joined: JoinedSides, train: str) -> list[Joined]:
    """The rows whose trainer value is the output of a module."""
    entry = f"Module.{hash_of(train)}.C.forward.0"
    return [row for row in joined.rows if any((spot.entry, spot.io) == (entry, "output") for spot in row.train.spots)]


def same(row: Joined, whole: Any) -> bool:
    """Whether the row's engine value is this one, up to noise."""
    return row.infer.sample.shape == whole.shape and float(np.abs(row.infer.sample - whole).max()) < 0.05 * float(np.abs(whole).max())


EVERY = ["norm_in", "q", "k", "v", "o", "norm_post", "gate", "up", "down"]


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("weighed", [True, False])
def test_all_places_of_a_clean_pair_are_joined(tmp_path: Path, traced: bool, weighed: bool) -> None:
    """Fused parts by their columns, without weights or construct.json too; names say nothing here."""
    units = trainer(IDS, weights()), engine(IDS, weights())
    for slots in [] if weighed else [slots for unit in units for slots in unit.entries.values()]:
        slots.pop("parameters", None)
    sides = [opened(tmp_path, label, unit, traced=traced) for label, unit in zip(("train", "infer"), units, strict=True)]
    joined = join(*sides)
    assert joined.train.layers == joined.infer.layers == LAYERS
    for name in [f"{name}{at}" for at in range(LAYERS) for name in EVERY] + ["norm", "head"]:
        rows = rows_at(joined, name)
        assert len(rows) == 1, name
        assert same(rows[0], rows[0].train.sample), name
    assert joined.exchanged == []
    times = [row.train.time for row in joined.rows]
    assert times == sorted(times)


@pytest.mark.parametrize("side", ["train", "infer"])
@pytest.mark.parametrize("pair", [("k", "v"), ("gate", "up")])
def test_siblings_exchanged_in_all_layers_are_joined_by_role(tmp_path: Path, pair: tuple[str, str], side: str) -> None:
    """By content alone k would meet v everywhere, and the fault would be mapped away."""
    made = {one: weights(exchanged=pair if one == side else None) for one in ("train", "infer")}
    joined = join(opened(tmp_path, "train", trainer(IDS, made["train"])), opened(tmp_path, "infer", engine(IDS, made["infer"])))
    starts = {"k": QUERY, "v": QUERY + KEY, "gate": 0, "up": MIDDLE}
    assert len(joined.exchanged) == LAYERS
    for at in range(LAYERS):
        for name in pair:
            (row,) = rows_at(joined, f"{name}{at}")
            fused = next(node for node in joined.infer.nodes if node.width == (QUERY + 2 * KEY if name in "kv" else 2 * MIDDLE))
            assert row.infer.width == (KEY if name in "kv" else MIDDLE)
            if at == 0:
                part = fused.sample[:, starts[name] : starts[name] + row.infer.width]
                np.testing.assert_array_equal(row.infer.sample, part)
            assert any(row in crossing for crossing in joined.exchanged)


def test_a_residual_that_is_lost_in_all_layers_is_still_mapped(tmp_path: Path) -> None:
    """The trainer has no sum then; what its norm reads is what the engine's sum is to be compared with."""
    lost = trainer(IDS, weights(), keeps=False)
    joined = join(opened(tmp_path, "train", lost), opened(tmp_path, "infer", engine(IDS, weights())))
    for at in range(LAYERS):
        entry = f"Module.{hash_of(f'norm_post{at}')}.C.forward.0"
        rows = [row for row in joined.rows if any((spot.entry, spot.io, spot.path) == (entry, "output", "1") for spot in row.infer.spots)]
        assert len(rows) == 1
        assert any((spot.entry, spot.io) == (entry, "input") for spot in rows[0].train.spots)


# --- tokens ---

OTHER = np.random.default_rng(9).permutation(WORDS)[:TOKENS]


def join_of(tmp_path: Path, train: Any, infer: Any, positions: tuple[Any, Any] | None = None) -> TokenJoin:
    """Joins two sides that record only an embedding of these ids and, if given, positions."""
    sides = []
    for at, (label, ids) in enumerate((("train", train), ("infer", infer))):
        unit = Unit(batched=False)
        if positions is not None:
            unit.add("positions", [positions[at]], [])
        unit.add("embedding", [ids], [matrix(1, WORDS, 8)[ids]])
        sides.append(opened(tmp_path, label, unit))
    return join(*sides).tokens


PAD = np.zeros(5, np.int64)
COUNT = np.arange(TOKENS)
TOKEN_CASES = {  # trainer's ids, engine's ids, positions, first joined row of each
    "right padding": (np.concatenate([IDS, PAD]), IDS, None, (0, 0)),
    "left padding": (np.concatenate([PAD, IDS]), IDS, None, (5, 0)),
    "a batch's second request": (np.stack([OTHER, IDS]), IDS, None, (TOKENS, 0)),
    "packed after another, and padded": (
        np.concatenate([PAD, IDS]), np.concatenate([OTHER, IDS]),
        (np.concatenate([PAD + 1, COUNT]), np.concatenate([COUNT, COUNT])), (5, TOKENS),
    ),
    "double first token": (np.concatenate([IDS[:1], IDS]), IDS, None, (1, 0)),
}  # fmt: skip


@pytest.mark.parametrize("case", TOKEN_CASES)
def test_the_same_tokens_are_found(tmp_path: Path, case: str) -> None:
    """Rows joined at another offset would compare every token with another one."""
    train, infer, positions, starts = TOKEN_CASES[case]
    tokens = join_of(tmp_path, train, infer, positions)
    assert [run[:2] for run in tokens.runs] == [starts]
    assert (tokens.joined, tokens.matches) == (TOKENS, TOKENS)


@pytest.mark.parametrize("at", [0, 7, TOKENS - 1])
def test_one_id_that_differs_stays_joined(tmp_path: Path, at: int) -> None:
    """A token that was changed is a finding, not padding: also the first and the last."""
    changed = IDS.copy()
    changed[at] = OTHER[at]
    tokens = join_of(tmp_path, changed, IDS)
    assert (tokens.joined, tokens.matches, tokens.runs[0].train) == (TOKENS, TOKENS - 1, 0)
    assert at not in tokens.agree


def test_another_prompt_is_refused(tmp_path: Path) -> None:
    """A pair that is wrong as a whole must not be joined by the few ids that two prompts share."""
    with pytest.raises(DumpError, match="fewer than half of the token ids"):
        join_of(tmp_path, IDS, OTHER)


def test_a_side_without_tensor_files_is_refused(tmp_path: Path) -> None:
    """Statistics join nothing, and the remedy is another than that of missing ids."""
    recorded = {"type": "torch.Tensor", "dtype": "torch.int64", "shape": [TOKENS]}
    side = open_side("train", [str(write_unit(tmp_path / "t", {"Module.a.C.forward.0": {"input": [recorded]}}))])
    with pytest.raises(DumpError, match=r'no files of tensors .* Dump with task "tensor"'):
        join(side, side)


def test_several_units_a_side_are_refused(tmp_path: Path) -> None:
    """One of them at random would be a guess."""
    unit = trainer(IDS, weights())
    write_unit(tmp_path / "two", unit.entries, trace=unit.trace)
    write_unit(tmp_path / "two", unit.entries, trace=unit.trace, rank=1)
    side = open_side("train", [str(tmp_path / "two")])
    with pytest.raises(DumpError, match=r"2 units with tensors \(step0/rank0, step0/rank1\)\. Hand one"):
        join(side, opened(tmp_path, "infer", engine(IDS, weights())))
