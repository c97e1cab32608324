#!/usr/bin/env python3
"""Put ranks, pipeline stages and dump steps of one side together: one folder that reads like a single rank's dump (stage 2)."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   the dump roots of both sides (token ids of the other side tell which ranks and steps belong together), never changed;
         with --plan the plan, else a plan is proposed and proven on the data
writes:  into --output-dir a dump of each side that holds several units: train, infer, each with step0/rank0 (dump.json, construct.json,
         tensors; unchanged files are hard links), and assembly_plan.json, which says how

{cli.EXIT_CODES}
example:
  python3 assemble_dump.py --train dumps/train --infer dumps/infer --output-dir assembled
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("train", "infer", "plan", "reference", "output-dir", "lang", "json", "quiet", required=("train", "infer"))
    args = parser.parse_args()

    from dump_analysis import assembling, guards, pipeline

    folder = Path(args.output_dir)
    guards.require_files({"--plan": args.plan})
    guards.refuse_inside(folder, args.train + args.infer)
    train, infer = pipeline.open_pair(args.train, args.infer)
    plan, told = assembling.assemble_step(train, infer, args.plan, args.reference, folder, quiet=args.quiet)
    cli.warn(told.warnings, quiet=args.quiet)
    if args.json:
        print((folder / pipeline.PLAN).read_text(), end="")
        return cli.ANSWERED
    written = {side: folder / side for side in ("train", "infer") if getattr(plan, side) is not None}
    lines = [f"left in {folder}: {' '.join([*written, pipeline.PLAN])}"]
    parted = [side for side in written if getattr(plan, side).disagree]
    lines += [
        f"the ranks of {side} do not agree (warnings above): only diagnose.py on the original dump has that as a finding" for side in parted
    ]
    pair = {side: [str(written[side].resolve())] if side in written else getattr(args, side) for side in ("train", "infer")}
    folder = folder.resolve() / "analysis"
    cli.answer(lines, cli.call("diagnose.py", "--train", *pair["train"], "--infer", *pair["infer"], "--output-dir", str(folder)))
    return cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
