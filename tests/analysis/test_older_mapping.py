"""The older form of a mapping: what it means on two dumps, and that every other spelling is refused, never run."""

import ast
import json
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import gate
from dump_analysis.artefacts import older_mapping, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.mapping import declared
from dump_analysis.sides import Side
from dumping import entry_of, of, output_of
from hypothesis import given
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op
from running import run_command

TOKENS, WIDTH = 6, 4
Span = tuple[int | None, int | None]


def put(folder: Path, value: Any, name: str = "old.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(value))
    return path


def old(name: str, **more: Any) -> dict[str, Any]:
    """A row in the older form between the outputs of two modules of that name."""
    return {"name": name, "train_glob": f"{output_of(name)}.pt", "infer_glob": f"{output_of(name)}.pt", **more}


def current(name: str, train: Any = None, infer: Any = None) -> dict[str, Any]:
    return {"boundary": name, "train": train or output_of(name), "infer": infer or output_of(name)}


def cat(*names: str, steps: "list[dict[str, Any]] | None" = None) -> dict[str, Any]:
    sources = [{"name": output_of(name), "steps": steps or []} for name in names]
    return {"sources": sources, "combine": "cat", "axis": 0}


def refused(folder: Path, *rows: Any) -> str:
    with pytest.raises(DumpError) as caught:
        semantic_mapping.read(put(folder, list(rows)))
    return str(caught.value)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    """A trainer with a batch axis and q, k apart; an engine with both in one tensor, and two positions in files of their own."""
    counted = np.arange(TOKENS * WIDTH, dtype=np.float32).reshape(TOKENS, WIDTH)
    q, k = counted, counted + 100
    other = counted.copy()
    other[3, 1] += 1
    train = {
        "q": q[None],
        "k": k[None],
        "norm": counted[None],
        "rows": counted[4:],
        "heads": counted.reshape(1, TOKENS, 2, 2),
        "mid": counted[None, :, None],
    }
    infer = {
        "qk": np.concatenate([q, k], 1),
        "norm": other,
        "row4": counted[4:5],
        "row5": counted[5:],
        "heads": counted,
        "mid": counted[:, None],
    }
    entries = [dict(dumping.outputs({name: of(values) for name, values in side.items()})) for side in (train, infer)]
    for side in entries:
        side[entry_of("lin")] = {"input": [of([[7, 8, 9]], "int64")], "output": [of([[1.0]])], "parameters": {"weight": of(counted)}}
    root = tmp_path_factory.mktemp("older")
    left, right = (dumping.side_of(root, label, made) for label, made in zip(("train", "infer"), entries, strict=True))
    return left, right


def compared(folder: Path, rows: list[Any], pair: tuple[Side, Side]) -> list[BoundaryResult]:
    """What the gate says of a mapping as it is written."""
    mapping = declared.complete(semantic_mapping.read(put(folder, rows)), *pair)
    return gate.compare([*mapping.boundaries, *mapping.weights], mapping.evidence_missing, *pair)[0]


SQUEEZE = {"op": "squeeze", "axis": 0}
WEIGHT = f"{entry_of('lin')}.parameters.weight"
SAME: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a name": (old("norm"), current("norm"), "NOT_EXACT"),
    "squeezed where the axis has size 1": (
        old("norm", transform={"squeeze": [0, None]}),
        current("norm", dumping.cut("norm", SQUEEZE), dumping.cut("norm")),
        "NOT_EXACT",
    ),
    "squeezed twice, the last axis first": (
        old("mid", transform={"squeeze": [0, 1, 2]}),
        current("mid", dumping.cut("mid", {"op": "squeeze", "axis": 2}, SQUEEZE), dumping.cut("mid", {"op": "squeeze", "axis": 1})),
        "EXACT",
    ),
    "cut out of a fused tensor": (
        old("k", infer_glob=f"{output_of('qk')}.pt", transform={"squeeze": [0], "infer_slice": "[:, 4:8]"}),
        current("k", dumping.cut("k", SQUEEZE), dumping.cut("qk", {"op": "slice", "axis": 1, "start": 4, "stop": 8})),
        "EXACT",
    ),
    "cut on both sides": (
        old("q", infer_glob="*qk*.output.0.pt", transform={"squeeze": [0], "train_slice": "[-2:, 1:]", "infer_slice": "4:6,1:4"}),
        current(
            "q",
            dumping.cut("q", SQUEEZE, {"op": "slice", "axis": 0, "start": -2}, {"op": "slice", "axis": 1, "start": 1}),
            dumping.cut("qk", {"op": "slice", "axis": 0, "start": 4, "stop": 6}, {"op": "slice", "axis": 1, "start": 1, "stop": 4}),
        ),
        "EXACT",
    ),
    "reshaped": (
        old("heads", transform={"reshape": [-1, WIDTH]}),
        current("heads", *[dumping.cut("heads", {"op": "reshape", "shape": [-1, WIDTH]})] * 2),
        "EXACT",
    ),
    "a shape that does not fit": (
        old("norm", transform={"train_slice": "[:, 0:2]"}),
        current("norm", dumping.cut("norm", {"op": "slice", "axis": 1, "start": 0, "stop": 2}), dumping.cut("norm")),
        "SHAPE_DIFF",
    ),
    "files one after the other": (
        old("rows", infer_globs=[f"{output_of(name)}.pt" for name in ("row4", "row5")], transform={"infer_concat": True}),
        current("rows", None, cat("row4", "row5")),
        "EXACT",
    ),
    "files one after the other, each cut": (
        old("rows", infer_globs=["*row4*", "*row5*"], transform={"infer_concat": True, "train_slice": "[:, :2]", "infer_slice": "[:, :2]"}),
        current(
            "rows",
            dumping.cut("rows", {"op": "slice", "axis": 1, "stop": 2}),
            cat("row4", "row5", steps=[{"op": "slice", "axis": 1, "stop": 2}]),
        ),
        "EXACT",
    ),
    "a weight": (
        {"name": "lin.weight", "train_glob": f"{WEIGHT}.pt", "infer_glob": "*parameters.weight.pt"},
        current("lin.weight", WEIGHT, WEIGHT),
        "EXACT",
    ),
    "token ids": (
        {"name": "input_ids", "train_glob": "*lin*.input.0.pt", "infer_glob": "*lin*.input.0.pt", "transform": {}},
        current("input_ids", *[f"{entry_of('lin')}.input.0"] * 2),
        "EXACT",
    ),
    "what no dump has": (old("gone", transform={"squeeze": [0]}), current("gone", *[dumping.cut("gone", SQUEEZE)] * 2), "MISSING"),
}


