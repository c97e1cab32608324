"""The one table that words every kind of sentence in artefacts, in English and Chinese.

A sentence is data (`artefacts.common.Worded`): its kind, its values, and the English text made of
nothing else. Whoever knows the kind words it anew in either language; nobody parses the text.
"""

import math
from typing import Any, Literal

from .artefacts.common import Worded
from .words.causes import CAUSES
from .words.comparing import COMPARING
from .words.concluding import CONCLUDING
from .words.hypotheses import HYPOTHESES
from .words.kernels import KERNELS
from .words.layer_map import LAYER_MAP
from .words.mapping import MAPPING
from .words.probing import PROBING
from .words.ranks import RANKS
from .words.recomputing import RECOMPUTING
from .words.replaying import REPLAYING
from .words.report_inputs import REPORT_INPUTS
from .words.report_labels import REPORT_LABELS
from .words.report_lead import REPORT_LEAD
from .words.report_sections import REPORT_SECTIONS
from .words.reporting_source import REPORTING_SOURCE
from .words.rounds import ROUNDS
from .words.routing import ROUTING
from .words.tokens import TOKENS
from .words.weights import WEIGHTS

Language = Literal["en", "zh-CN"]
_LONGEST_LIST = 4  # a sentence shows so many items and says how many there are; ``values`` hold them all

# kind -> (English, Chinese)
TABLE: dict[str, tuple[str, str]] = {
    **CAUSES, **COMPARING, **CONCLUDING, **HYPOTHESES, **KERNELS, **LAYER_MAP, **MAPPING, **PROBING,
    **RANKS, **RECOMPUTING, **REPLAYING, **REPORTING_SOURCE, **REPORT_INPUTS, **REPORT_LABELS, **REPORT_LEAD, **REPORT_SECTIONS,
    **ROUNDS, **ROUTING, **TOKENS, **WEIGHTS,
}  # fmt: skip


def word(kind: str, **values: Any) -> Worded:
    """The sentence of a kind, with its English text. Raises KeyError for a kind or a value that the table lacks."""
    return Worded(kind, values, render(kind, values, "en"))


def render(kind: str, values: dict[str, Any], language: Language) -> str:
    """The text of a kind in one language; values may be worded themselves, as objects or as parsed JSON."""
    english, chinese = TABLE[kind]
    shown = {key: _shown(value, language) for key, value in values.items()}
    return (english if language == "en" else chinese).format(**shown)


def text_of(sentence: Worded, language: Language) -> str:
    """A worded sentence in one language; a kind that this release does not know keeps its English text."""
    if sentence.kind not in TABLE:
        return sentence.text
    try:
        return render(sentence.kind, sentence.values, language)
    except (KeyError, IndexError, TypeError, AttributeError):  # an edited file lacks a value or holds another
        return sentence.text


def _number(value: float) -> str:
    """Four digits, and near 1 four digits of the distance from 1: what matters of a scale."""
    away = abs(value - 1)
    digits = 4 if not 0 < away < 0.1 else min(12, 4 - math.floor(math.log10(away)))
    return f"{value:.{digits}g}"


def _shown(value: Any, language: Language) -> str:
    if isinstance(value, Worded):
        return text_of(value, language)
    if isinstance(value, dict) and set(value) == {"kind", "values", "text"}:
        return render(value["kind"], value["values"], language) if value["kind"] in TABLE else str(value["text"])
    if isinstance(value, list | tuple):
        shown = [_shown(item, language) for item in value[:_LONGEST_LIST]]
        left = len(value) - len(shown)
        more = [] if not left else [f"… ({len(value)} in all)" if language == "en" else f"……（共 {len(value)} 个）"]
        return (", " if language == "en" else "、").join(shown + more)
    if isinstance(value, float):
        return _number(value)
    return str(value)
