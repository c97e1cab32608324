#!/usr/bin/env python3
"""Say whether two dumps can be compared: whole, of one prompt, without padding, recorded alike (stage 7, a gate)."""

import os
import sys
from pathlib import Path
from typing import Any, Dict, List

try:
    from dump_collection import cli
except ModuleNotFoundError:
    print("Cannot run: dump_collection is not beside this script. Copy the whole skill folder.", file=sys.stderr)
    sys.exit(2)

EPILOG = (
    """reads:   both dumps (any depth; one path or several a side; without --train and --infer those that the task card names),
         the task card (--task-card, else task_card.json of --workdir where it is there)
writes:  dump_pair_report.json of --workdir, or --output: every check with its evidence and the stage to go back to.
         "ok": false with a stage shuts the gate; without a stage it is a remark; null: the files cannot say

"""
    + cli.GATE_CODES
    + """
example:
  python3 check_dump_pair.py --train dumps/train --infer dumps/infer --workdir collection
"""
)


def main() -> int:
    parser = cli.Parser(__doc__ or "", EPILOG)
    for side in ("train", "infer"):
        parser.add_argument("--" + side, nargs="+", metavar="PATH", help="the %s side's dump: root, stepN, rankN or dump.json" % side)
    parser.add_argument("--task-card", metavar="FILE", help="the task card (default: task_card.json of --workdir)")
    parser.share("workdir", "output", "lang", "json", "quiet")
    args = parser.parse_args()

    from dump_collection import files, wording
    from dump_collection.dump_check import report

    card = _card(args)
    told = report.check_pair(_paths(args, card, "train"), _paths(args, card, "infer"), _read(card))
    artefact = told.as_json()
    target = Path(args.output) if args.output else Path(args.workdir) / "dump_pair_report.json"
    files.write(target, artefact)
    for check in told.shut:
        cli.fail(wording.render("go_back", {"check": check.id, "why": check.evidence, "stage": check.back_to}, args.lang))
    cli.warn(["%s: %s" % (check.id, wording.text_of(check.evidence, args.lang)) for check in told.remarks], quiet=args.quiet)
    if args.json:
        print(files.text_of(artefact), end="")
    else:
        cli.answer(_summary(told, args.lang), _then(told, args.workdir))
    return cli.SHUT if told.shut else cli.OPEN


def _card(args: Any) -> Dict[str, Any]:
    """The task card; an empty dict where none was named and none lies in the folder."""
    from msprobe_files import task_card

    named = _card_path(args)
    return task_card.read(str(named)) if args.task_card or named.is_file() else {}


def _card_path(args: Any) -> Path:
    return Path(args.task_card) if args.task_card else Path(args.workdir) / "task_card.json"


def _read(card: Dict[str, Any]) -> Any:
    from dump_collection.dump_check import card as cards

    return cards.read(card) if card else cards.NO_CARD


def _paths(args: Any, card: Dict[str, Any], side: str) -> List[str]:
    from msprobe_files import task_card
    from msprobe_files.errors import DumpError

    given: List[str] = getattr(args, side) or []
    if given:
        return given
    path = card["dumps"][side]["path"] if card else task_card.UNKNOWN
    if not isinstance(path, str) or path.strip() in ("", task_card.UNKNOWN):
        raise DumpError(
            "Cannot check the pair: no %s dump was named. Hand --%s, or fill dumps.%s.path of the task card." % (side, side, side)
        )
    whole = str(_card_path(args).parent / path)  # relative paths of a card are seen from its folder
    return [whole] if os.path.lexists(whole) else []  # a run that recorded nothing makes no folder: a check says so, with reasons


def _summary(told: Any, lang: str) -> List[str]:
    from dump_collection import wording

    first = ("pair_shut", {"n": len(told.shut)}) if told.shut else ("pair_open", {})
    lines = [wording.render(*first, lang), wording.render("checks_made", {"n": len(told.checks), "remarks": len(told.remarks)}, lang)]
    unknown = [check for check in told.open_questions if check not in told.shut]
    return lines + [wording.render("not_known", {"check": check.id, "why": check.evidence}, lang) for check in unknown]


def _then(told: Any, workdir: str) -> str:
    if told.shut:
        back = min(check.back_to for check in told.shut)
        return "go back to stage %d, repair, dump again, and run this command again" % back
    return cli.call("check_stage.py", "--stage", "7", "--workdir", workdir)


if __name__ == "__main__":
    cli.run(main)
