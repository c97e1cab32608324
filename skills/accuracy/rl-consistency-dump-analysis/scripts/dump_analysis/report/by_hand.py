"""The report of a source that was written by hand, without results beside it: what it states, and nothing more."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from dump_analysis.artefacts.report_source import Difference, ReportSource
from dump_analysis.report.markup import html_prose, markdown_prose, markdown_text
from dump_analysis.report.said import Voice
from dump_analysis.report.stated import difference, rows, said
from dump_analysis.wording import word

_ASSETS = Path(__file__).parent / "assets"


class Section(NamedTuple):
    """``rows``: label and value; ``notes``: sentences after them."""

    heading: str
    rows: list[tuple[str, str]]
    notes: list[str]


def by_hand(source: ReportSource, voice: Voice) -> tuple[str, str]:
    """Markdown and HTML of the source alone. It says that no results were there to hold it against."""
    title, notice = voice.say(source.title), voice.say(word("hand_notice"))
    sections = [_results(source, voice), *(_difference(one, voice) for one in source.differences), *_rest(source, voice)]
    return _markdown(title, notice, sections), _html(title, notice, sections, voice)


def _results(source: ReportSource, voice: Voice) -> Section:
    found = source.results
    told = [
        (word("hand_native"), found.native_prefill_status),
        (word("hand_conditional"), found.conditional_prefill_status),
        (word("hand_metric"), f"{found.e2e_metric_name}: {found.e2e_metric_status}; {found.e2e_metric_evidence}"),
    ]
    return Section(voice.say(word("hand_results")), [(voice.say(label), voice.say(value)) for label, value in told], [])


def _difference(one: Difference, voice: Voice) -> Section:
    told = [(word("stated_what"), one.summary), (word("stated_where"), one.boundary), (word("stated_became"), difference(one, voice))]
    notes = [voice.say(sentence) for sentence in (*one.proof, *one.rejected_attempts)]
    heading = voice.say(word("stated_difference", id=one.diff_id))
    return Section(heading, [(voice.say(label), voice.say(value)) for label, value in told], notes)


def _rest(source: ReportSource, voice: Voice) -> list[Section]:
    axes, scope = source.verification_axes, source.scope
    of_axes = [(name, f"{getattr(axes, name).status}; {getattr(axes, name).evidence}") for name in axes.__struct_fields__]
    of_scope = [(name, getattr(scope, name)) for name in scope.__struct_fields__ if name != "topology"]
    parts = {"topology": scope.topology, "provenance": source.provenance, "comparison": source.comparison}
    of_scope += [pair for name, part in parts.items() for pair in _flat(name, msgspec.to_builtins(part))]
    found = [
        Section(voice.say(word("in_axes")), [(name, voice.say(value)) for name, value in of_axes], []),
        Section(voice.say(word("hand_scope")), [(name, said(value, voice)) for name, value in of_scope], []),
        Section(voice.say(word("hand_stated")), [(voice.say(label), value) for label, value in rows(source, voice)], []),
    ]
    limits = [voice.say(told) for told in source.limitations]
    return [*found, Section(voice.say(word("hand_limits")), [], limits)] if limits else found


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Fields within fields, by their path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}.{key}", item)
    elif value is not None:
        yield name, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _markdown(title: str, notice: str, sections: list[Section]) -> str:
    lines = [f"# {markdown_text(title)}", "", markdown_prose(notice, ())]
    for section in sections:
        lines += ["", f"## {markdown_text(section.heading)}"]
        if section.rows:
            lines += [
                "",
                "|  |  |",
                "| --- | --- |",
                *(f"| {markdown_text(label)} | {markdown_text(value)} |" for label, value in section.rows),
            ]
        lines += ["", *(f"- {markdown_text(note)}" for note in section.notes)] if section.notes else []
    return "\n".join(lines) + "\n"


def _html(title: str, notice: str, sections: list[Section], voice: Voice) -> str:
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(_ASSETS))
    environment.filters["prose"] = lambda text: html_prose(str(text), ())
    css = Markup((_ASSETS / "report.css").read_text(encoding="utf-8").rstrip("\n"))
    told = {"title": title, "notice": notice, "sections": sections, "lang": voice.language, "css": css}
    return environment.get_template("by_hand.html.jinja").render(**told) + "\n"
