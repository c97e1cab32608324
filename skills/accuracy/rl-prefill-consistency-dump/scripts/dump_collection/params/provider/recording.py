"""The provider that a bridge builds from a model folder, as data: declared fields, and attributes that its class does not declare."""

import contextlib
import dataclasses
import enum
import importlib
import os
import re
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.units import load_json

from dump_collection.params.configs import plain, public

from . import bridges, stand_ins

SCHEMA = "param_provider/1"
_PACKAGES = ("megatron-bridge", "megatron-core", "transformers", "torch")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_NEEDED = ("torch", "transformers", "megatron.core", "megatron.core.models.gpt.gpt_layer_specs")  # before any stand-in, see `stand_ins`
_OTHER_PYTHON = "Run this with the Python of the trainer's environment, or hand the bridge's sources with --bridge-src."


class Recorded(NamedTuple):
    """``artefact``: what is written, the form that `param_align_check` reads as --train-cfg; ``warnings``: what weakens it."""

    artefact: Dict[str, Any]
    warnings: List[str]


class Built(NamedTuple):
    """A provider and the name of the bridge class that built it."""

    bridge: str
    provider: Any


class Held(NamedTuple):
    """What a provider holds: fields that its class declares, and attributes that it does not."""

    declared: Dict[str, Any]
    undeclared: Dict[str, Any]


def record(folder: str, bridge: str, sources: Sequence[str], out: str) -> Recorded:
    """Build the provider of a folder that holds a config.json (or of that file), no weights, and record it.

    ``bridge``: a class of Megatron-Bridge or of the ``sources``, or AutoBridge; ``out``: where it will be written, by the caller.
    Nothing is downloaded, no code of the model folder is run, no bytecode is written beside the sources.  Raises DumpError where a package
    or the class is not found, the bridge fails or ends the process, or ``out`` is the configuration itself.
    """
    folder = str(Path(folder).parent if Path(folder).name == "config.json" else Path(folder))
    config_file = Path(folder) / "config.json"
    if not config_file.is_file():
        raise DumpError("Cannot find %s: no such file. Hand the folder of a model in Hugging Face's form." % config_file)
    written = load_json(str(config_file))
    if os.path.realpath(out) == os.path.realpath(str(config_file)):
        raise DumpError("Cannot write %s: it is the configuration that is read. Choose another name." % out)
    searched = bridges.places(sources)
    sys.dont_write_bytecode = True
    os.environ["HF_HUB_OFFLINE"] = "1"
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bridges.put_on_path(searched)
        absent = _import_all(searched)
        config = _config_of(folder, written)
        built = _built(bridge, searched, config)
        usual = _usual(config)
        held, failed = _in_force(built)
    made = {
        "schema": SCHEMA, "bridge": built.bridge, "provider_class": type(built.provider).__name__, "versions": _versions(),
        "stubs": absent.listed(), "finalized": failed is None, "fields": held.declared, "extra": held.undeclared,
    }  # fmt: skip
    return Recorded(made, list(_weakened(built.bridge, usual, absent.listed(), failed)))


def _import_all(searched: Sequence[bridges.Place]) -> stand_ins.StandIns:
    for name in _NEEDED:
        _need(name, searched)
    absent = stand_ins.install()
    _need("megatron.bridge", searched)
    return absent


def _need(name: str, searched: Sequence[bridges.Place]) -> None:
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # foreign code, run as it is imported
        where = ", ".join([place.shown for place in searched] + ["the packages of %s" % (Path(sys.executable).name or "this Python")])
        lacks = isinstance(error, ModuleNotFoundError) and name.startswith(error.name or "?")
        why = "no module of that name" if lacks else "%s: %s" % (type(error).__name__, error)
        raise DumpError("Cannot import %s: %s in %s. %s" % (name, why, where, _OTHER_PYTHON)) from None


def _config_of(folder: str, written: Dict[str, Any]) -> Any:
    """transformers' own object, as the bridge is handed it."""
    try:
        config = importlib.import_module("transformers").AutoConfig.from_pretrained(str(folder))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a configuration class raises about this file
        raise DumpError(
            "Cannot read %s: transformers %s says %s. Run this with the trainer's transformers."
            % (Path(folder) / "config.json", _version("transformers"), _first_line(error))
        ) from None
    config.architectures = config.architectures or written.get("architectures")
    return config


