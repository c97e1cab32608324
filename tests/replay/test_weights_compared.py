"""Weights of two dumps that were made to differ in one way: what is written of each, and what is taken together."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis.artefacts.replay_results import WeightReplay
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.replay.modules import pair_of
from dump_analysis.replay.weight_groups import grouped
from dump_analysis.replay.weights_compared import Compared, compared
from dump_analysis.wording import text_of
from msprobe_files.operands import parse

sys.path.insert(0, str(Path(__file__).parents[1] / "msprobe_files"))
import weights_made as made

Array = np.ndarray[Any, Any]
Steps = list[dict[str, Any]]
HEADS, GROUPS, WIDTH, HIDDEN = 4, 2, 8, 64
QUERY, KEY = HEADS * WIDTH, GROUPS * WIDTH
PARTS = {"q": (0, QUERY), "k": (QUERY, QUERY + KEY), "v": (QUERY + KEY, QUERY + 2 * KEY)}


def parameter(name: str) -> str:
    return f"{dumping.entry_of(name)}.parameters.weight"


def both(
    root: Path, train: Mapping[str, Array], infer: Mapping[str, Array], rows: Mapping[str, tuple[str, Steps, str, Steps]] | None = None,
    dtypes: tuple[str, str] = ("bfloat16", "bfloat16"),
) -> dict[str, Compared]:  # fmt: skip
    """The weights of two sides, each the parameter of a module of its name; ``rows``: boundary -> train's name and ops, infer's."""
    sides = []
    for label, weights, dtype in (("train", train, dtypes[0]), ("infer", infer, dtypes[1])):
        entries = {dumping.entry_of(name): {"parameters": {"weight": dumping.of(x, dtype)}} for name, x in weights.items()}
        sides.append(dumping.side_of(root, label, entries))
    listed = rows or {f"{name}.weight": (name, [], name, []) for name in train}
    operands = [
        (name, *({"sources": [{"name": parameter(one), "steps": steps}]} for one, steps in ((row[0], row[1]), (row[2], row[3]))))
        for name, row in listed.items()
    ]
    mapping = SemanticMapping(weights=[Row(name, at, parse(one), parse(two)) for at, (name, one, two) in enumerate(operands)])
    return {one.result.name: one for one in compared(mapping, pair_of(mapping, *sides))}


def sentences(one: Compared) -> list[str]:
    return [told.text for told in one.result.evidence]


def fused(side: Mapping[str, Array]) -> Array:
    return np.concatenate([side[name] for name in PARTS])


def cut(start: int, stop: int) -> Steps:
    return [{"op": "slice", "axis": 0, "start": start, "stop": stop}]


FUSED = {f"layers.2.{name}.weight": ("qkv", cut(*part), "qkv", cut(*part)) for name, part in PARTS.items()}


@pytest.fixture
def layer() -> dict[str, Array]:
    sizes = {"q": QUERY, "k": KEY, "v": KEY}
    return {name: made.weight(at, rows, HIDDEN) for at, (name, rows) in enumerate(sizes.items())}


def test_what_is_equal_has_no_kind(tmp_path: Path, layer: dict[str, Array]) -> None:
    found = both(tmp_path, layer, layer)
    assert [(one.result.status, one.result.kind, one.result.rows, one.unequal) for one in found.values()] == [("EXACT", None, None, 0)] * 3


def test_exchanged_weights_name_each_other(tmp_path: Path, layer: dict[str, Array]) -> None:
    """k for v: by themselves both are just different."""
    weights = {f"layers.1.{name}": x for name, x in layer.items()}
    swapped = {**weights, "layers.1.k": layer["v"], "layers.1.v": layer["k"]}
    found = both(tmp_path, weights, swapped)
    assert {name: one.result.kind for name, one in found.items()} == {
        "layers.1.q.weight": None, "layers.1.k.weight": "swapped", "layers.1.v.weight": "swapped",
    }  # fmt: skip
    assert sentences(found["layers.1.k.weight"]) == ["layers.1.k.weight: infer holds rows of train's layers.1.v.weight there"]


def test_an_exchange_is_seen_beside_another_fault(tmp_path: Path, layer: dict[str, Array]) -> None:
    """A stale q of the same row length must not hide it, and stays what it is."""
    stale = {"layers.1.q": made.step(1e-3, signs=False)(0, QUERY, HIDDEN)}
    weights = {f"layers.1.{name}": x for name, x in layer.items()} | {"layers.1.q": stale["layers.1.q"][0]}
    other = {**weights, "layers.1.k": layer["v"], "layers.1.v": layer["k"], "layers.1.q": stale["layers.1.q"][1]}
    kinds = [one.result.kind for one in both(tmp_path, weights, other).values()]
    assert kinds == ["small_update", "swapped", "swapped"]


def test_one_head_of_k_exchanged_with_one_of_v(tmp_path: Path, layer: dict[str, Array]) -> None:
    weights = {f"layers.1.{name}": x for name, x in layer.items()}
    k, v = layer["k"].copy(), layer["v"].copy()
    k[:WIDTH], v[:WIDTH] = layer["v"][:WIDTH], layer["k"][:WIDTH]
    found = both(tmp_path, weights, {**weights, "layers.1.k": k, "layers.1.v": v})
    assert [one.result.kind for one in found.values()] == [None, "swapped", "swapped"]


@pytest.mark.parametrize("side", ["train", "infer"])
def test_a_fused_matrix_that_was_not_laid_out_by_group(tmp_path: Path, layer: dict[str, Array], side: str) -> None:
    """Which rows of the fused matrix are q's, k's and v's is by group; the loader of one side put them side by side."""
    each = HEADS // GROUPS
    by_group = [
        block for group in range(GROUPS)
        for block in (*((("q", group * each + head)) for head in range(each)), ("k", group), ("v", group))
    ]  # fmt: skip
    right = np.concatenate([layer[name][at * WIDTH : (at + 1) * WIDTH] for name, at in by_group])
    places: dict[str, list[list[int]]] = {name: [] for name in PARTS}
    for place, (name, _) in enumerate(by_group):
        places[name].append([place * WIDTH, (place + 1) * WIDTH])
    rows = {
        f"layers.0.{name}.weight": ("qkv", [{"op": "take", "axis": 0, "runs": places[name]}], "qkv", cut(*PARTS[name])) for name in PARTS
    }
    matrices = {"train": {"qkv": fused(layer)}, "infer": {"qkv": fused(layer)}}
    if side == "infer":  # train is right; infer's plain matrix was filled by group
        matrices = {"train": {"qkv": right}, "infer": {"qkv": right}}
    found = both(tmp_path, matrices["train"], matrices["infer"], rows)
    assert {one.result.kind for one in found.values()} == {"swapped"}
    told = found["layers.0.k.weight"].result.evidence[0]
    assert (told.kind, told.values["plain"], told.values["groups"]) == ("weight_grouped", "train", GROUPS)
    assert both(tmp_path / "right", {"qkv": right}, {"qkv": fused(layer)}, rows)["layers.0.q.weight"].result.status == "EXACT"


