"""semantic_mapping.json: which tensors of the two sides are the same boundary.

Read are the full form, a bare list of ``{"boundary", "train", "infer"}`` that people write, where a side is a
tensor's name, a glob that matches exactly one tensor, or an operand, and a list in the older form (`older_mapping`).
"""

from pathlib import Path
from typing import Literal

import msgspec
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand

from . import io, older_mapping
from .assembly_plan import AssemblyPlan
from .common import Modules, SideLabel, Worded

Basis = Literal["weights", "values", "dataflow", "signature", "structure", "name", "declared"]


class Row(msgspec.Struct, frozen=True):
    """A mapping row: what joins tensors of both sides at one boundary."""

    boundary: str
    order: int
    train: Operand
    infer: Operand
    basis: list[Basis] = msgspec.field(default_factory=lambda: ["declared"])
    confidence: float = 1.0
    module: Modules | None = None
    note: str | None = None


class MissingRow(msgspec.Struct, frozen=True):
    """A boundary that cannot be compared, with the reason and what each side has of it."""

    boundary: str
    order: int
    reason: Worded
    train: list[str]
    infer: list[str]


class TokenCoverage(msgspec.Struct, frozen=True):
    joined: int
    train: int
    infer: int


class Tokens(msgspec.Struct, frozen=True):
    """Which rows of each side are which tokens: lists of [sequence, start, stop]."""

    train: list[list[int]]
    infer: list[list[int]]
    coverage: TokenCoverage
    remarks: list[Worded]


class Unmapped(msgspec.Struct, frozen=True):
    """Recorded tensors that no row names and that equal no named tensor of their side."""

    train: list[str]
    infer: list[str]


class SemanticMapping(msgspec.Struct, frozen=True, kw_only=True):
    """The whole mapping; ``order`` is one count over ``boundaries`` and ``evidence_missing``."""

    schema: Literal["semantic_mapping/1"] = "semantic_mapping/1"
    train: SideLabel | None = None
    infer: SideLabel | None = None
    boundaries: list[Row] = []
    weights: list[Row] = []
    evidence_missing: list[MissingRow] = []
    tokens: Tokens | None = None
    ranks: AssemblyPlan | None = None
    unmapped: Unmapped | None = None


class _ListedRow(msgspec.Struct, frozen=True):
    boundary: str
    train: Operand
    infer: Operand
    order: int | None = None
    note: str | None = None


class _Listed(msgspec.Struct, frozen=True):
    rows: list[_ListedRow]
    schema: Literal["rows"] = "rows"


def read(path: str | Path) -> SemanticMapping:
    """A mapping in any of the forms. Raises DumpError naming the row and field that are wrong.

    Rows without ``order`` take their place in the list; all or none of the rows may state one.
    """
    shown = Path(path).name
    value = io.load(path)
    if isinstance(value, list) and older_mapping.is_older(value):
        older = older_mapping.rows(value, shown)
        rows = [Row(row.boundary, row.order, row.train, row.infer, note=row.note) for row in older]
        return _checked(SemanticMapping(boundaries=rows), shown)
    if isinstance(value, list):
        listed, _ = io.of_value({"schema": "rows", "rows": value}, _Listed, shown, written_by_people=True)
        stated = [row.order for row in listed.rows if row.order is not None]
        if stated and len(stated) < len(listed.rows):
            raise DumpError(f"Cannot use {shown}: {len(stated)} of {len(listed.rows)} rows state an order. Give it to all or none.")
        rows = [
            Row(row.boundary, at if row.order is None else row.order, row.train, row.infer, note=row.note)
            for at, row in enumerate(listed.rows)
        ]
        return _checked(SemanticMapping(boundaries=rows), shown)
    mapping, _ = io.of_value(value, SemanticMapping, shown, written_by_people=True)
    return _checked(mapping, shown)


def _checked(mapping: SemanticMapping, shown: str) -> SemanticMapping:
    seen: set[str] = set()
    rows = [row.boundary for row in [*mapping.boundaries, *mapping.weights]]
    for boundary in [*rows, *(row.boundary for row in mapping.evidence_missing)]:
        if boundary in seen:
            raise DumpError(f"Cannot use {shown}: boundary {boundary} stands in two rows. Rename or remove one.")
        seen.add(boundary)
    return mapping
