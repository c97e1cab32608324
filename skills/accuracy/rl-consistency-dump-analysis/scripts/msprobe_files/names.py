"""Entry and tensor names of msprobe, parsed in one place.

A module entry is ``Module.<path>.<Class>.<forward|backward>.<call>``, an API entry
``<Type>.<api>.<call>.<forward|backward>`` (number before the direction).  A tensor's name is the
stem of its ``.pt`` file: ``<entry>.<category>.<suffix>``.  Source: mindstudio-probe 8.1 to 26.2.
"""

import re
from typing import List, NamedTuple, Optional, Tuple

MODULE_PREFIX = "Module"
# Components that wrappers put into a path without meaning: FSDP1, torch.compile, activation checkpointing, DDP.
WRAPPERS = frozenset({"_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module", "module"})

_NUMBER = r"[0-9]{1,9}"
_MODULE = re.compile(r"^Module\.(?P<path>.+)\.(?P<class>[^.]+)\.(?P<direction>forward|backward)\.(?P<call>%s)\Z" % _NUMBER)
_API = re.compile(r"^(?P<type>[A-Za-z_]\w*)\.(?P<api>.+)\.(?P<call>%s)\.(?P<direction>forward|backward)\Z" % _NUMBER)
# Greedy on the entry: paths and keyword names may themselves hold dots and digits.
_TENSOR = re.compile(
    r"^(?P<entry>.+\.(?:(?:forward|backward)\.[0-9]+|[0-9]+\.(?:forward|backward)))"
    r"\.(?P<category>input|kwargs|output|parameters)(?:\.(?P<suffix>.+))?\Z"
)
_GRADIENT = re.compile(r"^(?P<entry>.+\.parameters_grad(?:\.[0-9]+)?)\.(?P<suffix>[^.]+)\Z")
_GRADIENT_ENTRY = re.compile(r"\.parameters_grad(?:\.[0-9]+)?\Z")
_LAYER = re.compile(_NUMBER + r"\Z")


class Entry(NamedTuple):
    """One recorded call. ``kind`` is ``module``, ``api`` or ``other`` (text that follows neither rule)."""

    text: str
    kind: str
    path: Tuple[str, ...]
    class_name: str
    direction: str
    call: int


class TensorName(NamedTuple):
    """``<entry>.<category>.<suffix>``; the suffix may hold dots and may be empty."""

    entry: str
    category: str
    suffix: str


def parse_entry(text: str) -> Entry:
    """Split an entry name; text that is no entry comes back with kind ``other``, never an error."""
    found = _MODULE.match(text)
    if found:
        path = tuple(found.group("path").split("."))
        return Entry(text, "module", path, found.group("class"), found.group("direction"), int(found.group("call")))
    found = _API.match(text)
    if found:
        return Entry(text, "api", (), found.group("api"), found.group("direction"), int(found.group("call")))
    return Entry(text, "other", (), "", "", 0)


def entry_text(entry: Entry) -> str:
    """The text of a module entry from its parts: the reverse of `parse_entry`."""
    return ".".join((MODULE_PREFIX,) + entry.path + (entry.class_name, entry.direction, str(entry.call)))


def parse_tensor(stem: str) -> Optional[TensorName]:
    """Split the stem of a ``.pt`` file, None where it does not follow msprobe's rule."""
    found = _TENSOR.match(stem)
    if found:
        return TensorName(found.group("entry"), found.group("category"), found.group("suffix") or "")
    found = _GRADIENT.match(stem)
    if found:
        return TensorName(found.group("entry"), "parameters_grad", found.group("suffix"))
    return None


def holds_gradients(entry: str) -> bool:
    """Whether an entry holds the gradients of a module's parameters."""
    return _GRADIENT_ENTRY.search(entry) is not None


def tensor_name(entry: str, category: str, suffix: str) -> str:
    """The stem that msprobe gives to a tensor of an entry."""
    middle = entry if category == "parameters_grad" else entry + "." + category
    return middle + "." + suffix if suffix else middle


def layer_position(path: Tuple[str, ...]) -> Optional[int]:
    """Where in a module path the layer number stands; None if there is none.

    The first number that has a name before it: a number right after ``Module`` is the index of a
    list of models (Megatron's virtual pipeline stages), not a layer.
    """
    for position, part in enumerate(path):
        if _LAYER.match(part) and position > 0:
            return position
    return None


def layer_of(path: Tuple[str, ...]) -> Optional[int]:
    """The layer number of a module path, None where it has none."""
    position = layer_position(path)
    return None if position is None else int(path[position])


def layer_pattern(path: Tuple[str, ...]) -> Tuple[str, ...]:
    """A module path with its layer number replaced by ``N``."""
    position = layer_position(path)
    return path if position is None else path[:position] + ("N",) + path[position + 1 :]


def plain_path(path: Tuple[str, ...]) -> Tuple[str, ...]:
    """A module path without wrappers (FSDP1, DDP, torch.compile, checkpointing) and without a list index."""
    kept: List[str] = [part for part in path if part not in WRAPPERS]
    if len(kept) > 1 and _LAYER.match(kept[0]):
        kept = kept[1:]
    return tuple(kept)
