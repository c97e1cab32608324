"""stub_instruction.json: what the analysis asks to override, checked in itself (contracts of both skills)."""

import re
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files import names, operands
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, OperandError
from msprobe_files.pt_archive import ITEM_SIZES

from dump_collection import files

SCHEMA = "stub_instruction/1"
SIDES = ("train", "infer")
LEVELS = ("L0", "mix")  # the levels at which msprobe records modules
_KNOWN = (
    "schema", "round", "kind", "source_side", "target_side", "isolate_boundary", "modules", "dump_after_load", "expected", "reason",
    "source_dump", "requires",
)  # fmt: skip
# One component of msprobe's file names: what FILE_VALID_PATTERN of 26.2.0 lets pass, without the path's own separators.
_NAME = re.compile(r"[A-Za-z0-9_.:-]+\Z")


class Input(NamedTuple):
    """One argument of a module: ``category`` is ``input`` (``suffix``: its position) or ``kwargs`` (its name).

    ``shape`` and ``dtype``: what the target must receive. ``where``: its path in the instruction.
    """

    where: str
    category: str
    suffix: str
    operand: Operand
    shape: Tuple[int, ...]
    dtype: str

    @property
    def label(self) -> str:
        return self.category + "." + self.suffix


class Module(NamedTuple):
    """One call of a module of the target. ``rank`` None: on every rank."""

    where: str
    entry: str
    rank: Optional[int]
    inputs: Tuple[Input, ...]


class Instruction(NamedTuple):
    """``digest``: sha-256 of the file; ``source_digest``: of the dump that it was made from, None where it does not say."""

    digest: str
    round: int
    source_side: str
    target_side: str
    modules: Tuple[Module, ...]
    dump_after_load: bool
    level: str
    source_digest: Optional[str]
    warnings: Tuple[str, ...]

    def inputs(self) -> Iterator[Tuple[Module, Input]]:
        for module in self.modules:
            for item in module.inputs:
                yield module, item


def read(path: str) -> Instruction:
    """The instruction of a round. Raises DumpError with the path in the file where it cannot be carried out."""
    value = files.read(path, SCHEMA)
    warnings: List[str] = []
    _ignored(value, _KNOWN, "", warnings)
    sides = [_text(value, key, "") for key in ("source_side", "target_side")]
    for key, side in zip(("source_side", "target_side"), sides):
        _among(side, SIDES, key)
    if sides[0] == sides[1]:
        raise wrong("target_side", "the source is %s as well" % sides[0])
    _among(_text(value, "kind", ""), ("cut", "forced"), "kind")
    number = value.get("round")
    if type(number) is not int or number < 1:
        raise wrong("round", "expected a whole number from 1 on, found %r" % (number,))
    after = value.get("dump_after_load", True)
    if not isinstance(after, bool):
        raise wrong("dump_after_load", "expected true or false, found %r" % (after,))
    modules = tuple(_module(item, "modules[%d]" % at, warnings) for at, item in enumerate(_list(value, "modules", "")))
    _each_once(modules)
    source = value.get("source_dump")
    digest = source.get("digest") if isinstance(source, dict) else None
    return Instruction(
        files.digest_of_file(path), number, sides[0], sides[1], modules, after, _level(value),
        digest if isinstance(digest, str) else None, tuple(warnings),
    )  # fmt: skip


def wrong(where: str, why: str) -> DumpError:
    """What cannot be carried out, with its path in the instruction."""
    return DumpError(
        "Cannot carry out the instruction: %s: %s. Mend it in stub_instruction.json, or ask the analysis for another." % (where, why)
    )


def _level(value: Dict[str, Any]) -> str:
    requires = value.get("requires", {})
    if not isinstance(requires, dict):
        raise wrong("requires", "expected an object, found %r" % (requires,))
    level = requires.get("level", "L0")
    _among(level, LEVELS, "requires.level")
    return str(level)


