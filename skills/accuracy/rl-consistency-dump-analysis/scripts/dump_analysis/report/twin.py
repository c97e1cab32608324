"""The report as Markdown: the same answers, cards and tables, the charts as text; it reads in a terminal and on a code host."""

from collections.abc import Iterable, Sequence

from dump_analysis.report.cards import Card
from dump_analysis.report.growth import Growth, decades
from dump_analysis.report.labels import labels
from dump_analysis.report.layers import strip_of
from dump_analysis.report.markup import markdown_code, markdown_prose, markdown_text
from dump_analysis.report.page import rail
from dump_analysis.report.positions import Positions
from dump_analysis.report.said import Voice, count, figure, share, short
from dump_analysis.report.states import State
from dump_analysis.report.ulp_histogram import Histogram
from dump_analysis.report.view import View
from dump_analysis.report.weighed import GLYPHS
from dump_analysis.report.whereabouts import state_name
from dump_analysis.wording import word


class _Twin:
    """Markdown of one view: its ids and words at hand."""

    def __init__(self, view: View, voice: Voice) -> None:
        self.view, self.voice, self.t = view, voice, labels(voice)

    def prose(self, text: str) -> str:
        return markdown_prose(text, self.view.ids)

    def bullets(self, texts: Iterable[str]) -> list[str]:
        return [f"- {self.prose(text)}" for text in texts]

    def heads(self, *names: str) -> list[str]:
        """The head of a table."""
        return [markdown_text(self.t[name]) for name in names]

    def head(self, section: str, answer: str) -> list[str]:
        return ["", f"## {self.t[f'h_{section}']}", "", self.prose(answer)]

    # --- sections ---

    def conclusion(self) -> list[str]:
        v = self.view
        kicker = " · ".join(markdown_text(part) for part in v.kicker)
        lines = [f"# {v.lead.glyph} {markdown_text(v.lead.headline)}", "", kicker]
        for sentence in v.lead.sentences:
            lines += ["", self.prose(sentence)]
        lines += ["", f"**{self.t['page_todo']}**", ""]
        lines += [f"- **{step.who}**: {self.prose(step.what)}{f' ({step.finding})' if step.finding else ''}" for step in v.steps]
        shown = [[key.label, markdown_code(key.value) if key.is_name else markdown_text(key.value), self.prose(key.note)] for key in v.keys]
        lines += ["", *table([["", "", ""], *shown])]
        if v.lives and v.layers:
            lines += ["", f"**{self.t['page_lives']}** ({self.t['col_layer']} {v.layers[0]}–{v.layers[-1]})", "", *self.strip()]
        tally = self.voice.join(f"{state.glyph} {count(number)} {state_name(state, self.voice)}" for state, number in v.tally if number)
        title = self.voice.say(word("page_tally", n=count(len(v.table.all))))
        return [*lines, "", f"**{title}**", "", tally]

    def strip(self) -> list[str]:
        outside = self.voice.say(word("where_outside_layers"))
        lines = [f"{short(life.finding, 12):<4} {strip_of(life, self.view.layers) or outside}" for life in self.view.lives]
        return block(lines)

    def where(self) -> list[str]:
        where = self.view.where
        lines = self.head("where", where.answer)
        if where.wide is not None:
            width = max(len(short(place.name, 40)) for place in where.wide.places)
            signs = [(short(place.name, 40), "".join(_sign(state) for state in place.states), place) for place in where.wide.places]
            drawn = [f"{name:<{width}} {drawn} {' '.join(place.findings)}" for name, drawn, place in signs]
            lines += ["", *block(line.rstrip() for line in drawn), "", markdown_text(self.voice.say(word("md_legend")))]
        return [*lines, "", self.prose(self.voice.flow(where.notes))]

    def findings(self) -> list[str]:
        found = self.view.findings
        lines = self.head("findings", found.answer)
        for card in found.cards:
            lines += self.card(card)
        if found.more:
            title = self.voice.say(word("findings_more", n=count(len(found.more))))
            rows = [[f"{state.glyph} {id_} {self.prose(title_)}", self.prose(at)] for id_, state, title_, at in found.more]
            lines += ["", f"### {title}", "", *table([[self.t["col_finding"], self.t["fact_where"]], *rows])]
        if found.rounding:
            head = self.heads("col_point", "col_unequal", "col_largest", "col_direction", "col_explained")
            rows = [
                [
                    f"{row.id} {self.prose(row.title)}", row.unequal, row.largest,
                    "–" if row.smaller is None else f"{row.smaller} : {100 - row.smaller}", row.explained,
                ]
                for row in found.rounding
            ]  # fmt: skip
            lines += ["", f"### ● {self.t['tag_rounding']}: {self.t['card_rounding']}", "", *table([head, *rows])]
        return lines

    def card(self, card: Card) -> list[str]:
        lines = ["", f"### {card.state.glyph} {card.tag} {markdown_text(short(card.id, 20))}: {self.prose(card.title)}", ""]
        lines += [f"- {name}: {self.prose(value)}" for name, value in card.facts]
        told = [sentence for proof in card.speaks for sentence in (*proof.shown, *((proof.summary,) if proof.folded else ()))]
        if told:
            lines += ["", f"**{self.t['card_for']}**", "", *self.bullets(told)]
        if card.ruled_out:
            ruled = [f"- **{self.prose(one.cause)}** {self.prose(one.because)}" for one in card.ruled_out]
            lines += ["", f"**{self.t['card_against']}**", "", *ruled]
        if card.decide:
            lines += ["", f"**{self.t['card_decide']}**", "", *self.bullets(card.decide)]
        if card.histogram is not None:
            lines += ["", *self.histogram(card.histogram)]
        if card.state.value == "f":
            lines += ["", f"**{self.t['card_fix']}** {self.prose(card.fix)}"]
        if card.operators or card.details:
            entries = [f"- {one.side} {markdown_code(one.entry)} {one.more}".rstrip() for one in card.operators]
            lines += ["", f"**{self.t['card_details']}**", "", *entries, *self.bullets(card.details)]
        return lines

    def histogram(self, found: Histogram) -> list[str]:
        head = [self.t["col_distance"], self.t["col_train_smaller"], self.t["col_train_larger"]]
        rows = [[bar.label, count(bar.smaller), count(bar.larger)] for bar in found.bars[:-1]]
        crossed = found.bars[-1]
        rows.append([crossed.label, count(crossed.smaller), ""])
        return [f"**{markdown_text(found.reading)}** {self.prose(found.caption)}", "", *table([head, *rows])]

    def growth(self, found: Growth) -> list[str]:
        rows = [[decade, str(layer)] for decade, layer in decades(found)]
        head = [self.t["col_rel"] + " ≥", f"{self.t['growth_from']} {self.t['col_layer']}"]
        return [*self.head("growth", found.answer), "", *table([head, *rows]), "", self.prose(found.notes[0])]

    def tokens(self, found: Positions) -> list[str]:
        rows = [[str(band.layer), figure(max((value for value in band.largest if value), default=0.0))] for band in found.bands]
        shown = rows if len(rows) <= 40 else [*rows[:20], ["…", "…"], *rows[-19:]]
        head = [self.t["col_layer"], self.voice.say(word("md_by_layer"))]
        return [*self.head("tokens", found.answer), "", *table([head, *shown]), "", self.prose(found.notes[0])]

    def causes(self) -> list[str]:
        weighed, answer = self.view.causes
        head = self.heads("col_cause", "col_verdict", "col_because")
        rows = [
            [
                markdown_code(one.name) if one.is_name else markdown_text(one.name),
                f"{GLYPHS[one.standing]} {one.verdict}",
                " ".join(part for part in (self.prose(one.because), " ".join(one.findings), self.prose(one.decide)) if part),
            ]
            for one in weighed
        ]
        return self.head("causes", answer) + (["", *table([head, *rows])] if rows else [])

    def rounds(self) -> list[str]:
        steps, answer = self.view.rounds
        lines = [*self.head("rounds", answer), ""]
        for step in steps:
            lines.append(f"- **{step.number} {self.prose(step.title)}**")
            signs = ((step.question, ""), (step.proof, "✓ "), (step.result, "× " if step.worked is False else ""))
            lines += [f"  - {sign}{self.prose(text)}" for text, sign in signs if text]
        return lines if steps else lines[:-1]

    def table(self) -> list[str]:
        v = self.view.table
        head = self.heads("col_boundary", "col_state", "col_unequal", "col_max", "col_rel", "col_finding")
        rows = [
            [
                markdown_code(cell.boundary), f"{cell.state.glyph} {state_name(cell.state, self.voice)}",
                "–" if cell.share is None else share(cell.share, 1), figure(cell.max_abs, 3), figure(cell.rel_l2, 3),
                " ".join(markdown_text(short(one, 20)) for one in cell.findings),
            ]
            for cell in v.first
        ]  # fmt: skip
        lines = self.head("table", v.answer)
        if len(v.first) < len(v.all):
            lines += ["", self.prose(self.voice.say(word("md_first_rows", m=count(len(v.first)), n=count(len(v.all)))))]
        return [*lines, "", *table([head, *rows])] if rows else lines

    def open(self) -> list[str]:
        v = self.view
        lines = self.head("open", v.open.answer)
        if v.open.groups:
            head = self.heads("col_what", "col_why", "col_decides")
            rows = [
                [f"○ {' '.join(map(_gap, group.what))} ({group.stands})", self.prose(group.why), self.prose(group.decides)]
                for group in v.open.groups
            ]
            lines += ["", *table([head, *rows]), "", self.prose(self.t["open_statuses"])]
        if v.open.decides:
            lines += ["", f"**{self.t['open_decides']}**", "", *self.bullets(v.open.decides)]
        lines += ["", f"**{self.t['open_metrics']}**", "", *self.bullets(v.open.metrics)]
        limits = [f"- {self.prose(short(told, 4000))}" for told in v.limitations] + self.bullets(v.open.notes)
        return lines + (["", f"**{self.t['open_limits']}**", "", *limits] if limits else [])

    def inputs(self) -> list[str]:
        v = self.view.inputs
        sides = [[markdown_text(value) for value in row] for row in v.sides]
        lines = [*self.head("inputs", v.answer), "", *table(sides), ""]
        lines += [f"- {name}: {self.prose(value)}" for name, value in v.facts]
        head = self.heads("col_axis", "col_status", "col_evidence")
        axes = [[markdown_code(axis.name), markdown_code(axis.status), self.prose(axis.evidence)] for axis in v.axes]
        files = [f"- {markdown_code(name)} sha-256 `{digest}`" for name, digest in [*v.dumps, *v.files]]
        lines += ["", f"**{self.t['in_axes']}**", "", *table([head, *axes]), "", f"**{self.t['in_files']}**", "", *files]
        return [*lines, "", f"**{self.t['in_again']}**", "", *block(v.commands)]

    def read(self) -> list[str]:
        meanings = [f"- **{name}**: {markdown_text(meaning)}" for name, meaning in self.view.glossary]
        return [*self.head("read", self.t["read_answer"]), "", *meanings]


