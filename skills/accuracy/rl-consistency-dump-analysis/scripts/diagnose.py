#!/usr/bin/env python3
"""Say where a trainer's dump and an inference engine's dump part: probe, mapping, exact gate, conclusion in one call."""

import sys
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    sys.exit(print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr) or 2)

EPILOG = f"""reads:   two dumps and the mapping (see analyze_dump_boundaries.py --help); never changes them
writes:  probe.json semantic_mapping.json boundary_results.json conclusion.json into --output-dir

{cli.EXIT_CODES}with --exit-code:
  0  consistent    1  inconsistent    3  undecided

example:
  python3 diagnose.py --train dumps/train --infer dumps/infer --mapping rows.json --output-dir analysis
"""


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share(
        "train",
        "infer",
        "mapping",
        "train-config",
        "infer-config",
        "output-dir",
        "lang",
        "json",
        "quiet",
        required=("train", "infer", "mapping"),
    )
    parser.add_argument("--exit-code", action="store_true", help="say by the exit code what was concluded")
    args = parser.parse_args()

    from dump_analysis import pipeline
    from dump_analysis.artefacts import io, semantic_mapping

    folder = Path(args.output_dir)
    configs = {"train": args.train_config, "infer": args.infer_config}
    for side, path in configs.items():
        pipeline.require_file(path, f"--{side}-config")
    _, probed = pipeline.probe_step(args.train, args.infer, folder / pipeline.PROBE)
    train, infer = pipeline.open_pair(args.train, args.infer)
    _, mapped = pipeline.mapping_step(train, infer, args.mapping, folder / pipeline.MAPPING)
    mapping = semantic_mapping.read(folder / pipeline.MAPPING)
    digest = io.digest_of_file(folder / pipeline.MAPPING)
    _, gated = pipeline.gate_step(train, infer, mapping, digest, folder / pipeline.RESULTS, quiet=args.quiet)
    found, concluded = pipeline.conclude_step(folder, folder / pipeline.CONCLUSION, configs)
    cli.warn(mapped.warnings + gated.warnings + concluded.warnings, quiet=args.quiet)
    if args.json:
        print(io.text_of(found), end="")
    else:
        print("\n".join(sentence[:400] for sentence in pipeline.sentences(found, args.lang)))
        names = (pipeline.PROBE, pipeline.MAPPING, pipeline.RESULTS, pipeline.CONCLUSION)
        print(f"left in {folder}: {' '.join(names)}")
        print(f"next: read {folder / pipeline.CONCLUSION}" + (" (would_decide names what is left to do)" if found.would_decide else ""))
    for error in probed.errors or gated.errors:
        cli.fail(error)
    return pipeline.exit_code(found, wanted=args.exit_code)


if __name__ == "__main__":
    cli.run(main)
