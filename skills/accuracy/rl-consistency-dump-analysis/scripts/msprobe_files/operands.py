"""Operands: the tensors of one side of a mapping row, with the ops that cut and shape them.

Read from JSON, checked against shapes, written back; applied to data by whoever holds the data.
The form is that of the skill's ``semantic_mapping.json`` and ``stub_instruction.json``::

    {"sources": [{"name": ..., "rank": 0, "dump_step": 0, "steps": [op, ...]}],
     "combine": null | "sum" | "cat" | "zeros", "axis": 0}
"""

import difflib
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .pt_archive import ITEM_SIZES

Shape = Tuple[int, ...]
_LARGEST = sys.float_info.max
COMBINES = (None, "sum", "cat", "zeros")
# op -> its fields, and whether each is required
_FIELDS: Dict[str, Dict[str, bool]] = {
    "squeeze": {"axis": True},
    "slice": {"axis": True, "start": False, "stop": False},
    "take": {"axis": True, "index": False, "runs": False},
    "reshape": {"shape": True},
    "permute": {"axes": True},
    "cast": {"dtype": True},
    "add": {"value": True},
}


class OperandError(ValueError):
    """An operand that is not well formed, or that does not fit a shape. ``where``: path inside the operand."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(where + ": " + why if where else why)
        self.where = where
        self.why = why


class Op(NamedTuple):
    """One operation on one tensor; only the fields of its kind are set.

    ``picked``: the items of a ``take``, written out; ``runs`` keeps the form that was given.
    """

    op: str
    axis: int = 0
    start: Optional[int] = None
    stop: Optional[int] = None
    picked: Tuple[int, ...] = ()
    runs: Tuple[Tuple[int, int], ...] = ()
    shape: Shape = ()
    axes: Tuple[int, ...] = ()
    dtype: str = ""
    value: float = 0.0


class Source(NamedTuple):
    """One tensor: its name (the ``.pt`` file's stem), where it is if a side has several, and its ops.

    ``steps`` None: a bare name, whose axes of size 1 are still to be dropped (`bare_steps`).
    """

    name: str
    rank: Optional[int]
    dump_step: Optional[int]
    steps: Optional[Tuple[Op, ...]]


class Operand:
    """The sources of one side and how they are joined. Not a NamedTuple: JSON readers must call `parse`."""

    __slots__ = ("axis", "combine", "sources")

    def __init__(self, sources: Sequence[Source], combine: Optional[str] = None, axis: Optional[int] = None) -> None:
        self.sources = tuple(sources)
        self.combine = combine
        self.axis = axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operand) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return "Operand(%r)" % (as_json(self),)

    def _key(self) -> Tuple[Any, ...]:
        return (self.sources, self.combine, self.axis)


# --- JSON ---


def parse(value: Any) -> Operand:
    """An operand from parsed JSON; a bare string is the name of one tensor.

    Raises OperandError with the path inside the value (``sources[0].steps[1].op``).
    """
    if isinstance(value, str):
        return Operand((Source(value, None, None, None),))
    fields = _object(value, "", ("sources", "combine", "axis"))
    listed = fields.get("sources")
    if not isinstance(listed, list):
        raise OperandError("sources", "expected a list of tensors, found %s" % _kind(listed))
    combine = fields.get("combine")
    if combine not in COMBINES:
        raise OperandError("combine", 'expected null, "sum", "cat" or "zeros", found %r' % (combine,))
    sources = [_source(item, "sources[%d]" % at) for at, item in enumerate(listed)]
    if not sources and combine != "zeros":
        raise OperandError("sources", "expected at least one tensor, found none")
    if combine is None and len(sources) != 1:
        raise OperandError("combine", '%d sources need "sum" or "cat"' % len(sources))
    axis = fields.get("axis")
    if axis is not None:
        axis = _integer(axis, "axis")
    if combine != "cat":
        axis = None  # it means nothing there
    elif axis is None:
        axis = -1
    return Operand(sources, combine, axis)


def known_only(value: Any) -> Any:
    """An operand's JSON without keys that `parse` does not know: for files that another release wrote."""
    if not isinstance(value, dict):
        return value
    kept = {key: item for key, item in value.items() if key in ("sources", "combine", "axis")}
    if isinstance(kept.get("sources"), list):
        kept["sources"] = [_known_source(source) for source in kept["sources"]]
    return kept


def _known_source(source: Any) -> Any:
    if not isinstance(source, dict):
        return source
    kept = {key: item for key, item in source.items() if key in ("name", "rank", "dump_step", "steps")}
    if isinstance(kept.get("steps"), list):
        kept["steps"] = [_known_op(op) for op in kept["steps"]]
    return kept


def _known_op(op: Any) -> Any:
    fields = _FIELDS.get(str(op.get("op"))) if isinstance(op, dict) else None
    return op if fields is None else {key: item for key, item in op.items() if key == "op" or key in fields}


def as_json(operand: Operand) -> Any:
    """The operand as plain JSON values: the reverse of `parse`."""
    if len(operand.sources) == 1 and operand.sources[0].steps is None:
        return operand.sources[0].name
    sources: List[Dict[str, Any]] = []
    for source in operand.sources:
        item: Dict[str, Any] = {"name": source.name}
        if source.rank is not None:
            item["rank"] = source.rank
        if source.dump_step is not None:
            item["dump_step"] = source.dump_step
        item["steps"] = [_op_as_json(op) for op in source.steps or ()]
        sources.append(item)
    out: Dict[str, Any] = {"sources": sources, "combine": operand.combine}
    if operand.combine == "cat":
        out["axis"] = operand.axis
    return out


def _op_as_json(op: Op) -> Dict[str, Any]:
    out: Dict[str, Any] = {"op": op.op}
    if op.op in ("squeeze", "slice", "take"):
        out["axis"] = op.axis
    if op.op == "slice":
        out["start"], out["stop"] = op.start, op.stop
    elif op.op == "take":
        if op.runs:
            out["runs"] = [list(run) for run in op.runs]
        else:
            out["index"] = list(op.picked)
    elif op.op == "reshape":
        out["shape"] = list(op.shape)
    elif op.op == "permute":
        out["axes"] = list(op.axes)
    elif op.op == "cast":
        out["dtype"] = op.dtype
    elif op.op == "add":
        out["value"] = op.value
    return out


def _source(value: Any, where: str) -> Source:
    fields = _object(value, where, ("name", "rank", "dump_step", "steps"))
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise OperandError(where + ".name", "expected a tensor's name, found %s" % _kind(name))
    steps = fields.get("steps", [])
    if not isinstance(steps, list):
        raise OperandError(where + ".steps", "expected a list of ops, found %s" % _kind(steps))
    ops = tuple(_op(item, "%s.steps[%d]" % (where, at)) for at, item in enumerate(steps))
    rank, dump_step = fields.get("rank"), fields.get("dump_step")
    return Source(
        name,
        None if rank is None else _integer(rank, where + ".rank"),
        None if dump_step is None else _integer(dump_step, where + ".dump_step"),
        ops,
    )


def _op(value: Any, where: str) -> Op:
    if not isinstance(value, dict):
        raise OperandError(where, "expected an op, found %s" % _kind(value))
    kind = value.get("op")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise OperandError(where + ".op", "expected one of %s, found %r%s" % (", ".join(_FIELDS), kind, _nearest(kind)))
    fields = _object(value, where, ("op",) + tuple(_FIELDS[kind]))
    for name, required in _FIELDS[kind].items():
        if required and name not in fields:
            raise OperandError(where, '%s needs "%s"' % (kind, name))
    if kind == "squeeze":
        return Op(kind, axis=_integer(fields["axis"], where + ".axis"))
    if kind == "slice":
        ends = [None if fields.get(end) is None else _integer(fields[end], where + "." + end) for end in ("start", "stop")]
        return Op(kind, axis=_integer(fields["axis"], where + ".axis"), start=ends[0], stop=ends[1])
    if kind == "take":
        return _take(fields, where)
    if kind == "reshape":
        return Op(kind, shape=_integers(fields["shape"], where + ".shape"))
    if kind == "permute":
        return Op(kind, axes=_integers(fields["axes"], where + ".axes"))
    if kind == "cast":
        if not isinstance(fields["dtype"], str):
            raise OperandError(where + ".dtype", "expected a dtype's name, found %s" % _kind(fields["dtype"]))
        dtype = fields["dtype"][6:] if fields["dtype"].startswith("torch.") else fields["dtype"]
        if dtype not in ITEM_SIZES:
            raise OperandError(where + ".dtype", "unknown dtype %r%s" % (dtype, _nearest(dtype, tuple(ITEM_SIZES))))
        return Op(kind, dtype=dtype)
    value = fields["value"]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST <= value <= _LARGEST:
        raise OperandError(where + ".value", "expected a number, found %s" % _kind(value))
    return Op(kind, value=float(value))


def _take(fields: Dict[str, Any], where: str) -> Op:
    axis = _integer(fields["axis"], where + ".axis")
    if ("index" in fields) == ("runs" in fields):
        raise OperandError(where, 'take needs either "index" or "runs"')
    if "index" in fields:
        return Op("take", axis=axis, picked=_integers(fields["index"], where + ".index"))
    runs: List[Tuple[int, int]] = []
    if not isinstance(fields["runs"], list):
        raise OperandError(where + ".runs", "expected a list of [start, stop], found %s" % _kind(fields["runs"]))
    for at, run in enumerate(fields["runs"]):
        ends = _integers(run, "%s.runs[%d]" % (where, at))
        if len(ends) != 2 or not 0 <= ends[0] <= ends[1]:
            raise OperandError("%s.runs[%d]" % (where, at), "expected [start, stop], found %r" % (list(ends),))
        runs.append((ends[0], ends[1]))
    if sum(stop - start for start, stop in runs) > 1 << 24:
        raise OperandError(where + ".runs", "together they hold more than 2**24 items")
    picked = tuple(at for start, stop in runs for at in range(start, stop))
    return Op("take", axis=axis, picked=picked, runs=tuple(runs))


def _object(value: Any, where: str, known: Sequence[str]) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise OperandError(where, "expected an object, found %s" % _kind(value))
    for key in value:
        if key not in known:
            raise OperandError(where + "." + str(key) if where else str(key), "unknown key%s" % _nearest(key, known))
    return value


def _nearest(word: Any, known: Sequence[str] = tuple(_FIELDS)) -> str:
    close = difflib.get_close_matches(str(word), known, 1)
    return '; did you mean "%s"?' % close[0] if close else "; known: " + ", ".join(known)


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OperandError(where, "expected a whole number, found %s" % _kind(value))
    return value


def _integers(value: Any, where: str) -> Tuple[int, ...]:
    if not isinstance(value, list):
        raise OperandError(where, "expected a list of whole numbers, found %s" % _kind(value))
    return tuple(_integer(item, "%s[%d]" % (where, at)) for at, item in enumerate(value))


def _kind(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return "null" if value is None else repr(value)
    return {"str": "a text", "list": "a list", "dict": "an object"}.get(type(value).__name__, type(value).__name__)


# --- shapes ---


def bare_steps(shape: Shape, integer: bool, weight: bool) -> Tuple[Op, ...]:
    """The ops of a tensor that a mapping names by its name alone: axes of size 1 are dropped.

    While more than two axes are left (integers: more than one); a weight keeps all of its axes.
    The axis number of each op counts the axes that are left at that moment.
    """
    keep = len(shape) if weight else 1 if integer else 2
    ops: List[Op] = []
    left = list(shape)
    at = 0
    while len(left) > keep and at < len(left):
        if left[at] == 1:
            ops.append(Op("squeeze", axis=at))
            del left[at]
        else:
            at += 1
    return tuple(ops)


def shape_after(steps: Sequence[Op], shape: Shape, where: str = "steps") -> Shape:
    """The shape that the ops leave of ``shape``; raises OperandError naming the op that does not fit."""
    for at, op in enumerate(steps):
        shape = _apply_shape(op, shape, "%s[%d]" % (where, at))
    return shape


def _apply_shape(op: Op, shape: Shape, where: str) -> Shape:
    if op.op in ("cast", "add"):
        return shape
    if op.op == "permute":
        inside = all(-len(shape) <= axis < len(shape) for axis in op.axes)
        if not inside or sorted(axis % len(shape) for axis in op.axes) != list(range(len(shape))):
            raise OperandError(where, "axes %s are no order of the %d axes of %s" % (list(op.axes), len(shape), list(shape)))
        return tuple(shape[axis] for axis in op.axes)
    if op.op == "reshape":
        return reshaped(op.shape, shape, where)
    axis = axis_of(op.axis, shape, where)
    size = shape[axis]
    if op.op == "squeeze":
        if size != 1:
            raise OperandError(where, "squeeze of axis %d, which has size %d in %s" % (op.axis, size, list(shape)))
        return shape[:axis] + shape[axis + 1 :]
    if op.op == "slice":
        start, stop = slice_of(op, size, where)
        return shape[:axis] + (stop - start,) + shape[axis + 1 :]
    for index in op.picked:
        if not -size <= index < size:
            raise OperandError(where, "take of item %d on axis %d, which has size %d" % (index, op.axis, size))
    return shape[:axis] + (len(op.picked),) + shape[axis + 1 :]


def axis_of(axis: int, shape: Shape, where: str) -> int:
    """A possibly negative axis as 0 … n − 1."""
    if not -len(shape) <= axis < len(shape):
        raise OperandError(where, "axis %d of a tensor with shape %s" % (axis, list(shape)))
    return axis % len(shape)


def slice_of(op: Op, size: int, where: str) -> Tuple[int, int]:
    """Start and stop of a slice on an axis of ``size``; unlike Python's, one that leaves the axis is an error."""
    start = 0 if op.start is None else op.start + size if op.start < 0 else op.start
    stop = size if op.stop is None else op.stop + size if op.stop < 0 else op.stop
    if not 0 <= start <= stop <= size:
        raise OperandError(where, "slice %s:%s on axis %d, which has size %d" % (op.start, op.stop, op.axis, size))
    return start, stop


def reshaped(wanted: Shape, shape: Shape, where: str) -> Shape:
    """``wanted`` with its one −1 filled in; raises OperandError where the elements do not come out even."""
    total = 1
    for size in shape:
        total *= size
    known, free = 1, 0
    for size in wanted:
        if size == -1:
            free += 1
        elif size < 0:
            raise OperandError(where, "reshape to %s" % list(wanted))
        else:
            known *= size
    fits = total == known if free == 0 else free == 1 and known > 0 and total % known == 0
    if not fits:
        raise OperandError(where, "reshape of %s to %s" % (list(shape), list(wanted)))
    return tuple(total // known if size == -1 else size for size in wanted)


def combined_shape(operand: Operand, shapes: Sequence[Shape]) -> Shape:
    """The shape of the joined sources, each given after its own ops."""
    if not shapes:
        raise OperandError("sources", "nothing to join")
    first = shapes[0]
    if operand.combine == "cat":
        axis = axis_of(-1 if operand.axis is None else operand.axis, first, "axis")
        for at, shape in enumerate(shapes):
            if len(shape) != len(first) or shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
                raise OperandError("sources[%d]" % at, "cat on axis %d of %s and %s" % (axis, list(first), list(shape)))
        return first[:axis] + (sum(shape[axis] for shape in shapes),) + first[axis + 1 :]
    for at, shape in enumerate(shapes):
        if shape != first:
            raise OperandError("sources[%d]" % at, "sum of %s and %s" % (list(first), list(shape)))
    return first
