"""The parameters of one side by name: from JSON lists of name and shape, checkpoints, and dumps. The standard library alone."""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files import checkpoint, names, pt_archive, units
from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import PtTensor
from msprobe_files.units import Record, Unit

Shape = Tuple[int, ...]
# Formats whose numbers are codes: DeepSeek's weight_scale_inv and compressed-tensors' weight_scale, both multiplied to them.
_CODES = ("float8_e4m3fn", "float8_e5m2", "int8")
_SCALE = re.compile(r"weight_scale(_inv)?$")
_TENSOR_FILES = (".safetensors", ".bin", ".pt", ".pth")
_FORMS = 'Write {"name": [rows, columns], …}, {"name": {"shape": […], "dtype": "…"}, …} or [{"name": …, "shape": […]}, …].'


class Parameter(NamedTuple):
    """A parameter of a built model. ``name``: as ``named_parameters()`` has it, wrappers left out.

    ``place``: where a checkpoint holds its elements; ``file``: the .pt of a dump. None, None: only its shape is known.
    ``rank``: of which it is a part, where ranks hold parts. ``scale``: what its stored numbers are multiplied by, where they are codes.
    """

    name: str
    shape: Shape
    dtype: Optional[str]
    place: Optional[PtTensor] = None
    file: Optional[str] = None
    rank: Optional[int] = None
    scale: Optional["Parameter"] = None


class Side(NamedTuple):
    """``label``: train or infer. ``whole``: False where a name may lack only because a dump did not record its module."""

    label: str
    parameters: Tuple[Parameter, ...]
    whole: bool

    @property
    def valued(self) -> bool:
        """Whether any parameter's elements can be read."""
        return any(one.place is not None or one.file is not None for one in self.parameters)


def read_side(label: str, paths: Sequence[str]) -> Side:
    """The parameters below some paths, once where all ranks hold the same; else those of each rank.

    Raises DumpError where a path is none of the three, or two of them contradict each other.
    """
    found: Dict[Tuple[str, Optional[int]], Parameter] = {}
    first: Dict[str, Parameter] = {}
    whole, in_parts = True, False
    for path in paths:
        recorded, one_by_one = _read(path)
        whole = whole and not recorded
        for one in one_by_one:
            before = first.setdefault(one.name, one)
            again = found.setdefault((one.name, one.rank), one)
            if again is not one and not _equal(again, one):
                raise DumpError(
                    "Cannot use the %s side's weights: %s is there twice, with shape %s and %s or other values. "
                    "Hand one dump or checkpoint of that side." % (label, one.name, list(again.shape), list(one.shape))
                )
            in_parts = in_parts or (before is not one and again is one and not _equal(before, one))
    if not found:
        raise DumpError("Cannot compare the %s side's weights: no parameter is recorded in %s. %s" % (label, paths[0], _instead(paths[0])))
    kept = list(found.values()) if in_parts else [one._replace(rank=None) for one in first.values()]
    return Side(label, tuple(_with_scales(kept)), whole)


