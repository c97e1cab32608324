"""Stand-ins of torch, transformers and Megatron-Bridge that build recorded providers, so that a bridge runs where none is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from running import COLLECTION, ROOT

SAMPLES = ROOT / "tests/samples/providers"
_TRANSFORMERS = """
import json, pathlib
print("a library that talks on stdout")
class _Config:
    def __init__(self, values): self.__dict__.update(values)
    def to_dict(self): return dict(self.__dict__)
class AutoConfig:
    @staticmethod
    def from_pretrained(folder):
        values = json.loads((pathlib.Path(folder) / "config.json").read_text())
        if values["model_type"] == "unheard_of":
            raise ValueError("model type `unheard_of` is not recognised\\nand a second line")
        return _Config({"name_or_path": folder, **values})
class GenerationConfig: pass
"""
_BRIDGE = """
import nvidia_resiliency_ext.inprocess as inprocess
from transformer_engine.pytorch import Linear
class Wrapped(Linear):
    wrapper = inprocess.Wrapper(order=1)
from megatron.bridge.models import qwen
class AutoBridge:
    def __init__(self, config):
        self._model_bridge, self.config = qwen.Qwen3Bridge(), config
    @classmethod
    def from_hf_config(cls, config): return cls(config)
    def to_megatron_provider(self, load_weights=True):
        assert load_weights is False
        made = self._model_bridge.provider_bridge(self)
        made.hf_model_id = self.config.name_or_path
        return made
"""
_CLASSES = """
import dataclasses, json, os
RECORDED = json.loads(open(os.environ["RECORDED_PROVIDER"]).read())
def provider(finalize):
    kinds = [(name, object, dataclasses.field(default=None)) for name in RECORDED["fields"]]
    made = dataclasses.make_dataclass(RECORDED["provider_class"], kinds, namespace={"finalize": finalize})()
    for values in (RECORDED["fields"], RECORDED["extra"]):
        for name, value in values.items():
            setattr(made, name, value)
    return made
def derived(made):
    if made.kv_channels is None:
        made.kv_channels = made.hidden_size // made.num_attention_heads
class Qwen3Bridge:
    def provider_bridge(self, pretrained):
        assert pretrained.config.model_type
        return provider(derived)
class RefusingBridge(Qwen3Bridge):
    def provider_bridge(self, pretrained):
        def finalize(made):
            made.kv_channels = -1
            raise ValueError("expert bias needs sigmoid (/home/someone/env/lib/megatron/core.py)")
        return provider(finalize)
class FailingBridge:
    def provider_bridge(self, pretrained): return pretrained.config.index_n_heads
class PlainBridge:
    def provider_bridge(self, pretrained): return object()
class NoBridge: pass
class LeavingBridge:
    def provider_bridge(self, pretrained): raise SystemExit(0)
class Silent:
    def __repr__(self): raise ValueError("not to be shown")
class OddBridge(Qwen3Bridge):
    def provider_bridge(self, pretrained):
        made = provider(derived)
        made.odd, made.silent = {"b", "a", "c", "d"}, Silent()
        return made
"""
_MODULES = {
    "torch/__init__.py": "", "transformers/__init__.py": _TRANSFORMERS, "megatron/core/__init__.py": "",
    "megatron/core/models/gpt/gpt_layer_specs.py": "", "megatron/bridge/__init__.py": _BRIDGE,
    "megatron/bridge/models/__init__.py": "", "megatron/bridge/models/qwen.py": _CLASSES,
}  # fmt: skip


def packages(folder: Path, *left_out: str) -> Path:
    """The stand-ins, below a folder for PYTHONPATH."""
    for name, text in _MODULES.items():
        if not name.startswith(left_out or ("?",)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def recorded(name: str) -> dict[str, Any]:
    """What a real bridge built."""
    made: dict[str, Any] = json.loads((SAMPLES / name / "provider.json").read_text(encoding="utf-8"))
    return made


def dump(path: Path, out: Path, name: str, *arguments: str | Path, model: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, over the stand-ins at ``path``, whose bridges build the recorded provider of ``name``."""
    environment = {**os.environ, "PYTHONPATH": str(path), "RECORDED_PROVIDER": str(SAMPLES / name / "provider.json")}
    command = [sys.executable, str(COLLECTION / "param_align_provider_dump.py"), str(model or SAMPLES / name), str(out)]
    command += [str(argument) for argument in arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