def test_half_of_a_fused_matrix_that_was_not_written(tmp_path: Path, layer: dict[str, Array]) -> None:
    """Its first half is q to the last row here: then q alone is stale, and what the rest of the matrix is, is said."""
    old, new = made.step(1e-3, signs=True)(0, QUERY + 2 * KEY, HIDDEN)
    found = both(tmp_path, {"qkv": new}, {"qkv": np.concatenate([old[:QUERY], new[QUERY:]])}, FUSED)
    assert {name[9]: one.result.kind for name, one in found.items()} == {"q": "small_update", "k": None, "v": None}
    assert found["layers.2.q.weight"].result.evidence[1].values["rest"] == ["layers.2.k.weight", "layers.2.v.weight"]
    found = both(tmp_path / "rest", {"qkv": new}, {"qkv": np.concatenate([old[: QUERY + 4], new[QUERY + 4 :]])}, FUSED)
    one = found["layers.2.k.weight"].result
    assert (one.kind, one.rows and one.rows.infer) == ("partial", [0, 1, 2, 3])
    assert "4 of 16 rows alone differ, by a little throughout" in one.evidence[0].text


def test_a_head_that_only_one_side_ties(tmp_path: Path) -> None:
    embedding, head = made.weight(0, 48, HIDDEN), made.weight(1, 48, HIDDEN)
    found = both(tmp_path, {"embedding": embedding, "lm_head": head}, {"embedding": embedding, "lm_head": embedding})
    assert [told.kind for told in found["lm_head.weight"].result.evidence] == ["weight_different", "weight_tied"]
    assert found["lm_head.weight"].result.evidence[1].values == {"side": "infer", "other": "train"}
    assert found["lm_head.weight"].result.side == "infer"


def test_padded_rows_are_cut_by_the_mapping(tmp_path: Path) -> None:
    """A13: 1024 rows against 1000."""
    embedding = made.weight(0, 1024, 16)
    rows = {"embedding.weight": ("embedding", cut(0, 1000), "embedding", [])}
    found = both(tmp_path, {"embedding": embedding}, {"embedding": embedding[:1000]}, rows)
    assert found["embedding.weight"].result.status == "EXACT"
    found = both(tmp_path / "uncut", {"embedding": embedding}, {"embedding": embedding[:1000]})
    assert (found["embedding.weight"].result.status, found["embedding.weight"].result.kind) == ("SHAPE_DIFF", None)


