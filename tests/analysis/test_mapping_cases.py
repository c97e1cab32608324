"""Trouble with pairing that people met in public, as tests: names that mislead, sums against pairs, other prompts, equal layers.

Networks made here stand for what no sample holds; what they recorded where is known by construction.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import networks
import numpy as np
import pytest
from dumping import write_unit
from editing import copy_side, unit_of
from laying import Sample
from networks import LAYERS, TOKENS, WORDS, Array, Network, Recording
from running import run_command

FAULTY = "qwen2-hf-vllm-kv_swapped"
INPUTS = ("input_ids", "positions")
SIDES = ("train", "infer")
Renaming = Callable[[str], str]


class Answer(NamedTuple):
    """What diagnose.py left; empty where it left nothing."""

    code: int
    error: str
    mapping: dict[str, Any]
    results: dict[str, Any]
    conclusion: dict[str, Any]

    def rows(self) -> dict[str, Any]:
        return {row["boundary"]: row for row in [*self.mapping["boundaries"], *self.mapping["weights"]]}

    def verdicts(self) -> dict[str, Any]:
        """Boundary -> all that the comparison says of it, but for the names of tensors."""
        named = {"ops_applied", "reason"}
        rows = [*self.results["boundaries"], *self.results["weights"]]
        return {row["boundary"]: {key: value for key, value in row.items() if key not in named} for row in rows}

    def findings(self) -> list[tuple[str, str, list[int]]]:
        return [(found["boundary"], found["character"], found["layers"]) for found in self.conclusion.get("findings", [])]

    def logic(self) -> list[str]:
        return [boundary for boundary, character, _ in self.findings() if character == "logic"]


def diagnose(train: Path, infer: Path, out: Path) -> Answer:
    """The command without a mapping; ``out``: its output folder."""
    ran = run_command("diagnose.py", "--train", train, "--infer", infer, "--output-dir", out, "--exit-code")
    assert "fault of the tool" not in ran.stderr, ran.stderr
    names = ("semantic_mapping", "boundary_results", "conclusion")
    left = [json.loads(path.read_text()) if (path := out / f"{name}.json").exists() else {} for name in names]
    return Answer(ran.returncode, ran.stderr, *left)


def sources(row: Mapping[str, Any], side: str) -> list[str]:
    return [source["name"] for source in row[side]["sources"]]


def entry_of(tensor: str) -> str:
    """Of a module's tensor; the numbers of toys' modules and of samples' calls have one digit."""
    head, call, tail = tensor.partition(".forward.")
    return head + call + tail.partition(".")[0]


# --- networks recorded otherwise ---


