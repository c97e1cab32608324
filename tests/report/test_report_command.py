"""generate_alignment_report.py and the end of diagnose.py as users run them: from any folder, with and without the packages of a report."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.artefacts import io, report_source
from dump_analysis.report import leaks, rules
from editing import copy_side, edit_json, unit_of
from laying import Sample
from running import SCRIPTS, run_command

FAULTY, ROUNDING = "qwen2-hf-vllm-kv_swapped", "qwen2-hf-vllm-clean"
RENDERED = ("alignment_report.md", "alignment_report.html")
REPORT = "generate_alignment_report.py"


def without(package: str, folder: Path) -> dict[str, str]:
    """The environment of a Python in which a package is not there."""
    (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError('it is not here', name={package!r})\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_it_runs_from_any_folder_with_relative_paths_and_spaces(folder: Callable[[str], Path], tmp_path: Path) -> None:
    work = tmp_path / "an analysis"
    shutil.move(folder(FAULTY), work)
    elsewhere = tmp_path / "some where"
    elsewhere.mkdir()
    source = "../an analysis/report_source.json"
    ran = run_command(REPORT, "--input", source, "--output-dir", "my reports", cwd=elsewhere)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(ran.stdout) < 2000
    assert ran.stdout.splitlines()[-1] == "next: open 'my reports/alignment_report.html' in a browser"
    assert sorted(path.name for path in (elsewhere / "my reports").iterdir()) == sorted(RENDERED)
    for name in RENDERED:
        assert (elsewhere / "my reports" / name).read_bytes() == (work / name).read_bytes()


def test_the_skill_folder_copied_alone_fills_begins_and_renders(folder: Callable[[str], Path], tmp_path: Path) -> None:
    copied = tmp_path / "copied skill"
    shutil.copytree(SCRIPTS.parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    work = folder(FAULTY)
    for arguments in (
        ("--from-results", str(work)),
        ("--input", str(work / "report_source.json"), "--output-dir", str(tmp_path / "out")),
        ("--init-source", str(tmp_path / "begun.json")),
    ):
        ran = subprocess.run(
            [sys.executable, copied / "scripts" / REPORT, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert ran.returncode == 0, ran.stderr


def test_a_script_copied_alone_says_so(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / REPORT, tmp_path)
    ran = subprocess.run([sys.executable, tmp_path / REPORT, "--init-source", "x.json"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.strip() == "Cannot run: dump_analysis is not beside this script. Copy the whole skill folder."


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_same_source_same_bytes(language: str, diagnosed: Callable[[str], Path], tmp_path: Path) -> None:
    made = []
    for at in range(2):
        out = tmp_path / str(at)
        source = diagnosed(FAULTY) / "report_source.json"
        ran = run_command(REPORT, "--input", source, "--output-dir", out, "--lang", language, "--quiet")
        assert ran.returncode == 0, ran.stderr
        made.append([(out / name).read_bytes() for name in RENDERED])
    assert made[0] == made[1]


def test_another_language_than_the_source_is_said(diagnosed: Callable[[str], Path], tmp_path: Path) -> None:
    ran = run_command(REPORT, "--input", diagnosed(FAULTY) / "report_source.json", "--output-dir", tmp_path, "--lang", "zh-CN")
    assert ran.returncode == 0
    assert ran.stderr == "warning: report_source.json is written in en: its own texts stay so\n"
    assert '<html lang="zh-CN">' in (tmp_path / "alignment_report.html").read_text(encoding="utf-8")


# --- wrong calls and refused sources ---


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["--input", "x.json"], ["--output-dir", "out"], ["--input", "x.json", "--from-results", "."], ["--init-source"],
        ["--from-results", ".", "--output-dir", "out"], ["--input", "x.json", "--output-dir", "out", "--lang", "de"], ["--inputs", "x"],
    ],
)  # fmt: skip
def test_a_wrong_call_is_one_line(arguments: list[str], tmp_path: Path) -> None:
    ran = run_command(REPORT, *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema": "conclusion/1"}', b"[" * 100_000])
def test_what_is_no_source_is_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "report_source.json"
    path.write_bytes(content)
    ran = run_command(REPORT, "--input", path, "--output-dir", tmp_path / "out")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "out").exists()


def test_each_fault_of_a_refused_source_is_one_line_and_nothing_is_written(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """An earlier report stays as it is: a refused source writes nothing, not even half."""
    work = folder(FAULTY)
    value = json.loads((work / "report_source.json").read_text(encoding="utf-8"))
    value["generated_at"] = "soon"
    value["limitations"].append("see /home/alice/notes")
    value["verification_axes"]["tensor_prefill"]["status"] = "exact"
    (work / "report_source.json").write_text(json.dumps(value))
    before = [(work / name).read_bytes() for name in RENDERED]
    ran = run_command(REPORT, "--input", work / "report_source.json", "--output-dir", work)
    assert (ran.returncode, ran.stdout) == (2, "")
    lines = ran.stderr.splitlines()
    assert all(line.startswith("Cannot use report_source.json: ") for line in lines)
    last = f"limitations[{len(value['limitations']) - 1}]"
    assert [line.split(": ")[1] for line in lines] == ["verification_axes.tensor_prefill.status", "generated_at", last]
    assert "alice" not in ran.stderr
    assert [(work / name).read_bytes() for name in RENDERED] == before


# --- templates ---


@pytest.mark.parametrize(("language", "told"), [(None, "zh-CN"), ("zh-CN", "zh-CN"), ("en", "en")])
def test_a_template_is_whole_and_renders_as_what_it_is(language: str | None, told: str, tmp_path: Path) -> None:
    """Everything unknown: it passes its own rules, and its report says that nothing was held against results."""
    path = tmp_path / "new folder/report_source.json"
    ran = run_command(REPORT, "--init-source", path, *(["--lang", language] if language else []))
    assert ran.returncode == 0, ran.stderr
    source = report_source.read(path)
    assert (source.language, rules.contradictions(source), leaks.leaks(io.builtins(source))) == (told, [], [])
    assert io.text_of(source) == path.read_text(encoding="utf-8")
    assert run_command(REPORT, "--input", path, "--output-dir", tmp_path / "out").returncode == 0
    said = {"zh-CN": "没有与任何结果核对", "en": "nothing in it was held against results"}[told]
    for name in RENDERED:
        assert said in (tmp_path / "out" / name).read_text(encoding="utf-8")


def test_what_people_wrote_by_hand_stands_in_both_renderings_as_text(tmp_path: Path) -> None:
    path = tmp_path / "report_source.json"
    assert run_command(REPORT, "--init-source", path, "--lang", "en").returncode == 0
    value = json.loads(path.read_text(encoding="utf-8"))
    value["limitations"] = ["<script>alert(1)</script> | `x`", "one"]
    value["differences"] = [
        {
            "diff_id": "D-1", "status": "pending", "observation": "native", "root_cause_class": "unknown",
            "root_cause_confidence": "CANDIDATE", "boundary": "layers.3.attn_core.out", "discovery_max_abs_diff": 0.1234567890123,
            "verification_max_abs_diff": None, "summary": "scale differs", "proof": ["12 of 896 elements"], "repair_result": None,
            "rejected_attempts": ["another eps"], "verification_gate": None,
        }
    ]  # fmt: skip
    path.write_text(json.dumps(value), encoding="utf-8")
    assert run_command(REPORT, "--input", path, "--output-dir", tmp_path).returncode == 0
    html, markdown = ((tmp_path / name).read_text(encoding="utf-8") for name in RENDERED[::-1])
    for text in ("0.1234567890123", "12 of 896 elements", "another eps", "scale differs", "D-1"):
        assert text in html
        assert text in markdown.replace("\\", "")
    assert "<script>" not in html
    assert "<script>" not in markdown.replace("\\<", "")  # escaped it is text
    for never in ("http:", "https:", "src=", "@import", "url("):
        assert never not in html


def test_a_template_never_takes_the_place_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "report_source.json"
    path.write_text("mine")
    ran = run_command(REPORT, "--init-source", path)
    assert (ran.returncode, ran.stdout, path.read_text()) == (2, "", "mine")


# --- packages ---


@pytest.mark.parametrize("package", ["jinja2", "markdown"])
def test_a_missing_package_is_asked_for_in_one_line(package: str, diagnosed: Callable[[str], Path], tmp_path: Path) -> None:
    command = [sys.executable, SCRIPTS / REPORT, "--input", diagnosed(FAULTY) / "report_source.json", "--output-dir", tmp_path / "out"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=without(package, tmp_path))
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert f"the package {package} is missing" in ran.stderr
    assert "requirements.txt" in ran.stderr


def test_an_analysis_stands_without_the_packages_of_its_report(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Exit 0, the answer, one line that says what to install, the source, and no report of an earlier run."""
    pair, out = sample(ROUNDING), tmp_path / "out"
    out.mkdir()
    for name in RENDERED:
        (out / name).write_text("of an earlier run")
    arguments = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", out)
    command = [sys.executable, SCRIPTS / "diagnose.py", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=without("jinja2", tmp_path))
    assert ran.returncode == 0
    (line,) = ran.stderr.splitlines()
    assert "no report: the package jinja2 is missing" in line
    assert "pip install -r" in line
    assert "--input" in line
    assert (out / "report_source.json").is_file()
    assert not any((out / name).exists() for name in RENDERED)
    assert "alignment_report" not in ran.stdout
    assert ran.stdout.splitlines()[-1].startswith("next: read ")


