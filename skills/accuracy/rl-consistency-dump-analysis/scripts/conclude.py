#!/usr/bin/env python3
"""Draw everything in a folder together into one conclusion: what differs, what it means, what would decide (stages 6 and 7)."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   boundary_results.json and, where they are there, semantic_mapping.json, replay_results.json and probe.json
         of --workdir;
         --train-log: text with key:value or key=value pairs, printed dicts or JSON lines; keys that end in
         prefill_logprob_diff_mean (max, std), rollout_probs_diff_mean (max, std, valid), train_rollout_logprob_abs_diff
writes:  conclusion.json (--output; default: in --workdir)

{cli.EXIT_CODES}with --exit-code:
  0  consistent    1  inconsistent    3  undecided

example:
  python3 conclude.py --workdir analysis
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("workdir", "train-config", "infer-config", "train-log", "param-report", "output", "lang", "exit-code", "json", "quiet")
    args = parser.parse_args()

    from dump_analysis import guards, pipeline, train_log
    from dump_analysis.artefacts import io

    workdir = Path(args.workdir)
    configs = {"train": args.train_config, "infer": args.infer_config}
    files = {f"--{side}-config": path for side, path in configs.items()}
    guards.require_files({**files, "--train-log": args.train_log, "--param-report": args.param_report})
    output = Path(args.output) if args.output else workdir / pipeline.CONCLUSION
    log = train_log.read(args.train_log) if args.train_log else None
    found, told = pipeline.conclude_step(workdir, output, configs, log, args.param_report)
    cli.warn(told.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(found), end="")
    else:
        left = " (would_decide names what is left to do)" if found.would_decide else ""
        cli.answer(pipeline.sentences(found, args.lang), pipeline.after_conclusion(output, left))
    return cli.exit_code(found.overall, found.consistency, wanted=args.exit_code)


if __name__ == "__main__":
    cli.run(main)
