#!/usr/bin/env python3
"""Recompute every mapped module of two dumps from its own recorded inputs and weights (stage 4).

What a module computed follows from what it was handed, or it does not: so an error made there is told from one that came in, and each
fault is found, from one pair of dumps, whatever went wrong before it. A mapping is semantic_mapping.json, or a list that people write
(see analyze_dump_boundaries.py --help); rows of weights are used where a side did not record its own.

Verdict of each module pair:
  same      both sides follow from their own inputs by one way of rounding, with equal weights and constants
  rounding  both follow, rounded at other points, which are named
  logic     weights, constants or the function differ, or one side does not follow, or what it was handed is not what an earlier module
            returned: the side is named where that is proven
  unknown   not recomputed, or by a kernel that is not in the list; the artefact says what would decide
"""

import collections
import os
import shlex
import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   two dumps and the mapping; never changes them. Constants that no dump holds (a norm's eps) come from
         --train-config and --infer-config (config.json), else they are found from what was computed with them;
         --previous tells which side's differing weights are still those of an earlier checkpoint, by the content of their rows
writes:  replay_results.json (--output)

{cli.EXIT_CODES}
example:
  python3 replay_boundaries.py --train dumps/train --infer dumps/infer \\
      --mapping semantic_mapping.json --output replay_results.json
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    flags = ("train", "infer", "mapping", "train-config", "infer-config", "previous", "output", "json", "quiet")
    parser.share(*flags, required=("train", "infer", "mapping"))
    args = parser.parse_args()

    from dump_analysis import guards, pipeline
    from dump_analysis.artefacts import io

    output = args.output or pipeline.REPLAY
    configs = {"train": args.train_config, "infer": args.infer_config}
    guards.require_files({"--mapping": args.mapping, "--train-config": args.train_config, "--infer-config": args.infer_config})
    guards.refuse_inside(output, args.train + args.infer)
    guards.forget([Path(output)], [args.mapping, *configs.values()])
    train, infer = pipeline.open_pair(args.train, args.infer)
    mapping, mapped = pipeline.mapping_step(train, infer, args.mapping)
    digest = io.digest_of_file(args.mapping)
    results, told = pipeline.replay_step(train, infer, mapping, digest, output, configs, quiet=args.quiet, previous=args.previous)
    cli.warn(mapped.warnings + told.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(results), end="")
    else:
        counts = collections.Counter(module.verdict for module in results.modules)
        lines = [f"{len(results.modules)} modules: " + ", ".join(f"{counts[one]} {one}" for one in sorted(counts))]
        lines += [
            f"logic: {one.module}: {one.evidence[0].text if one.evidence else ''}" for one in results.modules if one.verdict == "logic"
        ]
        cli.answer(lines, f"python3 conclude.py --workdir {shlex.quote(os.path.dirname(output) or '.')}")
    for error in told.errors:
        cli.fail(error)
    return cli.CANNOT if told.errors else cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
