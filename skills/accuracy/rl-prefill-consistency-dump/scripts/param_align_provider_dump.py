#!/usr/bin/env python3
"""Record the configuration that a bridge builds for the trainer, from a model's config.json alone: --train-cfg of stage 5."""

import sys
from pathlib import Path
from typing import Any, Dict

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """reads:   config.json in MODEL_DIR; no weights. The bridge class is looked for in --bridge-src, then in
         /workspace/Megatron-Bridge/src, /workspace/MindSpeed-Bridge and the installed megatron.bridge. Run it with the Python of
         the trainer's environment; what the bridge imports for other cards (nvidia_resiliency_ext, Transformer Engine ...) may lack
writes:  OUT.json: "fields" (what the provider's class declares, after finalize()), "extra" (attributes that were set and that no field
         declares: most of them nothing reads), the bridge, its versions, and the packages that were absent

exit codes:
  0  written
  2  cannot: wrong call, a package or the bridge class is not found, or the bridge fails

example:
  python3 param_align_provider_dump.py /models/q provider.json --bridge AutoBridge
"""


def main() -> int:
    args = _arguments()

    from dump_collection import files
    from dump_collection.params import provider

    told = provider.record(args.model, args.bridge, args.bridge_src, args.out)
    files.write(Path(args.out), told.artefact)
    cli.warn(told.warnings, args.quiet)
    if args.json:
        print(files.text_of(told.artefact), end="")
    else:
        cli.answer([_summary(told.artefact)], _then(args.model, args.out))
    return cli.OPEN


def _arguments() -> Any:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("model", metavar="MODEL_DIR", help="the model's folder, with its config.json")
    parser.add_argument("out", metavar="OUT.json", help="where to write the provider")
    parser.add_argument(
        "--bridge", default="DeepSeekV4FlashBridge", metavar="CLASS",
        help="the trainer's bridge class (default: %(default)s); AutoBridge: the one that Megatron-Bridge takes for the model",
    )  # fmt: skip
    parser.add_argument("--bridge-src", nargs="+", default=[], metavar="ROOT", help="source roots to search first")
    parser.share("json", "quiet")
    return parser.parse_args()


def _summary(made: Dict[str, Any]) -> str:
    versions = ", ".join("%s %s" % (name, version) for name, version in made["versions"].items() if version)
    return "%s built a %s: %d fields, %d attributes that no field declares (%s)" % (
        made["bridge"], made["provider_class"], len(made["fields"]), len(made["extra"]), versions,
    )  # fmt: skip


def _then(model: str, out: str) -> str:
    return cli.call("param_align_check.py", "--train-cfg", out, "--infer-cfg", str(Path(model) / "config.json"))


if __name__ == "__main__":
    cli.run(main)
