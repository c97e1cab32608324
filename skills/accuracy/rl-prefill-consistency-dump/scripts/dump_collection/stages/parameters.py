"""Stage 5: the report of the parameters holds no difference that was neither repaired nor waived."""

from typing import Any, Dict, List, Set

from .workdir import PARAMETERS, Missing, Workdir, named, objects

SCHEMA = "param_alignment_report/1"
_LAYERS = {
    "structure": "--train-weights and --infer-weights (checkpoint, dump, or list of names and shapes)",
    "weights": "--train-weights and --infer-weights (checkpoint, torch file or dump)",
}


def gate(work: Workdir) -> Missing:
    """Configuration, structure and weights were compared (the latter two: or waived), and every item is equal or waived with a reason."""
    again = "Run: %s, with the layers that are there" % work.command("param_align_check.py", "--train-cfg", "FILE", "--infer-cfg", "FILE")
    if not work.has(PARAMETERS):
        yield "%s is missing: parameters come before any edit" % PARAMETERS, again
        return
    report = work.read(PARAMETERS, SCHEMA)
    layers = report.get("layers")
    if not isinstance(layers, dict) or layers.get("config") != "checked":
        yield "%s: layers.config is not checked" % PARAMETERS, again
    for layer, flags in _LAYERS.items():
        name = "layers." + layer
        if not (isinstance(layers, dict) and layers.get(layer) == "checked") and name not in _waived(report):
            repair = "Hand %s to param_align_check.py, or let the user waive %r with a reason (--waivers). Then run: %s"
            yield "%s: %s is not_checked" % (PARAMETERS, name), repair % (flags, name, work.check(5))
    if not objects(report.get("items", []), PARAMETERS + ": items"):
        yield "%s compares nothing" % PARAMETERS, again
    unwaived = open_points(report)
    if unwaived:
        repair = (
            "Align them (config, code or weights), rebuild the model, compare again; or let the user waive each with a reason. Then run: %s"
        )
        yield "%s: points neither aligned nor waived: %s" % (PARAMETERS, named(unwaived)), repair % work.check(5)
    elif report.get("aligned") is not True and not objects(report.get("waivers", []), PARAMETERS + ": waivers"):
        yield "%s: aligned is %r, and nothing is waived" % (PARAMETERS, report.get("aligned")), again


def open_points(report: Dict[str, Any]) -> List[str]:
    """Mismatch points, and items of no point, that are not EXACT and that nobody waived with a reason."""
    waived = _waived(report)
    items = objects(report.get("items", []), PARAMETERS + ": items")
    points = objects(report.get("mismatch_points", []), PARAMETERS + ": mismatch_points")
    found, covered = [], set()
    for point in points:
        inside = [str(name) for name in point.get("items") or []]
        covered.update(inside)
        if str(point.get("id")) not in waived and not (inside and all(name in waived for name in inside)):
            found.append(str(point.get("id")))
    apart = [item for item in items if item.get("status") != "EXACT" and item.get("priority") != "no_effect"]
    differ = [str(item.get("canonical")) for item in apart]  # waived: by whom, its waiver says
    return found + [name for name in differ if name not in covered | waived]


def _waived(report: Dict[str, Any]) -> Set[str]:
    """What the user lets pass, each with a reason."""
    waivers = objects(report.get("waivers", []), PARAMETERS + ": waivers")
    return {str(waiver.get("id")) for waiver in waivers if str(waiver.get("reason") or "").strip()}
