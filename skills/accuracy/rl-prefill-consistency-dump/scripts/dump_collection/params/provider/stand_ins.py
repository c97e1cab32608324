"""Packages that a bridge imports and that are not installed here, as empty modules: no configuration comes out of them.

nvidia_resiliency_ext (nvrx) and Transformer Engine exist for NVIDIA's cards alone; Megatron-Bridge imports them whatever the card.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any, List, Optional, Sequence, Set

# What Megatron-Bridge 0.3 and Megatron-Core 0.16 import beside torch and transformers, on some machine or other.
PACKAGES = (
    "nvidia_resiliency_ext", "transformer_engine", "transformer_engine_torch", "modelopt", "mamba_ssm", "causal_conv1d", "fla",
    "flash_attn", "flashinfer", "triton", "qwen_vl_utils", "open_clip", "timm", "torchvision", "mlflow", "wandb", "tensorboard",
    "nvdlfw_inspect", "nemo_run",
)  # fmt: skip


def install() -> "StandIns":
    """Let those packages be imported; what is installed stays what it is. Returns who knows which were asked for.

    Call it after transformers and megatron.core were imported: they look for some of these packages, and must see that they are absent.
    """
    found = StandIns(PACKAGES)
    sys.meta_path.append(found)  # asked only where nothing else has the module
    return found


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and makes the empty modules. ``asked``: top-level packages that were imported and are not here."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = frozenset(names)
        self.asked: Set[str] = set()

    def find_spec(self, fullname: str, *_: Any) -> Optional[importlib.machinery.ModuleSpec]:
        package = fullname.partition(".")[0]
        if package not in self.names:
            return None
        self.asked.add(package)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        made = _Empty(spec.name)
        made.__dict__.update(__path__=[], __version__="0.0.0")
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""

    def listed(self) -> List[str]:
        """The packages that were asked for, in order."""
        return sorted(self.asked)


class _Open(type):
    """A class that has every attribute, so that what is derived from or taken out of an absent package can be defined."""

    def __getattr__(cls, name: str) -> Any:
        return _made(cls, name, _Anything())


class _Anything(metaclass=_Open):
    def __init__(self, *_: Any, **__: Any) -> None:
        """Takes whatever the absent class would."""

    def __init_subclass__(cls, **_: Any) -> None:
        """Takes whatever the absent class would."""

    def __call__(self, *_: Any, **__: Any) -> "_Anything":
        return self

    def __getattr__(self, name: str) -> Any:
        return _made(self, name, self)


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _made(self, name, _Open(name, (_Anything,), {"__module__": self.__name__}))


def _made(owner: Any, name: str, value: Any) -> Any:
    """What an absent attribute is; Python's own, which say what an object can do, stay absent."""
    if name.startswith("__"):
        raise AttributeError(name)
    setattr(owner, name, value)
    return value
