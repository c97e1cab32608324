"""Several sequences in one forward of each side: which are joined, and whose rows each mapping row then takes.

Every sequence is computed alone, so that the rows of each tensor are known; what stands in padded rows is noise.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.boundaries import INPUTS
from dump_analysis.mapping.proposal import propose
from dump_analysis.mapping.tokens.token_fits import best_fit
from dump_analysis.mapping.tokens.token_join import NotJoined
from dump_analysis.mapping.tokens.token_vectors import Integers, Vector
from dump_analysis.sides import open_side
from dumping import entry_of, of, write_unit
from running import run_command

Array = np.ndarray[Any, Any]
LAYERS, HIDDEN, WORDS, MIDDLE, LENGTH = 3, 24, 90, 40, 14
RNG = np.random.default_rng(3)
PROMPTS = [np.random.default_rng(at).permutation(WORDS - 1)[:size] + 1 for at, size in enumerate((9, 14, 6, 11))]
SYSTEM = np.random.default_rng(50).permutation(WORDS - 1)[:8] + 1  # a beginning that several prompts share
PAD = 0


def draw(*shape: int) -> Array:
    return (RNG.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


WEIGHTS: dict[str, Array] = {"embedding": draw(WORDS, HIDDEN) * 5, "norm": 1 + draw(HIDDEN), "head": draw(WORDS, HIDDEN)}
for LAYER in range(LAYERS):
    WEIGHTS |= {f"{name}{LAYER}": 1 + draw(HIDDEN) for name in ("norm_in", "norm_post")}
    WEIGHTS |= {f"{name}{LAYER}": draw(HIDDEN, HIDDEN) for name in "qkvo"}
    WEIGHTS |= {f"{name}{LAYER}": draw(MIDDLE, HIDDEN) for name in ("gate", "up")} | {f"down{LAYER}": draw(HIDDEN, MIDDLE)}


def norm(x: Array, gain: Array) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True)) * gain


def values(ids: Array) -> dict[str, Array]:
    """All that is computed of one sequence, by name."""
    x = WEIGHTS["embedding"][ids]
    made = {"embedding": x}
    for at in range(LAYERS):
        made[f"stream_in{at}"], y = x, norm(x, WEIGHTS[f"norm_in{at}"])
        made[f"norm_in{at}"] = y
        made |= {f"{name}{at}": y @ WEIGHTS[f"{name}{at}"].T for name in "qkv"}
        scores = np.where(np.tri(len(ids), dtype=bool), made[f"q{at}"] @ made[f"k{at}"].T / 5, -np.inf)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        made[f"core{at}"] = shares / shares.sum(1, keepdims=True) @ made[f"v{at}"]
        made[f"o{at}"] = made[f"core{at}"] @ WEIGHTS[f"o{at}"].T
        x = x + made[f"o{at}"]
        made[f"stream_post{at}"], y = x, norm(x, WEIGHTS[f"norm_post{at}"])
        made[f"norm_post{at}"] = y
        made |= {f"{name}{at}": y @ WEIGHTS[f"{name}{at}"].T for name in ("gate", "up")}
        made[f"act{at}"] = made[f"gate{at}"] / (1 + np.exp(-made[f"gate{at}"])) * made[f"up{at}"]
        made[f"down{at}"] = made[f"act{at}"] @ WEIGHTS[f"down{at}"].T
        x = x + made[f"down{at}"]
    made |= {"stream": x, "norm": norm(x, WEIGHTS["norm"])}
    made["head"] = made["norm"] @ WEIGHTS["head"].T
    return {name: value.astype(np.float32) for name, value in made.items()}


class Laid(NamedTuple):
    """Sequences in one forward of a side. ``shape``: of the token axes; ``rows``: for each sequence its rows in them."""

    sequences: Sequence[Array]
    shape: tuple[int, ...]
    rows: list[Array]

    @property
    def ids(self) -> Array:
        return self.of([sequence[:, None] for sequence in self.sequences], np.full((self.total, 1), PAD)).reshape(self.shape)

    @property
    def positions(self) -> Array:
        """As tokenizers' masks give them: 1 where there is padding."""
        return self.of([np.arange(len(rows))[:, None] for rows in self.rows], np.ones((self.total, 1), np.int64)).reshape(self.shape)

    @property
    def total(self) -> int:
        return int(np.prod(self.shape))

    def of(self, each: Sequence[Array], empty: Array) -> Array:
        whole = empty.astype(each[0].dtype)
        for rows, value in zip(self.rows, each, strict=True):
            whole[rows] = value
        return whole

    def tensors(self) -> dict[str, Array]:
        """Every value over all rows: noise where there is padding."""
        each = [values(sequence) for sequence in self.sequences]
        noise = np.random.default_rng(8)
        laid = {
            name: self.of([made[name] for made in each], noise.standard_normal((self.total, each[0][name].shape[1]))) for name in each[0]
        }
        return {name: value.reshape(*self.shape, -1) for name, value in laid.items()}


