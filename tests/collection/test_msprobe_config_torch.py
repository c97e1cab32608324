"""Configurations under the real msprobe 26.2.0: each is accepted, and the dump is what its purpose says and as large as was said."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from debugged import SHAPES
from running import run_collection

HERE = Path(__file__).parent
LAYER = "Module.model.layers.1.DecoderLayer.forward.0"


class Runs:
    """Configurations made by the command and run by one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, name: str, purpose: str, *more: Any) -> Path:
        """A configuration of that name that dumps beside it."""
        config = self.folder / f"{name}.json"
        ran = run_collection(
            "make_msprobe_config.py", "--side", "train", "--purpose", purpose, "--dump-path", self.root(name), "--output", config,
            *map(str, more),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return config

    def root(self, name: str) -> Path:
        return self.folder / f"dump-{name.replace('@', '-')}"

    def data(self, name: str) -> Any:
        """dump.json of the only step that was dumped."""
        (unit,) = self.root(name).iterdir()
        assert unit.name == "step0", "only the step asked for"
        (rank,) = unit.iterdir()
        return json.loads((rank / "dump.json").read_text())

    def tensors(self, name: str) -> "dict[str, Path]":
        return {path.name.removesuffix(".pt"): path for path in self.root(name).rglob("*.pt")}

    def run(self, *configs: Path) -> "list[dict[str, Any]]":
        ran = subprocess.run([sys.executable, HERE / "debugged.py", *configs], capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every shape at every purpose, and one with gradients; made once."""
    runs = Runs(tmp_path_factory.mktemp("runs"))
    configs = [runs.make(f"{shape}:{purpose}", purpose) for shape in SHAPES for purpose in ("probe", "full", "mix")]
    configs.append(runs.make("dense-1-grad:full", "full"))
    configs.append(runs.make("dense-2:full", "full"))  # other weights: the source of an override
    assert [answer["error"] for answer in runs.run(*configs)] == [None] * len(configs)
    return runs


def test_probe_holds_statistics_of_every_module_and_no_tensor(runs: Runs) -> None:
    dump = runs.data("dense:probe")
    assert (dump["task"], dump["level"]) == ("statistics", "L0")
    assert runs.tensors("dense:probe") == {}
    assert set(dump["data"]) == set(runs.data("dense:full")["data"])
    assert isinstance(dump["data"][LAYER]["output"][0]["Max"], float)


def test_full_holds_inputs_outputs_and_weights_of_every_module(runs: Runs) -> None:
    """Every module but the root, from the embedding to the head, with the tensors that torch names."""
    from debugged import CausalLM

    modules = {f"Module.{name}.{type(m).__name__}.forward.0" for name, m in CausalLM(SHAPES["dense"]).named_modules() if name}
    held = {entry for entry in modules if "ModuleList" not in entry}  # a list of modules is never called
    assert set(runs.data("dense:full")["data"]) == held
    names = runs.tensors("dense:full")
    for name in (f"{LAYER}.input.0", f"{LAYER}.output.0", "Module.lm_head.Linear.forward.0.parameters.weight"):
        assert name in names


def test_a_training_forward_leaves_no_gradients(runs: Runs) -> None:
    """data_mode forward: nothing of the backward pass is registered or written."""
    data = runs.data("dense-1-grad:full")["data"]
    assert set(data) == set(runs.data("dense:full")["data"])


def test_mix_holds_functions_and_the_same_modules(runs: Runs) -> None:
    data = runs.data("dense:mix")["data"]
    assert {entry for entry in data if entry.startswith("Module.")} == set(runs.data("dense:full")["data"])
    assert any("scaled_dot_product_attention" in entry for entry in data)


def _model_config(folder: Path, shape: str) -> Path:
    path = folder / f"{shape}-config.json"
    path.write_text(json.dumps({key: value for key, value in SHAPES[shape].items() if key != "tokens"}))
    return path


def _on_disk(root: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("purpose", ["probe", "full", "mix"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_estimate_is_what_the_disk_shows(runs: Runs, tmp_path: Path, shape: str, purpose: str) -> None:
    """The count of modules and functions against what the real msprobe wrote: within a quarter above; statistics, small anyway, thrice."""
    config = _model_config(tmp_path, shape)
    ran = run_collection(
        "make_msprobe_config.py", "--side", "train", "--purpose", purpose, "--dump-path", tmp_path / "fresh", "--model-config", config,
        "--prompt-length", str(SHAPES[shape]["tokens"]), "--output", tmp_path / "c.json",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    words = ran.stdout.partition("about ")[2].split()
    said = float(words[0]) * {"MiB": 1 << 20, "GiB": 1 << 30}[words[1]]
    held = _on_disk(runs.root(f"{shape}:{purpose}"))
    assert held * 0.97 <= said <= held * (3 if purpose == "probe" else 1.25)


def test_what_is_counted_is_what_was_stored(runs: Runs) -> None:
    """The elements alone, without what a file costs: a dense model's within 3 %, experts' no less than they are."""
    from dump_collection.msprobe_config import dump_size, model_shape

    for shape, at_most in (("dense", 1.03), ("short", 1.03), ("moe", 1.15)):
        sizes = model_shape.shape_of(SHAPES[shape])
        parts = list(dump_size._modules(sizes, SHAPES[shape]["tokens"]))
        counted = sizes.itemsize * sum(part.activations + part.weights for part in parts)
        tensors = [torch.load(path, weights_only=True) for path in runs.tensors(f"{shape}:full").values()]
        stored = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        assert stored * 0.97 <= counted <= stored * at_most, shape


def _source(runs: Runs, folder: Path, step: int = 0) -> Path:
    """The input of layer 1 as another model recorded it, laid out as load reads it for one process."""
    tensors = folder / f"step{step}" / "proc0" / "dump_tensor_data"
    tensors.mkdir(parents=True)
    shutil.copy(runs.tensors("dense-2:full")[f"{LAYER}.input.0"], tensors)
    return folder


def test_an_override_replaces_the_input_bit_for_bit(runs: Runs, tmp_path: Path) -> None:
    source = _source(runs, runs.folder / "source")
    config = runs.make("dense:override", "override", "--load-path", source, "--load-module", LAYER)
    (answer,) = runs.run(config)
    assert answer["error"] is None
    name = f"{LAYER}.input.0"
    wanted = torch.load(runs.tensors("dense-2:full")[name], weights_only=True)
    (first,) = runs.root("dense:override").glob(f"step0/*/dump_tensor_data/{name}.pt")
    now = torch.load(first, weights_only=True)
    before = torch.load(runs.tensors("dense:full")[name], weights_only=True)
    assert torch.equal(now, wanted)
    assert not torch.equal(before, wanted)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("dumps", [True, False], ids=["dump", "no_dump"])
def test_an_override_acts_in_its_own_step_alone(runs: Runs, step: int, dumps: bool) -> None:
    """The loss of that step is that of the overridden run, the other is as it was; --no-dump makes no folder."""
    source, name = _source(runs, runs.folder / f"source-{step}-{dumps}", step), f"dense:step{step}-{dumps}"
    config, plain = runs.folder / f"{name}.json", runs.make(f"dense:plain{step}-{dumps}", "probe")
    ran = run_collection(
        "make_msprobe_config.py", "--side", "infer", "--purpose", "override", "--load-path", source, "--load-module", LAYER,
        "--step", str(step), "--output", config, *(["--dump-path", runs.root(name)] if dumps else ["--no-dump"]),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    files = sorted(source.rglob("*"))
    overridden, untouched = runs.run(config, plain)
    assert (overridden["error"], untouched["error"]) == (None, None)
    assert overridden["loss"][step] != untouched["loss"][step]
    assert overridden["loss"][1 - step] == untouched["loss"][1 - step]
    assert sorted(source.rglob("*")) == files
    assert runs.root(name).exists() is dumps


@pytest.mark.parametrize("odd", ["a b", "a+b", "größe"])
def test_a_path_that_is_refused_here_stops_msprobe_too(runs: Runs, odd: str) -> None:
    """The refusal is msprobe's own, said before a run that costs cards."""
    root = runs.folder / odd
    ran = run_collection(
        "make_msprobe_config.py", "--side", "train", "--purpose", "full", "--dump-path", root, "--output", runs.folder / "refused.json"
    )
    assert ran.returncode == 2
    assert "msprobe refuses paths with" in ran.stderr
    config = json.loads(runs.make("dense:odd", "full").read_text())
    path, link = runs.folder / "dense:odd.json", runs.folder / f"link-{ord(odd[1])}"
    root.mkdir(exist_ok=True)
    link.symlink_to(root)
    for place in (root, link / "below"):
        path.write_text(json.dumps({**config, "dump_path": str(place)}))
        (answer,) = runs.run(path)
        assert "Exception" in answer["error"], place
