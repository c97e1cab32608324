"""Dumps of several ranks, for tests: asked of one process that imports torch and msprobe once."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from .jobs import Job

_TESTS = Path(__file__).parent.parent.parent


class Parallel:
    """Dumps under ``root``, each made once; a context manager that ends the process.

    The path of ``root`` may hold [A-Za-z0-9_./:-] only: msprobe takes no other.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: dict[Job, Path] = {}
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "toys.parallel.dumper"], env={**os.environ, "PYTHONPATH": str(_TESTS)}, cwd=root, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip

    def __enter__(self) -> "Parallel":  # noqa: PYI034  # Self is not in Python 3.10
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()
        self._log.close()

    def root(self, job: Job) -> Path:
        """The root of a job's dump: step0/rank0, step0/rank1 …"""
        if job not in self._made:
            self._made[job] = self._dump(job)
        return self._made[job]

    def _dump(self, job: Job) -> Path:
        out = self._root / f"{len(self._made)}-{job.model}"
        options = {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"}
        config = {"task": "tensor", "level": "L0", "dump_path": str(out), "rank": [], "step": [], "tensor": options}
        out.with_suffix(".json").write_text(json.dumps(config))
        self.run(job, out.with_suffix(".json"))
        return out

    def run(self, job: Job, config: Path) -> None:
        """A job under a configuration of msprobe, which says where it dumps. Once for each configuration."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"job": {**job._asdict(), "on": None}, "on": job.on.on, "config": str(config)}
        with contextlib.suppress(BrokenPipeError):  # it ended: the log says why
            print(json.dumps(asked), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        error = json.loads(answer)["error"] if answer else "the dumping process ended"
        if error:
            self._log.seek(0)
            raise RuntimeError(f"no dump of {job}: {error}\n{self._log.read()[-4000:]}")
