#!/usr/bin/env python3
"""Say whether trainer and engine build the same model: configuration, structure, weights, before anything is dumped (stage 5, a gate)."""

import sys
from pathlib import Path
from typing import Any, List

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = (
    """reads:   the trainer's configuration in force (a recorded provider, Megatron's TransformerConfig, config.json of an FSDP run; with
         a bridge never the model folder's own config.json) and the engine's (config.json or its hf_config), both JSON.
         --mapping joins further fields and wins over the built-in table; keys that both sides call the same come last.
         An object "modules" in a configuration holds what built modules use, by dotted path: {"layers.0.post_norm.eps": 1e-05}
writes:  param_alignment_report.json (or --output) and param_alignment_instruction.json (or --instruction): every item with both
         values, differences by cause (param P1, P2 ...), and the fields that no comparison consumed. Layers without input: not_checked

"""
    + cli.GATE_CODES
    + """
example:
  python3 param_align_check.py --train-cfg provider.json --infer-cfg /models/q/config.json --workdir collection
"""
)


def main() -> int:
    args = _arguments()

    from dump_collection import files, wording
    from dump_collection.params import points, report

    given = report.Files(
        args.train_cfg, args.infer_cfg, args.mapping, args.requested, args.waivers, args.train_weights, args.infer_weights, args.previous
    )  # fmt: skip
    told = report.check(given)
    target = Path(args.output) if args.output else Path(args.workdir) / "param_alignment_report.json"
    beside = Path(args.instruction) if args.instruction else target.parent / "param_alignment_instruction.json"
    artefact = told.as_json()
    files.write(target, artefact)
    files.write(beside, points.instruction(told.points))
    for point in artefact["mismatch_points"]:
        cli.fail(wording.render("params_point", {key: point[key] for key in ("id", "cause", "impact")}, args.lang))
    cli.warn(told.warnings, args.quiet)
    for error in told.errors:
        cli.fail(error)
    if args.json:
        print(files.text_of(artefact), end="")
    else:
        cli.answer(_summary(told, args.lang), _then(told, args.workdir, str(beside)))
    return cli.CANNOT if told.errors else (cli.SHUT if told.points else cli.OPEN)


def _arguments() -> Any:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("--train-cfg", required=True, metavar="FILE", help="the trainer's configuration in force")
    parser.add_argument("--infer-cfg", required=True, metavar="FILE", help="the engine's configuration")
    parser.add_argument("--mapping", metavar="FILE", help="fields that you joined: scripts/param_alignment_mapping.example.json")
    for side in ("train", "infer"):
        text = "the %s side's built model: checkpoint folder, torch file, dump, or JSON list of names and shapes (structure alone)" % side
        parser.add_argument("--%s-weights" % side, nargs="+", default=[], metavar="PATH", help=text)
    parser.add_argument("--previous", metavar="CHECKPOINT", help="an earlier checkpoint: equal weights are proven stale")
    parser.add_argument("--requested", metavar="FILE", help="what the run asked for: compared with what is in force on the train side")
    parser.add_argument("--waivers", metavar="FILE", help="differences that the user lets pass, each with a reason")
    parser.add_argument("--instruction", metavar="FILE", help="where to write what is to be done about each point")
    parser.share("workdir", "output", "lang", "json", "quiet")
    args = parser.parse_args()
    if bool(args.train_weights) != bool(args.infer_weights):
        parser.error("--train-weights and --infer-weights belong together")
    if args.previous and not args.train_weights:
        parser.error("--previous needs --train-weights and --infer-weights")
    return args


def _summary(told: Any, lang: str) -> List[str]:
    from dump_collection import wording

    differ = sum(item.shuts for item in told.items)
    counts = {"points": len(told.points), "differ": differ, "checked": len(told.items)}
    kind = "params_cannot" if told.errors else "params_shut" if told.points else "params_open"
    sides = {side: told.coverage[side]["compared"] for side in ("train", "infer")}
    sides.update({side + "_of": told.coverage[side]["fields"] for side in ("train", "infer")})
    lines = [
        wording.render(kind, counts, lang),
        wording.render("params_layers", told.layers, lang),
        wording.render("params_coverage", sides, lang),
    ]
    listed = len(told.without_effect())
    return lines + ([wording.render("params_no_effect", {"n": listed}, lang)] if listed else [])


def _then(told: Any, workdir: str, beside: str) -> str:
    if told.errors:
        return "mend what stands on stderr, and run this command again: what could be compared is in the report"
    if told.points:
        return "carry out %s, build the model again, and run this command again" % beside
    return cli.call("check_stage.py", "--stage", "5", "--workdir", workdir)


if __name__ == "__main__":
    cli.run(main)
