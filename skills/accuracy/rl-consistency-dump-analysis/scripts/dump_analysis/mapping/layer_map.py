"""layer_map.md: the mapping as tables for people, layer by layer, in English or Chinese."""

from collections.abc import Sequence

import numpy as np
from msprobe_files.operands import Op, Operand, Source

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.semantic_mapping import Basis, MissingRow, Row, SemanticMapping
from dump_analysis.boundaries import layer_of
from dump_analysis.mapping.recorded.cuts import runs_of
from dump_analysis.wording import Language, render, text_of, word

_Item = Row | MissingRow
_BASIS: dict[Basis, str] = {
    "weights": "basis_weights", "values": "basis_values", "dataflow": "basis_dataflow", "signature": "basis_signature",
    "structure": "basis_structure", "name": "basis_name", "declared": "basis_declared",
}  # fmt: skip


def layer_map(mapping: SemanticMapping, language: Language, changed: Sequence[Worded] | None = None) -> str:
    """The text of layer_map.md: a table of places and one of weights a layer, then what stands in no row.

    ``changed``: what is not as in the mapping that stood in its place; None where none did.
    """

    def say(kind: str, **values: object) -> str:
        return render(kind, values, language)

    gaps = mapping.evidence_missing
    weights = [gap for gap in gaps if gap.boundary.endswith((".weight", ".bias"))]
    places = [gap for gap in gaps if gap not in weights]
    text = [f"# {say('map_title')}", "", say("map_counts", rows=len(mapping.boundaries), weights=len(mapping.weights), gaps=len(gaps))]
    if mapping.tokens is not None:
        coverage = mapping.tokens.coverage
        text += ["", say("map_tokens", joined=coverage.joined, train=coverage.train, infer=coverage.infer)]
        text += [f"- {text_of(remark, language)}" for remark in mapping.tokens.remarks]
    if changed is not None:
        text += [
            "",
            f"## {say('map_changed')}",
            "",
            *(f"- {text_of(sentence, language)}" for sentence in changed or [word("map_unchanged")]),
        ]
    ordered = _in_order([*mapping.boundaries, *places])
    held = _in_order([*mapping.weights, *weights])
    for section in sorted({*ordered, *held}):
        text += ["", f"## {_title(section, language)}"]
        for kind, items in (("map_place", ordered.get(section)), ("map_weight", held.get(section))):
            text += _table(items, kind, language) if items else []
    return "\n".join([*text, *_unmapped(mapping, language)]) + "\n"


def _in_order(items: Sequence[_Item]) -> dict[tuple[int, int], list[_Item]]:
    """Items by section: what stands before the first layer, each layer, what stands after."""
    found: dict[tuple[int, int], list[_Item]] = {}
    seen = False
    for item in sorted(items, key=lambda row: row.order):
        layer = layer_of(item.boundary)
        seen = seen or layer is not None
        key = (1, layer) if layer is not None else (2, 0) if seen else (0, 0)
        found.setdefault(key, []).append(item)
    return found


def _title(section: tuple[int, int], language: Language) -> str:
    kind = ("map_start", "map_layer", "map_end")[section[0]]
    return render(kind, {"layer": section[1]}, language)


def _table(items: Sequence[_Item], kind: str, language: Language) -> list[str]:
    heads = [render(head, {}, language) for head in (kind, "map_train", "map_infer", "map_basis", "map_confidence", "map_note")]
    return ["", _line(heads), _line(["---"] * len(heads)), *(_line(_cells(item, language)) for item in items)]


def _cells(item: _Item, language: Language) -> list[str]:
    if isinstance(item, MissingRow):
        names = ["<br>".join(f"`{name}`" for name in side) or "–" for side in (item.train, item.infer)]
        return [item.boundary, *names, "–", "–", render("map_not_compared", {"why": item.reason}, language)]
    basis = render("map_list", {"items": [render(_BASIS[basis], {}, language) for basis in item.basis]}, language)
    return [
        item.boundary,
        _operand(item.train, language),
        _operand(item.infer, language),
        basis,
        f"{item.confidence:.2f}",
        item.note or "",
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _operand(operand: Operand, language: Language) -> str:
    joint = " + " if operand.combine == "sum" else ", "
    return f"{joint}<br>".join(_source(source, language) for source in operand.sources)


def _source(source: Source, language: Language) -> str:
    steps = [shown for op in source.steps or () if (shown := _op(op, language))]
    place = "" if source.rank is None else f"step{source.dump_step}/rank{source.rank} "
    return f"{place}`{source.name}`" + (f" ({', '.join(steps)})" if steps else "")


def _op(op: Op, language: Language) -> str:
    """An op in words; dropping an axis of size 1 or naming another shape of the same elements says nothing to people."""
    if op.op in ("squeeze", "reshape"):
        return ""
    if op.op == "slice":
        return render("op_slice", {"axis": op.axis, "start": op.start or 0, "stop": op.stop if op.stop is not None else "…"}, language)
    if op.op == "take":
        runs = op.runs or runs_of(np.array(op.picked))
        return render("op_take", {"axis": op.axis, "runs": [f"{start}:{stop}" for start, stop in runs]}, language)
    if op.op == "permute":
        return render("op_permute", {"axes": ", ".join(map(str, op.axes))}, language)
    return render("op_cast", {"dtype": op.dtype}, language) if op.op == "cast" else render("op_add", {"value": op.value}, language)


def _unmapped(mapping: SemanticMapping, language: Language) -> list[str]:
    if mapping.unmapped is None:
        return []
    text = ["", f"## {render('map_unmapped', {}, language)}", "", render("map_unmapped_why", {}, language)]
    for side, names in (("train", mapping.unmapped.train), ("infer", mapping.unmapped.infer)):
        text += ["", f"### {side} ({len(names)})", "", *(f"- `{name}`" for name in names)]
    return text
