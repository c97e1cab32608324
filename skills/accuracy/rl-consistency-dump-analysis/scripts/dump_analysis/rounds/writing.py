"""An instruction from what a round is to override."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dump_analysis.artefacts.common import SideLabel, Worded
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.artefacts.stub_instruction import (
    Expect,
    Expected,
    Isolated,
    Kind,
    Requires,
    StubInput,
    StubInstruction,
    StubModule,
)
from dump_analysis.rounds.cuts import Given
from dump_analysis.rounds.feeds import Feeds


class Wanted(NamedTuple):
    """What a round overrides and why. ``isolate``: the boundary of a cut, None in a forced round."""

    feeds: Feeds
    given: Sequence[Given]
    isolate: str | None
    expected: list[Expected]
    reason: Worded


def instruction(wanted: Wanted, number: int, mapping: SemanticMapping) -> StubInstruction:
    """The instruction of a round."""
    feeds = wanted.feeds
    kind: Kind = "forced" if wanted.isolate is None else "cut"
    return StubInstruction(
        round=number,
        kind=kind,
        source_side=feeds.source_side,
        target_side=feeds.target_side,
        isolate_boundary=_isolated(wanted.isolate, mapping),
        modules=_modules(wanted),
        expected=wanted.expected,
        reason=wanted.reason,
        source_dump=SideLabel(feeds.source.label, feeds.source.digest),
        requires=Requires(msprobe_load=True, level="mix" if any(unit.level == "mix" for unit in feeds.target.units) else "L0"),
    )


def _isolated(boundary: str | None, mapping: SemanticMapping) -> Isolated | None:
    if boundary is None:
        return None
    made = next((row.module for row in mapping.boundaries if row.boundary == boundary), None)
    return Isolated(boundary, made.train if made else None, made.infer if made else None)


def _modules(wanted: Wanted) -> list[StubModule]:
    """The calls in the order in which they are first named, each once a rank; ranks only where the target has several units."""
    several = len(wanted.feeds.target.units) > 1
    calls: dict[tuple[str, int | None], list[StubInput]] = {}
    for given in wanted.given:
        rank = given.argument.place.unit.place.rank if several else None
        calls.setdefault((given.argument.entry, rank), []).append(_input(given))
    return [
        StubModule(target_entry=entry, rank=msgspec.UNSET if rank is None else rank, inputs=inputs)
        for (entry, rank), inputs in calls.items()
    ]


def _input(given: Given) -> StubInput:
    record, tensor = given.argument.place.record, given.argument.tensor
    expect = Expect(list(tensor.shape), tensor.dtype)
    if record.category == "input":
        return StubInput(index=int(record.suffix), operand=given.operand, expect=expect)
    return StubInput(kwarg=record.suffix, operand=given.operand, expect=expect)
