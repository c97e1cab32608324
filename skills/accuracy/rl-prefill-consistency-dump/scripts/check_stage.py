#!/usr/bin/env python3
"""Say whether the gate of a stage is open: what is missing, and what repairs it (stages 0 to 9)."""

import sys
from pathlib import Path

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """reads:   task_card.json of --workdir; as the stage needs them, there: param_alignment_report.json, change_ledger.json,
         dump_pair_report.json, stub_outcome.json (in round<N>/ or beside the card); the sources, edited files and dumps
         that these name. A gate asks for the stages before it, too; stage 9 only for itself, because code is always put back
writes:  nothing

exit codes:
  0  open: the next stage may begin
  1  shut: every gap is one line on stderr, with what repairs it
  2  cannot: wrong call, no such folder, or a file that cannot be read

example:
  python3 check_stage.py --stage 3 --workdir collection
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("--stage", type=int, required=True, metavar="N", help="the stage that is done: 0 to 9")
    parser.share("workdir")
    args = parser.parse_args()

    from dump_collection.stages import gates

    gate = gates.check(args.stage, Path(args.workdir))
    for gap in gate.gaps:
        cli.fail(gap.line)
    shut = "shut: %d gap%s" % (len(gate.gaps), "s" if len(gate.gaps) > 1 else "")
    cli.answer(["stage %d is %s" % (args.stage, shut if gate.gaps else "open")], gate.then)
    return cli.SHUT if gate.gaps else cli.OPEN


if __name__ == "__main__":
    cli.run(main)
