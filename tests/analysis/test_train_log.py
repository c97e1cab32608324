"""What a training log states, in the forms in which public trainers print it. Numbers are from public logs of verl and slime."""

import hashlib
import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis import train_log
from dump_analysis.artefacts.conclusion import EndToEndMetric, LogMetric
from hypothesis import given, settings
from hypothesis import strategies as st
from laying import Sample
from msprobe_files.errors import DumpError
from running import run_command

CLEAN = "qwen2-hf-vllm-clean"
# verl 0.4 printed three decimals; later releases print numbers as Python does; slime prints a dict after "step N:".
VERL_04 = (
    "step:1 - global_seqlen/min:484245.000 - actor/entropy:0.323 - training/rollout_probs_diff_max:0.621 - "
    "training/rollout_probs_diff_mean:0.003 - training/rollout_probs_diff_std:0.008 - actor/kl_loss:0.000 - training/global_step:1.000 - "
    "timing_s/step:251.613"
)
VERL_08 = (
    "step:7 - training/rollout_probs_diff_valid:1.0 - training/rollout_probs_diff_max:0.6111682653427124 - "
    "training/rollout_probs_diff_mean:0.014773058705031872 - training/rollout_probs_diff_std:0.029917456209659576 - timing_s/step:12.5"
)
SLIME = (
    "step 0: {'train/loss': 9.569339454174042e-07, 'train/entropy_loss': 0.265962153673172, 'train/pg_clipfrac': 0.0, "
    "'train/train_rollout_logprob_abs_diff': 0.012678711675107479, 'train/ois': 1.0, 'train/step': 0}"
)


def read(text: "str | bytes", tmp_path: Path) -> train_log.Log:
    path = tmp_path / "train.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return train_log.read(str(path))


def e2e(text: "str | bytes", tmp_path: Path) -> EndToEndMetric:
    return read(text, tmp_path).metrics.e2e


def prefill(text: "str | bytes", tmp_path: Path) -> LogMetric:
    return read(text, tmp_path).metrics.prefill_logprob_diff


def numbers(metric: "LogMetric | EndToEndMetric") -> tuple[Any, ...]:
    return metric.status, metric.mean, metric.max, metric.std, metric.by_step


# --- forms ---


def test_verl_with_three_decimals(tmp_path: Path) -> None:
    """``timing_s/step:`` and ``training/global_step:`` are no steps; pairs before and after are other metrics."""
    found = e2e(VERL_04 + "\n", tmp_path)
    assert numbers(found) == ("measured", 0.003, 0.621, 0.008, [[1, 0.003]])
    assert (found.name, found.valid, found.note) == ("rollout_probs_diff", None, None)
    assert found.source == "train.log: training/rollout_probs_diff"


def test_verl_with_full_numbers(tmp_path: Path) -> None:
    found = e2e(VERL_08, tmp_path)
    assert numbers(found) == ("measured", 0.014773058705031872, 0.6111682653427124, 0.029917456209659576, [[7, 0.014773058705031872]])
    assert found.valid == 1.0


def test_slime_prints_a_dict(tmp_path: Path) -> None:
    """The bare key is the mean; there is no max."""
    found = e2e(f"(MegatronTrainRayActor pid=17) [2026-04-15 07:57:53] model.py:847 - {SLIME}\n", tmp_path)
    assert numbers(found) == ("measured", 0.012678711675107479, None, None, [[0, 0.012678711675107479]])
    assert found.name == "train_rollout_logprob_abs_diff"


