#!/usr/bin/env python3
"""Prepare the tensors that override a side's module inputs (stage 8), and prove afterwards that they did."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from dump_collection.override.instruction import Instruction
    from dump_collection.override.prepare import Round
    from dump_collection.override.sides import Given

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """reads:   stub_instruction.json of the analysis; the dumps of both sides, by default those of task_card.json in --workdir
writes:  below --output-dir: stub_source_round<N>/ (what msprobe's load reads), msprobe_load.json (the configuration of the
         run), stub_outcome.json (the state of the round). Needs torch; the run needs msprobe 26.2.0 or newer.

With --verify NEW_DUMP it compares the inputs that the run recorded with the prepared files, bit for bit.

exit codes:
  0  prepared; with --verify: every input was overridden
  1  with --verify: not effective, each input that was not is one line on stderr
  2  cannot: the path in the instruction or the file is named, nothing is written

example:
  python3 apply_stub_instruction.py --instruction round1/stub_instruction.json --workdir . --output-dir round1
  python3 apply_stub_instruction.py --instruction round1/stub_instruction.json --workdir . --output-dir round1 --verify round1/dump
"""


def main() -> int:
    args = _arguments()

    from dump_collection import files, wording
    from dump_collection.override import instruction as instructions
    from dump_collection.override import prepare, sides

    instruction = instructions.read(args.instruction)
    folder = os.path.abspath(args.output_dir or os.path.join(args.workdir, "round%d" % instruction.round))
    place, card = prepare.Round(folder, instruction.round), sides.card_of(args.workdir)
    given = sides.given(args.workdir, card, instruction, args.source_dump, args.target_dump)
    cli.warn(instruction.warnings, args.quiet)
    if args.verify:
        return _verify(args, instruction, place, given)
    dumps = instruction.dump_after_load and not args.no_dump
    made = prepare.look(instruction, place, sides.open_both(given), card, dumps=dumps)
    cli.warn([wording.text_of(warning, args.lang) for warning in made.warnings], args.quiet)
    if args.dry_run:
        lines = ["%s  %s %s" % (item.file, list(item.input.shape), item.input.dtype) for item in made.plan.files]
        cli.answer(["would write %d files below %s:" % (len(lines), place.source), *lines], "run it again without --dry-run")
        return cli.OPEN
    outcome = prepare.write(instruction, place, made)
    if args.json:
        print(files.text_of(outcome), end="")
        return cli.OPEN
    run = "run %s with msprobe's config_path=%s, under no_grad and ended after that forward" % (instruction.target_side, place.config)
    again = ["--instruction", args.instruction, "--workdir", args.workdir, "--output-dir", folder, "--verify", place.dump]
    again += ["--target-dump", args.target_dump] if args.target_dump else []
    proof = ", then: " + cli.call("apply_stub_instruction.py", *again) if dumps else "; watch the metric"
    cli.answer(["prepared %d files in %s, not verified yet" % (len(outcome["prepared"]), place.source)], run + proof)
    return cli.OPEN


def _arguments() -> "argparse.Namespace":
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("--instruction", required=True, metavar="FILE", help="stub_instruction.json of the round")
    parser.add_argument("--source-dump", metavar="PATH", help="the dump to take tensors from (default: the task card's)")
    parser.add_argument("--target-dump", metavar="PATH", help="the earlier dump of the side to override (default: the task card's)")
    parser.add_argument("--output-dir", metavar="DIR", help="the folder of the round (default: <workdir>/round<N>)")
    parser.add_argument("--dry-run", action="store_true", help="check everything and write nothing")
    parser.add_argument("--no-dump", action="store_true", help="override only: the run makes no dump (its effect cannot be proven)")
    parser.add_argument("--verify", metavar="NEW_DUMP", help="the dump that the run wrote: prove the effect")
    parser.share("workdir", "lang", "json", "quiet")
    args = parser.parse_args()
    if args.verify and (args.dry_run or args.no_dump):
        parser.error("--verify goes with neither --dry-run nor --no-dump")
    return args


def _verify(args: "argparse.Namespace", instruction: "Instruction", place: "Round", given: "Given") -> int:
    from dump_collection import files, wording
    from dump_collection.override import effect, sides

    outcome = effect.verify(instruction, place, sides.open_new(args.verify), sides.earlier(given))
    cli.warn([wording.text_of(warning, args.lang) for warning in outcome["warnings"]], args.quiet)
    failed = [item for item in outcome["effect"] if not item["overridden"]]
    for item in failed:
        cli.fail("%s %s: %s" % (item["target_entry"], item["input"], wording.text_of(item["evidence"], args.lang)))
    if args.json:
        print(files.text_of(outcome), end="")
    else:
        shown = "%d of %d inputs overridden" % (len(outcome["effect"]) - len(failed), len(outcome["effect"]))
        hand = "hand %s to the analysis; gate: %s" % (place.outcome, cli.call("check_stage.py", "--stage", "8", "--workdir", args.workdir))
        mend = "mend what stderr names, run the target again, and verify again"
        cli.answer(["effective: %s, %s" % ("no" if failed else "yes", shown)], mend if failed else hand)
    return cli.SHUT if failed else cli.OPEN


if __name__ == "__main__":
    cli.run(main)