def _with_scales(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    """The parameters, codes of 8 bits with the scales that stand beside them; these are no weights of their own."""
    scales = {(one.name, one.rank): one for one in parameters if _SCALE.search(one.name)}
    taken = set()
    held = []
    for one in parameters:
        if one.dtype in _CODES and not _SCALE.search(one.name):
            beside = [scales[one.name + last, one.rank] for last in ("_scale_inv", "_scale") if (one.name + last, one.rank) in scales]
            if beside:
                taken.add((beside[0].name, one.rank))
                one = one._replace(scale=beside[0])
        held.append(one)
    return (one for one in held if (one.name, one.rank) not in taken)


def located(parameter: Parameter) -> PtTensor:
    """Where the elements lie. Raises DumpError where only the shape is known, or the file cannot be read."""
    if parameter.place is not None:
        return parameter.place
    if parameter.file is None:
        raise DumpError("Cannot read %s: only its shape is known. Hand a checkpoint or a dump of tensors." % parameter.name)
    return pt_archive.read_header(parameter.file)


def _equal(one: Parameter, other: Parameter) -> bool:
    """Whether two records of a name, as of two ranks, hold the same."""
    if one.shape != other.shape:
        return False
    known = [each.place is not None or each.file is not None for each in (one, other)]
    if not all(known):
        return not any(known)
    pair = [located(each) for each in (one, other)]
    return pair[0] == pair[1] or (pair[0].dtype == pair[1].dtype and all(a == b for a, b in zip(*map(pt_archive.blocks, pair))))


def _instead(path: str) -> str:
    """What to hand in place of a folder that holds no weights in any form that is read here."""
    below = sorted(os.path.relpath(str(file), path) for file in Path(path).rglob("*") if file.suffix in (*_TENSOR_FILES, ".distcp"))
    if any(name.endswith(".distcp") for name in below):
        return (
            "It is a checkpoint of torch.distributed: make a file of it (python3 -m torch.distributed.checkpoint.format_utils dcp_to_torch "
            "FOLDER weights.pt), or export it with the trainer's converter, and hand that."
        )
    if below:
        return "Weights lie below it: hand %s." % os.path.join(path, below[0])
    return "Hand a folder with .safetensors, .bin or .pt files, one such file, a dump, or a list of names and shapes."


def _read(path: str) -> Tuple[bool, Iterator[Parameter]]:
    """Whether a path is a dump, and its parameters."""
    if not os.path.exists(path):
        raise DumpError("Cannot find %s: no such file or folder. Check the path." % path)
    folder, name = os.path.isdir(path), os.path.basename(os.path.abspath(path))
    if name in units.SIBLINGS or name in units.TENSOR_FOLDERS:
        return True, _of_dump(path)
    if not folder:
        return False, _of_file(path)
    if any(file.endswith(_TENSOR_FILES) or file.endswith(".index.json") for file in os.listdir(path)) and "dump.json" not in os.listdir(
        path
    ):
        return False, _of_checkpoint(path)
    return True, _of_dump(path)


def _of_file(path: str) -> Iterator[Parameter]:
    if not path.endswith(".json"):
        return _of_checkpoint(path)
    listed = _load(path)
    if isinstance(listed, dict) and isinstance(listed.get("weight_map"), dict):
        return _of_checkpoint(os.path.dirname(os.path.abspath(path)))
    return iter(_of_list(path, listed))


def _of_checkpoint(path: str) -> Iterator[Parameter]:
    for name, tensor in checkpoint.read(path).items():
        yield Parameter(_plain(name), tensor.shape, tensor.dtype, place=tensor)


def _plain(name: str) -> str:
    return ".".join(names.plain_path(tuple(name.split("."))))


# --- lists ---


def _load(path: str) -> Any:
    try:
        return json.loads(Path(path).read_bytes().decode("utf-8"))
    except OSError as error:
        raise DumpError("Cannot read %s: %s. Check the path." % (path, error.strerror)) from None
    except (ValueError, RecursionError) as error:
        raise DumpError("Cannot read %s: it is no JSON (%s). %s" % (path, error, _FORMS)) from None


def _of_list(path: str, listed: Any) -> List[Parameter]:
    if isinstance(listed, dict):
        pairs = list(listed.items())
    elif isinstance(listed, list):
        pairs = [_named(path, at, item) for at, item in enumerate(listed)]
    else:
        raise DumpError("Cannot use %s: expected names and shapes, found a %s. %s" % (path, type(listed).__name__, _FORMS))
    return [_listed(path, name, said) for name, said in pairs]


def _named(path: str, at: int, item: Any) -> Tuple[str, Any]:
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return item["name"], item
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        return item[0], item[1]
    raise DumpError("Cannot use %s: [%d]: expected a name and a shape, found %.80r. %s" % (path, at, item, _FORMS))


def _listed(path: str, name: str, said: Any) -> Parameter:
    shape = said.get("shape") if isinstance(said, dict) else said
    dtype = said.get("dtype") if isinstance(said, dict) else None
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise DumpError("Cannot use %s: %s: expected a shape, found %.80r. %s" % (path, name, shape, _FORMS))
    return Parameter(_plain(name), tuple(shape), str(dtype).split(".")[-1] if dtype is not None else None)


# --- dumps ---


def _of_dump(path: str) -> Iterator[Parameter]:
    places = units.find_units(path)
    steps = sorted({place.step for place in places})
    for place in places:
        if place.step == steps[0]:  # weights do not change between forwards of one capture
            yield from _of_unit(units.read_unit(place))


def _of_unit(unit: Unit) -> Iterator[Parameter]:
    seen = set()
    for record in unit.records():
        entry = names.parse_entry(record.entry)
        if record.category != "parameters" or entry.kind != "module":
            continue
        name = ".".join(names.plain_path(entry.path) + (record.suffix,))
        if name not in seen:  # a module called again records the same weights
            seen.add(name)
            yield _recorded(unit, name, record)


def _recorded(unit: Unit, name: str, record: Record) -> Parameter:
    file = units.tensor_path(unit, record) if record.file is not None else None
    if record.shape is None and file is not None:
        header = pt_archive.read_header(file)
        return Parameter(name, header.shape, header.dtype, file=file, rank=unit.place.rank)
    return Parameter(name, record.shape or (), record.dtype, file=file, rank=unit.place.rank)
