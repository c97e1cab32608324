"""The report as one HTML file: the view laid out by the template, with nothing to fetch and nothing that is not escaped."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dump_analysis.report.charts.growth_chart import growth_chart
from dump_analysis.report.charts.heat_map import heat_map
from dump_analysis.report.charts.histogram_chart import histogram_chart
from dump_analysis.report.charts.layer_map import layer_map
from dump_analysis.report.charts.strip import strip, tally
from dump_analysis.report.labels import labels
from dump_analysis.report.markup import anchor, html_code, html_prose
from dump_analysis.report.people import html_of_people
from dump_analysis.report.said import Voice, count, figure, share, short
from dump_analysis.report.states import IN_ORDER, Cell, State
from dump_analysis.report.view import View
from dump_analysis.report.whereabouts import state_name
from dump_analysis.wording import word

_ASSETS = Path(__file__).parent / "assets"
_TILES = {
    "exact": "M13 19h22M13 29h22",
    "consistent": "M12 20c5-6 9-2 12 0s7 6 12 0M12 31c5-6 9-2 12 0s7 6 12 0",
    "inconsistent": "M13 19h22M13 29h22M29.5 11l-11 26",
    "undecided": "M18 18c0-8 13-8 13 0 0 6-7 6-7 12M24 37v.5",
    "not_run": "M14 24h20",
}
_ICONS = {"cause": "f", "rounding": "r", "excluded": "no", "open": "o"}
_FEW_LIMITS = 6  # more than these stand behind a line that counts them: most repeat what the section says above
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def page(view: View, voice: Voice) -> str:
    """The HTML of a report."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=jinja2.FileSystemLoader(_ASSETS))
    environment.filters.update(
        prose=lambda text: html_prose(str(text), view.ids),
        code=html_code, anchor=anchor, short=short, count=count, people=html_of_people,
        gap=_gap, share=_share, flow=voice.flow, figure3=lambda value: figure(value, 3),
    )  # fmt: skip
    script = _asset("report.js")
    return environment.get_template("report.html.jinja").render(_context(view, voice, script)) + "\n"


def _context(view: View, voice: Voice, script: str) -> dict[str, Any]:
    total = len(view.table.all)
    words = labels(voice)
    numbers = dict(view.tally)
    return {
        "v": view,
        "t": words,
        "lang": voice.language,
        "css": Markup(_asset("report.css")),
        "script": Markup(script),
        "script_digest": Markup(base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()),
        "tile": _TILES[view.lead.case],
        "rail": rail(view, words),
        "equal": view.lead.case in ("exact", "not_run"),
        "states": {state.value: state_name(state, voice) for state in State},
        "tally_title": voice.say(word("page_tally", n=count(total))),
        "charts": _charts(view, voice),
        "histograms": [histogram_chart(card.histogram, voice) if card.histogram else "" for card in view.findings.cards],
        "permalink": lambda finding: voice.say(word("page_permalink", id=finding)),
        "direction": lambda smaller: voice.say(word("alt_direction", smaller=smaller, larger=100 - smaller)),
        "more_title": voice.say(word("findings_more", n=count(len(view.findings.more)))),
        "icons": _ICONS,
        "chips": [(state.value, numbers[state]) for state in _CHIPS if numbers[state] or state is not State.OPEN],
        "columns": _columns(words),
        "files": [*view.inputs.dumps, *view.inputs.files],
        "folded": voice.say(word("open_limits_folded", n=count(limits))) if (limits := _limits(view)) > _FEW_LIMITS else "",
        "print_note": voice.say(word("filter_print", n=count(total))),
        "rows": Markup(island(view, voice)),
    }


_CHIPS = (State.FAULT, State.OPEN, State.ROUNDING, State.CARRIED, State.EXACT, State.UNCOMPARED)


def _limits(view: View) -> int:
    return len(view.limitations) + len(view.open.notes)


def _charts(view: View, voice: Voice) -> dict[str, Markup]:
    return {
        "strip": strip(view.lives, view.layers, voice),
        "tally": tally(view.tally, voice),
        "map": layer_map(view.where, voice),
        "growth": growth_chart(view.growth, voice) if view.growth is not None else Markup(""),
        "heat": heat_map(view.positions, voice) if view.positions is not None else Markup(""),
    }


def rail(view: View, words: dict[str, str]) -> list[tuple[str, str]]:
    """The sections that the report has, by their short names."""
    has_rounds = bool(view.rounds[0]) or view.lead.case not in ("exact", "not_run")
    there = {"growth": view.growth is not None, "tokens": view.positions is not None, "rounds": has_rounds}
    names = {
        "conclusion": words["h_conclusion"], "where": words["rail_where"], "findings": words["rail_findings"],
        "growth": words["rail_growth"], "tokens": words["rail_tokens"], "causes": words["rail_causes"],
        "rounds": words["rail_rounds"], "table": words["h_table"], "open": words["rail_open"],
        "inputs": words["rail_inputs"], "read": words["rail_read"],
    }  # fmt: skip
    return [(section, name) for section, name in names.items() if there.get(section, True)]


def _columns(words: dict[str, str]) -> list[tuple[int | None, str, str]]:
    """Key by which a column sorts, its name, its class."""
    return [
        (0, words["col_boundary"], ""), (2, words["col_state"], ""), (3, words["col_unequal"], "num opt2"),
        (4, words["col_max"], "num opt"), (5, words["col_rel"], "num"), (None, words["col_finding"], ""),
    ]  # fmt: skip


def island(view: View, voice: Voice) -> str:
    """Every boundary as an array: place, layer, state, share unequal, largest and relative difference, findings."""
    places: dict[str, int] = {}
    rows = []
    for cell in view.table.all:
        place = places.setdefault(short(cell.place), len(places))
        row: list[Any] = [place, cell.layer, cell.state.value, _three(cell.share), _three(cell.max_abs), _three(cell.rel_l2)]
        rows.append([*row, [short(finding) for finding in cell.findings]] if cell.findings else row)
    words = {state.value: state_name(state, voice) for state in IN_ORDER}
    words["all"] = voice.say(word("filter_all", m="{m}", n="{n}"))
    words["found"] = voice.say(word("filter_found", m="{m}", k="{k}", n="{n}"))
    anchors = {short(finding): anchor(finding) for finding in sorted(view.ids) if anchor(finding) != finding}
    text = json.dumps({"p": list(places), "r": rows, "w": words, "a": anchors}, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_UNSAFE.get(sign, sign) for sign in text)


def _three(value: float | None) -> float | int | None:
    """Three digits, and whole numbers without a point; a share near 1 keeps what it takes to stay below it."""
    if value is None:
        return None
    if 0.999 < value < 1:
        return min(float(f"{value:.6f}"), 0.999999)
    kept = float(f"{value:.3g}") if abs(value) < 1000 else round(value)
    return int(kept) if kept == int(kept) and abs(kept) < 1e6 else kept


def _share(cell: Cell) -> str:
    return "–" if cell.share is None else share(cell.share, 1)


def _gap(what: str) -> Markup:
    """A place that was not compared, its count behind the name."""
    name, times, number = what.partition(" × ")
    return html_code(name) + Markup(" {}").format(f"× {number}") if times else html_code(name)


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8").rstrip("\n")
