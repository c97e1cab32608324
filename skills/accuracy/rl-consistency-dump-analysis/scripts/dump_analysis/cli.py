"""What all commands share: flags, one form of errors, exit codes. Standard library only, so that --help is quick."""

from __future__ import annotations  # an older Python must get as far as the line that says it is too old

import argparse
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

ANSWERED, FOUND, CANNOT, INCOMPLETE = 0, 1, 2, 3
STOPPED, NOBODY_READS = 130, 141  # as a shell counts SIGINT and SIGPIPE
_LONGEST_ANSWER = 1990  # characters; what agents read without cutting

EXIT_CODES = """exit codes:
  0  an answer was written
  2  cannot: wrong call, unreadable input, or nothing to compare (then the artefact is written and says not_run)
"""

_FLAGS: dict[str, dict[str, Any]] = {
    "train": {
        "nargs": "+",
        "action": "extend",
        "metavar": "PATH",
        "help": "the trainer's dump: its root, stepN, rankN, dump_tensor_data or dump.json; several where its parts lie apart",
    },
    "infer": {"nargs": "+", "action": "extend", "metavar": "PATH", "help": "the inference engine's dump, likewise"},
    "mapping": {"metavar": "FILE", "help": "which tensors are the same boundary (semantic_mapping.json, or a bare list of rows)"},
    "plan": {"metavar": "FILE", "help": "how ranks, stages and steps are put together (assembly_plan.json); without it a plan is proposed"},
    "previous": {
        "metavar": "CHECKPOINT",
        "help": "an earlier checkpoint (a folder or file, safetensors or torch): which side's differing weights are still those of it",
    },
    "reference": {
        "metavar": "CHECKPOINT",
        "help": "a checkpoint of the weights that ran (a folder or file, safetensors or torch): the order of shards is that of its rows",
    },
    "train-config": {"metavar": "FILE", "help": "the trainer's configuration: constants of replay; recorded in the conclusion's inputs"},
    "infer-config": {"metavar": "FILE", "help": "the engine's configuration, likewise"},
    "param-report": {
        "metavar": "FILE",
        "help": "param_alignment_report.json of the collection: its points are weighed, an open one decides",
    },
    "noise-floor": {"metavar": "FILE", "help": "noise_floor.json: what is within it counts as rounding"},
    "train-log": {"metavar": "FILE", "help": "the training log; its consistency metrics are read, none is computed"},
    "workdir": {"metavar": "DIR", "default": ".", "help": "the folder of this analysis (default: the current one)"},
    "output": {"metavar": "FILE", "help": "where to write the artefact"},
    "output-dir": {"metavar": "DIR", "required": True, "help": "where to leave the artefacts; made if it is not there"},
    "lang": {"choices": ("zh-CN", "en"), "default": "en", "help": "language of what is printed (default: en)"},
    "json": {"action": "store_true", "help": "print the artefact itself instead of the summary"},
    "exit-code": {"action": "store_true", "help": "say by the exit code what was found"},
    "quiet": {"action": "store_true", "help": "no progress and no warnings on stderr"},
}


class Parser(argparse.ArgumentParser):
    """Flags are written out in full; a wrong call is one line and exit 2."""

    def __init__(self, description: str, epilog: str) -> None:
        super().__init__(description=description, epilog=epilog, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)

    def share(self, *flags: str, required: Sequence[str] = ()) -> None:
        """Add flags that mean the same in every command."""
        for flag in flags:
            self.add_argument(f"--{flag}", **{**_FLAGS[flag], **({"required": True} if flag in required else {})})

    def error(self, message: str) -> NoReturn:
        fail(f"Cannot run {self.prog}: {message}. See --help.")
        sys.exit(CANNOT)


def call(script: str, *arguments: str) -> str:
    """How to run a command of this skill from any folder."""
    return shlex.join([sys.executable or "python3", str(Path(__file__).parent.parent / script), *arguments])


def fail(message: str) -> None:
    """One error line on stderr."""
    print(" ".join(message.splitlines()), file=sys.stderr)


def warn(messages: Sequence[str], *, quiet: bool) -> None:
    """Warnings on stderr, unless they are not wanted."""
    for message in () if quiet else messages:
        print(f"warning: {message}", file=sys.stderr)


def exit_code(overall: str, consistency: str, *, wanted: bool) -> int:
    """What a concluding command returns; ``wanted``: --exit-code was given."""
    if overall == "not_run":
        return CANNOT
    return {"consistent": ANSWERED, "inconsistent": FOUND, "undecided": INCOMPLETE}[consistency] if wanted else ANSWERED


def answer(lines: Sequence[str], then: str, drawn: Sequence[str] = ()) -> None:
    """Print the answer, short enough for an agent, its last line what to run next. ``drawn``: before the last line, where there is room."""
    last = f"next: {then}"
    room = _LONGEST_ANSWER - len(last)
    text, whole = "\n".join(lines), "\n".join([*lines[:-1], *drawn, *lines[-1:]])
    text = whole if len(whole) <= room else text
    print(text if len(text) <= room else text[: room - 2] + " …")
    print(last)


def run(main: Callable[[], int]) -> NoReturn:
    """Run a command; every error that is the user's to mend becomes one line and exit 2, never a traceback."""
    from msprobe_files.errors import DumpError

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts a thread a core that nothing here uses
    if sys.version_info < (3, 10):  # noqa: UP036  # the folder is copied into environments of any age
        fail(f"Cannot run: Python {sys.version.split()[0]} is too old. Use Python 3.10 or newer.")
        sys.exit(CANNOT)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # closed by the caller: nobody reads
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an answer in Chinese must not fail on a terminal without it
    try:
        code = main()
        sys.stdout.flush()
    except DumpError as error:
        fail(str(error))
        code = CANNOT
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("numpy", "msgspec", "tqdm", "jinja2", "markdown", "markupsafe"):
            raise
        fail(f"Cannot run: the package {error.name} is missing. {install()}")
        code = CANNOT
    except KeyboardInterrupt:
        fail("Stopped. Nothing was left half written.")
        code = STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = NOBODY_READS
    except Exception as error:  # noqa: BLE001  # exit 1 would say "inconsistent"
        where = _innermost(error)
        fail(f"Cannot finish: {type(error).__name__}: {error} ({where}). This is a fault of the tool; please report it with this line.")
        code = CANNOT
    sys.exit(code)


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"


def install() -> str:
    """What to run where a package is missing."""
    return f"Run: {sys.executable} -m pip install -r {_requirements()}"


def _requirements() -> str:
    scripts = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.relpath(os.path.join(os.path.dirname(scripts), "requirements.txt"))
