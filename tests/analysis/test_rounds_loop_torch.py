"""Rounds on the toys with the real msprobe: what was put in is found, what does not take effect proves nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from collection.loading import Loading
from collection.warm import Warm
from round_runs import Analysed, Machine, analyse, copy_of, differing
from toys.pairs import Toys

FAULTS = (("one_channel", 0), ("attention_scale", 1))
SEEN = {"layers.0.o_proj.out", "layers.1.attn_core.out"}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    root = tmp_path_factory.mktemp("machine")
    with Loading(root) as toys, Warm(root) as commands:
        yield Machine(toys, commands)


@pytest.fixture(scope="module")
def forced(machine: Machine, toys: Toys, tmp_path_factory: pytest.TempPathFactory) -> tuple[Analysed, tuple[int, Any]]:
    """Two faults in the engine, replay known, one forced round into the engine, judged."""
    found = analyse(machine, toys, tmp_path_factory.mktemp("forced"), infer=FAULTS)
    number = found.plan("--all")
    assert number == 1
    found.carry_out(number)
    return found, found.judge(number)


def test_a_forced_round_shows_each_fault_from_equal_inputs_and_no_other(forced: tuple[Analysed, tuple[int, Any]]) -> None:
    """Every module of the engine gets the trainer's inputs: only the two faulty ones differ, though all behind the first did."""
    found, (code, result) = forced
    assert found.read("round1/stub_instruction.json")["target_side"] == "infer"
    assert result["effective"] is True
    assert differing(result) == dict.fromkeys(SEEN, "replay")
    assert result["confirmed"] == ["F1", "F2"]
    assert (result["contradicted"], result["next"], result["stop"], code) == ([], None, "all_listed", 1)


def test_the_conclusion_says_which_rounds_confirm_a_finding(forced: tuple[Analysed, tuple[int, Any]]) -> None:
    found, _ = forced
    conclusion = found.conclude()
    assert {one["boundary"] for one in conclusion["findings"]} == SEEN
    assert all(one["rounds"] == [1] and "round" in one["confirmed_by"] and one["side"] == "infer" for one in conclusion["findings"])
    assert [(one["round"], one["effective"], set(one["differ"])) for one in conclusion["rounds"]] == [(1, True, SEEN)]
    assert found.plan("--all") is None, "every finding is confirmed: no round adds anything"


@pytest.mark.parametrize("way", ["changed", "other_shape", "missing"])
def test_a_dump_that_does_not_hold_what_was_prepared_is_not_effective(
    forced: tuple[Analysed, tuple[int, Any]], tmp_path: Path, way: str
) -> None:
    """One bit of one overridden input is another, or its shape, or it is gone: nothing downstream is judged, whatever the outcome says."""
    found = copy_of(forced[0], tmp_path / "copy")
    (file,) = (found.workdir / "round1/dump").glob("step0/*/dump_tensor_data/*layers.1.mlp.down_proj*.input.0.pt")
    value = torch.load(file)
    if way == "missing":
        file.unlink()
    elif way == "other_shape":
        torch.save(value[:-1].clone(), file)
    else:
        value.view(torch.int16)[3, 5] ^= 1
        torch.save(value, file)
    code, result = found.judge(1, "--round-dump", found.workdir / "round1/dump")
    assert (code, result["effective"], result["local"], result["confirmed"]) == (3, False, [], [])
    assert "layers.1.mlp.down_proj" in result["why_not"]["text"]


def _unverified(outcome: dict[str, Any]) -> None:
    outcome["effective"] = outcome["new_dump"] = None


def _not_overridden(outcome: dict[str, Any]) -> None:
    outcome["effective"] = outcome["effect"][0]["overridden"] = False


def _of_another(outcome: dict[str, Any]) -> None:
    outcome["instruction"]["digest"] = "0" * 64


def _again(outcome: dict[str, Any]) -> None:
    outcome["warnings"].append({"kind": "overridden_between", "values": {}, "text": "overridden again"})


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (_unverified, "why_not_verified"),
        (_not_overridden, "why_not_overridden"),
        (_of_another, "why_other_instruction"),
        (_again, "why_applied_again"),
    ],
)
def test_an_outcome_that_proves_nothing_is_not_effective(
    forced: tuple[Analysed, tuple[int, Any]], tmp_path: Path, spoil: Callable[[dict[str, Any]], None], kind: str
) -> None:
    found = copy_of(forced[0], tmp_path / "copy")
    path = found.workdir / "round1/stub_outcome.json"
    outcome = json.loads(path.read_text(encoding="utf-8"))
    spoil(outcome)
    path.write_text(json.dumps(outcome), encoding="utf-8")
    code, result = found.judge(1)
    assert (code, result["effective"], result["why_not"]["kind"], result["stop"]) == (3, False, kind, "evidence_missing")


