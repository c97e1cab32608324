"""The trainer's configuration as a bridge builds it, recorded: what the class declares, what it does not, and where the bridge is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from collection.aligning import compare_files
from collection.bridged import SAMPLES, dump, packages, recorded


def told(out: Path) -> dict:
    made: dict = json.loads(out.read_text(encoding="utf-8"))
    return made


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "qwen3-yarn", "deepseek_v3", "llama3", "qwen3-hyper"])
def test_a_provider_is_recorded_as_it_is(tmp_path: Path, name: str) -> None:
    """Fields that are lost, or attributes taken for fields, would be lost parameters of the check."""
    ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", name, "--bridge", "Qwen3Bridge")
    assert (ran.returncode, ran.stderr.count("Traceback")) == (0, 0), ran.stderr
    made, expected = told(tmp_path / "out.json"), recorded(name)
    derived = {"kv_channels": 64} if name == "qwen2" else {}
    assert made["fields"] == {**expected["fields"], **derived}
    assert made["extra"] == expected["extra"]
    assert (made["bridge"], made["provider_class"], made["finalized"]) == ("Qwen3Bridge", expected["provider_class"], True)
    assert made["stubs"] == ["nvidia_resiliency_ext", "transformer_engine"]


def test_what_it_writes_is_what_the_check_reads(tmp_path: Path) -> None:
    """The two commands as one step, with what each says to run next."""
    for name, code in (("qwen2", 0), ("qwen3-yarn", 1)):
        out = tmp_path / f"{name}.json"
        ran = dump(packages(tmp_path / "env"), out, name, "--bridge", "AutoBridge")
        assert ran.stdout.splitlines()[-1].startswith("next: ")
        assert f"--train-cfg {out} --infer-cfg {SAMPLES / name / 'config.json'}" in ran.stdout
        assert "talks on stdout" not in ran.stdout
        assert compare_files(tmp_path / name, out, SAMPLES / name / "config.json").code == code


def test_the_file_itself_may_be_handed(tmp_path: Path) -> None:
    env = packages(tmp_path / "env")
    for name, model in (("a", SAMPLES / "qwen3"), ("b", SAMPLES / "qwen3" / "config.json")):
        assert dump(env, tmp_path / name, "qwen3", "--bridge", "Qwen3Bridge", model=model).returncode == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_folder_of_this_machine_is_recorded(tmp_path: Path) -> None:
    """AutoBridge writes the model's folder on the provider."""
    dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen3", "--bridge", "AutoBridge")
    text = (tmp_path / "out.json").read_text(encoding="utf-8")
    assert '".../qwen3"' in text
    assert str(SAMPLES) not in text
    assert str(tmp_path) not in text


def test_the_default_bridge_is_not_public_and_the_error_says_where_it_was_looked_for(tmp_path: Path) -> None:
    ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen3")
    assert (ran.returncode, ran.stdout, (tmp_path / "out.json").exists()) == (2, "", False)
    error = ran.stderr.splitlines()[-1]
    for part in (
        "Cannot find the bridge class DeepSeekV4FlashBridge", "the installed megatron.bridge", "/workspace/MindSpeed-Bridge",
        "/workspace/Megatron-Bridge/src", "--bridge-src ROOT", "--bridge AutoBridge", "8 other bridge classes",
    ):  # fmt: skip
        assert part in error, part


@pytest.mark.parametrize("inside", ["", "src/"])
def test_a_bridge_of_other_sources_comes_before_what_is_installed(tmp_path: Path, inside: str) -> None:
    """A site's own bridge, in a package of its own; its class may bear the name of a public one."""
    root = tmp_path / "Mind Speed"
    package = root / inside / "mindspeed_bridge" / "models"
    package.mkdir(parents=True)
    text = "from megatron.bridge.models.qwen import Qwen3Bridge as Base\n\n\nclass %s(Base):\n    site = True\n"
    (package / "v4.py").write_text(text % "DeepSeekV4FlashBridge" + "\n\n" + (text % "Qwen3Bridge").partition("\n\n\n")[2])
    for name in ("DeepSeekV4FlashBridge", "Qwen3Bridge"):
        chosen = [] if name.startswith("Deep") else ["--bridge", name]
        ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen3", *chosen, "--bridge-src", root)
        assert ran.returncode == 0, ran.stderr
        assert told(tmp_path / "out.json")["bridge"] == name
    assert not list(root.rglob("__pycache__"))


