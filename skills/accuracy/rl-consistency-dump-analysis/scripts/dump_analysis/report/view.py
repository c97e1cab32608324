"""Everything that the report shows, computed once: both renderings lay out this and nothing else."""

from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.artefacts.report_source import ReportSource
from dump_analysis.report import actions, cards, compared_sides, glossary, growth, positions, rounds_told, uncovered, weighed, whereabouts
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.layers import MOST_COLUMNS, MOST_NARROW, Grid, Life, grid, layers_of, lives
from dump_analysis.report.lead import Lead, lead
from dump_analysis.report.said import Voice, count, visible
from dump_analysis.report.states import IN_ORDER, MADE_HERE, Cell, State, cells, grouped
from dump_analysis.wording import word

_FIRST_ROWS = 20  # rows of the table that stand in the page for readers without script


class Where(NamedTuple):
    """``narrow``: the same map with fewer columns, for phones."""

    answer: str
    wide: Grid | None
    narrow: Grid | None
    notes: tuple[str, ...]


class Findings(NamedTuple):
    """``more``: faults beyond the cards, as id, state and title."""

    answer: str
    cards: tuple[cards.Card, ...]
    more: tuple[tuple[str, State, str, str], ...]
    rounding: tuple[cards.RoundingRow, ...]


class Table(NamedTuple):
    """``first``: rows that stand in the page without script; ``all``: every boundary in the order of computation."""

    answer: str
    first: tuple[Cell, ...]
    all: tuple[Cell, ...]


class View(NamedTuple):
    title: str
    kicker: tuple[str, ...]
    lead: Lead
    word: str
    steps: tuple[actions.Step, ...]
    keys: tuple[actions.Key, ...]
    layers: tuple[int, ...]
    lives: tuple[Life, ...]
    tally: tuple[tuple[State, int], ...]
    where: Where
    findings: Findings
    growth: growth.Growth | None
    positions: positions.Positions | None
    causes: tuple[tuple[weighed.Weighed, ...], str]
    rounds: tuple[tuple[rounds_told.Round, ...], str]
    table: Table
    open: uncovered.Uncovered
    limitations: tuple[str, ...]
    inputs: compared_sides.Compared
    glossary: tuple[tuple[str, str], ...]
    ids: frozenset[str]


def view(source: ReportSource, evidence: Evidence, voice: Voice) -> View:
    """What the report of an analysis shows."""
    found = cells(evidence)
    findings = evidence.conclusion.findings
    layers = layers_of(found)
    wide = grid(found, findings, MOST_COLUMNS)
    opening = lead(evidence, voice)
    grown, at = growth.growth(evidence, voice), positions.positions(evidence, voice)
    causes, weighed_answer = weighed.weighed(evidence.conclusion, voice)
    steps, confirmed = rounds_told.rounds(evidence, voice)
    return View(
        title=visible(source.title),
        kicker=_kicker(source, evidence, voice),
        lead=opening,
        word=case_name(opening, voice),
        steps=tuple(actions.steps(evidence, voice)),
        keys=tuple(actions.keys(evidence, voice)),
        layers=tuple(layers),
        lives=tuple(lives(findings)),
        tally=tuple((state, sum(cell.state is state for cell in found)) for state in IN_ORDER),
        where=Where(
            whereabouts.answer(evidence, found, layers, voice),
            wide,
            grid(found, findings, MOST_NARROW),
            tuple(whereabouts.notes(found, wide, voice)),
        ),
        findings=_findings(evidence, layers, voice),
        growth=grown,
        positions=at,
        causes=(tuple(causes), weighed_answer),
        rounds=(tuple(steps), confirmed),
        table=_table(found, voice),
        open=uncovered.uncovered(evidence, found, _left_out(evidence, grown, at, confirmed, voice), voice),
        limitations=tuple(source.limitations),
        inputs=compared_sides.compared(source, evidence, voice),
        glossary=glossary.glossary(voice),
        ids=frozenset(finding.id for finding in findings),
    )


