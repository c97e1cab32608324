"""A process that dumps sides of the toy with the real msprobe: it imports torch and msprobe once and forks for each dump.

A line on stdin asks for one dump: ``{"side": "train", "on": [["eps", 1]], "stored": "bfloat16", "out": "/folder"}``, or with
``"architecture": "latent", "fault": null`` in place of ``on`` and ``stored``, and with ``"manner"`` where the run is no clean one; a
line on stdout answers it: ``{"error": null}``, or what went wrong. The fork comes before msprobe's debugger is made: it is one for
each process, and records nothing in a child of the process that made it.
"""

import atexit
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import torch
from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-untyped]

from . import arithmetic, engine, manners, trainer, weights
from .arch import engine as arch_engine
from .arch import shapes
from .arch import trainer as arch_trainer
from .arch import weights as arch_weights
from .switches import Switches

_MODELS: dict[str, Any] = {"train": trainer, "infer": engine}
_ARCHITECTURES: dict[str, Any] = {"train": arch_trainer, "infer": arch_engine}


def dump(request: dict[str, Any]) -> None:
    """One prefill of one side, recorded under ``out``: ``out``/step0/proc<pid>. msprobe's configuration lies beside, in ``out``.json."""
    out = Path(request["out"])
    options: dict[str, Any] = {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"}
    config = out.with_name(f"{out.name}.json")
    manner = request.get("manner", "clean")
    task = manners.TASKS.get(manner, "tensor")
    if manner == "sliced":
        options["slice"] = [{"dim": dim, "size": weights.TOKENS + 1, "begin": 0, "end": weights.TOKENS} for dim in (0, 1)]
    config.write_text(json.dumps({"task": task, "level": "L0", "dump_path": str(out), "rank": [], "step": [], task: options}))
    debugger = PrecisionDebugger(config_path=str(config))
    with torch.no_grad():
        if "architecture" in request:
            module = _ARCHITECTURES[request["side"]]
            model = module.Model((shapes.ARCHITECTURES | shapes.MIXTURES)[request["architecture"]], request["fault"])
            prompt = arch_weights.prompt()
        else:
            arithmetic.store_in(getattr(torch, request["stored"]))
            module, on = _MODELS[request["side"]], Switches(tuple((name, layer) for name, layer in request["on"]))
            arithmetic.sum_in("cut" if on.has("truncated_sums") else "blocks" if on.has("blocked_sums") else "float32")
            model, prompt = module.Qwen2ForCausalLM(on), weights.prompt(on)
        if manner == "sliced":
            prompt = torch.cat([prompt[0], prompt[0][:1]]), torch.cat([prompt[1], prompt[1][-1:] + 1])
        warm_up = [part.new_zeros(2 * len(part)) for part in prompt]
        manners.record(manner, debugger, model, lambda: module.run(model, *prompt), lambda: module.run(model, *warm_up))


def _in_child(request: dict[str, Any], answer_to: int) -> NoReturn:
    error = None
    try:
        dump(request)
        atexit._run_exitfuncs()  # msprobe closes its files there
    except BaseException:  # noqa: BLE001  # the parent hands it on
        error = traceback.format_exc()
    os.write(answer_to, json.dumps({"error": error}).encode() + b"\n")
    os._exit(0)


def main() -> None:
    torch.set_num_threads(1)
    answer_to = os.dup(1)
    os.dup2(2, 1)  # what msprobe prints must not stand between the answers
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _in_child(request, answer_to)
        _, status = os.waitpid(child, 0)
        if request.get("manner") == "killed":
            os.write(answer_to, json.dumps({"error": None if status == signal.SIGKILL else f"status {status}"}).encode() + b"\n")
        elif status:
            os.write(answer_to, json.dumps({"error": f"the child ended with status {status}"}).encode() + b"\n")
    os._exit(0)  # no second is spent on taking torch apart


if __name__ == "__main__":
    main()
