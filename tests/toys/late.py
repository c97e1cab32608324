"""A dump of the engine toy as msprobe before 26.2 makes it: module inputs taken after the call.

msprobe 26.2 records them before it. What an earlier one would have recorded is in the dump all the same, for the engine's norm writes its
results over its inputs, and nothing else writes in place: those two inputs are its two outputs; a layer's are what its norms left there.
So it is in the real dump of 26.1.0.post1, tests/samples/versions/26.1.0.post1/norms_infer.
"""

import shutil
from pathlib import Path

from .switches import LAYERS

_NORM, _LAYER = "RMSNorm.forward.0", "Module.model.layers.{at}.Qwen2DecoderLayer.forward.0"


def late(dump: Path, out: Path) -> Path:
    """A copy of an engine's dump under ``out`` with the inputs of a late recorder."""
    shutil.copytree(dump, out)
    (unit,) = out.glob("step0/*")
    stack = unit / "stack.json"
    stack.write_text(
        stack.read_text().replace("args_kwargs_result = hook(self, args, kwargs)", "hook_result = hook(self, args, kwargs, result)")
    )
    for at in range(LAYERS):
        stem = f"Module.model.layers.{at}"
        norms = [f"{stem}.input_layernorm.{_NORM}"] * (at > 0) + [f"{stem}.post_attention_layernorm.{_NORM}"]
        for norm in norms:
            _overwrite(unit, norm)
        layer = _LAYER.format(at=at)
        # The first layer's hidden state is its residual stream; later ones are handed both.
        first, stream = f"{norms[0]}.output.0", f"{norms[-1]}.output.1"
        _put(unit, f"{layer}.input.1", stream if at == 0 else first)
        if at > 0:
            _put(unit, f"{layer}.input.2", stream)
    _overwrite(unit, f"Module.model.norm.{_NORM}")
    return out


def _overwrite(unit: Path, norm: str) -> None:
    for at in (0, 1):
        _put(unit, f"{norm}.input.{at}", f"{norm}.output.{at}")


def _put(unit: Path, name: str, made: str) -> None:
    folder = unit / "dump_tensor_data"
    shutil.copyfile(folder / f"{made}.pt", folder / f"{name}.pt")
