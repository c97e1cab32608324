"""Stage 5: the report of the parameters holds no difference that was neither repaired nor waived."""

from typing import Any, Dict, List

from .workdir import PARAMETERS, Missing, Workdir, named, objects

SCHEMA = "param_alignment_report/1"


def gate(work: Workdir) -> Missing:
    """The configuration was compared, and every item is equal or waived with a reason."""
    by_hand = "Compare the trainer's effective configuration with the engine's, write %s, then run: %s" % (
        work.shown(PARAMETERS), work.check(5),
    )  # fmt: skip
    if not work.has(PARAMETERS):
        yield "%s is missing: parameters come before any edit" % PARAMETERS, by_hand
        return
    report = work.read(PARAMETERS, SCHEMA)
    layers = report.get("layers")
    if not isinstance(layers, dict) or layers.get("config") != "checked":
        yield "%s: layers.config is not checked" % PARAMETERS, by_hand
    if not objects(report.get("items", []), PARAMETERS + ": items"):
        yield "%s compares nothing" % PARAMETERS, by_hand
    unwaived = open_points(report)
    if unwaived:
        repair = (
            "Align them (config, code or weights), rebuild the model, compare again; or let the user waive each with a reason. Then run: %s"
        )
        yield "%s: points neither aligned nor waived: %s" % (PARAMETERS, named(unwaived)), repair % work.check(5)
    elif report.get("aligned") is not True and not objects(report.get("waivers", []), PARAMETERS + ": waivers"):
        yield "%s: aligned is %r, and nothing is waived" % (PARAMETERS, report.get("aligned")), by_hand


def open_points(report: Dict[str, Any]) -> List[str]:
    """Mismatch points, and items of no point, that are not EXACT and that nobody waived with a reason."""
    waivers = objects(report.get("waivers", []), PARAMETERS + ": waivers")
    waived = {str(waiver.get("id")) for waiver in waivers if str(waiver.get("reason") or "").strip()}
    items = objects(report.get("items", []), PARAMETERS + ": items")
    points = objects(report.get("mismatch_points", []), PARAMETERS + ": mismatch_points")
    found, covered = [], set()
    for point in points:
        inside = [str(name) for name in point.get("items") or []]
        covered.update(inside)
        if str(point.get("id")) not in waived and not (inside and all(name in waived for name in inside)):
            found.append(str(point.get("id")))
    differ = [str(item.get("canonical")) for item in items if item.get("status") != "EXACT"]  # waived: by whom, its waiver says
    return found + [name for name in differ if name not in covered | waived]
