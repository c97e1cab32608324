"""A process that dumps the toy's ranks with the real msprobe: it imports torch and msprobe once and forks once for each rank.

Like ``toys.dumper``: a line on stdin asks for one run, ``{"job": {...}, "on": [...], "config": "/msprobe.json"}``, a line on stdout answers
it. Ranks find each other through a file beside the configuration and exchange over gloo.
"""

import atexit
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

from toys import trainer as hf
from toys import weights
from toys.switches import Switches

from . import engine, trainer
from .jobs import Job

Step = Callable[[nn.Module], Any]  # a context in which what the model does is one dump step


def prompt(number: int, on: Switches) -> tuple[Tensor, Tensor]:
    """Ids and positions, int64 [tokens]. Prompt 0 is the toy's own; others have other ids and 4 tokens less each."""
    ids, positions = weights.prompt(on)
    kept = len(ids) - 4 * number
    return (ids[:kept] * (2 * number + 1) + number) % weights.VOCABULARY, positions[:kept]


def dump(job: Job, rank: int, config: Path) -> None:
    """What one rank does and records, under the configuration's dump_path/step<N>/rank<rank>."""
    debugger = PrecisionDebugger(config_path=str(config))

    @contextmanager
    def step(model: nn.Module) -> Iterator[None]:
        debugger.start(model=model)
        yield
        debugger.stop()
        debugger.step()

    with torch.no_grad():
        if job.model == "megatron":
            _megatron(job, step)
        elif job.model == "engine":
            _engine(job, step)
        else:
            _replica(job, rank, step)


def _megatron(job: Job, step: Step) -> None:
    model = trainer.GPTModel(trainer.Mesh.of(job))
    with step(model):
        trainer.run(model, *prompt(job.prompts[model.mesh.dp], job.on))


def _engine(job: Job, step: Step) -> None:
    model = engine.Qwen2ForCausalLM(job)
    own = job.prompts[0]
    before, recorded = engine.forwards(job, prompt(own, job.on), prompt(own + 1, job.on))
    for forward in before:
        engine.run(model, *forward)
    for forward in recorded:
        with step(model):
            engine.run(model, *forward)


def _replica(job: Job, rank: int, step: Step) -> None:
    model: Any = hf.Qwen2ForCausalLM(job.on)
    if job.model == "fsdp2":
        for layer in model.model.layers:
            fully_shard(layer)
        fully_shard(model)
    if job.model == "fsdp1":
        model = FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({hf.Qwen2DecoderLayer}), use_orig_params=True, device_id=torch.device("cpu")
        )
    with step(model):
        hf.run(model, *prompt(job.prompts[rank], job.on))


def _in_child(job: Job, rank: int, config: Path, answer_to: int) -> NoReturn:
    error = ""
    try:
        dist.init_process_group(
            "gloo", init_method=f"file://{config.with_suffix('.store')}", rank=rank, world_size=job.world, timeout=timedelta(seconds=30)
        )
        dump(job, rank, config)
        dist.barrier()
        atexit._run_exitfuncs()  # msprobe closes its files there
    except BaseException:  # noqa: BLE001  # the parent hands it on
        error = traceback.format_exc()[-4000:]
    os.write(answer_to, error.encode())
    os._exit(0)


def _dump_all(job: Job, config: Path) -> str:
    """Forks the ranks; what went wrong on any of them, or nothing."""
    read_from, answer_to = os.pipe()
    children = []
    for rank in range(job.world):
        child = os.fork()
        if child == 0:
            _in_child(job, rank, config, answer_to)
        children.append(child)
    os.close(answer_to)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    with os.fdopen(read_from) as answers:
        said = answers.read()
    return said or (f"ranks ended with status {statuses}" if any(statuses) else "")


def main() -> None:
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    answer_to = os.dup(1)
    os.dup2(2, 1)  # what msprobe prints must not stand between the answers
    for line in sys.stdin:
        asked = json.loads(line)
        on = Switches(tuple((name, layer) for name, layer in asked["on"]))
        error = _dump_all(Job(**{**asked["job"], "prompts": tuple(asked["job"]["prompts"]), "on": on}), Path(asked["config"]))
        os.write(answer_to, json.dumps({"error": error or None}).encode() + b"\n")
    os._exit(0)  # no second is spent on taking torch apart


if __name__ == "__main__":
    main()
