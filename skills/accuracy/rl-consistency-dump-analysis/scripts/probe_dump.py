#!/usr/bin/env python3
"""Say what a dump holds: units, counts, naming rules, what is missing and what that costs (stage 1)."""

import sys

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    sys.exit(print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr) or 2)

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

    from dump_analysis import pipeline
    from dump_analysis.artefacts import io
    from dump_analysis.wording import text_of

    found, step = pipeline.probe_step(args.train or [], args.infer or [], args.output)
    if args.json:
        print(io.text_of(found), end="")
    else:
        for label, facts in (("train", found.train), ("infer", found.infer)):
            for unit in facts.units if facts else ():
                state = "complete" if unit.complete else "incomplete"
                counts = f"{unit.tensors.input} inputs, {unit.tensors.output} outputs, {unit.tensors.parameters} parameters"
                told = f"{state}; msprobe {unit.msprobe}, inputs {unit.inputs_are}"
                print(f"{label} step{unit.step}/rank{unit.rank}: {unit.entries} entries, {counts}; {told}")
        for remark in found.remarks[:12]:
            print(f"- {text_of(remark, args.lang)[:300]}")
        print("next: write a mapping, then analyze_dump_boundaries.py --train … --infer … --mapping semantic_mapping.json")
    for error in step.errors:
        cli.fail(error)
    return cli.CANNOT if step.errors else cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