def test_another_bridge_than_the_models_is_said(tmp_path: Path) -> None:
    """A provider of the wrong class compares as a model full of faults."""
    ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen3", "--bridge", "RefusingBridge")
    assert "warning: Megatron-Bridge takes Qwen3Bridge for this model, not RefusingBridge" in ran.stderr


def test_a_provider_that_cannot_be_finalized_is_recorded_as_before_it(tmp_path: Path) -> None:
    """finalize() stops half-way, as with expert bias and soft-max scores: what it had derived by then is no configuration."""
    ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen2", "--bridge", "RefusingBridge")
    made = told(tmp_path / "out.json")
    assert (ran.returncode, made["finalized"], made["fields"]["kv_channels"]) == (0, False, None)
    assert "finalize() of the provider failed (ValueError: expert bias needs sigmoid" in ran.stderr
    assert "/home/someone" not in (tmp_path / "out.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("bridge", "said"),
    [
        ("FailingBridge", "Cannot build the provider: FailingBridge, AttributeError: "),
        ("PlainBridge", "Cannot record PlainBridge: a object is no dataclass"),
        ("NoBridge", "Cannot use NoBridge: it has no provider_bridge"),
        ("LeavingBridge", "Cannot build the provider: LeavingBridge, SystemExit: 0"),
    ],
)
def test_a_bridge_that_fails_is_one_line(tmp_path: Path, bridge: str, said: str) -> None:
    ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen3", "--bridge", bridge)
    assert (ran.returncode, ran.stdout, (tmp_path / "out.json").exists()) == (2, "", False)
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("package", ["torch", "transformers", "megatron/core", "megatron/bridge"])
def test_an_environment_without_the_bridge_is_told_what_lacks(tmp_path: Path, package: str) -> None:
    """A second interpreter, without site packages, stands for the wrong environment."""
    env = packages(tmp_path / "env", package)
    (env / "sitecustomize.py").write_text("import sys\nsys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n")
    ran = dump(env, tmp_path / "out.json", "qwen3", "--bridge", "AutoBridge")
    assert ran.returncode == 2
    assert f"Cannot import {package.replace('/', '.')}" in ran.stderr.splitlines()[-1]
    assert "Python of the trainer's environment" in ran.stderr


def test_a_model_that_transformers_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "unheard_of", "architectures": ["X"]}')
    ran = dump(packages(tmp_path / "env"), tmp_path / "out.json", "qwen3", "--bridge", "AutoBridge", model=tmp_path)
    assert ran.returncode == 2
    assert "model type `unheard_of` is not recognised. Run this with the trainer's transformers." in ran.stderr


def test_paths_that_are_not_there(tmp_path: Path) -> None:
    env = packages(tmp_path / "env")
    for arguments, model in ((["--bridge-src", tmp_path / "gone"], None), ([], tmp_path / "none")):
        ran = dump(env, tmp_path / "out.json", "qwen3", *arguments, model=model)
        assert (ran.returncode, ran.stderr.count("Cannot find"), ran.stderr.count("\n")) == (2, 1, 1), ran.stderr


def test_sources_that_end_the_process_as_they_are_imported_are_an_error(tmp_path: Path) -> None:
    """sys.exit(0) in foreign code would say "written" where nothing was."""
    env = packages(tmp_path / "env")
    (env / "transformers/__init__.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    ran = dump(env, tmp_path / "out.json", "qwen3", "--bridge", "AutoBridge")
    assert (ran.returncode, ran.stdout, (tmp_path / "out.json").exists()) == (2, "", False)
    assert ran.stderr.startswith("Cannot import transformers: SystemExit: 0 in ")


def test_values_without_an_order_or_a_text_are_recorded_alike_in_each_run(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert dump(packages(tmp_path / "env"), tmp_path / name, "qwen3", "--bridge", "OddBridge").returncode == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (told(tmp_path / "a")["extra"]["odd"], told(tmp_path / "a")["extra"]["silent"]) == (["a", "b", "c", "d"], "<Silent>")


def test_the_models_own_configuration_is_never_written_over(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_bytes((SAMPLES / "qwen3" / "config.json").read_bytes())
    (tmp_path / "link.json").symlink_to(config)
    for out in (config, tmp_path / "link.json"):
        ran = dump(packages(tmp_path / "env"), out, "qwen3", "--bridge", "AutoBridge", model=tmp_path)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr == f"Cannot write {out}: it is the configuration that is read. Choose another name.\n"
    assert config.read_bytes() == (SAMPLES / "qwen3" / "config.json").read_bytes()
