"""A process that runs a side of the toy under a given msprobe configuration: imported once, forked for each run.

A line on stdin asks for one: ``{"side": "infer", "on": [["eps", 1]], "config": "/file", "log": "/file", "forwards": ["window"]}``;
a line on stdout answers ``{"error": null}``. ``window``: start, forward, stop, step; ``unstepped``: the same without step; ``outside``: a
forward between two windows; with ``distributed`` the process is rank 0 of torch.distributed.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

_TESTS = Path(__file__).parent.parent


class Loading:
    """Runs under msprobe, each in a child of one process; a context manager."""

    def __init__(self, root: Path) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "collection.loading"], env={**os.environ, "PYTHONPATH": str(_TESTS)}, cwd=root,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip

    def __enter__(self) -> Loading:  # noqa: PYI034  # Self is not in Python 3.10
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()
        self._log.close()

    def run(
        self,
        side: str,
        config: Path,
        forwards: Sequence[str] = ("window",),
        on: Sequence[tuple[str, int]] = (),
        *,
        distributed: bool = False,
    ) -> str:
        """What msprobe printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        log = config.with_suffix(".log")
        request = {"side": side, "config": str(config), "log": str(log), "forwards": list(forwards), "on": [list(switch) for switch in on]}
        request["store"] = str(config.with_suffix(".store")) if distributed else None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process ended"
        assert json.loads(answer)["error"] is None, json.loads(answer)["error"]
        return log.read_text()


def _run(request: dict[str, Any]) -> None:
    import torch
    from msprobe.pytorch import PrecisionDebugger  # type: ignore[import-untyped]
    from toys import engine, trainer, weights
    from toys.switches import Switches

    module: Any = {"train": trainer, "infer": engine}[request["side"]]
    on = Switches(tuple((name, layer) for name, layer in request["on"]))
    model, prompt = module.Qwen2ForCausalLM(on), weights.prompt(on)
    if request["store"]:
        torch.distributed.init_process_group("gloo", init_method=f"file://{request['store']}", rank=0, world_size=1)
    debugger = PrecisionDebugger(config_path=request["config"])
    with torch.no_grad():
        for forward in request["forwards"]:
            if forward != "outside":
                debugger.start(model=model)
            module.run(model, *prompt)
            if forward != "outside":
                debugger.stop()
            if forward == "window":
                debugger.step()


def main() -> None:
    import msprobe.pytorch  # type: ignore[import-untyped]  # noqa: F401  # all imported once, before the forks
    import torch
    import toys.engine
    import toys.trainer  # noqa: F401

    torch.set_num_threads(1)
    answer_to = os.dup(1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            error = None
            try:
                log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(log, 1)
                os.dup2(log, 2)
                _run(request)
                atexit._run_exitfuncs()  # msprobe closes its files there
                sys.stdout.flush()
            except BaseException:  # noqa: BLE001  # the parent hands it on
                error = traceback.format_exc()
            os.write(answer_to, json.dumps({"error": error}).encode() + b"\n")
            os._exit(0)
        os.waitpid(child, 0)
    os._exit(0)  # no second is spent on taking torch apart


if __name__ == "__main__":
    main()
