#!/usr/bin/env python3
"""Make msprobe's configuration for one side, without the traps of the installed release (stages 6 and 8)."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """purposes:
  probe     statistics of every module (level L0): what is there, for a few MB
  full      every module's tensors (level L0): what the analysis needs
  mix       functions as well (level mix): q and k after rotation, true inputs under msprobe before 26.2; several times as large
  override  full, with inputs replaced from a source folder (load, msprobe 26.2.0 and later)

reads:   nothing else, or the model's configuration (--model-config) and the names in the source folder (--load-path)
writes:  --output; msprobe's own format, where a key that it does not know would be ignored without a word

exit codes:
  0  the configuration was written; warnings are on stderr
  2  cannot: a trap that would give no dump or a wrong one, or a disk that the dump would fill

example:
  python3 make_msprobe_config.py --side train --purpose full --framework verl --dump-path /dumps/round0/train \\
      --model-config /models/q/config.json --prompt-length 190 --output run/msprobe_train.json
"""


def _parser() -> cli.Parser:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("--side", required=True, choices=("train", "infer"), help="whose configuration it is")
    parser.add_argument("--purpose", required=True, choices=("probe", "full", "mix", "override"), help="what the dump is for")
    frameworks = ("verl", "slime", "vime", "vllm", "vllm-ascend", "sglang")
    parser.add_argument(
        "--framework",
        action="append",
        default=[],
        choices=frameworks,
        help="what runs this side; of an engine also the trainer that starts it",
    )
    parser.add_argument("--dump-path", metavar="DIR", help="a fresh folder; left out for verl's own debugger, which sets it")
    parser.add_argument("--msprobe-version", metavar="V", help="of that side's environment (default: this interpreter's; else unknown)")
    parser.add_argument("--step", type=int, action="append", default=[], metavar="N", help="a step to dump (default: 0)")
    parser.add_argument("--model-config", metavar="FILE", help="the model's configuration: the dump's size is estimated from it")
    parser.add_argument("--prompt-length", type=int, metavar="N", help="tokens of the prompt, for the estimate")
    parser.add_argument(
        "--ranks", type=int, default=1, metavar="N", help="processes that write to this disk, for the estimate (default: 1)"
    )
    parser.add_argument("--allow-full-disk", action="store_true", help="warn only where the disk has no room for the dump")
    parser.add_argument("--load-path", metavar="DIR", help="override: the folder above stepN that holds the inputs")
    parser.add_argument("--load-module", action="append", default=[], metavar="ENTRY", help="override: an entry of the target")
    parser.add_argument("--no-dump", action="store_true", help="override: replace the inputs and dump nothing")
    parser.share("output", "json", "quiet", required=("output",))
    return parser


def main() -> int:
    parser = _parser()
    args = parser.parse_args()
    if (args.model_config is None) != (args.prompt_length is None):
        parser.error("--model-config and --prompt-length belong together")
    if (args.prompt_length or 1) < 1 or args.ranks < 1:
        parser.error("--prompt-length and --ranks count from 1")

    from dump_collection import files
    from dump_collection.msprobe_config import configuring, model_shape, releases
    from msprobe_files.units import load_json

    wanted = configuring.Wanted(
        purpose=args.purpose,
        side=args.side,
        frameworks=tuple(args.framework),
        release=releases.release_of(args.msprobe_version),
        dump_path=args.dump_path,
        steps=configuring.steps_of(args.step),
        load_path=args.load_path,
        load_modules=tuple(args.load_module),
        dump_after_load=not args.no_dump,
    )
    model = None
    if args.model_config is not None:
        model = configuring.Model(model_shape.shape_of(load_json(args.model_config)), args.prompt_length, args.ranks)
    configuring.check_path(args.output, "write the configuration to")
    made = configuring.make(wanted, model, allow_full_disk=args.allow_full_disk)
    files.write(args.output, made.config)
    cli.warn(made.warnings, args.quiet)
    if args.json:
        print(files.text_of(made.config), end="")
        return cli.OPEN
    lines = ["%s: %s of the %s side, msprobe %s" % (args.output, args.purpose, args.side, wanted.release.text)]
    if made.estimate is not None:
        size = configuring.gib(made.estimate.size)
        lines.append("the dump takes about %s in %d files (an upper estimate)" % (size, made.estimate.files))
    lines.append("hand it over: " + configuring.hand_over(wanted, args.output))
    cli.answer(lines, _then(args))
    return cli.OPEN


def _then(args: "argparse.Namespace") -> str:
    if args.purpose == "probe":
        return "run the baseline command, see in dump.json what was recorded and in which step, then run this again with --purpose full"
    if args.purpose != "override":
        return "configure the other side, run the baseline command, then " + cli.call("check_dump_pair.py", "--workdir", "DIR")
    if args.no_dump:
        return "run the baseline command under no_grad and watch its metric"
    proof = cli.call("apply_stub_instruction.py", "--instruction", "FILE", "--workdir", "DIR", "--verify", args.dump_path or "NEW_DUMP")
    return "run the baseline command under no_grad, then " + proof


if __name__ == "__main__":
    cli.run(main)
