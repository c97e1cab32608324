"""The gates of the stages: open on a finished analysis, shut for each thing that can be missing, with a repair that runs."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.pipeline import CONCLUSION, MAPPING, PROBE, REPLAY, RESULTS
from dump_analysis.stages import gates
from dump_analysis.stages.workdir import CARD
from editing import copy_side, edit_json, unit_of
from laying import SAMPLES, Sample
from msprobe_files import task_card
from msprobe_files.errors import DumpError
from running import ROOT, SCRIPTS, run_command

PAIR = "qwen2-hf-vllm-kv_swapped"  # it has findings
Change = Callable[[Any], object]


def write_card(folder: Path, train: "Path | str", infer: "Path | str", **more: Any) -> None:
    card = task_card.empty()
    card["dumps"]["train"]["path"], card["dumps"]["infer"]["path"] = str(train), str(infer)
    card.update(more)
    (folder / CARD).write_text(task_card.text_of(card))


@pytest.fixture(scope="module")
def finished(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole analysis as the commands leave it, with a training log."""
    folder, pair = tmp_path_factory.mktemp("stages") / "work", sample(PAIR)
    log = folder.parent / "train.log"
    log.write_text("step:1 - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:0.02\n")
    where = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", folder, "--train-log", log)
    ran = run_command("diagnose.py", *where)
    assert ran.returncode == 0, ran.stderr
    write_card(folder, pair.train, pair.infer)
    return folder


@pytest.fixture
def work(finished: Path, tmp_path: Path) -> Path:
    """A copy of it to damage."""
    shutil.copytree(finished, tmp_path / "work")
    return tmp_path / "work"


def lines(stage: int, folder: Path) -> list[str]:
    return [gap.line for gap in gates.check(stage, folder).gaps]


def only(stage: int, folder: Path) -> str:
    """The only gap."""
    (line,) = lines(stage, folder)
    return line


def reconclude(work: Path) -> None:
    """The conclusion made anew, so that a change before stage 7 is not also one of stage 7."""
    assert run_command("conclude.py", "--workdir", work).returncode == 0


# --- open ---


@pytest.mark.parametrize("stage", [0, 1, 2, 3, 4, 6, 7])
def test_a_finished_analysis_is_open_everywhere(stage: int, finished: Path) -> None:
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    ran = run_command("check_stage.py", "--stage", str(stage), "--workdir", finished)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0] == f"stage {stage} is open"
    assert ran.stdout.splitlines()[-1].startswith("next: ")
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/pair.json")))
def test_every_sample_that_was_diagnosed_is_open(
    name: str, sample: Callable[[str], Sample], diagnosed: Callable[[str], Path], tmp_path: Path
) -> None:
    """Real dumps of ten kinds, whole and damaged: no gate may be shut by what a command wrote itself."""
    pair, work = sample(name), tmp_path / "work"
    shutil.copytree(diagnosed(name), work)
    write_card(work, pair.train, pair.infer)
    assert lines(7, work) == []


def test_each_gate_is_open_before_the_later_products_are_there(work: Path) -> None:
    """In order, a stage is open as soon as its own product is there, and the next command is named with real paths."""
    order = {
        0: (CARD, "probe_dump.py"), 1: (PROBE, "diagnose.py"), 2: (MAPPING, "analyze_dump_boundaries.py"),
        3: (RESULTS, "replay_boundaries.py"), 4: (REPLAY, "conclude.py"), 6: (CONCLUSION, "--stage 7"), 7: (CONCLUSION, "--stage 8"),
    }  # fmt: skip
    later = {name: (work / name).read_bytes() for name in (PROBE, MAPPING, RESULTS, REPLAY, CONCLUSION)}
    for name in later:
        (work / name).unlink()
    for stage, (product, then) in order.items():
        (work / product).write_bytes(later.get(product, (work / CARD).read_bytes()))
        found = gates.check(stage, work)
        assert found.gaps == []
        assert then in found.then
        assert str(work) in found.then