# --- diagnose ---


@pytest.mark.parametrize(("name", "begins", "finding"), [(FAULTY, "≠", "F3"), (ROUNDING, "≈", "F1")])
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_diagnose_ends_with_the_reports_sentences_and_strip(
    name: str, begins: str, finding: str, language: str, sample: Callable[[str], Sample], tmp_path: Path
) -> None:
    """A clean pair's first sentence says consistent; a faulty one's sentences name the fault; the last line names the file to open."""
    pair, out = sample(name), tmp_path / "out"
    arguments = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", out, "--lang", language)
    ran = run_command("diagnose.py", *arguments)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert len(ran.stdout) < 2000
    assert lines[0].startswith(begins)
    if name == ROUNDING:
        assert ("consistent" if language == "en" else "一致") in lines[1]
    else:
        assert any("k、v" in line or "k, v" in line for line in lines[1:4]), "the weights that are exchanged"
    assert any(line.startswith(finding) and ("■" in line or "●" in line) for line in lines)
    assert f"open {out / RENDERED[1]} in a browser" in lines[-1]
    markdown = (out / RENDERED[0]).read_text(encoding="utf-8")
    assert lines[0] in markdown
    plain = markdown.replace("\\", "").replace("`", "")
    assert all(line in plain for line in lines[1:4])


