#!/usr/bin/env python3
"""Draw everything in a folder together into one conclusion: what differs, what it means, what would decide (stage 7)."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    sys.exit(print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr) or 2)

EPILOG = f"""reads:   boundary_results.json and, where they are there, semantic_mapping.json and probe.json of --workdir
writes:  conclusion.json (--output; default: in --workdir)

{cli.EXIT_CODES}with --exit-code:
  0  consistent    1  inconsistent    3  undecided

example:
  python3 conclude.py --workdir analysis
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("workdir", "train-config", "infer-config", "output", "lang", "json", "quiet")
    parser.add_argument("--exit-code", action="store_true", help="say by the exit code what was concluded")
    args = parser.parse_args()

    from dump_analysis import pipeline
    from dump_analysis.artefacts import io

    workdir = Path(args.workdir)
    output = Path(args.output) if args.output else workdir / pipeline.CONCLUSION
    found, step = pipeline.conclude_step(workdir, output, {"train": args.train_config, "infer": args.infer_config})
    cli.warn(step.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(found), end="")
    else:
        print("\n".join(sentence[:500] for sentence in pipeline.sentences(found, args.lang)))
        print(f"next: read {output.name}" + (": would_decide names what is left to do" if found.would_decide else ""))
    return pipeline.exit_code(found, wanted=args.exit_code)


if __name__ == "__main__":
    cli.run(main)
