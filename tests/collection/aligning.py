"""Two configurations written down and compared by the command, as a user compares them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from running import run_collection


class Aligned(NamedTuple):
    """What the command said of a pair: its exit code, its report and its streams."""

    code: int
    report: dict[str, Any]
    instruction: dict[str, Any]
    stdout: str
    stderr: str

    def items(self) -> dict[str, dict[str, Any]]:
        return {item["canonical"].replace("config.", "", 1): item for item in self.report["items"]}

    def item(self, name: str) -> dict[str, Any]:
        return self.items()[name]

    def differing(self) -> set[str]:
        """What differs and could change a prefill."""
        shut = [item for item in self.report["items"] if item["status"] in ("DIFF", "MISSING_SIDE") and item["priority"] != "no_effect"]
        return {item["canonical"].replace("config.", "", 1) for item in shut}


def align(folder: Path, train: dict[str, Any], infer: dict[str, Any], **more: dict[str, Any]) -> Aligned:
    """The command over two configurations; ``more``: further files by their flag."""
    named = {"train_cfg": train, "infer_cfg": infer, **more}
    arguments: list[str | Path] = ["--workdir", folder / "work"]
    for name, value in named.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        arguments += ["--" + name.replace("_", "-"), path]
    return _read(folder / "work", run_collection("param_align_check.py", *arguments))


def waive(*items: str, reason: str = "the user accepts it") -> dict[str, Any]:
    return {"schema": "param_alignment_waivers/1", "waivers": [{"item": item, "reason": reason, "by": "user"} for item in items]}


def field_map(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"schema": "param_alignment_field_map/1", "fields": list(rows)}


def compare_files(work: Path, train: Path, infer: Path, *more: str | Path) -> Aligned:
    """The command over two files as they are."""
    ran = run_collection("param_align_check.py", "--train-cfg", train, "--infer-cfg", infer, "--workdir", work, *more)
    return _read(work, ran)


def _read(work: Path, ran: Any) -> Aligned:
    assert "Traceback" not in ran.stderr, ran.stderr
    report, instruction = (work / f"param_alignment_{kind}.json" for kind in ("report", "instruction"))
    read = [json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {} for path in (report, instruction)]
    return Aligned(ran.returncode, read[0], read[1], ran.stdout, ran.stderr)
