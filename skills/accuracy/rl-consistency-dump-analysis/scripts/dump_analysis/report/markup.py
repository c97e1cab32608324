"""Text for people turned into HTML or Markdown: every string is escaped here, names are set as code, findings linked."""

import hashlib
import re
from collections.abc import Collection
from typing import NamedTuple

from markupsafe import Markup, escape

from dump_analysis.report.said import short, visible

# A finding's number, or what reads as a name of code: dotted, or words joined by underscores.
_NAMED = re.compile(
    r"(?<![\w.\-/])(?:(?P<finding>F\d{1,6})|(?P<code>--[a-z]+(?:-[a-z]+)*|[A-Za-z_]\w*(?:\.[\w*]+)+|[A-Za-z]\w*_\w+))(?![\w/])", re.ASCII
)
_OURS = re.compile(r"F[0-9]{1,6}")
_BREAKS = re.compile(r"(?<=[._])(?=[A-Za-z0-9])")
_LAYER = re.compile(r"^layers\.\d+\.")
_MARKDOWN = re.compile(r"([\\`*_\[\]<|~&$])")
_LINE_START = re.compile(r"^(\s*)([-+=:#>]|\d+(?=[.)](?:\s|$)))", re.MULTILINE)


class Piece(NamedTuple):
    """A stretch of text: ``kind`` is text, code or finding."""

    kind: str
    text: str


def pieces(text: str, findings: Collection[str]) -> list[Piece]:
    """The text in stretches; only numbers of ``findings`` that exist are findings."""
    found: list[Piece] = []
    at = 0
    for match in _NAMED.finditer(text):
        kind = "finding" if match.lastgroup == "finding" else "code"
        if kind == "finding" and match.group() not in findings:
            continue
        found += [Piece("text", text[at : match.start()]), Piece(kind, match.group())]
        at = match.end()
    return [piece for piece in [*found, Piece("text", text[at:])] if piece.text]


# --- HTML ---


def html_prose(text: str, findings: Collection[str]) -> Markup:
    """A sentence as HTML."""
    return Markup("").join(_html_piece(piece) for piece in pieces(text, findings))


def _html_piece(piece: Piece) -> Markup:
    if piece.kind == "finding":
        return Markup('<a href="#{0}">{0}</a>').format(anchor(piece.text))
    return html_code(piece.text) if piece.kind == "code" else escape(visible(piece.text))


def html_code(name: str) -> Markup:
    """A name as HTML, which may break behind the layer's number, or anywhere where it is long."""
    shown = short(name)
    found = _LAYER.match(shown)
    if found and len(shown) <= 40:
        cut = [shown[: found.end()], shown[found.end() :]]
    else:
        cut = _BREAKS.split(shown) if len(shown) > 24 else [shown]
    return Markup('<code translate="no">{}</code>').format(Markup("<wbr>").join(cut))


def anchor(finding: str) -> str:
    """The id of a finding's card or row: its own where it is one of ours; any other text is told apart by its digest."""
    if _OURS.fullmatch(finding):
        return finding
    return f"f-{hashlib.sha256(finding.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


# --- Markdown ---


def markdown_text(text: str) -> str:
    """Text in which no sign means anything to Markdown; one line."""
    escaped = _MARKDOWN.sub(r"\\\1", visible(text.replace("\n", " ")))
    return _LINE_START.sub(_held, escaped)


def _held(start: re.Match[str]) -> str:
    """What would begin a list or a heading, made text; a backslash holds no digit, so the sign behind the number gets it."""
    return f"{start[1]}{start[2]}\\" if start[2].isdigit() else f"{start[1]}\\{start[2]}"


def markdown_code(name: str) -> str:
    """A name as a code span; where it holds backticks or bars, as escaped text, since a table cuts at bars within code."""
    shown = short(name)
    return markdown_text(shown) if not shown or set(shown) & {"`", "|", "<", ">"} else f"`{shown}`"


def markdown_prose(text: str, findings: Collection[str]) -> str:
    """A sentence as Markdown."""
    told = "".join(
        piece.text
        if piece.kind == "finding"
        else markdown_code(piece.text)
        if piece.kind == "code"
        else _MARKDOWN.sub(r"\\\1", visible(piece.text))
        for piece in pieces(text.replace("\n", " "), findings)
    )
    return _LINE_START.sub(_held, told)
