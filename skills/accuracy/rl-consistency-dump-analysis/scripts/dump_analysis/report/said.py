"""What the report says: sentences in one language, and numbers in the report's forms; names from dumps are made harmless here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dump_analysis.artefacts.common import Worded
from dump_analysis.wording import Language, text_of

LONGEST_NAME = 200  # characters of a name that are shown; its copy button holds all of them
# Controls, zero-width and bidirectional signs, line separators and lone surrogates: shown, never obeyed.
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with each control and bidirectional sign as its code point."""
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign.group()):04X}", text)


def short(text: str, room: int = LONGEST_NAME) -> str:
    """The text, visible, and cut in the middle where it is longer than ``room``."""
    text = visible(text)
    if len(text) <= room:
        return text
    head = (room - 1) // 2
    return f"{text[:head]}…{text[len(text) - (room - 1 - head) :]}"


def count(number: int) -> str:
    """A count with thousands set apart: 680,960."""
    return f"{number:,}"


def figure(value: float | None, digits: int = 2) -> str:
    """A measure in ``digits`` significant digits, never rounded to 0: ``2.1e-5``, ``0.30``, ``–`` where there is none."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    exact = float(f"{value:.{digits - 1}e}")
    if 0.001 <= abs(exact) < 10**digits:
        return f"{exact:#.{digits}g}".rstrip(".")
    if 10**digits <= abs(exact) < 1_000_000:
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def share(part: float, of: float) -> str:
    """A share in per cent, 2 digits and 3 from 10 % up; never 0 or 100 by rounding."""
    if not of or not part:
        return "0 %"
    if part >= of:
        return "100 %"
    per_cent = 100 * part / of
    if per_cent < 0.01:
        return "< 0.01 %"
    if per_cent > 99.95:
        return f"{min(float(f'{per_cent:.2f}'), 99.99):.2f} %"
    return f"{per_cent:#.{2 if per_cent < 10 else 3}g} %"


@dataclass(frozen=True)
class Voice:
    """The language of a report."""

    language: Language

    def say(self, sentence: Worded | str) -> str:
        """A sentence, its names shortened and harmless; a string is taken as it is said already."""
        if isinstance(sentence, str):
            return short(sentence, 4000)
        return text_of(_harmless(sentence), self.language)

    def join(self, items: Iterable[str]) -> str:
        """A list within a sentence."""
        return ("、" if self.is_chinese else ", ").join(items)

    def flow(self, sentences: Iterable[str]) -> str:
        """Sentences after each other."""
        return ("" if self.is_chinese else " ").join(sentences)

    @property
    def is_chinese(self) -> bool:
        return self.language == "zh-CN"


def _harmless(value: Any) -> Any:
    """The sentence, or a value of one, with every string in it short and visible."""
    if isinstance(value, Worded):
        return Worded(value.kind, _harmless(value.values), short(value.text, 4000))
    if isinstance(value, str):
        return short(value)
    if isinstance(value, dict):
        return {key: short(item, 4000) if key == "text" else _harmless(item) for key, item in value.items()}
    return [_harmless(item) for item in value] if isinstance(value, list | tuple) else value


def ranges(numbers: Sequence[int], most: int = 6) -> str:
    """Layer numbers as they are said: ``0–2, 7``; of more than ``most`` stretches the first and the last."""
    stretches: list[list[int]] = []
    for number in sorted(set(numbers)):
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    told = [str(first) if first == last else f"{first}–{last}" for first, last in stretches]
    return ", ".join(told if len(told) <= most else [*told[: most - 1], "…", told[-1]])
