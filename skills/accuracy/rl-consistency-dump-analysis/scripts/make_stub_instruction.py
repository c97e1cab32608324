#!/usr/bin/env python3
"""Plan the next override round: which inputs of one side are to be what the other side recorded, and what that would show (stage 5)."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dump_analysis.round_steps import Next

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   the two dumps, never changed; semantic_mapping.json, boundary_results.json, conclusion.json of --workdir, and where
         they are there replay_results.json, task_card.json and the rounds before (round<N>/)
writes:  round_plan.json, and round<N>/stub_instruction.json where a round still adds something

{cli.EXIT_CODES}
Without --all one complete cut is planned: the earliest behind what is known to differ. With --all every input that the mapping
feeds is overridden at once, which shows every module's own difference in one or two rounds. A round is refused (exit 2) while
weights or inputs are not ruled out, or a configuration is the likely cause of more than one module's difference, unless --despite
names them.

example:
  python3 make_stub_instruction.py --train dumps/train --infer dumps/infer --workdir analysis
  python3 make_stub_instruction.py --train dumps/train --infer dumps/infer --workdir analysis --all --target infer
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("train", "infer", "workdir", required=("train", "infer"))
    parser.add_argument("--all", action="store_true", help="override every input that the mapping feeds at once (the forced round)")
    parser.add_argument("--target", choices=("train", "infer"), help="the side to override (default: the cheaper, clearer one)")
    parser.add_argument(
        "--despite",
        nargs="+",
        choices=("weights", "inputs", "config"),
        default=[],
        help="plan although these are not ruled out as the cause",
    )
    parser.share("lang", "json", "quiet")
    args = parser.parse_args()

    from dump_analysis import guards, pipeline, round_steps
    from dump_analysis.artefacts import io

    workdir = Path(args.workdir)
    round_steps.require_analysis(workdir, "plan a round", ["--train", *args.train, "--infer", *args.infer])
    guards.refuse_inside(workdir / round_steps.PLAN, args.train + args.infer)
    train, infer = pipeline.open_pair(args.train, args.infer)
    found, told = round_steps.plan_step(train, infer, workdir, args.target, args.despite, at_once=args.all)
    cli.warn(told.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(found.instruction or found.plan), end="")
    else:
        _answer(found, workdir, args)
    return cli.ANSWERED


def _answer(found: "Next", workdir: Path, args: argparse.Namespace) -> None:
    from dump_analysis import round_steps
    from dump_analysis.wording import text_of, word

    lines = [text_of(remark, args.lang) for remark in found.plan.remarks]
    if found.instruction is None or found.folder is None:
        lines += [f"{one.instead_of} ({one.side}): {text_of(one.switch, args.lang)}" for one in found.plan.ablations[:3]]
        cli.answer(lines, cli.call("conclude.py", "--workdir", str(workdir.resolve())))
        return
    made = found.instruction
    inputs = sum(len(module.inputs) for module in made.modules)
    counted = word("round_made", round=made.round, how=made.kind, inputs=inputs, calls=len(made.modules), side=made.target_side)
    lines.append(text_of(counted, args.lang))
    lines += [text_of(made.reason, args.lang), *(text_of(one.adds, args.lang) for one in found.plan.rounds[:1])]
    lines += [f"{one.boundary} {one.if_}: {text_of(one.means, args.lang)}" for one in made.expected[:4]]
    lines.append(f"left: {found.folder / 'stub_instruction.json'} {workdir / round_steps.PLAN}")
    judge = ["--train", *args.train, "--infer", *args.infer, "--workdir", str(workdir.resolve()), "--round", str(made.round)]
    cli.answer(
        lines, f"carry it out with the collection skill (stage 8, apply_stub_instruction.py), then: {cli.call('judge_round.py', *judge)}"
    )


if __name__ == "__main__":
    cli.run(main)
