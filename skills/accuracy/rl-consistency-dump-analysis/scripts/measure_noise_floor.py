#!/usr/bin/env python3
"""Measure how far runs of one side that must agree part by themselves, at each boundary (stages 5 and 6)."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   dumps of one side, never changed; sequences are told apart by ids and positions
writes:  noise_floor.json (--output)

methods:
  repeat             runs that are to be the same: the nth copy of a sequence in each against the nth in the others
  single_vs_stacked  the first run holds a sequence alone, the others beside more sequences or several times
  within_batch       one run holds a sequence several times: its copies among themselves

{cli.EXIT_CODES}
example:
  python3 measure_noise_floor.py --run dumps/infer --run dumps/infer_again --output noise_floor.json
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("--run", action="append", required=True, metavar="PATH", help="a dump of the side; several times")
    parser.add_argument(
        "--method", choices=("repeat", "single_vs_stacked", "within_batch"), default="repeat", help="what must agree (default: repeat)"
    )
    parser.share("output", "json", "quiet")
    args = parser.parse_args()
    if (len(args.run) < 2) != (args.method == "within_batch"):
        parser.error("within_batch takes one --run, the other methods two or more")

    from dump_analysis import guards, round_steps
    from dump_analysis.artefacts import io

    output = Path(args.output or round_steps.FLOOR)
    guards.refuse_inside(output, args.run)
    found = round_steps.floor_step(args.run, args.method, output)
    if args.json:
        print(io.text_of(found), end="")
        return cli.ANSWERED
    loud = sorted((point for point in found.points if point.rel_l2 or point.max_abs), key=lambda point: -point.rel_l2)
    lines = [f"{found.method}, {found.runs} runs: {len(loud)} of {len(found.points)} boundaries have noise"]
    lines += [
        f"{point.boundary}: relative L2 {point.rel_l2:.3g}, largest {point.max_abs:.3g}, 99 % within {point.ulp_p99} ULP"
        for point in loud[:8]
    ]
    cli.answer(lines, f"hand it to judge_round.py as --noise-floor {output}")
    return cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
