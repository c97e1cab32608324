"""The toy's two sides under msprobe: dumped, and run again with a `load` section, in one process each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from collection.loading import Loading
from collection.warm import Warm
from running import COLLECTION, SCRIPTS
from toys.switches import Switches

from .fault_sets import FaultSet
from .looping import Pair, Ran, Side

_CONFIG: Mapping[str, Any] = {
    "task": "tensor", "level": "L0", "rank": [], "step": [0],
    "tensor": {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"},
}  # fmt: skip


class Toys:
    """Dumps of the toy below ``root``, each made once, and pairs over them."""

    def __init__(self, root: Path, running: Loading, warm: Warm) -> None:
        self._root, self._running, self._warm = root, running, warm
        self._made: dict[tuple[Side, Switches], Path] = {}

    def side(self, side: Side, on: Switches) -> Path:
        """A side's first dump."""
        if (side, on) not in self._made:
            out = self._root / f"{side}-{len(self._made)}"
            config = out.with_suffix(".json")
            config.write_text(json.dumps({**_CONFIG, "dump_path": str(out)}))
            self._running.run(side, config, on=on.on)
            self._made[side, on] = out
        return self._made[side, on]

    def pair(self, faults: FaultSet, work: Path) -> Pair:
        """An analysis of a set in ``work``, which may hold one already."""
        work.mkdir(parents=True, exist_ok=True)

        def again(side: Side, config: Path) -> None:
            self.run(side, config, faults)

        return Pair(work, self.side("train", faults.on("train")), self.side("infer", faults.on("infer")), self.command, again)

    def run(self, side: Side, config: Path, faults: FaultSet, forwards: Sequence[str] = ("window",)) -> str:
        """A side under a configuration of msprobe; what that printed."""
        return self._running.run(side, config, forwards, on=faults.on(side).on)

    def command(self, script: Path, arguments: list[str]) -> Ran:
        """A command of either skill, in its own folder."""
        assert script.parent in (SCRIPTS, COLLECTION)
        return self._warm.run([str(script), *arguments], environment={}, cwd=script.parent)


@contextmanager
def started(root: Path) -> Iterator[Toys]:
    """The two processes that everything is forked from."""
    with Loading(root) as running, Warm(root) as warm:
        yield Toys(root, running, warm)
