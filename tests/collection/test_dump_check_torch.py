"""The gate on toys dumped by the real msprobe: layouts of trainers and engines that pass, runs that must not."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import run_collection
from toys.manners import Manner
from toys.pairs import Toys
from toys.parallel.jobs import Job
from toys.parallel.pairs import Parallel
from toys.switches import Side, Switches


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toys]:
    with Toys(tmp_path_factory.mktemp("toys")) as running:
        yield running


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parallel]:
    with Parallel(tmp_path_factory.mktemp("parallel")) as running:
        yield running


def check(train: Path, infer: Path, out: Path) -> tuple[set[str], dict[str, Any]]:
    """The checks that fail, and the report."""
    ran = run_collection("check_dump_pair.py", "--train", train, "--infer", infer, "--workdir", out)
    assert "Traceback" not in ran.stderr
    report: dict[str, Any] = json.loads((out / "dump_pair_report.json").read_text())
    failed = {one["id"] for one in report["checks"] if one["ok"] is False}
    assert ran.returncode == (0 if report["comparable"] else 1), ran.stderr
    return failed, report


def said(report: dict[str, Any], name: str) -> str:
    return next(one["evidence"]["text"] for one in report["checks"] if one["id"] == name)


# --- what passes ---

LAYOUTS = {
    "fsdp1": (Job("fsdp1", prompts=(0, 0)), Job("engine")),
    "fsdp2": (Job("fsdp2", prompts=(0, 0)), Job("engine")),
    "fsdp2, two prompts": (Job("fsdp2", prompts=(0, 1)), Job("engine")),
    "tensor parallel": (Job("megatron", tp=2), Job("engine", tp=2)),
    "sequence parallel": (Job("megatron", tp=2, sequence=True), Job("engine")),
    "pipeline": (Job("megatron", pp=2), Job("engine")),
    "context parallel": (Job("megatron", cp=2), Job("engine")),
    "dummy, prefill, decode": (Job("hf"), Job("engine", forwards="served")),
    "another request in another step": (Job("hf"), Job("engine", forwards="two_requests")),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_passes(name: str, parallel: Parallel, tmp_path: Path) -> None:
    """Ranks, replicas and steps that hold other tokens are left aside; the rest is one forward."""
    train, infer = (parallel.root(job) for job in LAYOUTS[name])
    assert check(train, infer, tmp_path)[0] == set()


@pytest.mark.parametrize("architecture", ["latent", "grouped_interleaved", "end_norms", "part_rotated"])
def test_an_architecture_passes(architecture: str, toys: Toys, tmp_path: Path) -> None:
    assert check(toys.architecture("train", architecture), toys.architecture("infer", architecture), tmp_path)[0] == set()


def test_a_response_of_one_token_may_be_cut_by_msprobe(toys: Toys, tmp_path: Path) -> None:
    """The way to a prompt's dump without an edit: msprobe 26.2 slices the row off, and its files keep the storage."""
    failed, report = check(toys.run("train", "sliced"), toys.side("infer"), tmp_path)
    assert failed == {"no_slack"}
    assert report["comparable"] is True


def test_faults_of_the_model_do_not_shut_the_gate(toys: Toys, tmp_path: Path) -> None:
    """Comparability is judged, not equality."""
    faulty = Switches((("eps", 1), ("kv_swapped", 1), ("missing_residual", 1)))
    assert check(toys.side("train"), toys.side("infer", faulty), tmp_path)[0] == set()


# --- what fails, each by its own check ---

MANNERS: dict[Manner, set[str]] = {
    "only_step1": {"step0_recorded"},
    "nothing_ran": {"forward_ran"},
    "twice": {"no_second_call"},
    "killed": {"not_killed"},
    "raises": {"forward_ended"},
    "verl": {"head_present"},
    "only_warm_up": {"step0_not_warm_up"},
    "statistics": {"tensors_recorded"},
}


@pytest.mark.parametrize("side", ["train", "infer"])
@pytest.mark.parametrize("manner", MANNERS)
def test_a_run_that_went_wrong_fails_by_its_own_check(manner: Manner, side: Side, toys: Toys, tmp_path: Path) -> None:
    other = toys.side("infer" if side == "train" else "train")
    run = toys.run(side, manner)
    failed, report = check(run if side == "train" else other, other if side == "train" else run, tmp_path)
    if manner == "only_step1" and side == "infer":
        assert failed == set(), "an engine counts its own steps"
        return
    assert failed == MANNERS[manner]
    assert said(report, next(iter(failed))).startswith(f"{side}: ")
    assert report["comparable"] is False


def test_a_rank_that_was_killed_is_missed(parallel: Parallel, tmp_path: Path) -> None:
    """The other rank of the step is whole, and has every token."""
    shutil.copytree(parallel.root(Job("engine", tp=2)), tmp_path / "infer")
    (dump,) = tmp_path.glob("infer/step0/rank1/dump.json")
    dump.unlink()
    failed, report = check(parallel.root(Job("hf")), tmp_path / "infer", tmp_path)
    assert failed == {"not_killed"}
    assert "step0/rank1" in said(report, "not_killed")


