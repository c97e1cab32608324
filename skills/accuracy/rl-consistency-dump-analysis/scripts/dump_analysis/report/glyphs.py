"""The report in a terminal: the three sentences, and each finding over the layers in one glyph a layer."""

from dump_analysis.report.evidence import Evidence
from dump_analysis.report.layers import layers_of, lives, strip_of
from dump_analysis.report.lead import Lead, lead
from dump_analysis.report.said import Voice, count, short
from dump_analysis.report.states import cells
from dump_analysis.wording import Language, word

_ROWS, _WIDEST = 8, 100


def lead_of(evidence: Evidence, language: Language) -> Lead:
    """The report's headline and three sentences."""
    return lead(evidence, Voice(language))


def glyph_strip(evidence: Evidence, language: Language) -> list[str]:
    """Lines for a terminal: each finding with its layers, faults first; [] where there is no finding or no layer.

    A column is a layer; of more than a hundred layers each column stands for several, which the first line says.
    """
    voice = Voice(language)
    layers, found = layers_of(cells(evidence)), lives(evidence.conclusion.findings)
    if not layers or not found:
        return []
    step = -(-len(layers) // _WIDEST)
    shown = [layers[at : at + step] for at in range(0, len(layers), step)]
    outside, lines = voice.say(word("where_outside_layers")), []
    for life in found[:_ROWS]:
        folded = life._replace(layers=tuple(part[0] for part in shown if set(part) & set(life.layers)))
        drawn = strip_of(folded, [part[0] for part in shown])
        lines.append(f"{short(life.finding, 6):<4} {drawn or outside:<{len(shown)}}  {life.label}".rstrip())
    if len(found) > _ROWS:
        lines.append(voice.say(word("where_more_findings", m=count(len(found) - _ROWS))))
    legend = {"first": layers[0], "last": layers[-1]}
    head = word("strip_of_layers", **legend) if step == 1 else word("strip_folded", step=step, **legend)
    return [voice.say(head), *lines]
