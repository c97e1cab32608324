"""Instructions for tests, written as the analysis writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def operand(*sources: tuple[Any, ...], combine: str | None = None, **more: Any) -> dict[str, Any]:
    """An operand; each source is its name and then its ops."""
    return {"sources": [{"name": name, "steps": list(steps)} for name, *steps in sources], "combine": combine, **more}


def replace(at: int | str, what: Any, shape: list[int], dtype: str = "bfloat16") -> dict[str, Any]:
    """One input, by its position or by its name."""
    key = "index" if isinstance(at, int) else "kwarg"
    return {key: at, "from": what, "expect": {"shape": shape, "dtype": dtype}}


def module(entry: str, *inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"target_entry": entry, **more, "inputs": list(inputs)}


def instruction(source: str, target: str, *modules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema": "stub_instruction/1",
        "round": 1,
        "kind": "cut",
        "source_side": source,
        "target_side": target,
        "isolate_boundary": None,
        "modules": list(modules),
        "dump_after_load": True,
        "expected": [],
        "reason": {"kind": "cut_between", "values": {}, "text": "a test"},
        "source_dump": {"label": source, "digest": None},
        "requires": {"msprobe_load": True, "level": "L0"},
        **more,
    }


def write(folder: Path, value: dict[str, Any]) -> Path:
    path = folder / "stub_instruction.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