def recorded(weights: dict[str, Array] | None = None, ids: tuple[Array, Array] | None = None) -> tuple[Recording, Recording]:
    """Trainer and engine of the plain network. ``ids``: of the two sides, where they differ."""
    held = networks.weights_of(Network()) if weights is None else weights
    made = []
    for record, mine in zip((networks.trainer, networks.engine), ids or (networks.ids(), networks.ids()), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(networks, "ids", lambda mine=mine: mine)
            made.append(record(Network(), held))
    return made[0], made[1]


def diagnose_both(train: Recording, infer: Recording, root: Path) -> Answer:
    return diagnose(Path(train.write(root / "train")), Path(infer.write(root / "infer")), root / "out")


def write_calls(root: Path, *records: Recording) -> Path:
    """One unit with several forwards of the same modules, one after the other."""

    def numbered(entry: str, call: int) -> str:
        return entry.replace(".forward.0", f".forward.{call}")

    entries: dict[str, Any] = {}
    trace: dict[str, str | None] = {}
    for call, record in enumerate(records):
        entries |= {numbered(entry, call): slots for entry, slots in record.entries.items()}
        trace |= {numbered(entry, call): parent and numbered(parent, call) for entry, parent in record.trace.items()}
    return write_unit(root, entries, trace=trace)


def renamed_side(source: Path, target: Path, rename: Renaming) -> Path:
    """A copy of a side under ``target``, every entry under another name, in the files too."""
    unit = unit_of(copy_side(source, target))
    names = {entry: rename(entry) for entry in json.loads((unit / "dump.json").read_text())["data"]}
    for path in unit.glob("*.json"):
        text = path.read_text()
        for entry, name in names.items():
            text = text.replace(f'"{entry}"', f'"{name}"').replace(f'"{entry}.', f'"{name}.')
        path.write_text(text)
    for file in list((unit / "dump_tensor_data").iterdir()):
        entry = entry_of(file.name)
        file.rename(file.with_name(names[entry] + file.name[len(entry) :]))
    return target


@pytest.fixture(scope="module")
def faulty(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """A pair whose engine has k and v of layer 1 exchanged, under its own names."""
    pair = sample(FAULTY)
    return diagnose(pair.train, pair.infer, tmp_path_factory.mktemp("faulty"))


def assert_same_but_for_names(found: Answer, known: Answer, side: str, rename: Renaming) -> None:
    """The same boundaries, operands and verdicts; the renamed side's names are the new ones in full."""
    assert found.code == known.code == 1
    assert found.rows().keys() == known.rows().keys()
    for name, row in known.rows().items():
        other = found.rows()[name]
        renamed = [rename(entry_of(tensor)) + tensor[len(entry_of(tensor)) :] for tensor in sources(row, side)]
        assert sources(other, side) == renamed, name
        assert [source["steps"] for source in other[side]["sources"]] == [source["steps"] for source in row[side]["sources"]], name
        assert (other["basis"], other["confidence"]) == (row["basis"], row["confidence"]), name
    assert found.verdicts() == known.verdicts()
    assert found.findings() == known.findings()


# --- names ---


@pytest.mark.parametrize(
    "prefix",
    ["Module._fsdp_wrapped_module.", "Module.module.module.", "Module.0.", "Module.7.module._orig_mod."],
    ids=["fsdp", "ddp", "list", "list_and_compiled"],
)
def test_b06_wrappers_and_a_list_index_change_no_row(sample: Callable[[str], Sample], faulty: Answer, tmp_path: Path, prefix: str) -> None:
    """B06: the same pairs, layer numbers and verdicts; rows and findings show the trainer's names in full."""

    def rename(entry: str) -> str:
        inner = "_fsdp_wrapped_module." if "_fsdp" in prefix else ""
        head, layers, tail = entry.removeprefix("Module.").partition("layers.1.")
        return prefix + head + layers + (inner if layers else "") + tail

    pair = sample(FAULTY)
    found = diagnose(renamed_side(pair.train, tmp_path / "train", rename), pair.infer, tmp_path / "out")
    assert_same_but_for_names(found, faulty, "train", rename)
    modules = [finding["module"]["train"] for finding in found.conclusion["findings"] if finding["module"]["train"] is not None]
    assert modules
    assert all(module.startswith(prefix) for module in modules)


@pytest.mark.parametrize("side", SIDES)
def test_c02_random_words_for_modules_and_classes_change_no_row(
    sample: Callable[[str], Sample], faulty: Answer, tmp_path: Path, side: str
) -> None:
    """C02: the boundaries and verdicts are those under real names, and each row says what joined it."""

    def word(text: str) -> str:
        return "w" + hashlib.sha256(text.encode()).hexdigest()[:9]

    def rename(entry: str) -> str:
        path, _, call = entry.partition(".forward.")
        return f"Module.{word(path)}.{word(path.rpartition('.')[2])}.forward.{call}"

    pair = sample(FAULTY)
    changed = renamed_side(getattr(pair, side), tmp_path / side, rename)
    train, infer = (changed, pair.infer) if side == "train" else (pair.train, changed)
    found = diagnose(train, infer, tmp_path / "out")
    assert_same_but_for_names(found, faulty, side, rename)
    basis = {name: set(row["basis"]) for name, row in found.rows().items()}
    assert all(basis.values())
    assert set().union(*basis.values()) <= {"weights", "values", "dataflow", "signature", "structure"}


# --- which call ---


@pytest.mark.parametrize("actor", [0, 1])
def test_b14_of_the_reference_policy_and_the_actor_the_one_with_the_engines_weights_is_taken(tmp_path: Path, actor: int) -> None:
    """B14: both ran the same tokens through modules of the same names; every row but the common inputs must name the actor's call."""
    weights = networks.weights_of(Network())
    rng = np.random.default_rng(1)
    moved = {name: value + np.float32(0.3) * np.abs(value).mean() * rng.standard_normal(value.shape) for name, value in weights.items()}
    policy, engine = recorded(weights)
    reference, _ = recorded({name: value.astype(np.float32) for name, value in moved.items()})
    calls = (policy, reference) if actor == 0 else (reference, policy)
    found = diagnose(write_calls(tmp_path / "train", *calls), Path(engine.write(tmp_path / "infer")), tmp_path / "out")
    calls_named = {name: entry_of(tensor)[-1] for name, row in found.rows().items() for tensor in sources(row, "train")}
    assert {call for name, call in calls_named.items() if name not in INPUTS} == {str(actor)}
    assert {f"layers.{layer}.{part}" for layer in range(LAYERS) for part in ("q.out", "down.out", "q.weight")} <= calls_named.keys()
    assert not found.logic()


def test_b14_a_second_micro_batch_is_left_alone(tmp_path: Path) -> None:
    """B14: the call that holds the engine's tokens is compared, not the other one."""
    other = np.random.default_rng(77).integers(0, WORDS, TOKENS)
    ours, engine = recorded()
    theirs, _ = recorded(ids=(other, other))
    found = diagnose(write_calls(tmp_path / "train", ours, theirs), Path(engine.write(tmp_path / "infer")), tmp_path / "out")
    assert {entry_of(tensor)[-1] for row in found.rows().values() for tensor in sources(row, "train")} == {"0"}
    assert found.verdicts()["embedding.out"]["status"] == "EXACT"


def test_b14_two_calls_that_match_equally_are_incomplete_and_both_named(tmp_path: Path) -> None:
    """B14: every byte is equal, and still it is not known which of the calls was meant."""
    train, _ = recorded()
    found = diagnose(write_calls(tmp_path / "train", train, train), Path(train.write(tmp_path / "infer")), tmp_path / "out")
    assert found.code == 3
    assert found.conclusion["consistency"] == "undecided"
    assert {row["boundary"]: row["status"] for row in found.results["boundaries"] if row["status"] != "EXACT"} == {
        "input_ids": "evidence_missing"
    }
    left = "".join(name for row in found.mapping["evidence_missing"] for name in row["train"])
    assert ".forward.1." in left
    assert {entry_of(tensor)[-1] for row in found.rows().values() for tensor in sources(row, "train")} == {"0"}


# --- sums, one row ---


def test_c01_a_layers_sum_is_compared_with_the_sum_of_the_engines_pair(tmp_path: Path) -> None:
    """C01: the engine returns (branch, residual); half of the pair against the trainer's sum would differ, more with each layer."""
    train, infer = recorded()
    found = diagnose_both(train, infer, tmp_path)
    halves = {name for layer in range(LAYERS) for name in (infer.output(f"layers.{layer}"), infer.output(f"layers.{layer}", 1))}
    for layer in range(LAYERS):
        row = found.rows()[f"layers.{layer}.resid_mlp"]
        assert sources(row, "train") == [train.output(f"layers.{layer}")]
        assert len(sources(row, "infer")) == 2 or not set(sources(row, "infer")) & halves
        assert found.verdicts()[f"layers.{layer}.resid_mlp"]["rel_l2"] < 1e-6
    assert not found.logic()


def test_c06_the_only_row_of_logits_is_compared_with_the_last_row(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """C06: of the prompt's tokens the last, not of the padded tensor; no other op touches the one row, and it is said."""
    pair = sample("qwen2-hf-vllm-padding")
    found = diagnose(pair.train, pair.infer, tmp_path / "out")
    row = found.rows()["logits"]
    numbers = np.arange(22)[None, :, None]  # 14 tokens of the prompt, 8 of padding
    for step in row["train"]["sources"][0]["steps"]:
        assert step["op"] in ("squeeze", "slice")
        numbers = numbers[0] if step["op"] == "squeeze" else numbers[step["start"] : step["stop"]]
    assert numbers.tolist() == [[13]]
    assert row["infer"]["sources"][0]["steps"] == []
    assert found.verdicts()["logits"]["shape"] == [1, 256]
    assert found.verdicts()["logits"]["rel_l2"] < 0.02
    assert row["note"] == "infer keeps the last position only"
    gap = next(gap for gap in found.mapping["evidence_missing"] if gap["boundary"] == "logits.other_tokens")
    assert gap["reason"]["values"] == {"side": "infer", "n": 13}
    assert (gap["train"], gap["infer"]) == (sources(row, "train"), [])
    assert found.verdicts()["logits.other_tokens"]["status"] == "evidence_missing"


# --- tokens ---


@pytest.mark.parametrize(
    ("shared", "shown"),
    [((0, 1, 2, 3, 4), True), ((1, 3, 6, 8, 11), True), ((), True), ((), False)],
    ids=["start", "here_and_there", "none", "no_ids"],
)
def test_c03_another_prompt_of_the_same_length_stops_at_the_input(tmp_path: Path, shared: tuple[int, ...], shown: bool) -> None:
    """C03: bad input in one line, and nothing of a layer is judged or left from an earlier run; also where the engine shows no ids."""
    other = (networks.ids() + np.arange(7, 7 + TOKENS)) % WORDS
    other[list(shared)] = networks.ids()[list(shared)]
    assert (other == networks.ids()).sum() == len(shared) < TOKENS / 2
    train, infer = recorded(ids=(other, networks.ids()))
    if not shown:
        infer.entries[infer.roles["embedding"]]["input"] = []
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "conclusion.json").write_text("of another run")
    found = diagnose_both(train, infer, tmp_path)
    assert found.code == 2
    assert len(found.error.splitlines()) == 1
    differ = [at for at in range(TOKENS) if at not in shared]
    place = f"positions {', '.join(map(str, differ[:4]))}, … ({len(differ)} in all)"
    said = f"token ids differ at {place}" if shown else "embedding outputs do not correspond token by token: rows differ at " + place
    assert said in found.error
    assert (found.results["overall"], found.conclusion["overall"], found.conclusion["findings"]) == ("not_run", "not_run", [])
    assert [(row["boundary"], row["status"]) for row in found.results["boundaries"]] == [("input_ids", "MISSING")]
    assert not found.rows()
    assert said in found.conclusion["summary"][0]["text"]


@pytest.mark.parametrize(("at", "onset"), [(0, None), (7, 0)], ids=["first_token", "later"])
def test_c03_only_what_differs_before_the_differing_id_stays_open(tmp_path: Path, at: int, onset: int | None) -> None:
    """C03, control: a weight of the engine is off from the first token on; ids that differ from token 7 on do not explain that."""
    other = networks.ids()
    other[at] = (other[at] + 1) % WORDS
    weights = networks.weights_of(Network())
    train, _ = recorded(weights, ids=(other, other))
    off = {name: value * np.float32(1.25) if name == "layers.0.input_norm" else value for name, value in weights.items()}
    _, infer = recorded(off)
    for entry in (record.roles["layers.0.input_norm"] for record in (train, infer)):  # its gain is not recorded
        for record in (train, infer):
            if entry in record.entries:
                record.entries[entry]["parameters"] = {}
    found = diagnose_both(train, infer, tmp_path)
    assert found.code == 1
    kinds = {finding["boundary"]: [told["kind"] for told in finding["evidence"]] for finding in found.conclusion["findings"]}
    assert "may_be_of_inputs" in kinds["input_ids"]
    if onset is None:
        assert kinds.keys() == {"input_ids"}
    else:
        assert found.findings()[1] == ("layers.0.input_norm.out", "unknown", [0])
        told = next(item for item in found.conclusion["findings"][1]["evidence"] if item["kind"] == "before_inputs")
        assert told["values"] == {"boundary": "layers.0.input_norm.out", "onset": onset, "names": ["input_ids"], "token": at}


def test_c03_a_differing_id_is_a_finding_and_the_comparison_goes_on(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """C03, control: 1 of 14 ids differs, the rows are those of the equal prompts, and what comes before the token is judged."""
    faulty, clean = sample("qwen2-hf-vllm-token_diff"), sample("qwen2-hf-vllm-clean")
    found = diagnose(faulty.train, faulty.infer, tmp_path / "out")
    assert found.code == 1
    attention, norms = ("layers.0.attn_core.out", "rounding", [0, 1, 2]), ("layers.0.post_norm.out", "rounding", [0, 1, 2])
    assert found.findings() == [("input_ids", "logic", []), attention, norms]
    assert found.verdicts()["embedding.out"]["where"]["onset_token"] == 11
    assert found.verdicts()["layers.0.attn_core.out"]["where"]["onset_token"] < 11  # as in the clean pair
    known = diagnose(clean.train, clean.infer, tmp_path / "clean")
    operands = [{name: (row["train"], row["infer"]) for name, row in answer.rows().items()} for answer in (found, known)]
    assert operands[0] == operands[1]


@pytest.mark.parametrize("lag", ["double_bos", "shift"])
def test_c04_ids_that_agree_at_a_lag_are_no_clean_pair_and_no_fault_of_a_layer(tmp_path: Path, lag: str) -> None:
    """C04, C03: whatever is told of it, no layer may be blamed for tokens that stand elsewhere."""
    prompt = networks.ids()
    ids = {"double_bos": (np.append(prompt[:1], prompt[:-1]), prompt), "shift": (prompt, np.append(prompt[1:], 3))}[lag]
    train, infer = recorded(ids=ids)
    found = diagnose_both(train, infer, tmp_path)
    assert found.code == 2
    assert found.findings() == []
    assert {"double_bos": "its first token stands twice (double BOS)", "shift": "it is shifted"}[lag] in found.error


def test_c04_log_probs_one_token_apart_are_no_fault(tmp_path: Path) -> None:
    """C04: train has at i what infer has at i + 1; compared place by place, each of them would differ."""
    train, infer = recorded()
    values = -np.abs(np.random.default_rng(9).standard_normal(TOKENS + 1)).astype(np.float32)
    train.call("log_probs", [], lambda: values[1:])
    infer.call("log_probs", [], lambda: values[:-1])
    found = diagnose_both(train, infer, tmp_path)
    assert found.code == 3
    assert not found.logic()
    row, verdict = found.rows()["logprobs"], found.verdicts()["logprobs"]
    assert (sources(row, "train"), sources(row, "infer")) == ([train.output("log_probs")], [infer.output("log_probs")])
    assert (verdict["status"], verdict["shape"]) == ("EXACT", [TOKENS - 1, 1])  # each end of the prompt has no partner
    assert [row[side]["sources"][0]["steps"][-1] for side in SIDES] == [
        {"op": "slice", "axis": 0, "start": 0, "stop": TOKENS - 1},
        {"op": "slice", "axis": 0, "start": 1, "stop": TOKENS},
    ]
    (remark,) = found.mapping["tokens"]["remarks"]
    assert (remark["kind"], remark["values"]["boundary"], remark["values"]["what"]["values"]) == ("alignment", "logprobs", {"lag": 1})
    assert "check whether the training loop pairs them so" in remark["text"]
    assert "check the order of the rows" not in found.error
    assert [row["boundary"] for row in found.mapping["boundaries"]][-2:] == ["logits", "logprobs"]


# --- order ---


@pytest.mark.parametrize("twins", [False, True], ids=["equal_outputs", "equal_weights_too"])
def test_c09_equal_layers_are_not_paired_across(tmp_path: Path, twins: bool) -> None:
    """C09: gains of one and a layer that changes nothing; each row joins modules of one layer, and nothing is a fault."""
    weights = networks.weights_of(Network())
    weights |= {name: np.ones_like(value) for name, value in weights.items() if "norm" in name}
    weights |= {name: weights[name] * np.float32(0) for name in ("layers.1.o_proj", "layers.1.down")}
    weights |= {name.replace(".1.", ".2."): value for name, value in weights.items() if twins and name.startswith("layers.1.")}
    train, infer = recorded(weights)
    outputs = [train.entries[train.roles[f"layers.{layer}"]]["output"][0].storage for layer in (0, 1)]
    assert (outputs[0] == outputs[1]).all(), "two layers with equal outputs"
    found = diagnose_both(train, infer, tmp_path)
    layers = [{entry: re.findall(r"layers\.\d", role) for role, entry in record.roles.items()} for record in (train, infer)]
    for name, row in found.rows().items():
        modules = row["module"]
        if name not in INPUTS and "resid" not in name:  # the engine's next module makes the sum
            assert layers[0][modules["train"]] == layers[1][modules["infer"]], name
    assert all(result["rel_l2"] is None or result["rel_l2"] < 1e-5 for result in found.verdicts().values())
    assert not found.logic()
    notes = {name: row["note"] or "" for name, row in found.rows().items()}
    assert "candidates: " in notes["layers.0.input_norm.weight"]
    assert "layers.0.post_norm.weight" in notes["layers.0.input_norm.weight"]
    assert "numbered by its place" in notes["layers.1.q.out"]
    twin = f"train {train.output('layers.2.q')}" if twins else "layers.2.q.out"
    assert f"candidates: {twin}" in notes["layers.1.q.out"]
    if not twins:
        assert f"candidates: train {train.output('layers.1')}" in notes["layers.0.resid_mlp"]


def test_d13_construct_json_supplied_later_changes_only_the_rows_that_used_it(tmp_path: Path) -> None:
    """D13: without it the tool says so; with it nothing is said, and what was joined by values stays as it was, field by field."""
    train, infer = recorded()
    folders = Path(train.write(tmp_path / "train", traced=False)), Path(infer.write(tmp_path / "infer", traced=False))
    before = diagnose(*folders, tmp_path / "out")
    for record, folder in zip((train, infer), folders, strict=True):
        (folder / "construct.json").write_text(json.dumps(record.trace))
    after = diagnose(*folders, tmp_path / "out")
    assert [f"{side}: without construct.json" in before.error for side in SIDES] == [True, True]
    assert "construct.json" not in after.error
    assert before.rows().keys() == after.rows().keys()
    changed = {re.sub(r"layers\.\d\.", "", name) for name, row in before.rows().items() if row != after.rows()[name]}
    # Of these modules the nesting decides: they are made between calls, or first recorded as some module's input.
    assert changed <= {"positions", "attn_core.out", "act_mul.out", "resid_attn", "resid_mlp"}
    assert "attn_core.out" in changed
    verdicts = [{name: row["status"] for name, row in answer.verdicts().items()} for answer in (before, after)]
    assert verdicts[0] == verdicts[1]
    told = (tmp_path / "out" / "layer_map.md").read_text().partition("## Changed since the mapping that stood here before\n")[2]
    listed = {line[2:].partition(": ")[0] for line in told.partition("\n##")[0].splitlines() if line.startswith("- ")}
    told_of = ("module", "basis", *SIDES)
    differ = {name for name, row in before.rows().items() if any(row[key] != after.rows()[name][key] for key in told_of)}
    assert listed == differ


def test_d13_a_rerun_on_the_same_dumps_says_that_nothing_changed(tmp_path: Path) -> None:
    """D13: catches rows that change from run to run, a first run that speaks of changes, and a mapping of other dumps taken for it."""
    train, infer = recorded()
    folders = Path(train.write(tmp_path / "train")), Path(infer.write(tmp_path / "infer"))
    shown = []
    for _ in range(2):
        diagnose(*folders, tmp_path / "out")
        shown.append((tmp_path / "out" / "layer_map.md").read_text())
    assert "Changed since" not in shown[0]
    assert "## Changed since the mapping that stood here before\n\n- no row changed" in shown[1]
    other = np.random.default_rng(77).integers(0, WORDS, TOKENS)
    theirs = recorded(ids=(other, other))
    for record in theirs:
        record.call("one_more", [], lambda: np.zeros((2, 2), np.float32))
    diagnose(Path(theirs[0].write(tmp_path / "t2")), Path(theirs[1].write(tmp_path / "i2")), tmp_path / "out")
    assert "Changed since" not in (tmp_path / "out" / "layer_map.md").read_text()
