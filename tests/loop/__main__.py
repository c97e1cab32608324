"""`make loop`: every form of the loop over many seeded fault sets.

    python -m loop [--first 0] [--sets 50] [--work DIR]       (with PYTHONPATH=tests)

Prints a line for each loop, with what was left out, invented or not ended. Exit code: 0 each as injected, 1 not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from . import fault_sets, running, sides


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--sets", type=int, default=50, help="how many sets")
    parser.add_argument("--work", type=Path, help="keep everything in this folder (default: a temporary one)")
    args = parser.parse_args()
    root = args.work or Path(tempfile.mkdtemp(prefix="loop"))
    root.mkdir(parents=True, exist_ok=True)
    loops = wrong = 0
    with sides.started(root) as toys:
        for seed in range(args.first, args.first + args.sets):
            for outcome in running.run(toys, fault_sets.drawn(seed), root / f"set{seed}"):
                print(outcome, flush=True)
                loops, wrong = loops + 1, wrong + bool(outcome.wrong)
            if args.work is None:
                shutil.rmtree(root / f"set{seed}")
    print(f"{loops} loops over {args.sets} fault sets: {loops - wrong} as injected, {wrong} not")
    if args.work is None:
        shutil.rmtree(root)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
