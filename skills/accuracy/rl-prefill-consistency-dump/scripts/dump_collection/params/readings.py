"""What one side says of one field: where, which value, in which state, and what it means."""

import math
import re
import struct
from typing import Any, NamedTuple, Optional, Sequence, Tuple

from .configs import UNDECLARED, Config

SET, NULL, ABSENT, DEFAULT = "set", "null", "absent", "default"
_WORD = re.compile(r"[A-Za-z_][\w.]*")
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "float": "float32", "fp32": "float32", "double": "float64"}
# One function under several names: torch's swish is SiLU; transformers' gelu_new and gelu_pytorch_tanh are the tanh approximation.
_ACTIVATIONS = {
    "swish": "silu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "relu2": "squared_relu",
    "fast_gelu": "gelu_tanh", "openai_gelu": "gelu_tanh", "quickgelu": "quick_gelu",
}  # fmt: skip


class Unstated:
    """What a field means where a configuration does not say it: equal to nothing, itself included."""

    def __repr__(self) -> str:
        return "unstated"


UNSTATED = Unstated()


class Reading(NamedTuple):
    """``value``: as the file has it; ``state``: set, null, absent (nobody says), default (no key, and what that means is known).

    ``meaning``: what is compared. ``in_force`` False: the value is there, but nothing reads it. ``note``: why it means that.
    """

    keys: Tuple[str, ...]
    value: Any
    state: str
    meaning: Any
    note: Optional[str] = None
    in_force: bool = True

    @property
    def key(self) -> Optional[str]:
        return ", ".join(self.keys) or None

    @property
    def stated(self) -> bool:
        return not isinstance(self.meaning, Unstated)


NOWHERE = Reading((), None, ABSENT, UNSTATED)


def of_value(path: str, value: Any, meaning: Any, note: Optional[str] = None, in_force: bool = True) -> Reading:
    """A reading of one key."""
    return Reading((path,), value, NULL if value is None else SET, meaning, note, in_force)


def default(meaning: Any, note: Optional[str] = None) -> Reading:
    """No key says it, and what that means is known."""
    return Reading((), meaning, DEFAULT, meaning, note)


def first(config: Config, names: Sequence[str]) -> Optional[Tuple[str, Any]]:
    """The authority's place of a field under any of its names; a place that holds a value comes before one that holds null."""
    places = [place for name in names for place in config.found(name)]
    values = [place for place in places if place[1] is not None]
    declared = [place for place in values if not place[0].startswith(UNDECLARED)]
    best = declared or values or places
    return best[0] if best else None


def value_of(config: Config, *names: str) -> Any:
    """A field's value under any of its names; None where it is null or not there."""
    place = first(config, names)
    return place[1] if place else None


def keys_of(config: Config, *names: str) -> Tuple[str, ...]:
    """The places of these fields, one each."""
    places = [first(config, (name,)) for name in names]
    return tuple(place[0] for place in places if place)


def together(config: Config, *names: str) -> Any:
    """What several fields say together: the value of the one that is there, or all of them by name."""
    places = [place for name in names for place in config.found(name)[:1]]
    return places[0][1] if len(places) == 1 else dict(places) or None


def normal(value: Any, form: str) -> Any:
    """A value as its form compares it: numbers as numbers, types and functions by their bare name."""
    if isinstance(value, list):
        return [normal(item, form) for item in value]
    if not isinstance(value, str):
        return value
    if form == "number":
        try:
            number = float(value)
        except ValueError:
            return value
        return number if math.isfinite(number) else value  # NaN is equal to nothing, itself included
    words = _WORD.findall(value)
    bare = [word for word in words if word not in ("function", "class", "at")]
    name = (bare[0] if bare else value).rpartition(".")[2].lower() if form in ("dtype", "activation", "word") else value
    if form == "dtype":
        return _DTYPES.get(name, name)
    return _ACTIVATIONS.get(name, name) if form == "activation" else name


def same(left: Any, right: Any) -> bool:
    """Equal without a tolerance: 10000 is 10000.0, but 1 is not true; lists item by item."""
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return set(left) == set(right) and all(same(left[key], right[key]) for key in left)
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def as_float32(value: float) -> float:
    """A computed factor as kernels hold it: two right formulas of one scale differ in float64 only by their order."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])