def padded(sequences: Sequence[Array], *, left: bool = False) -> Laid:
    """[sequences, LENGTH], filled up on one side."""
    starts = [LENGTH * at + (LENGTH - len(one) if left else 0) for at, one in enumerate(sequences)]
    rows = [np.arange(start, start + len(one)) for start, one in zip(starts, sequences, strict=True)]
    return Laid(sequences, (len(sequences), LENGTH), rows)


def packed(sequences: Sequence[Array], dummies: int = 0) -> Laid:
    """[tokens], one after the other, and rows of padding at the end."""
    starts = np.cumsum([0, *(len(one) for one in sequences)])
    rows = [np.arange(start, start + len(one)) for start, one in zip(starts, sequences, strict=False)]
    return Laid(sequences, (int(starts[-1]) + dummies,), rows)


class Unit:
    """Entries in the order of calls; ``lead``: an axis of size 1 before the others."""

    def __init__(self, lead: bool = False) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self._lead = lead

    def call(self, name: str, inputs: Sequence[Array], outputs: Sequence[Array], weight: Array | None = None) -> None:
        slots: dict[str, Any] = {"input": [self._of(x) for x in inputs], "output": [self._of(x) for x in outputs]}
        self.entries[entry_of(name)] = slots | ({} if weight is None else {"parameters": {"weight": of(weight)}})

    def _of(self, x: Array) -> Any:
        x = x[None] if self._lead else x
        return of(x, "int64" if x.dtype.kind == "i" else "float32")

    def write(self, root: Path) -> str:
        return str(write_unit(root, self.entries, trace=dict.fromkeys(self.entries)))


def trainer(laid: Laid, *, shown: bool = True, counted: bool = True) -> Unit:
    """Weights apart, the stream as the norm's input, all logits. ``shown``: ids are recorded; ``counted``: positions are."""
    unit, t = Unit(lead=len(laid.shape) == 1), laid.tensors()
    unit.call("a", [laid.ids] if shown else [], [t["embedding"]], WEIGHTS["embedding"])
    if counted:
        unit.call("b", [laid.positions], [])
    for at in range(LAYERS):
        unit.call(f"c{at}", [t[f"stream_in{at}"]], [t[f"norm_in{at}"]], WEIGHTS[f"norm_in{at}"])
        for name in "qkv":
            unit.call(f"{name}{at}", [t[f"norm_in{at}"]], [t[f"{name}{at}"]], WEIGHTS[f"{name}{at}"])
        unit.call(f"o{at}", [t[f"core{at}"]], [t[f"o{at}"]], WEIGHTS[f"o{at}"])
        unit.call(f"d{at}", [t[f"stream_post{at}"]], [t[f"norm_post{at}"]], WEIGHTS[f"norm_post{at}"])
        for name in ("gate", "up"):
            unit.call(f"{name}{at}", [t[f"norm_post{at}"]], [t[f"{name}{at}"]], WEIGHTS[f"{name}{at}"])
        unit.call(f"down{at}", [t[f"act{at}"]], [t[f"down{at}"]], WEIGHTS[f"down{at}"])
    unit.call("e", [t["stream"]], [t["norm"]], WEIGHTS["norm"])
    unit.call("f", [t["norm"]], [t["head"]], WEIGHTS["head"])
    return unit


def engine(laid: Laid, *, shown: bool = True) -> Unit:
    """Fused weights, the norm returns the stream too, logits of the last token of each sequence."""
    unit, t = Unit(), laid.tensors()
    unit.call("positions", [laid.positions], [])
    unit.call("m0", [laid.ids] if shown else [], [t["embedding"]], WEIGHTS["embedding"])
    for at in range(LAYERS):
        for name, parts in (("in", "qkv"), ("post", ("gate", "up"))):
            outputs = [t[f"norm_{name}{at}"], t[f"stream_{name}{at}"]]
            unit.call(f"{name}{at}", [t[f"stream_{name}{at}"]], outputs, WEIGHTS[f"norm_{name}{at}"])
            fused = np.vstack([WEIGHTS[f"{part}{at}"] for part in parts])
            unit.call(f"fused_{name}{at}", [outputs[0]], [np.concatenate([t[f"{part}{at}"] for part in parts], -1)], fused)
            inner, outer = ("core", "o") if name == "in" else ("act", "down")
            unit.call(f"{outer}{at}", [t[f"{inner}{at}"]], [t[f"{outer}{at}"]], WEIGHTS[f"{outer}{at}"])
    unit.call("m1", [t["stream"]], [t["norm"], t["stream"]], WEIGHTS["norm"])
    unit.call("m2", [], [t["head"].reshape(laid.total, -1)[[rows[-1] for rows in laid.rows]]])
    return unit


