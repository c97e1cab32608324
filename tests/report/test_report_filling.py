"""A report source filled from results: every number is the artefacts' own, what nobody knows says so, and what people wrote stays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.artefacts import io, report_source
from dump_analysis.artefacts.conclusion import EndToEndMetric
from dump_analysis.report import agreement, generating, rules
from dump_analysis.report.source import axes, fill
from laying import SAMPLES, Sample
from running import run_command

FAULTY, ROUNDING = "qwen2-hf-vllm-kv_swapped", "qwen2-hf-vllm-clean"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/pair.json")))
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_a_source_of_each_sample_says_what_its_results_say(name: str, language: Any, diagnosed: Callable[[str], Path]) -> None:
    """Read as plain JSON on both sides: to the last digit, no finding lost, and nothing that a rule speaks against."""
    folder = diagnosed(name)
    made, _ = fill.from_results(folder, language)
    source, conclusion, results = json.loads(io.text_of(made)), load(folder / "conclusion.json"), load(folder / "boundary_results.json")
    measured = {row["boundary"]: row["max_abs_diff"] for row in [*results["boundaries"], *results["weights"]]}
    assert source["results"]["native_prefill_status"] == source["verification_axes"]["tensor_prefill"]["status"] == conclusion["overall"]
    faults = [one for one in conclusion["findings"] if one["character"] != "rounding"]
    assert [(one["diff_id"], one["boundary"], one["discovery_max_abs_diff"]) for one in source["differences"]] == [
        (one["id"], one["boundary"], measured.get(one["boundary"])) for one in faults
    ]
    status = {"logic": "excluded_known_gap", "unknown": "pending"}
    assert [one["status"] for one in source["differences"]] == [status[one["character"]] for one in faults]
    assert [len(one["proof"]) for one in source["differences"]] == [len(one["evidence"]) for one in faults]
    digests = {one["label"]: one["digest"] for one in conclusion["inputs"]}
    assert {side: source["provenance"][side]["digest"] for side in ("train", "infer")} == {key: digests[key] for key in ("train", "infer")}
    assert {one["name"]: one["digest"] for one in source["artifacts"]["files"]} == {
        one["name"]: io.digest_of_file(folder / one["name"]) for one in source["artifacts"]["files"]
    }
    assert rules.contradictions(made) == []
    assert agreement.disagreements(made, agreement.beside(made, folder)) == []


@pytest.mark.parametrize(("name", "evidence"), [(FAULTY, ("37", "mismatch")), (ROUNDING, ("38", "evidence_missing"))])
def test_weights_are_counted_and_named(name: str, evidence: tuple[str, str], diagnosed: Callable[[str], Path]) -> None:
    """D10: exact needs every recorded weight compared; the clean pair's head was recorded on one side alone."""
    found = load(diagnosed(name) / "report_source.json")["verification_axes"]["weight_sync"]
    rows = load(diagnosed(name) / "boundary_results.json")["weights"]
    equal = sum(row["status"] == "EXACT" for row in rows)
    assert f"of {len(rows)} weights {equal} are equal" in found["evidence"]
    assert found["status"] == evidence[1]


def test_where_every_recorded_weight_was_compared_and_is_equal_they_are_exact(tmp_path: Path) -> None:
    """Two pipeline stages against one unit: both sides recorded all weights, and every one is joined."""
    pair, out = SAMPLES / "several/qwen2-megatron_pp2-hf-clean", tmp_path / "out"
    ran = run_command("diagnose.py", "--train", pair / "train", "--infer", pair / "infer", "--output-dir", out)
    assert ran.returncode == 0, ran.stderr
    assert {row["status"] for row in load(out / "boundary_results.json")["weights"]} == {"EXACT"}
    assert load(out / "report_source.json")["verification_axes"]["weight_sync"]["status"] == "exact"


def test_an_exact_pair_has_a_gate_whole_but_for_what_no_dump_tells(diagnosed: Callable[[str], Path]) -> None:
    source = load(diagnosed("qwen2-toy-26.2.0") / "report_source.json")
    assert source["results"]["native_prefill_status"] == "exact"
    gate = source["results"]["native_exact_gate"]
    assert gate.pop("real_path_activation_proved") == "unknown"
    assert gate.pop("max_abs_diff") == 0
    assert set(gate.values()) == {True}


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/pair.json")))
def test_no_sample_gives_a_false_alarm(name: str, diagnosed: Callable[[str], Path]) -> None:
    """Sentences, names and aggregates of real dumps, in all artefacts that a report is made from, pass the guard and the rules."""
    found = generating.check(diagnosed(name) / "report_source.json")
    assert [fault.line for fault in found.faults] == []
    assert (diagnosed(name) / "alignment_report.html").is_file()


# --- overall values ---


