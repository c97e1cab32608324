#!/usr/bin/env python3
"""Write the report of an analysis, Markdown and one HTML file, from one source of facts (stage 8)."""

import shlex
import sys
from argparse import Namespace
from pathlib import Path

try:
    from dump_analysis import cli
except ModuleNotFoundError:
    print("Cannot run: dump_analysis is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """reads:   --input: report_source.json, and beside it the files that it names (conclusion.json and what it rests on);
         --from-results: conclusion.json of the folder and, where they are there, the files that it rests on and task_card.json
writes:  --input: alignment_report.md and alignment_report.html into --output-dir, or nothing where the source is refused;
         --from-results: report_source.json in the folder: all facts filled, "unknown" where only people know;
         --init-source: the template, to be filled by hand (references/report-source.md says how)

exit codes:
  0  what was asked for was written
  2  cannot: wrong call, unreadable file, a package that is missing, or a source that is refused: each contradiction and each
     thing that must not leave the machine is one line on stderr, with its JSON path and what to write instead

example:
  python3 generate_alignment_report.py --from-results analysis
  python3 generate_alignment_report.py --input analysis/report_source.json --output-dir analysis
"""
_SHOWN = 6  # fields named in one line


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--input", metavar="FILE", help="the report source that is rendered")
    mode.add_argument("--from-results", metavar="DIR", help="fill report_source.json from the results of an analysis")
    mode.add_argument("--init-source", metavar="FILE", help="write the template of a report source")
    parser.add_argument("--output-dir", metavar="DIR", help="where to write the report; only with --input, which needs it")
    parser.add_argument(
        "--lang", choices=("zh-CN", "en"), help="language of what is written (default: zh-CN; with --input that of the source)"
    )
    parser.share("quiet")
    args = parser.parse_args()
    if (args.input is None) != (args.output_dir is None):
        parser.error("--input and --output-dir go together")
    if args.init_source is not None:
        return _template(args)
    return _fill(args) if args.from_results is not None else _render(args)


def _template(args: Namespace) -> int:
    from dump_analysis.report import template

    path = Path(args.init_source)
    template.write(path, args.lang or "zh-CN")
    then = cli.call("generate_alignment_report.py", "--input", str(path), "--output-dir", str(path.parent))
    cli.answer([f"left: {path}, every field unknown"], f"fill {shlex.quote(str(path))} (references/report-source.md), then {then}")
    return cli.ANSWERED


def _fill(args: Namespace) -> int:
    from dump_analysis.artefacts import file_names
    from dump_analysis.report.source import fill, standing

    folder = Path(args.from_results)
    fresh, warnings = fill.from_results(folder, args.lang or "zh-CN")
    source, told = standing.write(folder, fresh, standing.standing(folder))
    cli.warn(warnings + told, quiet=args.quiet)
    path = folder / file_names.SOURCE
    then = cli.call("generate_alignment_report.py", "--input", str(path), "--output-dir", str(folder))
    left = fill.left_to_people(source)
    known = [f"only people know, and may write in place of unknown: {_named(left)}"] if left else []
    cli.answer([f"left: {path}", *known], then)
    return cli.ANSWERED


def _render(args: Namespace) -> int:
    from dump_analysis.artefacts import file_names
    from dump_analysis.report import generating
    from dump_analysis.report.source import fill

    path, output = Path(args.input), Path(args.output_dir)
    made = generating.generate(path, output, args.lang)
    cli.warn(made.warnings, quiet=args.quiet)
    for fault in made.faults:
        cli.fail(f"Cannot use {path.name}: {fault.line}")
    if made.source is None or made.faults:
        return cli.CANNOT
    left = fill.left_to_people(made.source)
    known = [f"still unknown: {_named(left)}"] if left else []
    cli.answer(
        [f"left in {output}: {file_names.REPORT_MARKDOWN} {file_names.REPORT_HTML}", *known],
        f"open {shlex.quote(str(output / file_names.REPORT_HTML))} in a browser",
    )
    return cli.ANSWERED


def _named(paths: list[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (f" … ({len(paths)} in all)" if len(paths) > _SHOWN else "")


if __name__ == "__main__":
    cli.run(main)