@pytest.mark.parametrize(
    "line",
    [
        '{"step": 3, "training/rollout_probs_diff_mean": 0.0147}',
        '{"step":3,"data":{"training/rollout_probs_diff_mean":0.0147}}',
        '{"training/rollout_probs_diff_mean": 0.0147, "step": 3.0, "timing_s/step": 9}',
        "{'train/step': 3, 'training/rollout_probs_diff_mean': 0.0147}",
        '{"step": "x", "message": "step:3 - training/rollout_probs_diff_mean:0.0147"}',
        "step:3 training/rollout_probs_diff_mean=0.0147",
        "step=3, rollout_probs_diff_mean = 0.0147, more",
        "Step 3/100 | deep/er/rollout_probs_diff_mean: 0.0147",
        "Training Progress:  10%|█ | 3/30 [00:19<1:06:22]\rstep:3 - training/rollout_probs_diff_mean:0.0147\r",
        "step:3 - training/rollout_probs_diff_mean:np.float64(0.0147) - a:1",
        "step:3 - training/rollout_probs_diff_mean:numpy.float32( 0.0147 )",
        "step:3 - training/rollout_probs_diff_mean:tensor(0.0147, device='cuda:0')",
        "step:3 - training/rollout_probs_diff_mean:torch.tensor(1.47e-2)",
        "\x1b[36m(TaskRunner pid=362057)\x1b[0m step:3 - training/rollout_probs_diff_mean:\x1b[1m0.0147\x1b[0m",
        "[36m(TaskRunner pid=362057, step=9x)[0m step:3 - training/rollout_probs_diff_mean:0.0147 [repeated 2x across cluster]",
        "step:3 - training/rollout_probs_diff_mean:.0147",
        'step:3 - training/rollout_probs_diff_mean:"+0.0147"',
    ],
)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_step_and_its_mean_in_every_form(line: str, end: str, tmp_path: Path) -> None:
    assert e2e(line + end, tmp_path).by_step == [[3, 0.0147]]


@pytest.mark.parametrize(
    "line",
    [
        "timing_s/step:3 training/rollout_probs_diff_mean:0.0147",
        "global_step:3 rollout_probs_diff_mean:0.0147",
        "{'rollout/step': 3, 'rollout_probs_diff_mean': 0.0147}",
        "step:3.7 rollout_probs_diff_mean:0.0147",
        "rollout_probs_diff_mean:0.0147",
    ],
)
def test_what_is_no_step_is_not_made_one(line: str, tmp_path: Path) -> None:
    assert e2e(line, tmp_path).by_step == [[None, 0.0147]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "step:1 - actor/entropy:0.3\n",
        "rollout_probs_diff_mean_ema:0.1\nrollout_probs_diff:0.1\nxrollout_probs_diff_meanly:0.1\n",
        "the keys are rollout_probs_diff_mean, rollout_probs_diff_max and prefill_logprob_diff_mean\n",
        b"\xff\xfe\x00\x01 binary \x80\x81",
    ],
)
def test_an_absent_key_is_evidence_missing(text: "str | bytes", tmp_path: Path) -> None:
    """Never 0, and the note says what was looked for."""
    found = read(text, tmp_path).metrics
    for metric in (found.prefill_logprob_diff, found.e2e):
        assert numbers(metric) == ("evidence_missing", None, None, None, [])
        assert metric.source is None
        assert metric.note is not None
        assert "train.log" in metric.note.text


@pytest.mark.parametrize("encoding", ["utf-16", "gbk", "latin-1", "utf-8-sig"])
def test_other_encodings(encoding: str, tmp_path: Path) -> None:
    """A log of a Windows shell, or with another alphabet in its messages: keys and numbers are ASCII in all of them."""
    words = {"gbk": "训练开始", "latin-1": "café"}.get(encoding, "начало 训练")
    assert e2e(f"{words}\n{VERL_08}\n".encode(encoding), tmp_path).mean == 0.014773058705031872


