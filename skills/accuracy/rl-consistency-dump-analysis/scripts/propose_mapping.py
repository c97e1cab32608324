#!/usr/bin/env python3
"""Say which tensors of two dumps are the same boundary, from what they hold: no mapping by hand (stage 2)."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   two dumps, of one unit or of several ranks, stages and steps; never changes them
writes:  semantic_mapping.json (--output), and layer_map.md beside it: the same as tables for people

{cli.EXIT_CODES}
example:
  python3 propose_mapping.py --train dumps/train --infer dumps/infer --output analysis/semantic_mapping.json
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("train", "infer", "plan", "reference", "output", "lang", "json", "quiet", required=("train", "infer"))
    args = parser.parse_args()

    from dump_analysis import guards, pipeline
    from dump_analysis.artefacts import io
    from dump_analysis.mapping import declared
    from dump_analysis.wording import render, text_of

    guards.require_files({"--plan": args.plan})
    output = Path(args.output or pipeline.MAPPING)
    guards.refuse_inside(output, args.train + args.infer)
    before = guards.standing(output)
    guards.forget([output, output.parent / pipeline.LAYER_MAP], [])
    train, infer = pipeline.open_pair(args.train, args.infer)
    found, told = pipeline.propose_step(train, infer, args.plan, args.reference)
    mapping = declared.with_unmapped(found, train, infer)
    pipeline.write_mapping(output, mapping, args.lang, before)
    cli.warn(told.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(mapping), end="")
        return cli.ANSWERED
    gaps = mapping.evidence_missing
    counts = {"rows": len(mapping.boundaries), "weights": len(mapping.weights), "gaps": len(gaps)}
    lines = [render("map_counts", counts, args.lang)]
    if mapping.tokens is not None:
        coverage = mapping.tokens.coverage
        lines.append(render("map_tokens", {"joined": coverage.joined, "train": coverage.train, "infer": coverage.infer}, args.lang))
    lines += [f"- {text_of(gap.reason, args.lang)}" for gap in gaps[:6]] + (["- …"] if len(gaps) > 6 else [])
    lines.append(f"left: {output} {output.parent / pipeline.LAYER_MAP}")
    results = output.resolve().parent / pipeline.RESULTS
    pair = ["--train", *args.train, "--infer", *args.infer, "--mapping", str(output.resolve()), "--output", str(results)]
    cli.answer(lines, f"read {pipeline.LAYER_MAP}, then {cli.call('analyze_dump_boundaries.py', *pair)}")
    return cli.ANSWERED


if __name__ == "__main__":
    cli.run(main)
