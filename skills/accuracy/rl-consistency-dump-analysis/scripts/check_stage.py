#!/usr/bin/env python3
"""Say whether the gate of a stage is open: what is missing, and the command that repairs it (stages 0 to 8)."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """reads:   task_card.json, probe.json, semantic_mapping.json, boundary_results.json, replay_results.json, round_plan.json,
         the rounds, conclusion.json, report_source.json and the report of --workdir, as far as the stage and those before it
         need them, and the dumps that the task card names, where they are there
writes:  nothing

exit codes:
  0  open: the next stage may begin
  1  shut: every gap is one line on stderr, with the command that repairs it
  2  cannot: wrong call, no such folder, or a file that cannot be read

example:
  python3 check_stage.py --stage 3 --workdir analysis
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("--stage", type=int, required=True, metavar="N", help="the stage that is done: 0 to 8")
    parser.share("workdir", "quiet")
    args = parser.parse_args()

    from dump_analysis.stages import gates

    gate = gates.check(args.stage, Path(args.workdir))
    cli.warn(gate.warnings, quiet=args.quiet)
    for gap in gate.gaps:
        cli.fail(gap.line)
    shut = f"shut: {len(gate.gaps)} gap" + ("s" if len(gate.gaps) > 1 else "")
    cli.answer([f"stage {args.stage} is {shut if gate.gaps else 'open'}"], gate.then)
    return cli.FOUND if gate.gaps else cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