def twin(view: View, voice: Voice) -> str:
    """The Markdown of a report; sections are there or left out as in the page."""
    made = _Twin(view, voice)
    sections = {
        "conclusion": made.conclusion, "where": made.where, "findings": made.findings, "causes": made.causes, "rounds": made.rounds,
        "table": made.table, "open": made.open, "inputs": made.inputs, "read": made.read,
    }  # fmt: skip
    lines: list[str] = []
    for name, _ in rail(view, made.t):
        if name == "growth" and view.growth is not None:
            lines += made.growth(view.growth)
        elif name == "tokens" and view.positions is not None:
            lines += made.tokens(view.positions)
        elif name in sections:
            lines += sections[name]()
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; its first row is the head."""
    drawn = ["| " + " | ".join(cell.replace("\n", " ") for cell in row) + " |" for row in rows]
    return [drawn[0], "|" + " --- |" * len(rows[0]), *drawn[1:]]


def block(lines: Iterable[str]) -> list[str]:
    """Lines as a block of code; a fence within them is broken."""
    return ["```text", *(line.replace("```", "'''") for line in lines), "```"]


def _sign(state: State | None) -> str:
    return " " if state is None else state.glyph


def _gap(what: str) -> str:
    name, times, number = what.partition(" × ")
    return f"{markdown_code(name)} × {number}" if times else markdown_code(name)
