"""Every fault of a file that people write: each with its JSON path, what is wrong there, and what to do."""

import difflib
import functools
import operator
import types
import typing
from typing import Any, Literal, NamedTuple, Union

import msgspec


class Fault(NamedTuple):
    """``path``: the JSON path; ``why``: what was expected and found; ``remedy``: a sentence that says what to do."""

    path: str
    why: str
    remedy: str

    @property
    def line(self) -> str:
        """The fault in one line."""
        return f"{self.path}: {self.why}. {self.remedy}"


def faults_of_form(value: Any, kind: type[msgspec.Struct], path: str = "") -> list[Fault]:
    """Where parsed JSON is no ``kind``: unknown and missing keys, values of another type or outside their vocabulary."""
    if not isinstance(value, dict):
        return [Fault(path or "the file", f"expected an object, found {_shown(value)}", "Write the object with its fields.")]
    fields = msgspec.structs.fields(kind)
    found = [_unknown(_joined(path, key), key, [field.encode_name for field in fields]) for key in value if key not in _names(fields)]
    for field in fields:
        place = _joined(path, field.encode_name)
        if field.encode_name in value:
            found += _faults(value[field.encode_name], field.type, place)
        elif field.required:
            found.append(Fault(place, "is missing", f"Write it; {_wanted(field.type)}."))
    return found


def _faults(value: Any, kind: Any, path: str) -> list[Fault]:
    """Where a value is not of a type; structs and lists of them are walked, so that each fault has its own path."""
    structs = [one for one in _alternatives(kind) if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if structs and not (value is None and type(None) in _alternatives(kind)):
        return faults_of_form(value, structs[0], path)
    if typing.get_origin(kind) is list and isinstance(value, list):
        (item,) = typing.get_args(kind)
        return [fault for at, one in enumerate(value) for fault in _faults(one, item, f"{path}[{at}]")]
    try:
        msgspec.convert(value, functools.reduce(operator.or_, _alternatives(kind)))
    except msgspec.ValidationError:
        words = _words(kind)
        close = difflib.get_close_matches(value, words, 1) if isinstance(value, str) else []
        remedy = f'Did you mean "{close[0]}"?' if close else "Write one of what it takes."
        return [Fault(path, f"expected {_named(kind)}, found {_shown(value)}", remedy)]
    return []


def _unknown(path: str, key: str, names: list[str]) -> Fault:
    close = difflib.get_close_matches(key, names, 1)
    return Fault(path, "unknown key", f'Did you mean "{close[0]}"?' if close else "Remove the key.")


def _names(fields: tuple[msgspec.structs.FieldInfo, ...]) -> set[str]:
    return {field.encode_name for field in fields}


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else str(key)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    parts = typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (kind,)
    return tuple(part for part in parts if part is not msgspec.UnsetType)


def _words(kind: Any) -> list[str]:
    """The vocabulary of a type, where it has one."""
    return [str(one) for part in _alternatives(kind) if typing.get_origin(part) is Literal for one in typing.get_args(part)]


_PLAIN = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null", dict: "an object"}


def _named(kind: Any) -> str:
    """What a type takes, in words."""
    parts: list[str] = []
    for part in _alternatives(kind):
        origin = typing.get_origin(part)
        if origin is Literal:
            parts += [msgspec.json.encode(one).decode() for one in typing.get_args(part)]
        elif origin is list:
            (item,) = typing.get_args(part)
            parts.append(f"a list of {'objects' if isinstance(item, type) and issubclass(item, msgspec.Struct) else _named(item)}")
        else:
            parts.append(_PLAIN.get(origin or part, "an object"))
    return " or ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _wanted(kind: Any) -> str:
    return f"it takes {_named(kind)}" + (' ("unknown" where nobody knows)' if kind is str else "")


def _shown(value: Any) -> str:
    """A value in a message, cut where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
