"""The source folder of a round, its configuration and its state, each written whole or not at all."""

import contextlib
import os
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from dump_collection import files
from dump_collection.msprobe_config import configuring
from dump_collection.wording import word

from . import load_config, outcomes, plan, recorded, tensors
from .instruction import Instruction
from .plan import Plan
from .recorded import Recorded

CONFIG, NEW_DUMP = "msprobe_load.json", "dump"


class Round(NamedTuple):
    """The folder of one round: ``<folder>/stub_source_round<N>/``, the configuration, the state, and where the run will dump."""

    folder: str
    number: int

    @property
    def source(self) -> str:
        return os.path.join(self.folder, "stub_source_round%d" % self.number)

    @property
    def config(self) -> str:
        return os.path.join(self.folder, CONFIG)

    @property
    def outcome(self) -> str:
        return os.path.join(self.folder, outcomes.NAME)

    @property
    def dump(self) -> str:
        return os.path.join(self.folder, NEW_DUMP)


class Made(NamedTuple):
    """What a round will be: the plan, the configuration, and all warnings, worded."""

    plan: Plan
    config: Dict[str, Any]
    warnings: List[Dict[str, Any]]


def look(instruction: Instruction, place: Round, both: Tuple[Recorded, Recorded], card: Dict[str, Any], *, dumps: bool) -> Made:
    """Check everything and write nothing. ``both``: source and target; ``dumps``: whether the run is to dump.

    Raises DumpError for what cannot be carried out.
    """
    source, target = both
    for dump in (source, target):
        _apart(place, dump.path)
    configuring.check_path(place.source, "override from")
    _can_be_made(place.folder)
    if dumps and os.path.isdir(place.dump) and os.listdir(place.dump):
        raise DumpError(
            "Cannot dump to %s: it holds an earlier run, and msprobe deletes nothing. Move it away, or choose another --output-dir."
            % place.dump
        )
    for unit in source.units:
        _has_modules(unit)
    version = load_config.require_load(target.units, card, instruction.target_side)
    planned = plan.plan(instruction, source, target)
    warnings = list(planned.warnings)
    if version == "unknown":
        warnings.append(word("load_not_proven", side=instruction.target_side))
    if instruction.source_digest is not None and instruction.source_digest not in recorded.digests(source):
        warnings.append(word("source_other_dump"))
    if not dumps:
        warnings.append(word("no_dump_no_proof"))
    config = load_config.config(planned, level=instruction.level, load_path=place.source, dump_path=place.dump, dump_after_load=dumps)
    return Made(planned, config, warnings)


def write(instruction: Instruction, place: Round, made: Made) -> Dict[str, Any]:
    """Write the source folder, the configuration and the state; returns the state, which is not effective yet."""
    tensors.torch_here()
    _may_replace(place, made.plan)
    os.makedirs(place.folder, exist_ok=True)
    with _in_one_step(place.source) as folder:
        for planned in made.plan.files:
            tensors.write(planned, os.path.join(folder, planned.file))
        prepared = [_prepared(planned, folder) for planned in made.plan.files]
    files.write(place.config, made.config)
    outcome = {
        "schema": outcomes.SCHEMA,
        "round": instruction.round,
        "instruction": {"digest": instruction.digest},
        "load_config": {"path": place.config},
        "prepared": prepared,
        "new_dump": None,
        "effect": [],
        "effective": False,
        "warnings": [*made.warnings, word("not_verified")],
    }
    files.write(place.outcome, outcome)
    return outcome


def _prepared(planned: plan.Planned, folder: str) -> Dict[str, Any]:
    digest = files.digest_of_file(os.path.join(folder, planned.file))
    return {"file": planned.file, "shape": list(planned.input.shape), "dtype": planned.input.dtype, "digest": digest}


@contextlib.contextmanager
def _in_one_step(final: str) -> Iterator[str]:
    """A folder that gets its final name when it is whole; an earlier one of that name is taken away then."""
    working = tempfile.mkdtemp(prefix=".%s." % os.path.basename(final), suffix=".part", dir=os.path.dirname(final))
    try:
        os.chmod(working, 0o755)  # mkdtemp's own rights would shut out the process that runs the model
        yield working
        if os.path.isdir(final):
            old = tempfile.mkdtemp(prefix=".%s." % os.path.basename(final), suffix=".old", dir=os.path.dirname(final))
            os.replace(final, old)
            os.replace(working, final)
            shutil.rmtree(old)
        else:
            os.replace(working, final)
    except OSError as error:
        raise DumpError("Cannot write %s: %s. Choose another --output-dir." % (final, error.strerror or error)) from None
    finally:
        if os.path.isdir(working):
            shutil.rmtree(working)


def _may_replace(place: Round, planned: Plan) -> None:
    """An earlier source folder is replaced only where it holds nothing but what is written anew."""
    names = {item.file for item in planned.files}
    for top, _, found in os.walk(place.source):
        for name in found:
            below = os.path.relpath(os.path.join(top, name), place.source).replace(os.sep, "/")
            if below not in names:
                raise DumpError(
                    "Cannot write %s: it is there and holds %s, which this instruction does not make. "
                    "Move it away, or choose another --output-dir." % (place.source, below)
                )


def _can_be_made(folder: str) -> None:
    above = folder
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        raise DumpError("Cannot write to %s: %s is no folder. Choose another --output-dir." % (folder, above))


def _apart(place: Round, dump: str) -> None:
    """The source folder is never a dump, nor inside one, nor around one."""
    ours, theirs = os.path.realpath(place.source), os.path.realpath(dump)
    theirs = os.path.dirname(theirs) if os.path.isfile(theirs) else theirs
    if ours == theirs or ours.startswith(theirs + os.sep) or theirs.startswith(ours + os.sep):
        raise DumpError("Cannot write %s: it would lie in the dump %s, or around it. Choose another --output-dir." % (place.source, dump))


def _has_modules(unit: Unit) -> None:
    if unit.level not in ("L0", "mix", None):
        raise DumpError("Cannot use the source dump: it is of level %s and holds no modules. Dump it at level L0 or mix." % unit.level)
