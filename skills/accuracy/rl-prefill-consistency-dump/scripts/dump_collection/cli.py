"""What all commands share: flags, one form of errors, exit codes."""

import argparse
import io
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Callable, Dict, NoReturn, Sequence, TextIO

OPEN, SHUT, CANNOT = 0, 1, 2  # a gate's answers; a command that is no gate returns OPEN for an answer
STOPPED, NOBODY_READS = 130, 141  # as a shell counts SIGINT and SIGPIPE
_LONGEST_ANSWER = 1990  # characters; what agents read without cutting

GATE_CODES = """exit codes:
  0  open: the next stage may begin
  1  shut: every gap is one line on stderr, with what repairs it
  2  cannot: wrong call, or a file that cannot be read
"""

_FLAGS: Dict[str, Dict[str, Any]] = {
    "train": {"metavar": "PATH", "help": "the trainer's dump: its root, stepN, rankN, dump_tensor_data or dump.json"},
    "infer": {"metavar": "PATH", "help": "the inference engine's dump, likewise"},
    "workdir": {"metavar": "DIR", "default": ".", "help": "the folder of this collection (default: the current one)"},
    "output": {"metavar": "FILE", "help": "where to write the artefact"},
    "lang": {"choices": ("zh-CN", "en"), "default": "en", "help": "language of what is printed (default: en)"},
    "json": {"action": "store_true", "help": "print the artefact itself instead of the summary"},
    "quiet": {"action": "store_true", "help": "no progress and no warnings on stderr"},
}


class Parser(argparse.ArgumentParser):
    """Flags are written out in full; a wrong call is one line and exit 2."""

    def __init__(self, description: str, epilog: str) -> None:
        super().__init__(description=description, epilog=epilog, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)

    def share(self, *flags: str, required: Sequence[str] = ()) -> None:
        """Add flags that mean the same in every command."""
        for flag in flags:
            settings = dict(_FLAGS[flag])
            if flag in required:
                settings["required"] = True
            self.add_argument("--" + flag, **settings)

    def error(self, message: str) -> NoReturn:
        fail("Cannot run %s: %s. See --help." % (self.prog, message))
        sys.exit(CANNOT)


def call(script: str, *arguments: str) -> str:
    """How to run a command of this skill from any folder."""
    words = (sys.executable or "python3", str(Path(__file__).parent.parent / script)) + arguments
    return " ".join(shlex.quote(word) for word in words)


def fail(message: str) -> None:
    """One error line on stderr."""
    _tell(message)


def warn(messages: Sequence[str], quiet: bool) -> None:
    """Warnings on stderr, unless they are not wanted."""
    for message in () if quiet else messages:
        _tell("warning: " + message)


def _tell(message: str) -> None:
    try:
        print(" ".join(message.splitlines()), file=sys.stderr, flush=True)
    except OSError:  # a full disk or a closed pipe behind stderr must not become exit 1, which a gate means as "shut"
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not fail on it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def answer(lines: Sequence[str], then: str) -> None:
    """Print the answer, short enough for an agent, its last line what to run next."""
    text, last = "\n".join(lines), "next: " + then
    room = _LONGEST_ANSWER - len(last)
    print(text if len(text) <= room else text[: room - 2] + " …")
    print(last)


def run(main: Callable[[], int]) -> NoReturn:
    """Run a command; every error that is the user's to mend becomes one line and exit 2, never a traceback."""
    from msprobe_files.errors import DumpError

    if sys.version_info < (3, 8):
        fail("Cannot run: Python %s is too old. Use Python 3.8 or newer." % sys.version.split()[0])
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
    except KeyboardInterrupt:
        fail("Stopped. Nothing was left half written.")
        code = STOPPED
    except BrokenPipeError:
        _drop(sys.stdout)
        code = NOBODY_READS
    except OSError as error:
        fail("Cannot finish: %s%s. Mend that and run it again." % (error.strerror or error, _named(error)))
        _drop(sys.stdout)
        code = CANNOT
    except Exception as error:  # noqa: BLE001  # exit 1 would say "shut"
        fail(
            "Cannot finish: %s: %s (%s). This is a fault of the tool; please report it with this line."
            % (type(error).__name__, error, _innermost(error))
        )
        code = CANNOT
    sys.exit(code)


def _named(error: OSError) -> str:
    return "" if error.filename is None else ": %s" % error.filename


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "%s:%d" % (os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno) if trace else "?"