def proposed(root: Path, train: Unit, infer: Unit) -> SemanticMapping:
    sides = [open_side(label, [unit.write(root / label)]) for label, unit in (("train", train), ("infer", infer))]
    return propose(*sides).mapping


def applied(unit: Unit, operand: Any) -> Array:
    """An operand worked out by numpy, of what was recorded."""
    (source,) = operand.sources
    entry, _, place = source.name.rpartition(".forward.0.")
    kind, at = place.split(".")
    tensor = unit.entries[f"{entry}.forward.0"][kind][int(at)]
    x = tensor.storage.view(np.int64 if tensor.dtype == "int64" else np.float32).reshape(tensor.shape)
    for op in source.steps:
        if op.op == "squeeze":
            x = x.squeeze(op.axis)
        elif op.op == "slice":
            x = x[(slice(None),) * op.axis + (slice(op.start, op.stop),)]
        elif op.op == "take":
            x = x.take(op.picked, op.axis)
        elif op.op == "permute":
            x = x.transpose(op.axes)
        elif op.op == "reshape":
            x = x.reshape(op.shape)
    return x


def assert_rows_equal(mapping: SemanticMapping, train: Unit, infer: Unit, tokens: int) -> dict[str, Array]:
    """Every row takes the same tokens on both sides, in one order; the train values by boundary."""
    found = {row.boundary: (applied(train, row.train), applied(infer, row.infer)) for row in mapping.boundaries}
    for name, (left, right) in found.items():
        np.testing.assert_array_equal(left, right, err_msg=name)
        assert name == "logits" or len(left) == tokens, name
    parts = ("input_norm", "q", "k", "v", "o_proj", "post_norm", "gate", "up", "down")
    assert {f"layers.{at}.{part}.out" for at in range(LAYERS) for part in parts} | {"embedding.out", "final_norm.out", "logits"} <= set(
        found
    )
    return {name: left for name, (left, _) in found.items()}


# --- the same requests ---

