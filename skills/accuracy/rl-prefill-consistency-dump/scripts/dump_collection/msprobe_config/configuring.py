"""The configuration of a purpose for one side: what is written, what is refused, what is warned of, how it is handed over."""

import json
import os
import re
import shlex
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError

from . import dump_size, overriding, releases
from .dump_size import Estimate
from .model_shape import Shape
from .releases import Release

PROBE, MIX, OVERRIDE = "probe", "mix", "override"
_VALID = re.compile(r"[a-zA-Z0-9_.:/-]+\Z")  # FileCheckConst.FILE_VALID_PATTERN of msprobe 26.2.0
_LONGEST = 4096  # its DIRECTORY_LENGTH
_GIB = 1 << 30


class Wanted(NamedTuple):
    """What is asked for. ``dump_path`` None: the framework sets it (verl's own debugger, or an override without a dump)."""

    purpose: str
    side: str
    frameworks: Tuple[str, ...]
    release: Release
    dump_path: Optional[str]
    steps: Tuple[int, ...]
    load_path: Optional[str]
    load_modules: Tuple[str, ...]
    dump_after_load: bool


class Model(NamedTuple):
    """What the size of a dump follows from. ``ranks``: processes that write to this disk."""

    shape: Shape
    tokens: int
    ranks: int


class Made(NamedTuple):
    """A configuration as msprobe reads it, what is to be known of it, and how large its dump becomes (None: not estimated)."""

    config: Dict[str, Any]
    warnings: Tuple[str, ...]
    estimate: Optional[Estimate]


def make(wanted: Wanted, model: Optional[Model], *, allow_full_disk: bool) -> Made:
    """The configuration. Raises DumpError for each trap that would give no dump, a wrong one, or a full disk."""
    _refuse_releases(wanted)
    _refuse_folder(wanted)
    load = _load(wanted)
    writes = wanted.purpose != OVERRIDE or wanted.dump_after_load
    task, level = ("statistics" if wanted.purpose == PROBE else "tensor"), ("mix" if wanted.purpose == MIX else "L0")
    steps = list(wanted.steps) if load is None else overriding.windows(wanted.steps)
    config = plain(task, level, None if wanted.dump_path is None else os.path.abspath(wanted.dump_path), steps)
    warnings = [*releases.traps(wanted.release, wanted.purpose, wanted.frameworks, model is not None and model.shape.fp8)]
    if load is not None:
        config["load"] = load.section
        warnings += load.warnings
    warnings += _of_frameworks(wanted)
    estimate = None
    if not writes:
        return Made(config, tuple(warnings), None)
    if model is None:
        warnings.append("the size of the dump was not estimated. Give --model-config and --prompt-length")
    else:
        estimate = dump_size.estimate(
            model.shape, tokens=model.tokens, level=level, tensors=task == "tensor", steps=len(steps), ranks=model.ranks
        )
        warnings += _of_size(wanted, model, estimate, allow_full_disk)
    return Made(config, tuple(warnings), estimate)