def test_a_run_of_other_tokens_is_not_effective(forced: tuple[Analysed, tuple[int, Any]], tmp_path: Path) -> None:
    found = copy_of(forced[0], tmp_path / "copy")
    for file in (found.workdir / "round1/dump").glob("step0/*/dump_tensor_data/*"):
        if file.name.startswith(
            ("Module.model.Qwen2Model.forward.0.input.0", "Module.model.embed_tokens.VocabParallelEmbedding.forward.0.input.0")
        ):
            torch.save(torch.load(file).flip(0), file)
    _, result = found.judge(1, "--round-dump", found.workdir / "round1/dump")
    assert (result["effective"], result["why_not"]["kind"]) == (False, "why_other_tokens")


def test_what_replay_says_is_contradicted_by_what_a_round_shows(forced: tuple[Analysed, tuple[int, Any]], tmp_path: Path) -> None:
    """Replay made to say that a faulty module is the same on both sides: both pieces of evidence are told, loudly."""
    found = copy_of(forced[0], tmp_path / "copy")
    path = found.workdir / "replay_results.json"
    replay = json.loads(path.read_text(encoding="utf-8"))
    for module in replay["modules"]:
        if module["module"] == "layers.1.attn_core":
            module.update(verdict="same", evidence=[])
    path.write_text(json.dumps(replay), encoding="utf-8")
    shutil.rmtree(found.workdir / "round1/round_result.json", ignore_errors=True)
    conclusion = found.read("conclusion.json")
    conclusion["findings"] = conclusion["findings"][:1]
    (found.workdir / "conclusion.json").write_text(json.dumps(conclusion), encoding="utf-8")
    _, result = found.judge(1)
    (told,) = result["contradicted"]
    assert (told["finding"], told["boundary"]) == (None, "layers.1.attn_core.out")
    assert "the same way" in told["replay"]["text"]
    assert "differs" in told["round"]["text"]


def test_single_cuts_without_replay_find_each_fault_and_end(machine: Machine, toys: Toys, tmp_path: Path) -> None:
    """Two faults in the trainer, cuts into the trainer, nothing recomputed: k + 1 rounds at most, and the same two boundaries."""
    found = analyse(machine, toys, tmp_path / "cuts", train=(("eps", 0), ("one_token", 2)), replay=False)
    stops = []
    while (number := found.plan("--target", "train")) is not None:
        found.carry_out(number)
        _, result = found.judge(number)
        assert result["effective"] is True
        assert result["isolated"]["status"] == "EXACT"
        stops.append(result["stop"])
    assert stops == ["continue", "continue"], "q, k and v behind the norm are hidden by every cut"
    assert {one["kind"] for one in found.read("round_plan.json")["remarks"]} >= {"round_nothing_open", "round_forced_shows"}
    conclusion = found.conclude()
    assert [one["boundary"] for one in conclusion["findings"]] == ["layers.0.input_norm.out", "layers.2.down.out"]
    assert all(one["side"] == "unknown" and "fingerprint" in one["confirmed_by"] for one in conclusion["findings"])


def test_where_no_complete_cut_shows_what_is_left_the_plan_says_that_a_forced_round_would(
    machine: Machine, toys: Toys, tmp_path: Path
) -> None:
    """Between q, k, v and the attention behind them no call takes the whole stream; what follows is exact, and the loop is not done."""
    found = analyse(machine, toys, tmp_path / "hidden", infer=(("missing_bias", 0), ("attention_scaled", 0)), replay=False)
    stops = []
    while (number := found.plan("--target", "infer")) is not None:
        found.carry_out(number)
        stops.append(found.judge(number)[1]["stop"])
        found.conclude()
    assert stops[-1] == "continue", "something is left that no cut shows"
    (told,) = [one for one in found.read("round_plan.json")["remarks"] if one["kind"] == "round_forced_shows"]
    assert told["values"] == {"side": "infer"}
    number = found.plan("--all", "--target", "infer")
    assert number is not None
    found.carry_out(number)
    result = found.judge(number)[1]
    assert "layers.0.attn_core.out" in differing(result)
    assert result["stop"] == "all_listed"


