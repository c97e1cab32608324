"""The one table that words every kind of sentence of the collection's artefacts, in English and Chinese.

A sentence is data: its kind, its values, and the English text made of nothing else. Whoever knows the kind words it
anew in either language; nobody parses the text.
"""

from typing import Any, Dict, Tuple

from dump_collection.dump_check_words import DUMP_CHECK_WORDS
from dump_collection.dump_token_words import DUMP_TOKEN_WORDS
from dump_collection.override_words import OVERRIDE_WORDS
from dump_collection.param_config_words import PARAM_CONFIG_WORDS
from dump_collection.param_weight_words import PARAM_WEIGHT_WORDS

# kind -> (English, Chinese); each room's sentences stand in its own table, gathered here
TABLE: Dict[str, Tuple[str, str]] = {
    **DUMP_CHECK_WORDS,
    **DUMP_TOKEN_WORDS,
    **OVERRIDE_WORDS,
    **PARAM_CONFIG_WORDS,
    **PARAM_WEIGHT_WORDS,
}


def word(kind: str, **values: Any) -> Dict[str, Any]:
    """The sentence of a kind, with its English text. Raises KeyError for a kind or a value that the table lacks."""
    return {"kind": kind, "values": values, "text": render(kind, values, "en")}


def render(kind: str, values: Dict[str, Any], language: str) -> str:
    """The text of a kind in ``en`` or ``zh-CN``; values may be worded themselves."""
    english, chinese = TABLE[kind]
    shown = {key: _shown(value, language) for key, value in values.items()}
    return (english if language == "en" else chinese).format(**shown)


def text_of(sentence: Dict[str, Any], language: str) -> str:
    """A worded sentence in one language; a kind that this release does not know keeps its English text."""
    if sentence["kind"] not in TABLE:
        return str(sentence["text"])
    return render(sentence["kind"], sentence["values"], language)


def _shown(value: Any, language: str) -> str:
    if isinstance(value, dict) and set(value) == {"kind", "values", "text"}:
        return text_of(value, language)
    if isinstance(value, (list, tuple)):
        return (", " if language == "en" else "、").join(_shown(item, language) for item in value)
    return str(value)
