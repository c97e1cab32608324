"""Dumps of the toy without tensors, by the real msprobe: ``python -m stating REQUESTS``, a JSON list of {side, mode, on, out}.

``mode``: statistics, md5 or xor. torch and msprobe are imported once; each dump is made in a child, as msprobe's debugger is one a process.

On a CPU msprobe 26.2.0 takes digests in threads and of the live tensor, which a module that works in place may have changed by then (on a
device it copies first): here they are taken at once.
"""

import atexit
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch
from msprobe.core.dump.data_dump.data_processor import pytorch_processor  # type: ignore[import-untyped]
from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-untyped]
from toys import engine, trainer, weights
from toys.switches import Switches

_MODELS: dict[str, Any] = {"train": trainer, "infer": engine}


class AtOnce:
    """In place of a pool of threads."""

    def __init__(self, max_workers: int) -> None:
        pass

    def submit(self, work: Callable[..., str], *given: Any) -> "Future[str]":
        done: Future[str] = Future()
        done.set_result(work(*given))
        return done


def dump(request: dict[str, Any]) -> None:
    """One prefill of one side, recorded under ``out``/step0/proc<pid>."""
    out, on = Path(request["out"]), Switches(tuple((name, layer) for name, layer in request["on"]))
    options = {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": request["mode"]}
    config = out.with_name(f"{out.name}.json")
    base = {"task": "statistics", "level": "L0", "dump_path": str(out), "rank": [], "step": [], "statistics": options}
    config.write_text(json.dumps(base))
    debugger = PrecisionDebugger(config_path=str(config))
    with torch.no_grad():
        model = _MODELS[request["side"]].Qwen2ForCausalLM(on)
        debugger.start(model=model)
        _MODELS[request["side"]].run(model, *weights.prompt(on))
    debugger.stop()
    debugger.step()


def main() -> None:
    torch.set_num_threads(1)
    pytorch_processor.ThreadPoolExecutor = AtOnce
    for request in json.loads(sys.argv[1]):
        child = os.fork()
        if child == 0:
            dump(request)
            atexit._run_exitfuncs()  # msprobe closes its files there
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"no dump of {request}")
    os._exit(0)


if __name__ == "__main__":
    main()