def _module(value: Any, where: str, warnings: List[str]) -> Module:
    if not isinstance(value, dict):
        raise wrong(where, "expected an object, found %r" % (value,))
    _ignored(value, ("target_entry", "rank", "inputs"), where + ".", warnings)
    entry = _text(value, "target_entry", where + ".")
    parsed = names.parse_entry(entry)
    if parsed.kind != "module" or parsed.direction != "forward":
        raise wrong(where + ".target_entry", "expected Module.<path>.<Class>.forward.<call>, found %r" % entry)
    if not _NAME.match(entry):
        raise wrong(where + ".target_entry", "%r holds a character that msprobe takes in no file name" % entry)
    rank = value.get("rank")
    if rank is not None and (type(rank) is not int or rank < 0):
        raise wrong(where + ".rank", "expected a rank, found %r" % (rank,))
    listed = _list(value, "inputs", where + ".")
    inputs = tuple(_input(item, "%s.inputs[%d]" % (where, at), warnings) for at, item in enumerate(listed))
    seen = set()
    for item in inputs:
        if item.label in seen:
            raise wrong(item.where, "%s stands twice" % item.label)
        seen.add(item.label)
    return Module(where, entry, rank, inputs)


def _input(value: Any, where: str, warnings: List[str]) -> Input:
    if not isinstance(value, dict):
        raise wrong(where, "expected an object, found %r" % (value,))
    _ignored(value, ("index", "kwarg", "from", "expect"), where + ".", warnings)
    if ("index" in value) == ("kwarg" in value):
        raise wrong(where, 'expected either "index" or "kwarg"')
    if "index" in value:
        index = value["index"]
        if type(index) is not int or index < 0:
            raise wrong(where + ".index", "expected the position of an argument, found %r" % (index,))
        category, suffix = "input", str(index)
    else:
        category, suffix = "kwargs", _text(value, "kwarg", where + ".")
        if not (suffix.isidentifier() and suffix.isascii()):
            raise wrong(where + ".kwarg", "expected the name of an argument that is itself a tensor, found %r" % suffix)
    expect = value.get("expect")
    if not isinstance(expect, dict):
        raise wrong(where + ".expect", "expected shape and dtype, found %r" % (expect,))
    shape, dtype = expect.get("shape"), expect.get("dtype")
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        raise wrong(where + ".expect.shape", "expected a list of sizes, found %r" % (shape,))
    if not isinstance(dtype, str) or dtype.split(".")[-1] not in ITEM_SIZES:
        raise wrong(where + ".expect.dtype", "expected a dtype, found %r" % (dtype,))
    return Input(where, category, suffix, _operand(value.get("from"), where + ".from", warnings), tuple(shape), dtype.split(".")[-1])


def _operand(value: Any, where: str, warnings: List[str]) -> Operand:
    if isinstance(value, str):
        raise wrong(where, "expected an operand with its sources, found the bare name %r" % value)
    known = operands.known_only(value)
    if known != value:
        warnings.append("%s holds keys that this release does not know; they are ignored" % where)
    try:
        return operands.parse(known)
    except OperandError as error:
        raise wrong(where + ("." + error.where if error.where else ""), error.why) from None


def _each_once(modules: Sequence[Module]) -> None:
    """msprobe refuses an entry that is listed twice; here it may be, once for each rank."""
    seen: Dict[str, List[Optional[int]]] = {}
    for module in modules:
        earlier = seen.setdefault(module.entry, [])
        if earlier and (module.rank is None or None in earlier or module.rank in earlier):
            raise wrong(module.where + ".target_entry", "%s stands twice for one rank" % module.entry)
        earlier.append(module.rank)


def _list(value: Dict[str, Any], key: str, where: str) -> List[Any]:
    found = value.get(key)
    if not isinstance(found, list) or not found:
        raise wrong(where + key, "expected a list that is not empty, found %r" % (found,))
    return found


def _text(value: Dict[str, Any], key: str, where: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not found:
        raise wrong(where + key, "expected a text, found %r" % (found,))
    return found


def _among(value: Any, allowed: Tuple[str, ...], where: str) -> None:
    if value not in allowed:
        raise wrong(where, "expected one of %s, found %r" % (", ".join(allowed), value))


def _ignored(value: Dict[str, Any], known: Tuple[str, ...], where: str, warnings: List[str]) -> None:
    unknown = [where + str(key) for key in value if key not in known]
    if unknown:
        warnings.append("the instruction holds keys that this release does not know; they are ignored: %s" % ", ".join(unknown))