@pytest.mark.parametrize("by_mapping", [False, True], ids=["found", "mapped"])
def test_a_gain_stored_less_one_is_no_difference(tmp_path: Path, by_mapping: bool) -> None:
    """A07: whether the mapping says it or not; the norm's verdict is told who stores the one."""
    less = made.bfloat16(made.fine(0, 1, HIDDEN)[0])
    steps: Steps = [{"op": "add", "value": 1.0}] if by_mapping else []
    rows = {"layers.0.input_norm.weight": ("norm", steps, "norm", [])}
    found = both(tmp_path, {"norm": less}, {"norm": made.bfloat16(less + 1.0)}, rows)["layers.0.input_norm.weight"]
    assert (found.result.status, found.result.kind, found.unequal, found.stores_one_more) == ("EXACT", None, 0, "infer")
    assert bool(found.result.evidence) != by_mapping


def test_a_wider_format_is_not_another_weight(tmp_path: Path) -> None:
    """float32 masters against bfloat16: rounded; a router's constants choose experts, there it is more than a format."""
    masters = made.fine(0, 24, HIDDEN)
    rows = {name: ("w", list[dict[str, Any]](), "w", list[dict[str, Any]]()) for name in ("layers.0.q.weight", "layers.0.router.weight")}
    found = both(tmp_path, {"w": masters}, {"w": made.bfloat16(masters)}, rows, ("float32", "bfloat16"))
    assert [(one.result.status, one.result.kind, one.result.format_only) for one in found.values()] == [
        ("DTYPE_DIFF", "rounded", True), ("DTYPE_DIFF", "rounded", False),
    ]  # fmt: skip


def test_weights_of_one_cause_are_taken_together(tmp_path: Path) -> None:
    """A17 a and c: everything, or one place of one layer, and another cause beside it."""
    names = [f"layers.{at}.{name}" for at in range(3) for name in ("q", "k", "v", "o_proj")]
    pairs = {name: made.step(1e-3, signs=False)(at, 24, HIDDEN) for at, name in enumerate(names)}
    old, new = ({name: pair[at] for name, pair in pairs.items()} for at in (0, 1))
    results = [one.result for one in both(tmp_path / "all", new, old).values()]
    (group,) = grouped(results)
    assert (group.kind, group.layers, len(group.names)) == ("small_update", (0, 1, 2), 12)
    assert group.text.text == "every weight that was compared: moved a little throughout, as by another optimizer step"
    some = {**new, **{name: old[name] for name in names if ".q" in name or ".o_proj" in name}, "layers.1.k": made.weight(9, 24, HIDDEN)}
    groups = grouped([one.result for one in both(tmp_path / "some", new, some).values()])
    assert [(one.kind, one.what.text) for one in groups] == [("small_update", "q, o_proj of layers 0–2"), ("different", "k of layer 1")]
    assert text_of(groups[0].what, "zh-CN") == "第 0–2 层的 q、o_proj"


def test_places_of_other_layers_are_other_causes() -> None:
    """Two weights that were stale by themselves, and damage of one kind in two places, are faults of their own."""

    def differing(*kinds: tuple[str, str]) -> list[tuple[str, ...]]:
        listed = [WeightReplay(name, "NOT_EXACT", kind, None) for name, kind in kinds]
        return [group.names for group in grouped([*listed, WeightReplay("embedding.weight", "EXACT", None, None)])]

    one, two, three = "layers.1.o_proj.weight", "layers.0.down.weight", "layers.1.q.weight"
    assert differing((one, "small_update"), (two, "small_update")) == [(one,), (two,)]
    assert differing((one, "small_update"), (three, "small_update")) == [(one, three)]
    assert differing((one, "partial"), (three, "partial")) == [(one,), (three,)]


def test_weights_that_were_never_loaded_are_one_cause(tmp_path: Path) -> None:
    names = [f"layers.{at}.{part}" for at in range(2) for part in "qkv"]
    loaded = {name: made.weight(at, 24, HIDDEN) for at, name in enumerate(names)}
    found = both(
        tmp_path, {**loaded, "embedding": loaded[names[0]]}, {**dict.fromkeys(names, np.zeros((24, HIDDEN))), "embedding": loaded[names[0]]}
    )
    (group,) = grouped([one.result for one in found.values()])
    assert group.text.text == "q, k, v of layers 0–1: nothing but zeros on infer, as if never loaded there"


def test_experts_are_one_place() -> None:
    weights = [WeightReplay(f"layers.{at}.experts.{e}.down.weight", "NOT_EXACT", "small_update", None) for at in (0, 1) for e in range(8)]
    (group,) = grouped([*weights, WeightReplay("embedding.weight", "EXACT", None, None)])
    assert group.what.text == "experts.down of layers 0–1"
