#!/usr/bin/env python3
"""Say what an override round has shown: whether it took effect, which findings it confirms, and what is left (stage 5)."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dump_analysis.artefacts.round_result import Downstream, Local, RoundResult

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   the first pair of dumps and the round's dump, never changed; round<N>/stub_instruction.json and stub_outcome.json of
         --workdir, and the artefacts of the analysis there
writes:  round<N>/round_result.json (--output)

{cli.EXIT_CODES}with --exit-code:
  0  all behind the override is exact or rounding    1  a further difference    3  not effective, or incomplete

A round whose override is not proven, bit for bit and in that one forward alone, is not effective: nothing behind it is judged.

example:
  python3 judge_round.py --train dumps/train --infer dumps/infer --workdir analysis --round 1
"""
_SHOWN = 8  # boundaries that differ by themselves, faults first


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("train", "infer", "workdir", required=("train", "infer"))
    parser.add_argument("--round", type=int, required=True, metavar="N", help="the number of the round")
    parser.add_argument("--round-dump", metavar="PATH", help="the side that was dumped again (default: where stub_outcome.json says)")
    parser.share("noise-floor", "output", "lang", "exit-code", "json", "quiet")
    args = parser.parse_args()

    from dump_analysis import guards, pipeline, round_steps
    from dump_analysis.artefacts import io
    from dump_analysis.rounds import history

    workdir = Path(args.workdir)
    round_steps.require_analysis(workdir, f"judge round {args.round}", ["--train", *args.train, "--infer", *args.infer])
    output = Path(args.output) if args.output else history.folder_of(workdir, args.round) / history.RESULT
    dumps = [*args.train, *args.infer, *([args.round_dump] if args.round_dump else [])]
    guards.require_files({"--noise-floor": args.noise_floor})
    guards.refuse_inside(output, dumps)
    train, infer = pipeline.open_pair(args.train, args.infer)
    found, told = round_steps.judge_step(train, infer, workdir, args.round, args.round_dump, args.noise_floor, output)
    cli.warn(told.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(found), end="")
    else:
        _answer(found, args)
    return _code(found) if args.exit_code else cli.ANSWERED


def _code(found: "RoundResult") -> int:
    if not found.effective or found.stop == "evidence_missing":
        return cli.INCOMPLETE
    return cli.ANSWERED if found.stop in ("all_exact", "only_rounding") else cli.FOUND


def _answer(found: "RoundResult", args: argparse.Namespace) -> None:
    from dump_analysis import round_steps
    from dump_analysis.wording import text_of, word

    workdir = Path(args.workdir).resolve()
    again = ["--train", *args.train, "--infer", *args.infer, "--workdir", str(workdir)]
    if not found.effective:
        failed = word("round_again", round=found.round, why=found.why_not or "")
        judge = cli.call("judge_round.py", *again, "--round", str(found.round))
        carry = "mend that, carry the round out again with the collection skill (stage 8, apply_stub_instruction.py)"
        cli.answer([text_of(failed, args.lang)], f"{carry}, then: {judge}")
        return
    every: list[Local | Downstream] = [*found.local, *found.downstream]
    own = sorted((one for one in every if one.status != "EXACT" and one.inputs == "equal"), key=lambda one: one.character == "rounding")
    isolated = found.isolated
    at = {"boundary": isolated.boundary, "status": isolated.status} if isolated is not None else {}
    told = [word("round_is_effective_at" if at else "round_is_effective", round=found.round, **at)]
    told += [word("round_own", boundary=one.boundary, character=one.character, by=one.basis, rel=one.rel_l2) for one in own[:_SHOWN]]
    told += [word("round_own_more", n=len(own) - _SHOWN)] if len(own) > _SHOWN else []
    told += [word("round_bears", ids=", ".join(found.confirmed))] if found.confirmed else []
    told += [word("round_disagrees", boundary=one.boundary, replay=one.replay, round=one.round) for one in found.contradicted]
    lines = [text_of(one, args.lang) for one in told]
    lines.append(f"stop: {found.stop}" + (f" (next: {found.next.boundary})" if found.next else ""))
    more = cli.call("make_stub_instruction.py", *again, *round_steps.as_planned(workdir))
    cli.answer(lines, more if found.stop == "continue" else cli.call("conclude.py", "--workdir", str(workdir)))


if __name__ == "__main__":
    cli.run(main)
