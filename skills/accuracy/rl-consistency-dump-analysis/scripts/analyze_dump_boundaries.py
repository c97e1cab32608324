#!/usr/bin/env python3
"""Compare two dumps exactly, boundary by boundary, and name the first divergence (stage 3).

A mapping is semantic_mapping.json, or a bare list that people write:

  [{"boundary": "embedding.out",
    "train": "Module.model.embed_tokens.Embedding.forward.0.output.0",
    "infer": "Module.model.embed_tokens.*.output.0"},
   {"boundary": "layers.0.q.out",
    "train": "Module.model.layers.0.self_attn.q_proj.Linear.forward.0.output.0",
    "infer": {"sources": [{"name": "Module.model.layers.0.self_attn.qkv_proj.QKVParallelLinear.forward.0.output.0",
                           "steps": [{"op": "slice", "axis": 1, "start": 0, "stop": 64}]}], "combine": null}}]

A side is a tensor's name (the .pt file's stem), a glob that matches exactly one tensor, or an operand. A bare name
loses its axes of size 1 while more than two axes are left (integers: more than one; weights: none). An operand has
sources (name, steps, and rank or dump_step where a side has several) and combine: null, "sum" or "cat" (with axis).
Ops, in order: squeeze(axis) slice(axis,start,stop) take(axis,index|runs) reshape(shape) permute(axes) cast(dtype)
add(value). The order of the list is the order of the model; parameters are compared on a line of their own.
A list in the older form (name, train_glob, infer_glob, transform …) is read too: references/semantic-mapping.md §9.
"""

import os
import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   two dumps and the mapping; never changes them
writes:  boundary_results.json (--output)

{cli.EXIT_CODES}with --exit-code:
  0  everything EXACT    1  a boundary or weight is not EXACT    3  only gaps (MISSING, evidence_missing)

example:
  python3 analyze_dump_boundaries.py --train dumps/train --infer dumps/infer \\
      --mapping semantic_mapping.json --output boundary_results.json
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share("train", "infer", "mapping", "output", "exit-code", "json", "quiet", required=("train", "infer", "mapping"))
    args = parser.parse_args()

    from dump_analysis import guards, pipeline
    from dump_analysis.artefacts import io
    from dump_analysis.artefacts.boundary_results import DIVERGED

    output = args.output or pipeline.RESULTS
    guards.require_files({"--mapping": args.mapping})
    guards.refuse_inside(output, args.train + args.infer)
    guards.forget([Path(output)], [args.mapping])
    train, infer = pipeline.open_pair(args.train, args.infer)
    mapping, mapped = pipeline.mapping_step(train, infer, args.mapping)
    results, told = pipeline.gate_step(train, infer, mapping, io.digest_of_file(args.mapping), output, quiet=args.quiet)
    cli.warn(mapped.warnings + told.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(results), end="")
    else:
        differing = [result.boundary for result in results.weights if result.status in DIVERGED]
        first = results.first_divergence
        lines = [
            f"{len(results.boundaries)} boundaries: " + ", ".join(f"{n} {status}" for status, n in results.counts.items()),
            f"{len(results.weights)} weights: {len(differing)} differ" + (f": {', '.join(differing[:6])}" if differing else ""),
            f"first divergence: {first.boundary if first else 'none'} (overall: {results.overall})",
        ]
        if first and first.uncompared_before:
            lines.append(f"not compared before it: {', '.join(first.uncompared_before[:6])}")
        cli.answer(lines, cli.call("conclude.py", "--workdir", os.path.dirname(os.path.abspath(output))))
    for error in told.errors:
        cli.fail(error)
    if results.overall == "not_run":
        return cli.CANNOT
    if not args.exit_code:
        return cli.ANSWERED
    return {"exact": cli.ANSWERED, "nonzero": cli.FOUND}.get(results.overall, cli.INCOMPLETE)


if __name__ == "__main__":
    cli.run(main)
