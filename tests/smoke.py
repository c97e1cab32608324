"""Run every command on the samples, as a user would, and print what it took. Ends with 1 where one fails."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "skills/accuracy/rl-consistency-dump-analysis/scripts"
COLLECTION = ROOT / "skills/accuracy/rl-prefill-consistency-dump/scripts"
SAMPLE = ROOT / "tests/samples/qwen2-hf-vllm-clean"
SEVERAL = ROOT / "tests/samples/several/qwen3-megatron_tp2-sglang_tp2-clean"
PROVIDER = ROOT / "tests/samples/providers/qwen3"
WORK = ROOT / ".smoke"


def call(command: Path, *arguments: str | Path) -> float:
    """Run a command; returns its CPU seconds' stand-in, wall time. Exits with 1 where it fails."""
    start = time.perf_counter()
    ran = subprocess.run([sys.executable, command, *arguments], capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    if ran.returncode or "Traceback" in ran.stderr:
        print(f"{command.name} {' '.join(map(str, arguments))}: exit {ran.returncode}\n{ran.stdout}{ran.stderr}")
        sys.exit(1)
    return took


def write_card(folder: Path, train: Path, infer: Path) -> None:
    """The task card of the sample, as a person fills it in."""
    card = json.loads((SCRIPTS.parent / "references/task_card.json").read_text(encoding="utf-8"))
    card["dumps"]["train"]["path"], card["dumps"]["infer"]["path"] = str(train), str(infer)
    folder.mkdir(exist_ok=True)
    (folder / "task_card.json").write_text(json.dumps(card), encoding="utf-8")


def analysis() -> dict[str, tuple[str | Path, ...]]:
    """The commands of the analysis skill, on a sample."""
    shutil.rmtree(WORK / "assembled", ignore_errors=True)
    train, infer, mapping = SAMPLE / "train", SAMPLE / "infer", SAMPLE / "semantic_mapping.json"
    pair = ("--train", train, "--infer", infer)
    several = ("--train", SEVERAL / "train", "--infer", SEVERAL / "infer")
    write_card(WORK / "diagnose", train, infer)
    shutil.copytree(infer, WORK / "infer_again", dirs_exist_ok=True)
    return {
        "probe_dump.py": (*pair, "--output", WORK / "probe.json"),
        "assemble_dump.py": (*several, "--output-dir", WORK / "assembled"),
        "propose_mapping.py": (*pair, "--output", WORK / "semantic_mapping.json"),
        "analyze_dump_boundaries.py": (*pair, "--mapping", mapping, "--output", WORK / "boundary_results.json"),
        "replay_boundaries.py": (*pair, "--mapping", mapping, "--output", WORK / "replay_results.json"),
        "conclude.py": ("--workdir", WORK),
        "make_stub_instruction.py": (*pair, "--workdir", WORK, "--all", "--despite", "weights", "inputs", "config"),
        "measure_noise_floor.py": ("--run", infer, "--run", WORK / "infer_again", "--output", WORK / "noise_floor.json"),
        "judge_round.py": ("--help",),  # needs a side that was dumped again: its tests run it
        "diagnose.py": (*pair, "--mapping", mapping, "--output-dir", WORK / "diagnose"),
        "generate_alignment_report.py": ("--input", WORK / "diagnose/report_source.json", "--output-dir", WORK / "report"),
        "check_stage.py": ("--stage", "8", "--workdir", WORK / "diagnose"),
    }


def collection(plain: Path) -> dict[str, tuple[str | Path, ...]]:
    """The commands of the collection skill, on a source file of their own and the same sample.

    ``plain``: a folder whose path msprobe takes, wherever this repository lies.
    """
    work = WORK / "collection"
    shutil.rmtree(work, ignore_errors=True)
    source = work / "source"
    source.mkdir(parents=True)
    (source / "actor.py").write_text("pass\n", encoding="utf-8")
    write_card(work / "workdir", SAMPLE / "train", SAMPLE / "infer")
    ledger = ("--workdir", work / "workdir", "--root", source, "--stage", "6", "--why", "smoke", source / "actor.py")
    return {
        "change_ledger.py": ("record", *ledger),
        "make_msprobe_config.py": (
            "--side", "infer", "--purpose", "full", "--framework", "vllm", "--msprobe-version", "26.2.0", "--dump-path", plain / "dump",
            "--output", plain / "msprobe_infer.json",
        ),
        "check_dump_pair.py": ("--workdir", work / "workdir", "--output", work / "dump_pair_report.json"),
        "apply_stub_instruction.py": ("--help",),  # needs an instruction, torch and msprobe: its tests run it
        "param_align_check.py": (
            "--train-cfg", PROVIDER / "provider.json", "--infer-cfg", PROVIDER / "config.json", "--workdir", work / "workdir",
        ),
        "param_align_provider_dump.py": ("--help",),  # needs a bridge: `make bridge` runs it
        "check_stage.py": ("--stage", "0", "--workdir", work / "workdir"),
    }  # fmt: skip


def run(folder: Path, calls: dict[str, tuple[str | Path, ...]]) -> None:
    """Every command of a folder once; fails for one that is not among the calls."""
    commands = {path.name for path in folder.glob("*.py")}
    if commands != set(calls):
        print(f"commands without a smoke run: {sorted(commands ^ set(calls))}")
        sys.exit(1)
    for name, arguments in calls.items():
        help_took = min(call(folder / name, "--help") for _ in range(3))
        print(f"{name:30} {call(folder / name, *arguments):6.2f} s   --help {help_took:.2f} s (aim 0.15)")


def main() -> None:
    WORK.mkdir(exist_ok=True)
    run(SCRIPTS, analysis())
    with tempfile.TemporaryDirectory() as plain:
        run(COLLECTION, collection(Path(plain)))


if __name__ == "__main__":
    main()
