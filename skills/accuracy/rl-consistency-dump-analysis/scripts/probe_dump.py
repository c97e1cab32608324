#!/usr/bin/env python3
"""Say what a dump holds: units, counts, naming rules, what is missing and what that costs (stage 1)."""

import os
import sys

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   msprobe dumps (dump.json, construct.json, stack.json, dump_tensor_data); never changes them
writes:  probe.json (--output)

{cli.EXIT_CODES}
example:
  python3 probe_dump.py --train dumps/train --infer dumps/infer --output analysis/probe.json
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("train", "infer", "output", "lang", "json", "quiet")
    args = parser.parse_args()
    if not (args.train or args.infer):
        parser.error("give --train, --infer or both")

    from dump_analysis import guards, pipeline
    from dump_analysis.artefacts import io
    from dump_analysis.wording import text_of

    if args.output:
        guards.refuse_inside(args.output, [path for path in (args.train or []) + (args.infer or []) if os.path.exists(path)])
    found, told = pipeline.probe_step(args.train or [], args.infer or [], args.output)
    if args.json:
        print(io.text_of(found), end="")
    else:
        lines = []
        for label, facts in (("train", found.train), ("infer", found.infer)):
            for unit in facts.units if facts else ():
                state = "complete" if unit.complete else "incomplete"
                counts = f"{unit.tensors.input} inputs, {unit.tensors.output} outputs, {unit.tensors.parameters} parameters"
                place = f"step{unit.step}/rank{unit.rank}" if unit.folder == "." else unit.folder
                lines.append(
                    f"{label} {place}: {unit.entries} entries, {counts}; {state}; msprobe {unit.msprobe}, inputs {unit.inputs_are}"
                )
        lines += [f"- {text_of(remark, args.lang)}" for remark in found.remarks]
        pair = ["--train", *(args.train or ["…"]), "--infer", *(args.infer or ["…"])]
        folder = os.path.dirname(os.path.abspath(args.output)) if args.output else "analysis"
        cli.answer(lines, cli.call("diagnose.py", *pair, "--output-dir", folder))
    for error in told.errors:
        cli.fail(error)
    return cli.CANNOT if told.errors else cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