def test_padding_left_in_fails_by_the_length(toys: Toys, tmp_path: Path) -> None:
    """Four masked tokens before the prompt, as trainers pad."""
    failed, report = check(toys.pair("padded", "train").train, toys.side("infer"), tmp_path)
    assert failed == {"no_padding", "prompt_length", "embedding_shape"}
    assert "train holds 28 token rows, infer 24" in said(report, "prompt_length")


def test_positions_off_by_one_fail_by_the_positions(toys: Toys, tmp_path: Path) -> None:
    failed, _ = check(toys.pair("positions_off_by_one", "train").train, toys.side("infer"), tmp_path)
    assert failed == {"positions_equal"}


def test_another_prompt_fails_by_the_tokens(parallel: Parallel, tmp_path: Path) -> None:
    """Another length too: the lengths are said, and the tokens are not taken for a part of the prompt."""
    failed, _ = check(parallel.root(Job("hf")), parallel.root(Job("engine", prompts=(1,))), tmp_path)
    assert "tokens_equal" in failed
    assert not failed & {"no_prefix_cache", "no_chunked_prefill", "no_padding"}


FORWARDS = {"chunks": "no_chunked_prefill", "prefix": "no_prefix_cache"}


@pytest.mark.parametrize("forwards", FORWARDS)
def test_a_part_of_the_prompt_fails_by_what_cut_it(forwards: Any, parallel: Parallel, tmp_path: Path) -> None:
    failed, _ = check(parallel.root(Job("hf")), parallel.root(Job("engine", forwards=forwards)), tmp_path)
    assert failed == {FORWARDS[forwards]}


# --- cases ---


def test_b02_a_folder_with_nothing_in_it_lists_the_reasons_in_order(toys: Toys, tmp_path: Path) -> None:
    """B02: the debugger was not started, as where a runner has no hook; the folder is there, empty."""
    empty = toys.run("infer", "not_started")
    assert not empty.exists()
    empty.mkdir()
    failed, report = check(toys.side("train"), empty, tmp_path)
    assert failed == {"dump_found"}
    told = said(report, "dump_found")
    assert told.startswith("infer: ")
    reasons = ["graph mode", "msprobe hook", "msprobe installed", "rank"]
    assert [told.index(reason) for reason in reasons] == sorted(told.index(reason) for reason in reasons)


def test_b03_a_dummy_step_is_left_aside_and_the_real_one_judged(toys: Toys, tmp_path: Path) -> None:
    """B03: step 0 is of zeros and of twice the rows, step 1 the prefill."""
    failed, report = check(toys.side("train"), toys.run("infer", "warmed_up"), tmp_path)
    assert failed == set()
    assert "infer: step0/proc" in said(report, "step0_not_warm_up")
    assert "infer: judged step1/proc" in said(report, "one_dump_per_step")


def test_b03_a_dummy_step_alone_shuts_the_gate(toys: Toys, tmp_path: Path) -> None:
    failed, report = check(toys.side("train"), toys.run("infer", "only_warm_up"), tmp_path)
    assert failed == {"step0_not_warm_up"}
    assert "(48 rows)" in said(report, "step0_not_warm_up")


def test_b13_a_forward_that_never_ran_is_named_after_the_run(toys: Toys, tmp_path: Path) -> None:
    """B13: the window was opened and closed, and the log-prob forward was skipped or reused."""
    failed, report = check(toys.run("train", "nothing_ran"), toys.side("infer"), tmp_path)
    assert failed == {"forward_ran"}
    assert "no module was called" in said(report, "forward_ran")
    assert "can_reuse_log_probs_in_loss" in said(report, "forward_ran")


def test_b01_a_run_killed_before_stop_is_told_from_a_cut_dump_json(toys: Toys, tmp_path: Path) -> None:
    """B01: tensors without dump.json; dump.json cut in the middle, with the byte where it ends and the other side still read."""
    absent, cut = tmp_path / "absent", tmp_path / "cut"
    for target in (absent, cut):
        shutil.copytree(toys.side("infer"), target)
    (dump,) = absent.rglob("dump.json")
    dump.unlink()
    failed, report = check(toys.side("train"), absent, tmp_path)
    assert failed == {"not_killed"}
    assert "dump.json is missing" in said(report, "not_killed")
    assert "ended before stop()" in said(report, "not_killed")
    (dump,) = cut.rglob("dump.json")
    dump.write_bytes(dump.read_bytes()[:5000])
    failed, report = check(toys.side("train"), cut, tmp_path)
    assert failed == {"parses"}
    assert "dump.json: it ends at byte 5000 in the middle" in said(report, "parses")
    assert next(one for one in report["checks"] if one["id"] == "not_killed")["evidence"]["values"]