@pytest.mark.parametrize("case", SAME)
def test_both_forms_say_the_same_of_two_dumps(case: str, tmp_path: Path, pair: tuple[Side, Side]) -> None:
    """Shape, values, ops and reason: everything that the gate finds; the status is known from how the dumps were made."""
    older, newer, status = SAME[case]
    found, wanted = compared(tmp_path, [older], pair), compared(tmp_path, [newer], pair)
    assert [result.status for result in found] == [status]
    assert found == wanted


def test_names_notes_and_the_form_itself(tmp_path: Path) -> None:
    """What the older row says in words stays as the note; nothing else of it is left in the mapping."""
    rows = [old("a", layer=0, semantic_boundary="decoder.layer0.q", note="by shape"), old("b", semantic_boundary="b", layer="head")]
    mapping = semantic_mapping.read(put(tmp_path, rows))
    assert [(row.boundary, row.note, row.basis) for row in mapping.boundaries] == [
        ("a", "decoder.layer0.q; by shape", ["declared"]), ("b", None, ["declared"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "wanted"),
    [
        ([None, None, None], ["a", "b", "c"]),
        ([30, 10, 20], ["b", "c", "a"]),
        ([1, 1, 0], ["c", "a", "b"]),
        ([1.5, 1.25, -1], ["c", "b", "a"]),
    ],
)
def test_rows_stand_by_their_execution_order(numbers: list[Any], wanted: list[str], tmp_path: Path) -> None:
    """A list without numbers in its own order, not all as 0; rows of one number as they are listed."""
    rows = [old(name, **({} if number is None else {"execution_order": number})) for name, number in zip("abc", numbers, strict=True)]
    found = semantic_mapping.read(put(tmp_path, rows)).boundaries
    assert [(row.boundary, row.order) for row in found] == [(name, at) for at, name in enumerate(wanted)]


def test_two_hits_of_a_glob_are_refused(tmp_path: Path, pair: tuple[Side, Side]) -> None:
    """The first of several was once taken in silence."""
    with pytest.raises(DumpError, match=r"matches 2 tensors of infer: .*row4.*row5.*\(boundary rows\)"):
        compared(tmp_path, [old("rows", infer_glob="*row*")], pair)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (old("a", transform={"infer_slice": "[..., :64]"}), ["rows[0].transform.infer_slice", "'...'", "[:, 0:64]"]),
        (old("a", transform={"train_slice": "[:, ::2]"}), ["rows[0].transform.train_slice", "'::2'", "start:stop"]),
        (old("a", transform={"train_slice": "[0]"}), ["train_slice", "'0'"]),
        (old("a", transform={"train_slice": "[:, :h]"}), ["train_slice", "':h'"]),
        (old("a", transform={"train_slice": "[:, 01:2]"}), ["train_slice", "'01:2'"]),
        (old("a", transform={"train_slice": "[:]][0:1]"}), ["train_slice", "start:stop"]),
        (old("a", transform={"train_slice": ".sum()"}), ["train_slice", "'.sum()'"]),
        (old("a", transform={"infer_slice": [":", "0:64"]}), ["rows[0].transform.infer_slice", "Mend"]),
        (old("a", transform={"squeeze": 0}), ["rows[0].transform.squeeze", "Mend"]),
        (old("a", transform={"squeeze": ["batch"]}), ["rows[0].transform.squeeze[0]", "Mend"]),
        (old("a", transform={"reshape": ["seq", "hidden"]}), ["rows[0].transform.reshape[0]", "Mend"]),
        (old("a", transform={"infer_concat": 0}), ["rows[0].transform.infer_concat", "Mend"]),
        (old("a", transform={"train_concat": True}), ["rows[0].transform.train_concat", "infer_concat", "unknown key"]),
        (old("a", infer_globs=["x", "y"]), ["rows[0].infer_globs", "infer_concat", "Write true"]),
        (old("a", infer_globs=[]), ["rows[0].infer_globs", "remove the field"]),
        ({"name": "a", "train_glob": "x"}, ["rows[0].infer_glob", "missing", "Write"]),
        ({"name": "a", "infer_glob": "x"}, ["rows[0]", "train_glob", "Mend"]),
        ({"train_glob": "x", "infer_glob": "x"}, ["rows[0]", "name", "Mend"]),
        (old("a", train_glob="step0/rank0/x.pt"), ["rows[0].train_glob", "without folders"]),
        (old("a", train_glob=".pt"), ["rows[0].train_glob", "without folders"]),
        (old("a", infer_globs=["x", "d/y"], transform={"infer_concat": True}), ["rows[0].infer_globs[1]", "without folders"]),
        (old("a", execution_order="first"), ["rows[0].execution_order", "Mend"]),
        (old("a", trian_glob="x"), ["rows[0].trian_glob", "train_glob", "Remove"]),
    ],
)
def test_every_other_spelling_is_refused(row: Any, words: list[str], tmp_path: Path) -> None:
    """One line with the file, the field and what to write."""
    told = refused(tmp_path, row)
    assert told.startswith("Cannot use old.json: ")
    assert "\n" not in told
    assert all(word in told for word in words), told