def case_name(opening: Lead, voice: Voice) -> str:
    """The conclusion in one word."""
    told = {
        "exact": word("case_exact"),
        "consistent": word("case_consistent"),
        "inconsistent": word("case_inconsistent"),
        "undecided": word("case_undecided"),
        "not_run": word("case_not_run"),
    }
    return voice.say(told[opening.case])


def _kicker(source: ReportSource, evidence: Evidence, voice: Voice) -> tuple[str, ...]:
    told = [voice.say(word("page_kicker"))]
    if source.scope.model != "unknown":
        told.append(voice.say(source.scope.model))
    tokens = source.comparison.prompt_token_length
    if isinstance(tokens, int):
        told.append(voice.say(word("page_tokens", n=count(tokens))))
    dump = next((one for one in evidence.conclusion.inputs if one.label == "train" and one.step is not None), None)
    if dump is not None:
        told.append(voice.say(word("page_step_rank", step=dump.step, rank="–" if dump.rank is None else dump.rank)))
    return tuple(told)


def _findings(evidence: Evidence, layers: list[int], voice: Voice) -> Findings:
    findings = evidence.conclusion.findings
    told = grouped([finding for finding in findings if finding.character != "rounding"])
    rounding = [finding for finding in findings if finding.character == "rounding"]
    made = [cards.card(finding, evidence, layers, voice) for finding in told]
    more = tuple((card.id, card.state, card.title, card.facts[1][1]) for card in made[cards.MOST_CARDS :])
    rows = tuple(cards.rounding_row(finding, evidence, voice) for finding in rounding)
    return Findings(_findings_answer(evidence, voice), tuple(made[: cards.MOST_CARDS]), more, rows)


def _findings_answer(evidence: Evidence, voice: Voice) -> str:
    of = dict.fromkeys(("logic", "unknown", "rounding"), 0)
    for finding in evidence.conclusion.findings:
        of[finding.character] += 1
    told = []
    if of["logic"]:
        told.append(word("n_faults", n=count(of["logic"])) if of["logic"] > 1 else word("n_fault"))
    if of["unknown"]:
        told.append(word("n_opens", n=count(of["unknown"])) if of["unknown"] > 1 else word("n_open"))
    if of["rounding"]:
        told.append(word("n_points", n=count(of["rounding"])) if of["rounding"] > 1 else word("n_point"))
    if not told:
        return voice.say(word("findings_none") if evidence.conclusion.overall != "not_run" else word("findings_none_not_run"))
    listed = ("；" if voice.is_chinese else "; ").join(map(voice.say, told))
    return voice.say(word("findings_counted", list=listed[:1].upper() + listed[1:]))


def _table(found: list[Cell], voice: Voice) -> Table:
    compared = [cell for cell in found if cell.state is not State.UNCOMPARED]
    differ = sum(cell.state is not State.EXACT for cell in compared)
    faults = sum(cell.state is State.FAULT for cell in compared)
    if not compared:
        told = word("table_empty")
    elif differ:
        told = word("table_answer", d=count(differ), c=count(len(compared)), f=count(faults))
    else:
        told = word("table_answer_none", c=count(len(compared)))
    first = [cell for cell in found if cell.state in MADE_HERE] or found
    return Table(voice.say(told), tuple(first[:_FIRST_ROWS]), tuple(found))


def _left_out(evidence: Evidence, grown: growth.Growth | None, at: positions.Positions | None, confirmed: str, voice: Voice) -> list[str]:
    """Why a section is not there; nothing of that where all is equal or nothing was compared."""
    if not any(row.status not in GAPS and row.status != "EXACT" for row in evidence.results.boundaries):
        return [] if evidence.rounds else [confirmed]
    told = [] if grown is not None else [voice.say(word("open_no_growth"))]
    return told + ([] if at is not None else [voice.say(word("open_no_tokens"))])