LAYOUTS: dict[str, tuple[Callable[[Sequence[Array]], Laid], Callable[[Sequence[Array]], Laid]]] = {
    "right padding against packed": (padded, packed),
    "left padding against packed": (lambda ids: padded(ids, left=True), packed),
    "packed against packed": (packed, packed),
    "packed against packed and padded to a graph's size": (packed, lambda ids: packed(ids, dummies=3)),
}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)], ids=["one_order", "permuted"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_row_takes_the_same_tokens_in_one_order(tmp_path: Path, layout: str, order: tuple[int, ...]) -> None:
    """Catches rows of another sequence or of padding, sequences left out, and logits of another sequence's last token."""
    lay = LAYOUTS[layout]
    train, infer = trainer(lay[0](PROMPTS)), engine(lay[1]([PROMPTS[at] for at in order]))
    mapping = proposed(tmp_path, train, infer)
    taken = assert_rows_equal(mapping, train, infer, sum(map(len, PROMPTS)))
    assert taken["input_ids"].tolist() == np.concatenate(PROMPTS).tolist()
    assert taken["positions"].tolist() == [at for prompt in PROMPTS for at in range(len(prompt))]
    np.testing.assert_array_equal(taken["logits"], np.stack([values(prompt)["head"][-1] for prompt in PROMPTS]))
    assert mapping.tokens is not None
    assert [run[0] for run in mapping.tokens.train] == [run[0] for run in mapping.tokens.infer] == [0, 1, 2, 3]
    kinds = [remark.kind for remark in mapping.tokens.remarks]
    assert kinds == ["sequences_joined" if order == (0, 1, 2, 3) else "sequences_permuted"]


def test_a_batch_that_stands_alike_on_both_sides_needs_no_cut(tmp_path: Path) -> None:
    """Catches ops for nothing: rows of all tokens in their order are the tensor as it is."""
    mapping = proposed(tmp_path, trainer(packed(PROMPTS)), engine(packed(PROMPTS)))
    cuts = {op.op for row in mapping.boundaries if row.boundary != "logits" for op in row.infer.sources[0].steps or () if op.axis == 0}
    assert cuts <= {"slice", "reshape"}  # a slice of columns or none
    assert mapping.tokens is not None
    assert (mapping.tokens.coverage.joined, mapping.tokens.coverage.train, mapping.tokens.coverage.infer) == (40, 40, 40)


def test_coverage_counts_what_only_one_side_ran(tmp_path: Path) -> None:
    """Catches requests of one side alone that pass for compared, or that keep the others from being joined."""
    train, infer = trainer(padded(PROMPTS[:3])), engine(packed([PROMPTS[3], PROMPTS[2], PROMPTS[0]]))
    mapping = proposed(tmp_path, train, infer)
    taken = assert_rows_equal(mapping, train, infer, 9 + 6)
    assert taken["input_ids"].tolist() == [*PROMPTS[0], *PROMPTS[2]]
    assert mapping.tokens is not None
    assert mapping.tokens.train == [[0, 0, 9], [1, 28, 34]]
    assert mapping.tokens.infer == [[0, 17, 26], [1, 11, 17]]
    assert (mapping.tokens.coverage.joined, mapping.tokens.coverage.train, mapping.tokens.coverage.infer) == (15, 42, 26)


def test_a_group_of_one_prompt_is_joined_in_order_and_said(tmp_path: Path) -> None:
    """Catches one sequence of a group joined to all, and silence about rows that ids cannot tell apart."""
    group = [PROMPTS[0], PROMPTS[1], PROMPTS[1], PROMPTS[1]]
    mapping = proposed(tmp_path, trainer(padded(group)), engine(packed(group)))
    assert mapping.tokens is not None
    assert [run[1] for run in mapping.tokens.infer] == [0, 9, 23, 37]
    told = {remark.kind: remark.values for remark in mapping.tokens.remarks}
    assert told["sequences_alike"] == {"n": 2, "of": 4}


def test_prompts_that_share_a_long_beginning_are_not_joined_by_it(tmp_path: Path) -> None:
    """Catches a join at the offset at which most ids agree: all prompts begin alike, and each stands where another did."""
    prompts = [np.append(SYSTEM, RNG.permutation(WORDS - 1)[:5] + 1) for _ in range(4)]
    train, infer = trainer(padded(prompts)), engine(packed([prompts[at] for at in (1, 0, 3, 2)]))
    mapping = proposed(tmp_path, train, infer)
    taken = assert_rows_equal(mapping, train, infer, 4 * 13)
    assert taken["input_ids"].tolist() == np.concatenate(prompts).tolist()


def test_another_request_with_the_same_beginning_is_left_out(tmp_path: Path) -> None:
    """Catches a request of one side taken for one of the other that shares most of its ids, reported as differing ids."""
    mine, theirs = (np.append(SYSTEM, np.arange(start, start + 5)) for start in (20, 40))
    mapping = proposed(tmp_path, trainer(padded([PROMPTS[1], mine])), engine(packed([theirs, PROMPTS[1]])))
    assert mapping.tokens is not None
    assert mapping.tokens.train == [[0, 0, 14]]
    assert mapping.tokens.infer == [[0, 13, 27]]


def test_one_id_that_differs_in_one_sequence_stays_joined(tmp_path: Path) -> None:
    """Catches a sequence that is left out for one token."""
    changed = PROMPTS[3].copy()
    changed[5] = 77
    mapping = proposed(tmp_path, trainer(padded(PROMPTS)), engine(packed([changed, *PROMPTS[:3]])))
    assert mapping.tokens is not None
    assert mapping.tokens.coverage.joined == 40
    assert {remark.kind: remark.values for remark in mapping.tokens.remarks}["ids_differ"] == {"n": 1, "of": 40}


def test_positions_of_one_sequence_for_all_rows_of_a_batch(tmp_path: Path) -> None:
    """Catches a batch without positions where the trainer records [1, length] for [batch, length] tokens."""
    train, infer = trainer(padded(PROMPTS), counted=False), engine(packed(PROMPTS))
    train.call("b", [np.arange(LENGTH)[None]], [])
    mapping = proposed(tmp_path, train, infer)
    taken = assert_rows_equal(mapping, train, infer, 40)
    assert taken["positions"].tolist() == [at for prompt in PROMPTS for at in range(len(prompt))]


def vector(sequences: Sequence[Array]) -> Integers:
    """A packed vector of ids, as if recorded."""
    starts = np.cumsum([0, *(len(one) for one in sequences)])[:-1]
    found = Vector(None, np.concatenate(sequences), 1, starts)  # type: ignore[arg-type]  # no file is read
    return Integers([], [found])


@pytest.mark.parametrize("case", ["equal", "after_others", "two_ids"])
def test_all_of_many_sequences_are_found(case: str) -> None:
    """Catches ids that stand too often to tell their place: in 150 equal prompts, behind 100 others, or where only two ids occur."""
    rng = np.random.default_rng(4)
    mine = [np.append(SYSTEM, rng.integers(1, 20, 30)) for _ in range(50)]
    others = [np.append(SYSTEM, rng.integers(1, 20, 30)) for _ in range(100)]
    train, infer = {
        "equal": (mine[:1] * 150, mine[:1] * 150),
        "after_others": (mine, [*others, *mine[::-1]]),
        "two_ids": ([rng.integers(1, 3, 40)] * 2, [rng.integers(1, 3, 40)]),
    }[case]
    fit = best_fit(vector(train), vector(infer))
    if case == "two_ids":  # half of the ids agree by chance; no second one may
        assert fit is None or len(fit.runs) == 1
        return
    assert fit is not None
    wanted = [(38 * at, 38 * (at if case == "equal" else 149 - at), 38, 38) for at in range(len(train))]
    assert [tuple(run) for run in fit.runs] == wanted


# --- without ids ---


@pytest.mark.parametrize("sides", [("infer",), ("train",), ("train", "infer")], ids="_".join)
@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_rows_of_the_embedding_stand_for_ids_that_were_not_recorded(tmp_path: Path, sides: tuple[str, ...], several: bool) -> None:
    """Catches a refusal where the first activations say which token is which, and ids that pass for compared."""
    prompts = PROMPTS if several else PROMPTS[1:2]
    train = trainer(padded(prompts), shown="train" not in sides)
    infer = engine(packed(prompts[::-1]), shown="infer" not in sides)
    mapping = proposed(tmp_path, train, infer)
    assert_rows_equal(mapping, train, infer, sum(map(len, prompts)))
    assert {row.boundary for row in mapping.boundaries} & set(INPUTS) == {"positions"}
    (gap,) = [gap for gap in mapping.evidence_missing if gap.boundary == "input_ids"]
    assert gap.reason.values == {"sides": list(sides)}
    assert (bool(gap.train), bool(gap.infer)) == ("train" not in sides, "infer" not in sides)
    orders = [row.order for row in [*mapping.boundaries, *mapping.evidence_missing] if not row.boundary.endswith("weight")]
    assert sorted(orders) == list(range(len(orders)))


def test_other_rows_are_refused_without_ids(tmp_path: Path) -> None:
    """Catches a join of two prompts of one length where no ids deny it, by their rotary tables or by their places."""
    with pytest.raises(NotJoined, match="embedding outputs do not correspond token by token") as refused:
        proposed(tmp_path, trainer(padded(PROMPTS[:1])), engine(packed([PROMPTS[1][:9]]), shown=False))
    assert len(str(refused.value).splitlines()) == 1


def test_without_ids_and_without_an_embedding_the_remedy_is_said(tmp_path: Path) -> None:
    """Catches a guess where nothing tells which token is which."""
    ids = of(PROMPTS[0], "int64")
    bare = Unit()
    bare.entries = {entry_of("a"): {"input": [of(np.ones(9), "float32")], "output": []}}
    train = Unit()
    train.entries = {entry_of("a"): {"input": [ids], "output": []}}
    with pytest.raises(NotJoined, match=r"no token ids .* Dump the embedding's input too\."):
        proposed(tmp_path, train, bare)


# --- the command ---


def test_several_sequences_through_the_whole_line(tmp_path: Path) -> None:
    """Catches a comparison that cannot read what the mapping cuts: every row is EXACT, rows that one side lacks are named."""
    units = trainer(padded(PROMPTS)), engine(packed([PROMPTS[at] for at in (3, 1, 0, 2)]))
    paths = [unit.write(tmp_path / label) for unit, label in zip(units, ("train", "infer"), strict=True)]
    out = tmp_path / "out"
    ran = run_command("diagnose.py", "--train", paths[0], "--infer", paths[1], "--output-dir", out)
    assert ran.returncode == 0, ran.stderr
    results = json.loads((out / "boundary_results.json").read_text())
    assert {row["boundary"] for row in results["boundaries"] if row["status"] != "EXACT"} <= {
        row["boundary"] for row in results["boundaries"] if row["status"] == "evidence_missing"
    }
    assert results["counts"]["EXACT"] >= 3 + 10 * LAYERS
    assert "4 sequences are joined" in (out / "layer_map.md").read_text()