def _built(name: str, searched: Sequence[bridges.Place], config: Any) -> Built:
    try:
        return _by_auto(config) if name == bridges.AUTO else _by_class(bridges.bridge_class(name, searched), config)
    except DumpError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # foreign code
        raise DumpError(
            "Cannot build the provider: %s, %s: %s. Check that this bridge is for a %s."
            % (name, type(error).__name__, _first_line(error), ", ".join(config.architectures or [config.model_type]))
        ) from None


def _by_auto(config: Any) -> Built:
    bridge = importlib.import_module("megatron.bridge").AutoBridge.from_hf_config(config)
    provider = bridge.to_megatron_provider(load_weights=False)
    return Built(type(getattr(bridge, "_model_bridge", bridge)).__name__, provider)


def _by_class(found: Any, config: Any) -> Built:
    """What AutoBridge does with the class that it chooses: the configuration alone stands for the pretrained model."""
    if not hasattr(found, "provider_bridge"):
        raise DumpError("Cannot use %s: it has no provider_bridge, so it is no model's bridge. Name another class." % found.__name__)
    bridge = found()
    bridge.hf_config = config
    return Built(found.__name__, bridge.provider_bridge(_ConfigAlone(config)))


def _usual(config: Any) -> Optional[str]:
    """The class that Megatron-Bridge itself takes for the model; None for a model that it does not know."""
    try:
        bridge = importlib.import_module("megatron.bridge").AutoBridge.from_hf_config(config)
        return type(bridge._model_bridge).__name__
    except (Exception, SystemExit):  # noqa: BLE001  # foreign code; without an answer nothing is said
        return None


class _ConfigAlone:
    """A pretrained model of which only the configuration is there, as Megatron-Bridge hands it to its bridges."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.model_name_or_path = None
        self.trust_remote_code = False
        self.generation_config = importlib.import_module("transformers").GenerationConfig()


# --- the provider as data ---


def _in_force(built: Built) -> Tuple[Held, Optional[str]]:
    """What the provider holds after finalize(), which derives missing fields; where that fails as before, and why it failed."""
    if not dataclasses.is_dataclass(built.provider):
        raise DumpError(
            "Cannot record %s: a %s is no dataclass, so its fields are not declared. Name the bridge of a Megatron provider."
            % (built.bridge, type(built.provider).__name__)
        )
    before = _held(built.provider)
    finalize = getattr(built.provider, "finalize", None)
    if finalize is None:
        return before, None
    try:
        finalize()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # foreign code
        return before, "%s: %s" % (type(error).__name__, _first_line(error))
    return _held(built.provider), None


def _held(provider: Any) -> Held:
    """Of what no field declares most is read by nothing; names that begin with _ are the library's own."""
    declared = sorted(field.name for field in dataclasses.fields(provider))
    others = sorted(name for name in set(vars(provider)) - set(declared) if name[:1] != "_")
    fields, extra = ({name: _as_data(getattr(provider, name, None)) for name in names} for names in (declared, others))
    return Held(fields, extra)


def _as_data(value: Any) -> Any:
    """A value as JSON holds it; functions and classes by their names, anything else as text without addresses and folders."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return public(plain(value))
    if isinstance(value, (list, tuple)):
        return [_as_data(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_as_data(item) for item in value), key=str)  # a set has another order in each run
    if isinstance(value, dict):
        return {str(key): _as_data(item) for key, item in value.items()}
    if callable(value) and hasattr(value, "__qualname__"):
        return "<%s.%s>" % (getattr(value, "__module__", ""), value.__qualname__)
    try:
        return public(_ADDRESS.sub("", str(value)))
    except Exception:  # noqa: BLE001  # foreign code
        return "<%s>" % type(value).__name__


def _weakened(bridge: str, usual: Optional[str], absent: Sequence[str], failed: Optional[str]) -> Iterator[str]:
    if usual is not None and usual != bridge:
        yield "Megatron-Bridge takes %s for this model, not %s: make sure that the trainer does" % (usual, bridge)
    if absent:
        yield ("not installed here, and empty modules in their place: %s; a bridge may choose otherwise where they are" % ", ".join(absent))
    if failed:
        yield "finalize() of the provider failed (%s): the fields are as before it, some not derived yet" % failed


def _versions() -> Dict[str, Optional[str]]:
    return {name: _version(name) for name in _PACKAGES}


def _version(package: str) -> Optional[str]:
    """Of what is installed; sources that were handed have none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