def test_lines_are_found_across_blocks(tmp_path: Path) -> None:
    """Blocks of a megabyte cut lines, line ends and characters of several bytes anywhere."""
    for shift in (0, 1, 2, 3, 5, 40):
        fill = "€" * ((1 << 20) // 3 - shift)
        text = f"{fill}\r\n{VERL_08}\r\nstep:8 - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:0.5\r\n"
        assert e2e(text, tmp_path).by_step == [[7, 0.014773058705031872], [8, 0.5]]


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    """A tensor file handed by mistake must not be taken into memory whole."""
    with pytest.raises(DumpError, match="line 1 has more than"):
        read(b"x" * ((1 << 24) + (1 << 21)), tmp_path)


# --- what the values mean ---


@pytest.mark.parametrize("rest", ["mean:0", "mean:0.0", "mean:nan", "mean:0.000", "mean:0.4", "max:np.float32(nan)", "std:inf"])
@pytest.mark.parametrize("order", [1, -1])
def test_valid_0_is_not_run_whatever_stands_beside_it(rest: str, order: int, tmp_path: Path) -> None:
    """Case D07. verl writes NaN there, a patched metrics.py zeros: neither says that the sides agree."""
    pairs = ["training/rollout_probs_diff_valid:0", f"training/rollout_probs_diff_{rest}"][::order]
    found = e2e(f"step:1 - {' - '.join(pairs)}\n", tmp_path)
    assert numbers(found) == ("not_run", None, None, None, [])
    assert found.valid == 0


def test_valid_0_in_json_has_null(tmp_path: Path) -> None:
    line = {"step": 1, "data": {"training/rollout_probs_diff_valid": 0, "training/rollout_probs_diff_mean": None}}
    assert e2e(json.dumps(line), tmp_path).status == "not_run"


@pytest.mark.parametrize("key", ["train/train_rollout_logprob_abs_diff", "training/rollout_probs_diff_mean"])
@pytest.mark.parametrize("zero", ["0", "0.0", "0.000", "-0.0", "0e0"])
def test_a_response_metric_of_0_without_valid_cannot_be_told(key: str, zero: str, tmp_path: Path) -> None:
    """slime's sum over no response token is 0 by construction."""
    found = e2e(f"step:0 - {key}:{zero}\n", tmp_path)
    assert numbers(found) == ("evidence_missing", None, None, None, [])
    assert found.note is not None
    assert found.note.kind == "log_untold"


def test_0_with_valid_is_measured(tmp_path: Path) -> None:
    found = e2e("step:0 - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:0.0", tmp_path)
    assert numbers(found) == ("measured", 0.0, None, None, [[0, 0.0]])


def test_a_prefill_metric_of_0_is_measured(tmp_path: Path) -> None:
    """It is printed by hand where both sides were compared: there is no empty response to make it 0."""
    assert numbers(prefill("step:0 - prefill_logprob_diff_mean:0.0 - prefill_logprob_diff_max:0.0", tmp_path))[:3] == ("measured", 0.0, 0.0)


@pytest.mark.parametrize(("zero", "bound"), [("0.000", 0.0005), ("-0.000", 0.0005), ("0.00", 0.005), ("0.000000", 0.0000005)])
def test_a_rounded_zero_is_a_bound(zero: str, bound: float, tmp_path: Path) -> None:
    """A format with decimals hides everything below half of its last one: 0.000 is < 0.0005, never 0."""
    found = prefill(f"step:1 - prefill_logprob_diff_mean:{zero} - prefill_logprob_diff_max:0.004", tmp_path)
    assert numbers(found) == ("measured", None, 0.004, None, [[1, None]])
    assert found.note is not None
    assert (found.note.kind, found.note.values["parts"], found.note.values["bound"]) == ("log_rounded", ["mean"], pytest.approx(bound))


def test_a_rounded_response_mean_beside_a_max_was_computed(tmp_path: Path) -> None:
    """Three decimals and no valid, as verl 0.4 prints: a max that is not 0 shows that something was compared."""
    found = e2e("step:1 - training/rollout_probs_diff_mean:0.000 - training/rollout_probs_diff_max:0.012", tmp_path)
    assert numbers(found) == ("measured", None, 0.012, None, [[1, None]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step:1 - rollout_probs_diff_mean:abc", "'abc'"),
        ("step:1 - rollout_probs_diff_mean:", "''"),
        ("step:1 - rollout_probs_diff_mean:0.3%", "'0.3%'"),
        ("step:1 - rollout_probs_diff_mean:1_0", "'1_0'"),
        ("step:1 - rollout_probs_diff_mean:1e999", "'1e999'"),
        ("step:1 - rollout_probs_diff_mean:tensor([0.1])", "'[0.1]'"),
        ("step:1 - rollout_probs_diff_valid:yes", "'yes'"),
        ("step:1 - rollout_probs_diff_valid:0 - rollout_probs_diff_mean:abc", "'abc'"),
        ("step:1 - rollout_probs_diff_valid:1 - rollout_probs_diff_mean:nan", "is nan"),
        ("step:1 - rollout_probs_diff_mean:0.1 - rollout_probs_diff_max:inf", "is inf"),
        ('{"step": 1, "prefill_logprob_diff_mean": null}', "is null"),
    ],
)
def test_what_is_no_number_is_an_error_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    """Counted as an editor counts: a progress bar's carriage returns make no lines."""
    with pytest.raises(DumpError) as caught:
        read(f"one\ntwo\r 50%\r 100%\r\n{text}\n", tmp_path)
    assert "train.log: line 3: " in str(caught.value)
    assert said in str(caught.value)


def test_the_std_of_one_token_is_nan(tmp_path: Path) -> None:
    """torch.std of one element: the mean beside it is good."""
    found = e2e("step:1 - rollout_probs_diff_valid:1 - rollout_probs_diff_mean:0.1 - rollout_probs_diff_std:nan", tmp_path)
    assert numbers(found) == ("measured", 0.1, None, None, [[1, 0.1]])


# --- many steps ---


def test_the_numbers_are_those_of_the_last_measured_step(tmp_path: Path) -> None:
    """mean, max and std of one line, never mixed; a step that was not computed is no zero in the series."""
    text = (
        "step:1 - rollout_probs_diff_valid:1 - rollout_probs_diff_mean:0.011 - rollout_probs_diff_max:0.9 - rollout_probs_diff_std:0.1\n"
        "step:2 - rollout_probs_diff_valid:1 - rollout_probs_diff_mean:0.012 - rollout_probs_diff_max:0.5\n"
        "step:3 - rollout_probs_diff_valid:0 - rollout_probs_diff_mean:nan - rollout_probs_diff_max:nan\n"
    )
    assert numbers(e2e(text, tmp_path)) == ("measured", 0.012, 0.5, None, [[1, 0.011], [2, 0.012]])


def test_a_step_that_is_stated_again_takes_the_later_value(tmp_path: Path) -> None:
    """A resumed run repeats its last steps; slime prints each line twice."""
    text = "".join(f"step:{step} - prefill_logprob_diff_mean:{mean}\n" for step, mean in ((1, 0.1), (2, 0.2), (2, 0.25), (3, 0.3)))
    assert prefill(text, tmp_path).by_step == [[1, 0.1], [2, 0.25], [3, 0.3]]


def test_lines_without_a_step_stay_apart(tmp_path: Path) -> None:
    """A mean printed by hand, its max on the next line; the second mean is of another call."""
    text = "prefill_logprob_diff_mean=0.1\nprefill_logprob_diff_max=0.4\nprefill_logprob_diff_mean=0.2\n"
    assert numbers(prefill(text, tmp_path)) == ("measured", 0.2, None, None, [[None, 0.1], [None, 0.2]])


def test_two_policies_are_not_mixed(tmp_path: Path) -> None:
    """The mean of one and the max of the other would be a number that nobody logged."""
    a = ["a/rollout_probs_diff_mean:0.1", "a/rollout_probs_diff_max:0.2"]
    b = ["b/rollout_probs_diff_mean:0.3", "b/rollout_probs_diff_max:0.5"]
    found = read(f"step:1 - {a[0]} - {b[0]} - {b[1]} - {a[1]}", tmp_path)
    assert (found.metrics.e2e.source, numbers(found.metrics.e2e)[1:3]) == ("train.log: a/rollout_probs_diff", (0.1, 0.2))
    assert len(found.warnings) == 1
    assert "b/rollout_probs_diff" in found.warnings[0]


def test_the_measured_of_two_response_metrics_is_taken(tmp_path: Path) -> None:
    text = "step:1 - training/rollout_probs_diff_valid:0 - train/train_rollout_logprob_abs_diff:0.0118\n"
    assert (e2e(text, tmp_path).name, e2e(text, tmp_path).mean) == ("train_rollout_logprob_abs_diff", 0.0118)


def test_the_two_levels_never_stand_in_for_each_other(tmp_path: Path) -> None:
    found = read(f"{VERL_08}\n{SLIME}\n", tmp_path).metrics
    assert (found.prefill_logprob_diff.status, found.e2e.status) == ("evidence_missing", "measured")
    found = read("step:1 - prefill_logprob_diff_mean:0.01\n", tmp_path).metrics
    assert (found.prefill_logprob_diff.status, found.e2e.status) == ("measured", "evidence_missing")


# --- properties ---

VALUE = st.floats(min_value=1e-12, max_value=1e3, allow_nan=False)
FORMS: list[Callable[[int, float, float], str]] = [
    lambda step, mean, top: f"step:{step} - training/rollout_probs_diff_mean:{mean!r} - training/rollout_probs_diff_max:{top!r}",
    lambda step, mean, top: (
        f"step {step}: {{'train/rollout_probs_diff_mean': np.float64({mean!r}), 'train/rollout_probs_diff_max': tensor({top!r})}}"
    ),
    lambda step, mean, top: json.dumps({"step": step, "data": {"x/rollout_probs_diff_max": top, "x/rollout_probs_diff_mean": mean}}),
    lambda step, mean, top: f"(T pid=3) step {step}/1000000 rollout_probs_diff_mean={mean:.17e}, rollout_probs_diff_max={top:.17e}",
]


@pytest.mark.parametrize("form", FORMS)
def test_lines_come_back_as_they_were_written(form: Callable[[int, float, float], str], tmp_path: Path) -> None:
    """Any number, any step, between any other lines."""
    noise = st.text(alphabet=st.characters(blacklist_characters="_\n\r", blacklist_categories=["Cs"]), max_size=20)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(VALUE, VALUE, noise), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
    def judge(rows: list[tuple[float, float, str]], end: str) -> None:
        lines = [text for step, (mean, top, other) in enumerate(rows) for text in (other, form(step, mean, top))]
        found = e2e(end.join(lines), tmp_path)
        assert found.by_step == [[step, mean] for step, (mean, _, _) in enumerate(rows)]
        assert found.max == rows[-1][1]

    judge()


def test_any_text_is_an_answer_or_one_clear_error(tmp_path: Path) -> None:
    """Whatever stands in a log, there is no traceback, and no number that JSON cannot hold."""
    pieces = [
        *("rollout_probs_diff_", "prefill_logprob_diff_", "train_rollout_logprob_abs_diff", "mean", "valid", "max", "step", "step:", "/"),
        *(":", "=", "0.000", "nan", "1e400", "9" * 30, "٣", "'", '"', "{", "np.float64(", "tensor(", ")", "\r", "\n", "\x1b[", " ", "\0"),
    ]

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(st.lists(st.sampled_from(pieces) | st.text(max_size=5), max_size=20).map("".join) | st.binary(max_size=60))
    def judge(text: "str | bytes") -> None:
        told = ""
        try:
            found = read(text.encode(errors="surrogatepass") if isinstance(text, str) else text, tmp_path).metrics
        except DumpError as error:
            told = str(error)
        if told:
            assert re.match(r"Cannot read train\.log: line [0-9]+: ", told)
            return
        for metric in (found.prefill_logprob_diff, found.e2e):
            stated = [metric.mean, metric.max, metric.std, *(mean for _, mean in metric.by_step)]
            assert all(number is None or math.isfinite(number) for number in stated)
            assert (metric.status == "measured") == bool(metric.by_step)

    judge()


# --- the commands ---


@pytest.fixture(scope="module")
def compared(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished analysis of a clean pair, without a log."""
    folder, pair = tmp_path_factory.mktemp("log"), sample(CLEAN)
    ran = run_command("diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def concluded(compared: Path, text: str, tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "work"
    shutil.copytree(compared, folder)
    (tmp_path / "train.log").write_text(text)
    ran = run_command("conclude.py", "--workdir", folder, "--train-log", tmp_path / "train.log")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads((folder / "conclusion.json").read_text())
    return found


def test_a_climb_is_in_the_series_and_nothing_else_follows_from_it(compared: Path, tmp_path: Path) -> None:
    """Case D09: 0.011 to 0.036 over 30 steps beside a pair of step 0. No sentence but the metrics may know of the log."""
    means = [round(0.011 + 0.025 * step / 30, 6) for step in range(31)]
    text = "".join(
        f"step:{step} - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:{m}\n" for step, m in enumerate(means)
    )
    found, before = concluded(compared, text, tmp_path), json.loads((compared / "conclusion.json").read_text())
    assert found["metrics"]["e2e"]["by_step"] == [[step, mean] for step, mean in enumerate(means)]
    assert (means[0], means[-1]) == (0.011, 0.036)
    assert {key: value for key, value in found.items() if key not in ("metrics", "inputs")} == {
        key: value for key, value in before.items() if key not in ("metrics", "inputs")
    }


def test_zero_because_not_computed(compared: Path, tmp_path: Path) -> None:
    """Case D07 through the command: null, and the log is named among the inputs by its digest."""
    text = "step:0 - training/rollout_probs_diff_valid:0 - training/rollout_probs_diff_mean:0\n"
    found = concluded(compared, text, tmp_path)
    assert (found["metrics"]["e2e"]["status"], found["metrics"]["e2e"]["mean"]) == ("not_run", None)
    assert found["metrics"]["prefill_logprob_diff"]["status"] == "evidence_missing"
    assert {"train log": hashlib.sha256(text.encode()).hexdigest()} == {
        one["label"]: one["digest"] for one in found["inputs"] if one["label"] == "train log"
    }
    assert str(tmp_path) not in json.dumps(found)


def test_without_a_log_nothing_is_said(compared: Path) -> None:
    found = json.loads((compared / "conclusion.json").read_text())
    for metric in found["metrics"].values():
        assert {key for key, value in metric.items() if value not in (None, [])} == {"status"}
        assert metric["status"] == "evidence_missing"


@pytest.mark.parametrize("command", ["conclude.py", "diagnose.py"])
@pytest.mark.parametrize(("text", "said"), [("step:1 - rollout_probs_diff_mean:abc\n", "line 1"), (None, "no such file")])
def test_a_log_that_cannot_be_read_is_one_line(
    command: str, text: "str | None", said: str, compared: Path, sample: Callable[[str], Sample], tmp_path: Path
) -> None:
    """Before anything is compared, and no answer of an earlier run is left."""
    folder, log, pair = tmp_path / "work", tmp_path / "train.log", sample(CLEAN)
    shutil.copytree(compared, folder)
    if text is not None:
        log.write_text(text)
    where: tuple[str | Path, ...] = ("--workdir", folder)
    if command == "diagnose.py":
        where = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", folder)
    ran = run_command(command, *where, "--train-log", log)
    assert (ran.returncode, ran.stderr.count("\n"), ran.stdout) == (2, 1, "")
    assert said in ran.stderr


def test_diagnose_takes_the_log_too(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair, log = sample(CLEAN), tmp_path / "train.log"
    log.write_text(VERL_08)
    where = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", tmp_path / "out")
    ran = run_command("diagnose.py", *where, "--train-log", log)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "out/conclusion.json").read_text())["metrics"]["e2e"]["mean"] == 0.014773058705031872


def test_the_log_is_never_written_over(compared: Path, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(VERL_08)
    ran = run_command("conclude.py", "--workdir", compared, "--train-log", log, "--output", log)
    assert ran.returncode == 2
    assert log.read_text() == VERL_08