def test_rows_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    assert "boundary a stands in two rows" in refused(tmp_path, old("a"), old("a"))
    assert "1 of 2 rows state an execution_order" in refused(tmp_path, old("a", execution_order=1), old("b"))
    assert "rows[1] is in the current form" in refused(tmp_path, old("a"), current("b"))


def test_a_slice_is_never_run(tmp_path: Path) -> None:
    """The older script handed the text to the interpreter."""
    planted = tmp_path / "planted"
    text = f"[:].__class__.__name__ if open({str(planted)!r}, 'w') else 0"
    assert "start:stop" in refused(tmp_path, old("a", transform={"train_slice": text}))
    assert not planted.exists()


# --- the grammar of slices ---

ends = st.none() | st.integers(-(10**17), 10**17)
spaces = st.text(" \t", max_size=2)


def ops_of(spans: list[Span]) -> tuple[Op, ...]:
    return tuple(Op("slice", axis=at, start=span[0], stop=span[1]) for at, span in enumerate(spans) if span != (None, None))


@given(st.lists(st.tuples(ends, ends), min_size=1, max_size=5), st.booleans(), st.data())
def test_every_slice_of_starts_and_stops_is_read(spans: list[Span], brackets: bool, data: st.DataObject) -> None:
    """As many axes as are written, with spaces where people put them."""
    items = []
    for span in spans:
        start, stop = ("" if end is None else str(end) for end in span)
        before, one, two, after = (data.draw(spaces) for _ in range(4))
        items.append(f"{before}{start}{one}:{two}{stop}{after}")
    text = ",".join(items)
    assert older_mapping.slices(f"[{text}]" if brackets else text) == ops_of(spans)


