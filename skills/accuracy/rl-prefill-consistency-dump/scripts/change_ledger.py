#!/usr/bin/env python3
"""Keep track of every file that is changed in the trainer's and the engine's trees, and put them back (stages 4 to 6, 9)."""

import argparse
import sys
from pathlib import Path

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = """record   before a file is touched: its bytes and mode are stored (--created for files to be made). --root once for each tree:
         the words that it holds by itself are noted, also where no file is to be edited
diff     after an edit: what was changed; a later change by somebody else is noticed from then on
restore  every file, or the named ones, as before; a file that somebody changed after the last diff is refused, and why
verify   the gate of stage 9: nothing recorded is left, and no switch, marker, debugger call or transformed source folder

reads:   change_ledger.json and ledger/ of --workdir, and the files named
writes:  change_ledger.json (before a file is touched), ledger/ (the bytes of before, by digest); restore: the recorded files

exit codes:
  0  done; verify: open
  1  verify: shut, every gap is one line on stderr
  2  cannot: wrong call, unreadable file, or a file that restore refused (the others are restored)

example:
  python3 change_ledger.py record --workdir run --root /opt/verl --stage 6 --why "debugger around log-prob" /opt/verl/verl/actor.py
  python3 change_ledger.py diff --workdir run --output run/changes.patch
  python3 change_ledger.py restore --workdir run && python3 change_ledger.py verify --workdir run
"""
_OF = {
    "root": ["record"], "created": ["record"], "why": ["record"], "stage": ["record"], "keep": ["restore"],
    "pattern": ["record", "verify"], "output": ["diff"], "paths": ["record", "restore"],
}  # fmt: skip


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    parser.add_argument("action", choices=("record", "diff", "restore", "verify"))
    parser.add_argument("paths", nargs="*", metavar="FILE", help="record, restore: the files (restore: all where none is named)")
    parser.add_argument("--root", action="append", metavar="DIR", help="record: a tree whose files are edited; remembered")
    parser.add_argument("--created", action="append", metavar="FILE", help="record: a file that is about to be made")
    parser.add_argument("--why", metavar="TEXT", help="record: what the edit is for")
    parser.add_argument("--stage", type=int, choices=(4, 5, 6, 8), metavar="N", help="record: the stage that edits (4, 5, 6 or 8)")
    parser.add_argument("--keep", action="append", metavar="FILE", help="restore: leave this file as it stands and count it as restored")
    parser.add_argument("--pattern", action="append", metavar="REGEX", help="record, verify: a further word that must not be left")
    parser.share("workdir", "output", "quiet")
    args = parser.parse_intermixed_args()
    for flag, actions in _OF.items():
        if getattr(args, flag) and args.action not in actions:
            parser.error("%s is for %s" % ("FILE" if flag == "paths" else "--" + flag, " and ".join(actions)))
    if args.action == "record" and not (args.paths or args.created or args.root):
        parser.error("record needs a FILE, a --created FILE or a --root DIR")
    if (args.paths or args.created) and args.action == "record" and (not (args.why or "").strip() or args.stage is None):
        parser.error("record needs --why and --stage for a file")
    return {"record": _record, "diff": _diff, "restore": _restore, "verify": _verify}[args.action](args)


def _record(args: argparse.Namespace) -> int:
    from dump_collection.ledger import recording

    created, roots, patterns = args.created or [], args.root or [], args.pattern or []
    found = recording.record(Path(args.workdir), args.paths, created, roots, patterns, args.why or "", args.stage or 0)
    cli.warn(found.notes, args.quiet)
    lines = ["recorded %s %s (%s)" % (change.id, change.path, change.kind) for change in found.changes]
    lines = lines or ["the words that the roots hold now are noted; no file is recorded yet"]
    cli.answer(lines, "edit, then " + cli.call("change_ledger.py", "diff", "--workdir", args.workdir))
    return cli.OPEN


def _diff(args: argparse.Namespace) -> int:
    from dump_collection import files
    from dump_collection.ledger import changes

    seen = changes.diff(Path(args.workdir))
    patch = "".join(item.patch for item in seen)
    if args.output:
        files.write_bytes(args.output, patch.encode("utf-8", "surrogateescape"))
    lines = ["%s %s (%s): %s, +%d -%d" % (s.change.id, s.change.path, s.change.kind, s.state, s.added, s.removed) for s in seen]
    lines = lines or ["no open change"]
    then = "go on with the stage; at the very end " + cli.call("change_ledger.py", "restore", "--workdir", args.workdir)
    cli.answer(lines + ([] if args.output else patch.splitlines()), then)
    return cli.OPEN


def _restore(args: argparse.Namespace) -> int:
    from dump_collection.ledger import restoring

    found = restoring.restore(Path(args.workdir), args.paths, args.keep or [])
    for line in found.refused:
        cli.fail(line)
    cli.warn(["%s/ was not there before; files in it that nobody recorded are left" % f for f in found.left_folders], args.quiet)
    lines = ["restored " + path for path in found.restored] or ["nothing was restored"]
    then = "restore" if found.still_open else "verify"
    cli.answer(lines, cli.call("change_ledger.py", then, "--workdir", args.workdir))
    return cli.CANNOT if found.refused else cli.OPEN


def _verify(args: argparse.Namespace) -> int:
    from dump_collection.ledger import verifying

    verdict = verifying.verify(Path(args.workdir), args.pattern or [])
    cli.warn(verdict.remarks, args.quiet)
    for gap in verdict.gaps:
        cli.fail(gap)
    shut = "shut: %d gap%s" % (len(verdict.gaps), "" if len(verdict.gaps) == 1 else "s")
    state = shut if verdict.gaps else "open: every recorded file is as before, no residue"
    then = cli.call("check_stage.py", "--stage", "9", "--workdir", args.workdir)
    if verdict.gaps:
        again = cli.call("change_ledger.py", "verify" if verdict.restored else "restore", "--workdir", args.workdir)
        then = "mend what stderr names, then " + again if verdict.restored else again
    cli.answer(["verify is %s (%d text files searched)" % (state, verdict.scanned)], then)
    return cli.SHUT if verdict.gaps else cli.OPEN


if __name__ == "__main__":
    cli.run(main)