def test_json_prints_the_conclusion_and_leaves_the_report(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair, out = sample(ROUNDING), tmp_path / "out"
    ran = run_command("diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", out, "--json")
    assert json.loads(ran.stdout) == json.loads((out / "conclusion.json").read_text())
    assert all((out / name).is_file() for name in RENDERED)


# --- D15: nothing private in the report ---


def test_nothing_that_dumps_hold_of_people_and_machines_is_in_the_report(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Markers planted where dumps keep paths, hosts, users, prompts: dump.json, stack.json, construct.json, folder names."""
    pair = sample(FAULTY)
    home = tmp_path / "home-of-mallory" / "secret-host-17"
    sides = {side: copy_side(getattr(pair, side), home / side) for side in ("train", "infer")}
    marked = {"path": "/home/mallory/job", "host": "secret-host-17", "user": "mallory", "prompt": "MARKER-prompt once upon"}
    for side in sides.values():

        def plant(dump: Any) -> None:
            dump["dump_data_dir"] = "/home/mallory/dumps"
            dump["MARKER"] = marked
            for entry in dump["data"].values():
                for argument in entry.get("input_args") or []:
                    if isinstance(argument, dict):
                        argument["MARKER"] = marked

        edit_json(unit_of(side) / "dump.json", plant)
        (unit_of(side) / "stack.json").write_text(json.dumps({"File /home/mallory/job/train.py, line 3": list(marked.values())}))
    out = tmp_path / "out"
    arguments = ("--train", sides["train"], "--infer", sides["infer"], "--mapping", pair.mapping, "--output-dir", out)
    assert run_command("diagnose.py", *arguments).returncode == 0
    for name in ("report_source.json", *RENDERED):
        text = (out / name).read_text(encoding="utf-8")
        for marker in ("mallory", "secret-host", "MARKER", "once upon", str(tmp_path), "/home/"):
            assert marker not in text, (name, marker)