def test_other_prompts_are_reported_as_not_run(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Where no tokens join the sides there is a conclusion that says so, and a report of it."""
    infer = sample("qwen2-hf-vllm_no_weights-two_requests").infer
    train = sample("qwen3_moe-megatron_tp1-sglang-clean").train
    ran = run_command("diagnose.py", "--train", train, "--infer", infer, "--output-dir", tmp_path / "out")
    assert ran.returncode == 2
    assert load(tmp_path / "out/conclusion.json")["overall"] == "not_run"
    source = load(tmp_path / "out/report_source.json")
    assert source["results"]["native_prefill_status"] == "not_run"
    assert source["verification_axes"]["weight_sync"]["status"] == "not_run"
    assert "Not run" in (tmp_path / "out/alignment_report.md").read_text(encoding="utf-8")


def test_statistics_alone_are_evidence_missing(tmp_path: Path) -> None:
    sides = SAMPLES / "statistics/qwen2-24-layers"
    out = tmp_path / "out"
    ran = run_command("diagnose.py", "--train", sides / "train", "--infer", sides / "infer", "--output-dir", out)
    assert ran.returncode == 0, ran.stderr
    source = load(out / "report_source.json")
    assert source["results"]["native_prefill_status"] == "evidence_missing"
    assert source["verification_axes"]["weight_sync"]["status"] == "evidence_missing"
    assert source["differences"] == []
    assert (out / "alignment_report.html").is_file()


# --- what the task card and the log know ---


def test_the_task_card_fills_what_no_dump_tells(folder: Callable[[str], Path]) -> None:
    work = folder(FAULTY)
    card = load(Path(SAMPLES.parent.parent / "skills/accuracy/rl-consistency-dump-analysis/references/task_card.json"))
    card["model"], card["hardware"], card["stop_condition"] = "qwen2", "CPU", "logits equal"
    card["train"] |= {"framework": "transformers", "version": "5.19.0", "backend": "sdpa"}
    card["infer"] |= {"engine": "vllm", "version": "0.32.0"}
    card["parallel"]["train"] |= {"tp": 2, "pp": "1"}
    (work / "task_card.json").write_text(json.dumps(card))
    assert run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en").returncode == 0
    source = load(work / "report_source.json")
    assert source["scope"]["model"].startswith("qwen2 (3 layers, hidden 64, bfloat16")
    assert source["title"].endswith(source["scope"]["model"])
    assert source["scope"]["training_backend"] == "transformers 5.19.0 sdpa"
    assert source["scope"]["inference_backend"] == "vllm 0.32.0"
    assert source["provenance"]["infer"]["versions"]["vllm"] == "0.32.0"
    assert source["scope"]["topology"]["train"] == {"tp": 2, "pp": 1, "ep": "unknown", "cp": "unknown", "dp": "unknown"}
    assert source["acceptance_contract"]["stop_condition"] == "logits equal"


def test_ranks_that_were_put_together_tell_the_topology(tmp_path: Path) -> None:
    pair = SAMPLES / "several/qwen3-megatron_tp2-sglang_tp2-clean"
    out = tmp_path / "out"
    ran = run_command("diagnose.py", "--train", pair / "train", "--infer", pair / "infer", "--output-dir", out)
    assert ran.returncode == 0, ran.stderr
    topology = load(out / "report_source.json")["scope"]["topology"]
    assert {side: layout["tp"] for side, layout in topology.items()} == {"train": 2, "infer": 2}


@pytest.mark.parametrize(
    ("metric", "told"),
    [
        (EndToEndMetric("measured", mean=0.0), ("zero", 0.0)),
        (EndToEndMetric("measured", mean=0.25), ("nonzero", 0.25)),
        (EndToEndMetric("measured", mean=None), ("evidence_missing", None)),
        (EndToEndMetric("not_run", valid=0), ("not_run", None)),
        (EndToEndMetric("evidence_missing"), ("evidence_missing", None)),
    ],
)
def test_a_metric_is_zero_only_where_zero_was_measured(metric: EndToEndMetric, told: tuple[str, float | None]) -> None:
    """A bound (three decimals of 0) is no value."""
    assert axes.end_to_end(metric) == told


ROUNDS: list[tuple[list[Any], str]] = [
    ([], "not_run"),
    ([{"round": 1, "effective": False, "downstream": [{"boundary": "logits", "status": "EXACT"}]}], "not_run"),
    ([{"round": 1, "effective": True, "downstream": [{"boundary": "logits", "status": "EXACT"}]}], "exact"),
    ([{"round": 1, "effective": True, "downstream": [{"status": "EXACT"}, {"status": "NOT_EXACT"}]}], "nonzero"),
    ([{"round": 1, "effective": True, "downstream": [{"status": "EXACT"}, {"status": "evidence_missing"}]}], "evidence_missing"),
    ([{"round": 1, "effective": True, "downstream": [{"status": "NOT_EXACT"}]}, {"round": 2, "effective": False}], "nonzero"),
    ([{"round": 1, "effective": True, "downstream": []}], "evidence_missing"),
]


@pytest.mark.parametrize(("rounds", "status"), ROUNDS)
def test_the_prefill_after_overriding_is_what_the_last_round_left(rounds: list[Any], status: str) -> None:
    assert axes.conditional(rounds) == status


# --- D09: fine at step 0, worse each step ---


@pytest.fixture
def climbing(folder: Callable[[str], Path], tmp_path: Path) -> Callable[[str], list[str]]:
    """The limitations of a pair that was concluded with a log in which the metric climbs from 0.011 to 0.036 over 30 steps."""

    def of(name: str) -> list[str]:
        log = tmp_path / "train.log"
        lines = [f"step:{step} - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:{0.011 + step * 0.025 / 30:.6f}"
                 for step in range(31)]  # fmt: skip
        log.write_text("\n".join(lines) + "\n")
        work = folder(name)
        assert run_command("conclude.py", "--workdir", work, "--train-log", log).returncode == 0
        assert run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en").returncode == 0
        return load(work / "report_source.json")["limitations"]

    return of


def test_growth_over_the_steps_needs_a_later_pair(climbing: Callable[[str], list[str]]) -> None:
    """D09: the prefill of step 0 is consistent; nothing is claimed of later steps, and what to compare next is said."""
    (told,) = [text for text in climbing(ROUNDING) if "e2e grows" in text]
    for part in ("at step 0 is consistent", "0.011 at step 0", "0.036 at step 30", "pair of a later step", "weights", "cache"):
        assert part in told, part


def test_of_a_pair_that_is_not_consistent_that_is_not_said(climbing: Callable[[str], list[str]]) -> None:
    assert not [text for text in climbing(FAULTY) if "is consistent" in text]


# --- what people know ---


def test_what_no_artefact_knows_is_marked_and_named(diagnosed: Callable[[str], Path]) -> None:
    source = report_source.read(diagnosed(FAULTY) / "report_source.json")
    left = fill.left_to_people(source)
    assert {"generated_at", "acceptance_contract.status", "scope.model", "scope.hardware_backend", "scope.topology.train.tp"} <= set(left)
    ran = run_command("generate_alignment_report.py", "--input", diagnosed(FAULTY) / "report_source.json", "--output-dir", "/dev/null/x")
    assert ran.returncode == 2, "nothing can be written there"


def test_what_people_filled_in_outlives_a_new_analysis(folder: Callable[[str], Path], sample: Callable[[str], Sample]) -> None:
    """The dumps are compared again, in another language: the date and the hardware stay, and no copy is left about."""
    work, pair = folder(FAULTY), sample(FAULTY)
    value = load(work / "report_source.json")
    value["generated_at"], value["scope"]["hardware_backend"], value["scope"]["topology"]["infer"]["tp"] = "2026-11-29", "8 × H200", 4
    (work / "report_source.json").write_text(json.dumps(value, indent=1))
    arguments = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", work, "--lang", "zh-CN")
    assert run_command("diagnose.py", *arguments).returncode == 0
    again = load(work / "report_source.json")
    assert (again["generated_at"], again["scope"]["hardware_backend"]) == ("2026-11-29", "8 × H200")
    assert again["scope"]["topology"]["infer"] == {"tp": 4, "pp": "unknown", "ep": "unknown", "cp": "unknown", "dp": "unknown"}
    assert again["language"] == "zh-CN"
    assert list(work.glob("report_source.edited*")) == []
    assert "2026-11-29" in (work / "alignment_report.md").read_text(encoding="utf-8").replace("\\", "")


@pytest.mark.parametrize("spoilt", [False, True])
def test_what_else_people_wrote_is_kept_aside_and_said(spoilt: bool, folder: Callable[[str], Path]) -> None:
    """An own difference, or a slip that makes it no JSON: filling anew loses neither."""
    work = folder(FAULTY)
    value = load(work / "report_source.json")
    value["differences"].append({**value["differences"][0], "diff_id": "D-1", "status": "pending"})
    written = json.dumps(value)[: -20 if spoilt else None].encode()
    (work / "report_source.json").write_bytes(written)
    ran = run_command("generate_alignment_report.py", "--from-results", work)
    assert ran.returncode == 0
    assert "report_source.edited1.json" in ran.stderr
    assert (work / "report_source.edited1.json").read_bytes() == written
    assert [one["diff_id"] for one in load(work / "report_source.json")["differences"]] == ["F3"]


def test_filling_twice_gives_the_same_bytes(folder: Callable[[str], Path]) -> None:
    work = folder(FAULTY)
    made = []
    for _ in range(2):
        assert run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en").returncode == 0
        made.append((work / "report_source.json").read_bytes())
    assert made[0] == made[1]


def test_without_a_conclusion_nothing_is_filled(tmp_path: Path) -> None:
    ran = run_command("generate_alignment_report.py", "--from-results", tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert "holds no conclusion.json" in ran.stderr
    assert list(tmp_path.iterdir()) == []