def test_dumps_that_were_removed_since_do_not_shut_the_later_gates(work: Path, tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """Stage 0 says that a path is gone; the digests in the files still fit each other, so no other gate is shut."""
    write_card(work, tmp_path / "gone", sample(PAIR).infer)
    assert [line[:8] for line in lines(7, work)] == ["stage 0:"]
    assert any("order of the rows is not checked" in warning for warning in gates.check(7, work).warnings)


# --- order of the stages ---


def test_an_empty_folder_names_all_products_in_order(tmp_path: Path) -> None:
    """A later stage needs the earlier products too; commands stand with the variables that SKILL.md sets."""
    ran = run_command("check_stage.py", "--stage", "7", "--workdir", tmp_path)
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (1, "stage 7 is shut: 6 gaps")
    told = ran.stderr.splitlines()
    assert [line.split(" is missing")[0] for line in told] == [
        f"stage 0: {CARD}", f"stage 1: {PROBE}", f"stage 2: {MAPPING}", f"stage 3: {RESULTS}", f"stage 4: {REPLAY}",
        f"stage 6: {CONCLUSION}",
    ]  # fmt: skip
    assert '--train "$TRAIN" --infer "$INFER"' in told[1]
    assert "propose_mapping.py" in told[2]


def test_a_conclusion_without_a_probe_is_shut(work: Path) -> None:
    (work / PROBE).unlink()
    assert only(7, work).startswith(f"stage 1: {PROBE} is missing. Run: ")
    assert lines(0, work) == []


# --- stage 0 ---


def set_at(path: str, value: Any) -> Change:
    """A change that sets a field by its dotted path; a number is a place in a list."""

    def change(card: Any) -> None:
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        for part in parents:
            card = card[part]
        card[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_at("dumps.train.path", "unknown"), ["dumps.train.path is not known", "Ask"]),
        (set_at("dumps.infer.path", "/no/such/dump"), ["dumps.infer.path", "/no/such/dump"]),
        (set_at("model", ""), ["model is empty", '"unknown"']),
        (set_at("sample.prompt_length", "  "), ["sample.prompt_length is empty"]),
        (set_at("known_traps", ["batch axis", ""]), ["known_traps[1] is empty"]),
        (set_at("hardware", "N/A"), ["hardware: 'N/A' is no fact"]),
        (set_at("train.version", "TODO"), ["train.version: 'TODO' is no fact"]),
        (set_at("infer.path", "<path of the engine>"), ["infer.path", "no fact"]),
        (set_at("workdir", "/path/to/work"), ["workdir", "no fact"]),
        (set_at("log_location", "$LOG"), ["log_location", "no fact"]),
        (set_at("dumps.infer.step", 5), ["dumps.infer.step is 5", "holds step 0"]),
        (set_at("dumps.infer.rank", "3"), ["dumps.infer.rank is 3", "holds rank 0"]),
        (set_at("dumps.train.rank", "first"), ["dumps.train.rank", "'first'"]),
        (set_at("goal", "everything"), ["goal", "first_divergence"]),
        (set_at("schema", "task_card/2"), ["schema", "task_card/2"]),
        (set_at("colour", "red"), ["colour: unknown key"]),
        (lambda card: card.pop("hardware"), ["hardware: missing"]),
    ],
)
def test_a_card_without_facts_is_shut(change: Change, words: list[str], work: Path) -> None:
    """A default that somebody invented looks like a fact in every later file."""
    edit_json(work / CARD, change)
    line = only(0, work)
    assert all(word in line for word in words), line
    assert "check_stage.py --stage 0" in line


@pytest.mark.parametrize(
    "change",
    [
        set_at("dumps.train.step", 0),
        set_at("dumps.train.step", "0"),
        set_at("goal", "full"),
        set_at("notes", "n/a"),
        set_at("hardware", "none"),
        set_at("site", {"ModelRunner.forward": "model_runner.py:1"}),
    ],
)
def test_a_card_with_facts_is_open(change: Change, work: Path) -> None:
    edit_json(work / CARD, change)
    assert lines(7, work) == []


def test_the_same_dump_twice_is_shut(work: Path, sample: Callable[[str], Sample]) -> None:
    write_card(work, sample(PAIR).infer, f"{sample(PAIR).infer}/.")
    assert "cannot be compared with itself" in only(0, work)