def spans_by_python(text: str) -> list[Span]:
    """The starts and stops of a subscript as Python's own parser reads it."""
    index = ast.parse(f"t[{text}]", mode="eval").body
    assert isinstance(index, ast.Subscript)
    assert isinstance(index.value, ast.Name)
    items = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
    spans: list[Span] = []
    for item in items:
        assert isinstance(item, ast.Slice)
        assert item.step is None
        start, stop = (None if end is None else ast.literal_eval(end) for end in (item.lower, item.upper))
        spans.append((start, stop))
    return spans


@given(st.text("0129:,-[] \t.+_xN()'", max_size=14) | st.text(max_size=6))
def test_nothing_that_is_read_means_another_thing_to_python(text: str) -> None:
    """The form's slices were Python's: what is accepted must have meant the same there."""
    try:
        found = older_mapping.slices(text)
    except ValueError:
        return
    inner = text.strip()
    assert found == ops_of(spans_by_python(inner[1:-1] if inner.startswith("[") else inner))


def squeezed_by_numpy(shape: tuple[int, ...], axes: list[int]) -> tuple[int, ...]:
    """The rule of the older form: the last axis first, one that is not of size 1 stays."""
    left = np.zeros(shape, np.uint8)
    for axis in sorted(axes, reverse=True):
        if -left.ndim <= axis < left.ndim and left.shape[axis] == 1:
            left = left.squeeze(axis)
    return left.shape


@given(st.lists(st.integers(1, 3), max_size=5), st.lists(st.integers(-6, 5), max_size=4))
def test_only_axes_of_size_one_are_squeezed(shape: list[int], axes: list[int]) -> None:
    """One list serves a side with a batch axis and one without."""
    steps = older_mapping.fitting(tuple(Op("squeeze", axis=axis) for axis in sorted(axes, reverse=True)), tuple(shape))
    assert dumping_shape(steps, tuple(shape)) == squeezed_by_numpy(tuple(shape), axes)


def dumping_shape(steps: tuple[Op, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """What is left, each squeeze made by numpy, which refuses an axis that is not of size 1."""
    left = np.zeros(shape, np.uint8)
    for op in steps:
        left = left.squeeze(op.axis)
    return left.shape


def test_users_of_the_older_form_keep_their_commands(tmp_path: Path, pair: tuple[Side, Side]) -> None:
    """Their file is called semantic_mapping.json and lies beside the results: both commands read it where it is."""
    rows = [
        old("norm", semantic_boundary="decoder.layer0.norm"),
        old("rows", infer_globs=["*row4*", "*row5*"], transform={"infer_concat": True}),
    ]
    put(tmp_path, rows, "semantic_mapping.json")
    folders = [str(Path(side.units[0].place.folder) / "dump_tensor_data") for side in pair]
    files = ("--mapping", tmp_path / "semantic_mapping.json", "--output", tmp_path / "boundary_results.json")
    ran = run_command("analyze_dump_boundaries.py", "--train", folders[0], "--infer", folders[1], *files)
    assert (ran.returncode, ran.stderr) == (0, "")
    results = json.loads((tmp_path / "boundary_results.json").read_text())
    assert [(row["boundary"], row["status"]) for row in results["boundaries"]] == [("norm", "NOT_EXACT"), ("rows", "EXACT")]
    ran = run_command("conclude.py", "--workdir", tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "norm" in ran.stdout


def test_help_names_the_older_form() -> None:
    assert "older form" in run_command("analyze_dump_boundaries.py", "--help").stdout
