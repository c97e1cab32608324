#!/usr/bin/env python3
"""Say where a trainer's dump and an inference engine's dump part, and why: probe, mapping, gate, replay, conclusion, report in one call."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dump_analysis.artefacts.conclusion import Conclusion
    from dump_analysis.artefacts.semantic_mapping import SemanticMapping
    from dump_analysis.report.source.standing import Standing
    from dump_analysis.reporting import Reported
    from dump_analysis.train_log import Log

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = f"""reads:   two dumps, never changed; without --mapping the rows are found in the data (propose_mapping.py alone does that),
         with it they are yours (see analyze_dump_boundaries.py --help)
writes:  probe.json semantic_mapping.json boundary_results.json replay_results.json conclusion.json into --output-dir
         (layer_map.md where it proposes), and the report: report_source.json alignment_report.md alignment_report.html

{cli.EXIT_CODES}with --exit-code:
  0  consistent    1  inconsistent    3  undecided

example:
  python3 diagnose.py --train dumps/train --infer dumps/infer --output-dir analysis
"""
FLAGS = (
    "train", "infer", "mapping", "plan", "reference", "train-config", "infer-config", "previous", "train-log", "param-report",
    "output-dir", "lang", "exit-code", "json", "quiet",
)  # fmt: skip


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.share(*FLAGS, required=("train", "infer"))
    args = parser.parse_args()

    from dump_analysis import pipeline, reporting
    from dump_analysis.artefacts import io
    from dump_analysis.mapping import declared

    folder = Path(args.output_dir)
    source_before, before, log = _made_ready(folder, args)
    _, probed = pipeline.probe_step(args.train, args.infer, folder / pipeline.PROBE)
    train, infer = pipeline.open_pair(args.train, args.infer)
    with reporting.even_so(folder, args.lang, source_before), pipeline.saying_not_run(train, infer, folder):
        full, mapped = pipeline.mapping_step(train, infer, args.mapping, args.plan, args.reference)
    mapping = declared.with_unmapped(full, train, infer)
    if args.mapping is None:
        digest = pipeline.write_mapping(folder / pipeline.MAPPING, mapping, args.lang, before)
    else:
        digest = io.write(folder / pipeline.MAPPING, mapping)
    _, gated = pipeline.gate_step(train, infer, mapping, digest, folder / pipeline.RESULTS, quiet=args.quiet)
    configs = {"train": args.train_config, "infer": args.infer_config}
    _, replayed = pipeline.replay_step(
        train, infer, mapping, digest, folder / pipeline.REPLAY, configs, quiet=args.quiet, previous=args.previous
    )
    found, concluded = pipeline.conclude_step(folder, folder / pipeline.CONCLUSION, configs, log, args.param_report)
    reported = reporting.report_step(folder, args.lang, source_before)
    told = [line for step in (mapped, gated, replayed, concluded, reported) for line in step.warnings]
    cli.warn(told, quiet=args.quiet)
    if args.json:
        print(io.text_of(found), end="")
    else:
        _answer(found, folder, reported, args)
    for error in probed.errors or gated.errors:
        cli.fail(error)
    return cli.exit_code(found.overall, found.consistency, wanted=args.exit_code)


def _made_ready(folder: Path, args: argparse.Namespace) -> "tuple[Standing | None, SemanticMapping | None, Log | None]":
    """The report's source and the mapping that stand here, and the log, all read before the answers of an earlier run are taken away."""
    from dump_analysis import guards, pipeline, reporting, train_log
    from dump_analysis.report.source.standing import standing

    given = {"--mapping": args.mapping, "--train-config": args.train_config, "--infer-config": args.infer_config}
    given |= {"--train-log": args.train_log, "--plan": args.plan, "--param-report": args.param_report}
    guards.require_files(given)
    guards.refuse_inside(folder, args.train + args.infer)
    made_anew = (pipeline.LAYER_MAP, pipeline.RESULTS, pipeline.REPLAY, pipeline.CONCLUSION, *reporting.RENDERED)
    source = standing(folder)
    mapping = guards.standing(folder / pipeline.MAPPING) if args.mapping is None else None
    log = train_log.read(args.train_log) if args.train_log else None
    guards.forget([folder / name for name in made_anew], list(given.values()))
    return source, mapping, log


def _answer(found: "Conclusion", folder: Path, reported: "Reported", args: argparse.Namespace) -> None:
    """The headline and three sentences of the report, the findings over the layers, and what was left where."""
    from dump_analysis import pipeline, reporting

    proposed = () if args.mapping else (pipeline.LAYER_MAP,)
    names = (pipeline.PROBE, pipeline.MAPPING, *proposed, pipeline.RESULTS, pipeline.REPLAY, pipeline.CONCLUSION, *reported.files)
    left = " (would_decide names what is left to do)" if found.would_decide else ""
    opening = reporting.opening(folder, args.lang)
    cli.answer([*opening.said, f"left in {folder}: {' '.join(names)}"], reporting.after(folder, reported, left), opening.strip)


if __name__ == "__main__":
    cli.run(main)