def test_the_empty_card_lacks_both_paths(work: Path) -> None:
    shutil.copyfile(SCRIPTS.parent / "references" / CARD, work / CARD)
    assert [line.split(". ")[0] for line in lines(0, work)] == [
        f"stage 0: {CARD}: dumps.{side}.path is not known" for side in ("train", "infer")
    ]


# --- stage 1 ---


def without(*kinds: str) -> Change:
    """Drop remarks of these kinds."""

    def change(probe: Any) -> None:
        probe["remarks"] = [remark for remark in probe["remarks"] if remark["kind"] not in kinds]

    return change


def both(*changes: Change) -> Change:
    def change(value: Any) -> None:
        for one in changes:
            one(value)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_at("infer", None), "holds no infer side"),
        (set_at("train.units", []), "the train dump holds no tensors"),
        (set_at("train.units.0.tensors", {"input": 0, "output": 0, "parameters": 0}), "the train dump holds no tensors"),
        (both(set_at("train.units.0.complete", False), without("missing_files")), "a unit of train is incomplete and no remark says"),
        (set_at("train.digest", "0" * 64), f"is of another train dump than {CARD} names"),
    ],
)
def test_a_probe_that_leaves_something_open_is_shut(change: Change, words: str, work: Path) -> None:
    edit_json(work / PROBE, change)
    line = only(1, work)
    assert words in line
    assert "probe_dump.py --train /" in line


