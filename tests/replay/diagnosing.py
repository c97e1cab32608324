"""Pairs of toys diagnosed by the whole command, as a process, and what it answered."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from running import run_command
from toys.switches import Side, Switches

SIDES: list[Side] = ["train", "infer"]
Json = dict[str, Any]


class Answer(NamedTuple):
    """What `diagnose.py --exit-code` answered."""

    code: int
    conclusion: Json
    results: Json
    replay: Json

    @property
    def findings(self) -> list[Json]:
        found: list[Json] = self.conclusion["findings"]
        return found

    @property
    def logic(self) -> Json:
        """The one logic finding, beside which nothing is open."""
        (finding,) = self.findings
        assert finding["character"] == "logic"
        return finding

    def boundary(self, name: str) -> Json:
        return next(row for row in [*self.results["boundaries"], *self.results["weights"]] if row["boundary"] == name)

    def differing_weights(self) -> list[str]:
        return [row["boundary"] for row in self.results["weights"] if row["status"] not in ("EXACT", "evidence_missing")]


def diagnosed(
    train: Path, infer: Path, folder: Path, *, configs: tuple[Json, Json] | None = None, mapping: list[Json] | None = None
) -> Answer:
    """The whole line as a process. ``configs``: what each side's configuration states; ``mapping`` None: it is found in the data."""
    arguments: list[str | Path] = ["--train", train, "--infer", infer, "--output-dir", folder / "out", "--exit-code", "--quiet"]
    for side, stated in zip(SIDES, configs, strict=True) if configs is not None else ():
        (folder / f"{side}.json").write_text(json.dumps(stated))
        arguments += [f"--{side}-config", folder / f"{side}.json"]
    if mapping is not None:
        (folder / "rows.json").write_text(json.dumps(mapping))
        arguments += ["--mapping", folder / "rows.json"]
    ran = run_command("diagnose.py", *arguments)
    assert ran.stderr == ""
    return Answer(ran.returncode, *(json.loads((folder / "out" / f"{name}.json").read_text()) for name in _ARTEFACTS))


_ARTEFACTS = ("conclusion", "boundary_results", "replay_results")


def without_parameters(dump: Path, out: Path) -> Path:
    """A copy of a dump as it is where no parameters were collected."""
    shutil.copytree(dump, out)
    (unit,) = out.glob("step0/*")
    for path in unit.glob("dump_tensor_data/*.parameters.*"):
        path.unlink()
    listed = json.loads((unit / "dump.json").read_text())
    for entry in listed["data"].values():
        entry.pop("parameters", None)
    (unit / "dump.json").write_text(json.dumps(listed))
    return out


def on(*names: str, layer: int = 1) -> Switches:
    return Switches(tuple((name, layer) for name in names))


def kinds(told: list[Json]) -> list[str]:
    return [one["kind"] for one in told]