def plain(task: str, level: str, dump_path: Optional[str], steps: Sequence[int]) -> Dict[str, Any]:
    """A whole configuration without ``load``; ``dump_path`` absolute, None where the framework sets it."""
    config: Dict[str, Any] = {"task": task}
    if dump_path is not None:
        config["dump_path"] = dump_path
    # rank stays empty: it means torch.distributed's rank, not a card, and a filter that matches nothing leaves no trace
    config.update(rank=[], step=list(steps), level=level)
    # forward alone: a training forward must not register hooks on gradients
    config[task] = {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"}
    return config


def hand_over(wanted: Wanted, output: str) -> str:
    """How the side is told of its configuration; JSON without blanks, as shells between split it (P14)."""
    path = os.path.abspath(output)
    if wanted.side == "infer" and "vllm-ascend" in wanted.frameworks:
        if "verl" in wanted.frameworks:
            key = "+actor_rollout_ref.rollout.engine_kwargs.vllm.additional_config={dump_config_path:%s}" % path
            return "actor_rollout_ref.rollout.enforce_eager=True " + shlex.quote(key)
        inner = shlex.quote(json.dumps({"dump_config_path": path}, separators=(",", ":")))
        prefix = "vllm-" if "vime" in wanted.frameworks else ""
        return "--%senforce-eager --%sadditional-config %s" % (prefix, prefix, inner)
    if wanted.side == "infer" and "sglang" in wanted.frameworks:
        return "%s %s" % ("--sglang-msprobe-dump-config" if "slime" in wanted.frameworks else "--msprobe-dump-config", shlex.quote(path))
    if wanted.side == "train" and "verl" in wanted.frameworks and wanted.dump_path is None:
        return (
            "global_profiler.tool=precision_debugger global_profiler.steps='[1]' global_profiler.save_path=DIR "
            "+global_profiler.global_tool_config.precision_debugger.config_path=%s "
            "+global_profiler.global_tool_config.precision_debugger.strict=True "
            "actor_rollout_ref.actor.profiler.enable=True" % shlex.quote(path)
        )
    return "PrecisionDebugger(config_path=%r)" % path


# --- what is refused ---


def _refuse_releases(wanted: Wanted) -> None:
    if wanted.purpose == OVERRIDE and wanted.release.is_before(26, 2):
        raise DumpError(
            "Cannot override with msprobe %s: load is in 26.2.0 and later, earlier releases ignore it without a word. %s."
            % (wanted.release.text, releases.GET_26_2)
        )
    if "sglang" in wanted.frameworks and wanted.side == "infer" and wanted.release.is_before(26, 0):
        raise DumpError(
            "Cannot dump SGLang with msprobe %s: its start() has no rank_id, which SGLang hands over, and raises TypeError. %s."
            % (wanted.release.text, releases.GET_26_2)
        )


def _refuse_folder(wanted: Wanted) -> None:
    path = wanted.dump_path
    if path is None:
        own = wanted.side == "train" and "verl" in wanted.frameworks
        if not own and not (wanted.purpose == OVERRIDE and not wanted.dump_after_load):
            raise DumpError("Cannot make the configuration: msprobe needs a folder to dump to. Give --dump-path.")
        return
    check_path(path, "dump to")
    if os.path.lexists(path) and not os.path.isdir(path):
        raise DumpError("Cannot dump to %s: it is no folder. Name a fresh one." % path)
    earlier = _first_of_a_dump(path)
    if earlier is not None:
        raise DumpError(
            "Cannot dump to %s: it holds an earlier dump (%s), and msprobe deletes nothing: old tensors would stand among new ones. "
            "Name a fresh folder." % (path, os.path.relpath(earlier, path))
        )


def check_path(path: str, purpose: str) -> None:
    """Raises DumpError where msprobe would refuse a path, or what it links to (``FileChecker.common_check``), in the run."""
    for whole in (os.path.abspath(path), os.path.realpath(path)):
        odd = sorted(set(re.sub(r"[a-zA-Z0-9_.:/-]", "", whole)))
        if not _VALID.match(whole):
            raise DumpError(
                "Cannot %s %s: msprobe refuses paths with %s; it takes letters, digits and _ . : / - alone. Choose another folder."
                % (purpose, whole, ", ".join(repr(char) for char in odd))
            )
        if len(whole) > _LONGEST:
            raise DumpError(
                "Cannot %s %s…: a path may have %d characters, this has %d. Shorten it." % (purpose, whole[:60], _LONGEST, len(whole))
            )


def _first_of_a_dump(path: str) -> Optional[str]:
    for folder, _, names in os.walk(path):
        for name in names:
            if name == "dump.json" or name.endswith(".pt"):
                return os.path.join(folder, name)
    return None


def _load(wanted: Wanted) -> "Optional[overriding.Loaded]":
    if wanted.purpose != OVERRIDE:
        if wanted.load_path is not None or wanted.load_modules or not wanted.dump_after_load:
            raise DumpError("Cannot use --load-path, --load-module and --no-dump for %s. They are for override." % wanted.purpose)
        return None
    if wanted.load_path is None or not wanted.load_modules:
        raise DumpError("Cannot override: the source folder and the entries are not given. Give --load-path and --load-module.")
    check_path(wanted.load_path, "override from")
    source = os.path.realpath(wanted.load_path)
    if wanted.dump_path is not None and (os.path.realpath(wanted.dump_path) + "/").startswith(source + "/"):
        raise DumpError("Cannot dump to %s: it lies in the source folder of the override. Name another." % wanted.dump_path)
    return overriding.load_section(wanted.load_path, wanted.load_modules, wanted.dump_after_load, wanted.steps)


# --- what is warned of ---


def _of_frameworks(wanted: Wanted) -> Iterator[str]:
    given = wanted.frameworks
    if wanted.purpose == OVERRIDE:
        if wanted.release.numbers is None:
            yield (
                'an msprobe before 26.2.0 ignores load without a word. Ask in the environment of this side: python3 -c "import '
                "importlib.util as u; print(u.find_spec('msprobe.pytorch.dump.module_load.tensor_loader'))\" must not print None"
            )
        yield "run the override under no_grad: a replaced input is a new leaf that wants gradients, and modules that work in place raise"
    if wanted.side == "train" and "verl" in given and wanted.dump_path is not None:
        yield "verl's own debugger (0.8 and later) sets the folder by global_profiler.save_path: leave out --dump-path there"
    if wanted.side == "infer" and "vllm-ascend" in given:
        if wanted.release.is_before(26, 2):
            yield (
                "vllm-ascend after 0.25.1rc1 hands start() scheduled_tokens, which msprobe %s may not take (TypeError)"
                % wanted.release.text
            )
        yield "vllm-ascend dumps with --enforce-eager alone in this form, and not at all with VLLM_USE_V2_MODEL_RUNNER=1"
        yield "weights in FRACTAL_NZ have neither a file nor statistics: set VLLM_ASCEND_ENABLE_NZ=0"
    elif wanted.side == "infer" and "vllm" in given:
        yield "vLLM has no msprobe of its own: put the debugger around execute_model of model runner V1, with --enforce-eager"
    if wanted.side == "infer" and "sglang" in given:
        yield (
            "SGLang 0.5.11 or newer; where it cannot import msprobe it only warns and dumps nothing. Health requests are steps, too: "
            "set SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION=0. With data parallelism see that each rank has a folder of its own"
        )


def _of_size(wanted: Wanted, model: Model, estimate: Estimate, allow_full_disk: bool) -> List[str]:
    found = []
    if not model.shape.dtype_stated:
        found.append("the model's configuration states no dtype that is known here: %d bytes an element were taken" % model.shape.itemsize)
    if wanted.dump_path is None:
        return [*found, "the framework sets the folder: see that its disk has room for %s" % gib(estimate.size)]
    free = dump_size.free_bytes(wanted.dump_path)
    if estimate.size <= free:
        return found
    short = "the dump takes about %s and the disk of %s has %s" % (gib(estimate.size), os.path.abspath(wanted.dump_path), gib(free))
    if not allow_full_disk:
        raise DumpError(
            "Cannot dump: %s. Free the disk, name another by --dump-path, shorten the prompt, or take purpose probe first "
            "(--allow-full-disk writes the configuration all the same)." % short
        )
    return [*found, short]


def gib(size: int) -> str:
    """A size as people read it."""
    return "%.1f GiB" % (size / _GIB) if size >= _GIB >> 4 else "%.1f MiB" % (size / (1 << 20))


def steps_of(steps: Sequence[int]) -> Tuple[int, ...]:
    """The steps to dump, step 0 where none is named. Raises DumpError for one that is negative."""
    for step in steps:
        if step < 0:
            raise DumpError("Cannot dump step %d: steps count from 0, the calls of step() before. Name another." % step)
    return tuple(dict.fromkeys(steps)) or (0,)
