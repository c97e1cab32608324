"""Runs that go wrong, or leave other things beside the prefill: what a check of dumps must tell from a clean run.

Imports neither torch nor msprobe: it only calls what it is handed.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Literal

Manner = Literal[
    "clean", "not_started", "nothing_ran", "only_step1", "twice", "killed", "raises", "verl", "warmed_up", "only_warm_up",
    "statistics", "sliced",
]  # fmt: skip
TASKS: dict[str, str] = {"statistics": "statistics"}  # manner -> msprobe's task, where it is not tensor


def record(manner: Manner, debugger: Any, model: Any, prefill: Callable[[], None], warm_up: Callable[[], None]) -> None:
    """Run ``prefill`` under the debugger as the manner says.

    ``not_started``  no window is opened                    ``nothing_ran``   a window is opened and closed, nothing is called in it
    ``only_step1``   as nothing_ran; the prefill is step 1  ``twice``         two forwards in one window
    ``killed``       SIGKILL after the last layer           ``raises``        an exception before the last layer, then a normal exit
    ``verl``         a module named verl was imported       ``warmed_up``     zeros run as step 0, the prefill is step 1
    ``only_warm_up`` zeros run as step 0, then nothing      ``statistics``    msprobe's task of that name
    ``sliced``       the prompt and one token more, which msprobe cuts off (``toys.dumper``)
    """
    if manner == "verl":
        sys.modules["verl"] = ModuleType("verl")
    if manner == "killed":
        model.model.layers[-1].register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    if manner == "raises":
        model.model.layers[-1].register_forward_pre_hook(_raise)
    if manner in ("nothing_ran", "only_step1"):
        _window(debugger, model, prefill, times=0)
    if manner in ("warmed_up", "only_warm_up"):
        with _zeroed(model):
            _window(debugger, model, warm_up)
    if manner not in ("not_started", "nothing_ran", "only_warm_up"):
        with contextlib.suppress(_Failed):
            _window(debugger, model, prefill, times=2 if manner == "twice" else 1)


class _Failed(Exception):
    pass


def _raise(*_: Any) -> None:
    raise _Failed


def _window(debugger: Any, model: Any, forward: Callable[[], None], times: int = 1) -> None:
    debugger.start(model=model)
    for _ in range(times):
        forward()
    debugger.stop()
    debugger.step()


@contextlib.contextmanager
def _zeroed(model: Any) -> Iterator[None]:
    """With every weight zero, as an engine is before weights come."""
    kept = [(parameter, parameter.detach().clone()) for parameter in model.parameters()]
    for parameter, _ in kept:
        parameter.zero_()
    yield
    for parameter, value in kept:
        parameter.copy_(value)
