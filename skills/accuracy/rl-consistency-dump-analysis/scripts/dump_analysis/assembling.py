"""Both sides put together and written out as dumps of one rank and one step, with the plans that say how."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from msprobe_files import checkpoint
from msprobe_files.errors import DumpError

from . import assembled_files, assembly, sides
from .artefacts import assembly_plan
from .artefacts.assembly_plan import AssemblyPlan, SidePlan
from .mapping import whole
from .mapping.whole import Assembly
from .pipeline import PLAN, Told, progress
from .sides import Side


def assemble_step(
    train: Side, infer: Side, plan: str | Path | None, reference: str | None, folder: Path, *, quiet: bool
) -> tuple[AssemblyPlan, Told]:
    """Write each side of several units as one dump under ``folder``, and the plan that says how. Raises DumpError where neither is.

    Where ranks and dump steps both cut a tensor, each step is put together first, then the steps: ``assembly_plan.stepN.json`` says how
    each step was, ``assembly_plan.json`` how these were joined. So are groups of ranks that hold other tokens (``.rankN.json``).
    """
    weights = checkpoint.read(reference) if reference is not None else None
    made = whole.assembled(train, infer, assembly_plan.read(plan) if plan is not None else None, weights)
    if made.train is None and made.infer is None:
        raise DumpError("Cannot assemble: each side is one unit already. Compare them with diagnose.py.")
    folder.mkdir(parents=True, exist_ok=True)
    given = {side.label: side for side in (train, infer)}
    told = [remark.text for remark in made.remarks if remark.kind != "cut_twice"]
    with tempfile.TemporaryDirectory(prefix=".steps.", dir=folder) as hidden:
        for label, plans in made.by_step.items():
            steps = [assembly.assemble(given[label], own) for own in plans]
            told += [f"{name}: {why}" for step in steps for name, why in step.left_out]
            assembled_files.write_dump(dict(zip(_places(plans), steps, strict=True)), Path(hidden) / label)
            given[label] = sides.open_side(label, [str(Path(hidden) / label)])
        again = whole.assembled(given["train"], given["infer"]) if made.by_step else made
        told += [remark.text for remark in again.remarks if remark.text not in told]
        _write(again, folder, quiet=quiet)
    for label, plans in made.by_step.items():
        kind = "step" if _of_steps(plans) else "rank"
        for number, own in enumerate(plans):
            assembly_plan.write(folder / f"{PLAN.removesuffix('.json')}.{kind}{number}.json", AssemblyPlan(**{label: own}))
    assembly_plan.write(folder / PLAN, again.plan)
    return again.plan, Told([], told)


def _of_steps(plans: Sequence[SidePlan]) -> bool:
    """Whether plans are of several dump steps; else of groups of ranks of one."""
    return len({unit.step for own in plans for unit in own.units}) > 1


def _places(plans: Sequence[SidePlan]) -> list[str]:
    """Where each is put for the second time: chunks follow each other as steps, other tokens of one prompt lie on other ranks."""
    return [f"step{at}/rank0" if _of_steps(plans) else f"step0/rank{at}" for at in range(len(plans))]


def _write(made: Assembly, folder: Path, *, quiet: bool) -> None:
    both = [one for one in (made.train, made.infer) if one is not None]
    with progress(sum(len(one.side.by_name) for one in both), quiet=quiet) as advance:
        for one in both:
            assembled_files.write_dump({"step0/rank0": one}, folder / one.side.label, advance)