def test_two_forced_rounds_see_what_the_trainer_records_as_arguments_alone(machine: Machine, toys: Toys, tmp_path: Path) -> None:
    """Attention cores, products and residual sums of the trainer are no module's output: one turn leaves open what the other overrides."""
    faults = (("attention_scale", 1), ("missing_residual", 1), ("gate_up_order", 1))
    found = analyse(machine, toys, tmp_path / "turns", train=faults, replay=False)
    seen: dict[str, str] = {}
    for turn in (1, 2):
        assert found.plan("--all", "--target", "train") == turn
        found.carry_out(turn)
        _, result = found.judge(turn)
        seen.update(differing(result))
    assert set(seen) == {"layers.1.attn_core.out", "layers.1.resid_attn", "layers.1.act_mul.out"}
    assert found.plan("--all", "--target", "train") is None


def test_where_one_side_cannot_show_what_is_open_the_plan_says_that_the_other_can(machine: Machine, toys: Toys, tmp_path: Path) -> None:
    """Attention behind wrong q, k and v: the trainer makes it of what its own projections returned, which `load` cannot override."""
    found = analyse(machine, toys, tmp_path / "other", infer=(("missing_bias", 1), ("probs_rounded", 1)), replay=False)
    stops = []
    while (number := found.plan("--all", "--target", "train")) is not None:
        found.carry_out(number)
        stops.append(found.judge(number)[1]["stop"])
        found.conclude()
    assert stops == ["continue", "continue"]
    assert "round_other_side" in {one["kind"] for one in found.read("round_plan.json")["remarks"]}
    assert found.plan("--all") == 3
    found.carry_out(3)
    _, result = found.judge(3)
    assert found.read("round3/stub_instruction.json")["target_side"] == "infer"
    assert set(differing(result)) == {"layers.1.q.out", "layers.1.k.out", "layers.1.v.out", "layers.1.attn_core.out"}
    assert result["stop"] == "all_listed"


def test_an_override_that_stays_on_for_a_later_forward_is_not_effective(machine: Machine, toys: Toys, tmp_path: Path) -> None:
    """A forward between two windows gets the same tensors: what the second window recorded is no round of this instruction."""
    found = analyse(machine, toys, tmp_path / "again", infer=(("one_channel", 0),), replay=False)
    assert found.plan("--target", "infer") == 1
    found.carry_out(1, forwards=("window", "outside", "window"))
    outcome = found.read("round1/stub_outcome.json")
    assert outcome["effective"] is False
    code, result = found.judge(1)
    assert (code, result["effective"], result["downstream"]) == (3, False, [])
    assert result["why_not"]["kind"] == "why_applied_again"


def test_a_run_that_recorded_nothing_is_not_effective(machine: Machine, toys: Toys, tmp_path: Path) -> None:
    """The window was never opened: there is a folder and no call in it."""
    found = analyse(machine, toys, tmp_path / "nothing", infer=(("one_channel", 0),), replay=False)
    assert found.plan("--target", "infer") == 1
    found.carry_out(1, forwards=())
    code, result = found.judge(1)
    assert (code, result["effective"], result["downstream"]) == (3, False, [])
    assert result["why_not"]["kind"] in ("why_not_overridden", "why_not_verified")


@pytest.mark.parametrize("name", ["round_plan.json", "round1/stub_instruction.json", "round1/round_result.json"])
def test_what_a_round_writes_is_the_same_again_and_names_no_path_of_the_machine(
    forced: tuple[Analysed, tuple[int, Any]], tmp_path: Path, name: str
) -> None:
    """Planned and judged again from the same files: the same bytes."""
    found = copy_of(forced[0], tmp_path / "copy")
    first = analysis_before_rounds(found)
    before = (found.workdir / name).read_bytes()
    for path in (found.train, found.infer, forced[0].workdir, found.workdir, Path.home()):
        assert str(path).encode() not in before
    if name == "round1/round_result.json":
        found.judge(1)
    else:
        first.plan("--all")
    again = (first if name != "round1/round_result.json" else found).workdir / name
    if name == "round_plan.json":
        assert json.loads(again.read_text(encoding="utf-8"))["rounds"][0]["round"] == 1
    else:
        assert again.read_bytes() == before


def analysis_before_rounds(found: Analysed) -> Analysed:
    """The same analysis as it was before any round."""
    folder = found.workdir.parent / "before"
    shutil.copytree(found.workdir, folder)
    shutil.rmtree(folder / "round1")
    before = found._replace(workdir=folder)
    before.conclude()
    return before
