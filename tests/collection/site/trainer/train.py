"""Two steps on one rollout: python3 train.py ROLLOUT --log FILE [--data-pad-size-multiplier N]."""

import argparse
import json

from actor import Actor
from batch import rollout_data_of


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rollout")
    parser.add_argument("--log", required=True)
    parser.add_argument("--data-pad-size-multiplier", type=int, default=16)
    args = parser.parse_args()
    with open(args.rollout, encoding="utf-8") as file:
        rollout_data = rollout_data_of(json.load(file))
    actor = Actor(args.data_pad_size_multiplier)
    old_log_probs = actor.compute_log_prob(rollout_data)
    with open(args.log, "a", encoding="utf-8") as file:
        for _ in range(2):
            print(json.dumps(actor.update(rollout_data, old_log_probs)), file=file)


if __name__ == "__main__":
    main()