def test_a_dump_that_changed_since_is_shut(work: Path, tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """The probe would describe a dump that is not there any more."""
    side = copy_side(sample(PAIR).train, tmp_path / "train")
    write_card(work, side, sample(PAIR).infer)
    assert lines(1, work) == []
    edit_json(unit_of(side) / "dump.json", lambda dump: dump["data"].popitem())
    assert "another train dump" in only(1, work)


def test_one_rank_of_a_root_fits_the_card_that_names_it(tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """The card names the root and step and rank; probed was that unit. The other rank's dump is not it."""
    unit = unit_of(sample(PAIR).train)
    for rank in (0, 1):
        copy_side(unit, tmp_path / f"root/step0/rank{rank}")
    edit_json(tmp_path / "root/step0/rank1/dump.json", lambda dump: dump["data"].popitem())
    write_card(tmp_path, tmp_path / "root", sample(PAIR).infer)
    edit_json(tmp_path / CARD, both(set_at("dumps.train.rank", 1), set_at("dumps.train.step", 0)))
    for rank, shut in ((1, False), (0, True)):
        where = ("--train", tmp_path / f"root/step0/rank{rank}", "--infer", sample(PAIR).infer, "--output", tmp_path / PROBE)
        assert run_command("probe_dump.py", *where).returncode == 0
        assert bool(lines(1, tmp_path)) == shut


def test_an_order_that_is_neither_known_nor_declared_unknown_is_shut(work: Path) -> None:
    edit_json(work / PROBE, both(set_at("infer.trace", 0), set_at("infer.units.0.complete", False)))
    order, cut = lines(1, work)
    assert "order in which infer ran" in order
    assert "incomplete" in cut


def test_a_dump_of_api_level_is_open(tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """Level L1 leaves construct.json empty; dump.json still tells the order, and probing again would change nothing."""
    side = copy_side(sample(PAIR).infer, tmp_path / "infer")
    (unit_of(side) / "construct.json").write_text("{}")
    write_card(tmp_path, sample(PAIR).train, side)
    assert run_command("probe_dump.py", "--train", sample(PAIR).train, "--infer", side, "--output", tmp_path / PROBE).returncode == 0
    assert json.loads((tmp_path / PROBE).read_text())["infer"]["trace"] == 0
    assert lines(1, tmp_path) == []


def test_a_part_of_what_was_probed_was_compared(tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """Probed was a root of two ranks, compared one of them: the repair probes that one, and then everything fits."""
    pair, root = sample(PAIR), tmp_path / "root"
    for rank in (0, 1):
        copy_side(unit_of(pair.train), root / f"step0/rank{rank}")
    write_card(tmp_path, root, pair.infer)
    where = ("--train", root / "step0/rank1", "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", tmp_path)
    assert run_command("diagnose.py", *where).returncode == 0
    assert run_command("probe_dump.py", "--train", root, "--infer", pair.infer, "--output", tmp_path / PROBE).returncode == 0
    (gap,) = gates.check(3, tmp_path).gaps
    subprocess.run(gap.repair.removeprefix("Run: "), shell=True, capture_output=True, check=True)
    assert lines(3, tmp_path) == []


def test_commands_hand_the_unit_that_the_card_names(work: Path, tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    root = tmp_path / "root"
    for rank in (0, 1):
        copy_side(unit_of(sample(PAIR).train), root / f"step0/rank{rank}")
    write_card(work, root, sample(PAIR).infer)
    assert f"--train {root} " in gates.check(0, work).then
    edit_json(work / CARD, set_at("dumps.train.rank", 1))
    assert f"--train {root}/step0/rank1 " in gates.check(0, work).then


def test_order_declared_unknown_is_enough(tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """Tensor files alone: less is known, but it is said."""
    tensors = unit_of(sample(PAIR).train) / "dump_tensor_data"
    shutil.copytree(tensors, tmp_path / "bare")
    write_card(tmp_path, tmp_path / "bare", sample(PAIR).infer)
    where = ("--train", tmp_path / "bare", "--infer", sample(PAIR).infer, "--output", tmp_path / PROBE)
    assert run_command("probe_dump.py", *where).returncode == 0
    assert lines(1, tmp_path) == []


# --- stage 3 ---


def test_a_row_without_a_result_is_shut(work: Path) -> None:
    def drop(results: Any) -> None:
        gone = results["weights"].pop()["boundary"], results["boundaries"].pop()["boundary"]
        names.extend(gone)

    names: list[str] = []
    edit_json(work / RESULTS, drop)
    line = only(3, work)
    assert all(name in line for name in names)
    assert "analyze_dump_boundaries.py" in line


@pytest.mark.parametrize("reason", [None, {"kind": "by_hand", "values": {}, "text": " "}])
@pytest.mark.parametrize("status", ["MISSING", "evidence_missing"])
def test_a_gap_without_a_reason_is_shut(reason: Any, status: str, work: Path) -> None:
    edit_json(work / RESULTS, both(set_at("boundaries.4.status", status), set_at("boundaries.4.reason", reason)))
    assert "without a reason: " in only(3, work)
    edit_json(work / RESULTS, set_at("boundaries.4.reason", {"kind": "by_hand", "values": {}, "text": "not recorded"}))
    assert "it was edited" in only(3, work)  # the counts are still those of a compared row


@pytest.mark.parametrize("change", [
    lambda found: found.update(consistency="consistent"),
    lambda found: found["summary"][0].update(text="All is well."),
    lambda found: found.update(first_divergence=None),
])  # fmt: skip
def test_a_conclusion_that_does_not_follow_is_shut(change: Change, work: Path) -> None:
    """Whatever a person or an agent writes into the conclusion: it is made again from the products and compared."""
    edit_json(work / CONCLUSION, change)
    assert "is not what follows from" in only(7, work)


@pytest.mark.parametrize("kind", ["tensor_missing", "op_does_not_fit", "shapes_but_ones"])
def test_a_row_that_does_not_fit_the_dumps_is_shut(kind: str, work: Path) -> None:
    """A slip in the mapping (a name, an axis) is no reason why a boundary was not compared."""
    edit_json(work / RESULTS, set_at("boundaries.4.reason", {"kind": kind, "values": {}, "text": "a slip"}))
    assert "do not fit the dumps: " in only(3, work)


def test_the_log_that_the_card_names_is_asked_for(work: Path) -> None:
    """A conclusion made without it holds no metrics; the repair hands it in."""
    log = work / "train.log"
    log.write_text("step:1 - prefill_logprob_diff_mean:0.0123\n")
    edit_json(work / CARD, set_at("log_location", str(log)))
    reconclude(work)
    assert f"--train-log {log}" in only(7, work)


def test_a_mapping_that_was_edited_since_is_shut(work: Path) -> None:
    edit_json(work / MAPPING, set_at("boundaries.0.note", "looked at again"))
    assert f"another mapping than {MAPPING}" in only(3, work)


def test_a_row_that_was_added_since_is_shut_and_named(work: Path) -> None:
    edit_json(work / MAPPING, lambda mapping: mapping["boundaries"].append({**mapping["boundaries"][0], "boundary": "layers.9.new"}))
    edited, left = lines(3, work)
    assert "edited since" in edited
    assert "layers.9.new" in left


def test_results_of_another_dump_are_shut(work: Path) -> None:
    edit_json(work / RESULTS, set_at("infer.digest", "f" * 64))
    assert f"another infer dump than {PROBE}" in only(3, work)


def test_nothing_compared_is_shut(work: Path) -> None:
    (work / "none.json").write_text("[]")
    pair = json.loads((work / CARD).read_text())["dumps"]
    where = ("--train", pair["train"]["path"], "--infer", pair["infer"]["path"], "--mapping", work / "none.json", "--output-dir", work)
    assert run_command("diagnose.py", *where).returncode == 2
    assert [line.split(". ")[0] for line in lines(7, work)] == [
        f"stage 2: {MAPPING} joins no boundary",
        f"stage 3: {RESULTS}: nothing was compared",
        f"stage 7: {CONCLUSION} says not_run: nothing was compared",
    ]


def test_rows_against_the_order_of_both_sides_are_shut(work: Path, sample: Callable[[str], Sample]) -> None:
    """A list turned around names the last boundary as the first divergence."""
    pair = sample(PAIR)
    rows = json.loads(pair.mapping.read_text())["boundaries"]
    turned = [{key: row[key] for key in ("boundary", "train", "infer")} for row in reversed(rows)]
    (work / "rows.json").write_text(json.dumps(turned))
    where = ("--train", pair.train, "--infer", pair.infer, "--mapping", work / "rows.json", "--output-dir", work)
    assert run_command("diagnose.py", *where).returncode == 0
    assert "both sides made it before" in only(3, work)


# --- stage 7 ---


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_at("overall", "not_run"), "says not_run"),
        (set_at("findings.0.evidence", []), "finding F1 at"),
        (set_at("findings.0.evidence", [{"kind": "by_hand", "values": {}, "text": " "}]), "states no evidence"),
        (lambda found: found["summary"].pop(), "has 2 sentences, not three"),
        (lambda found: found["summary"].append(found["summary"][0]), "has 4 sentences, not three"),
        (set_at("summary.1.text", ""), "has 2 sentences, not three"),
        (set_at("metrics.e2e.source", None), "metrics.e2e does not come from a training log"),
        (set_at("metrics.prefill_logprob_diff.mean", 0.01), "metrics.prefill_logprob_diff does not come from a training log"),
        (set_at("metrics.prefill_logprob_diff.status", "measured"), "metrics.prefill_logprob_diff does not come from a training log"),
        (lambda found: found["inputs"].pop(), "metrics.e2e does not come from a training log"),
        (lambda found: found["inputs"].__delitem__(slice(2, 3)), f"was made from another {PROBE}"),
    ],
)
def test_a_conclusion_that_says_too_much_or_too_little_is_shut(change: Change, words: str, work: Path) -> None:
    """Numbers copied in by hand, findings without ground: what a report must never rest on."""
    edit_json(work / CONCLUSION, change)
    line = only(7, work)
    assert words in line
    assert re.search(r"(conclude|analyze_dump_boundaries)\.py", line)


@pytest.mark.parametrize("name", [RESULTS, MAPPING, PROBE, REPLAY])
def test_a_conclusion_of_earlier_files_is_shut(name: str, work: Path) -> None:
    """Compared again and not concluded again."""
    (work / name).write_text((work / name).read_text() + "\n")
    assert f"stage 6: {CONCLUSION} was made from another {name}" in lines(7, work)[-1]


def test_the_repair_of_a_conclusion_keeps_its_log(work: Path) -> None:
    """Concluding again without the log would lose the metrics."""
    (work / RESULTS).write_text((work / RESULTS).read_text() + "\n")
    assert '--train-log "$TRAIN_LOG"' in only(7, work)


def test_a_conclusion_without_a_log_is_open(work: Path) -> None:
    reconclude(work)
    assert json.loads((work / CONCLUSION).read_text())["metrics"]["e2e"]["status"] == "evidence_missing"
    assert lines(7, work) == []


# --- repairs ---


def test_the_repairs_are_commands_that_open_the_gates(work: Path, sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """From an empty folder to an answer by nothing but what check_stage prints, the card and the rows written by hand."""
    folder = tmp_path / "new work"  # a name that a shell would split
    folder.mkdir()
    shutil.copyfile(work / MAPPING, folder / "rows.json")
    done: list[str] = []
    while (gaps := gates.check(7, folder).gaps) and len(done) < 10:
        command = gaps[0].repair.partition("un: ")[2]
        if "Ask where" in gaps[0].repair:
            write_card(folder, sample(PAIR).train, sample(PAIR).infer)
        ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert ran.returncode == 0, (command, ran.stderr)
        done.append(next(Path(word).name for word in shlex.split(command) if word == "cp" or word.endswith(".py")))
    assert done == ["cp", "check_stage.py", "probe_dump.py", "diagnose.py"]


# --- cannot ---


@pytest.mark.parametrize("stage", ["9", "-1", "99"])
def test_a_stage_without_a_gate_cannot_be_checked(stage: str, finished: Path) -> None:
    ran = run_command("check_stage.py", "--stage", stage, "--workdir", finished)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith(f"Cannot check stage {stage}: ")


@pytest.mark.parametrize("arguments", [[], ["--stage", "x"], ["--stage"], ["--stage", "1", "--workdirs", "x"], ["--stage", "1.0"]])
def test_a_wrong_call_is_one_line(arguments: list[str]) -> None:
    ran = run_command("check_stage.py", *arguments)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("kind", ["nowhere", "file"])
def test_a_folder_that_is_none_cannot_be_checked(kind: str, tmp_path: Path) -> None:
    if kind == "file":
        (tmp_path / kind).touch()
    ran = run_command("check_stage.py", "--stage", "0", "--workdir", tmp_path / kind)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert kind in ran.stderr


@pytest.mark.parametrize("name", [CARD, PROBE, MAPPING, RESULTS, REPLAY, CONCLUSION])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_cut_file_cannot_be_checked(name: str, kept: float, work: Path) -> None:
    """Unreadable is not shut: the agent must look, not repair by rote. Gates before that file do not read it."""
    raw = (work / name).read_bytes()
    (work / name).write_bytes(raw[: int(len(raw) * kept)])
    ran = run_command("check_stage.py", "--stage", "7", "--workdir", work)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert name in ran.stderr
    assert ran.stderr.startswith("Cannot ")


@pytest.mark.parametrize(
    ("name", "wrong"), [(PROBE, CONCLUSION), (RESULTS, PROBE), (MAPPING, RESULTS), (REPLAY, RESULTS), (CONCLUSION, RESULTS)]
)
def test_a_file_of_another_kind_cannot_be_checked(name: str, wrong: str, work: Path) -> None:
    shutil.copyfile(work / wrong, work / name)
    with pytest.raises(DumpError, match=re.escape(name)):
        gates.check(7, work)


def test_gaps_are_told_even_when_quiet(tmp_path: Path) -> None:
    """--quiet silences warnings; a gate that is shut without a word helps nobody."""
    ran = run_command("check_stage.py", "--stage", "0", "--workdir", tmp_path, "--quiet")
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    assert len(ran.stdout) < 2000


def test_the_working_directory_does_not_matter(work: Path) -> None:
    ran = run_command("check_stage.py", "--stage", "7", "--workdir", work.name, cwd=work.parent)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert run_command("check_stage.py", "--stage", "7", cwd=work).returncode == 0


def test_the_skill_tells_of_every_gate() -> None:
    """An agent that follows SKILL.md asks each gate that there is."""
    text = (ROOT / "skills/accuracy/rl-consistency-dump-analysis/SKILL.md").read_text(encoding="utf-8")
    for stage in gates.GATES:
        assert f"check_stage.py --stage {stage} " in text
