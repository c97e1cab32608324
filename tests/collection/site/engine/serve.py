"""Prefill of one request: python3 serve.py ROLLOUT --log FILE [--msprobe-dump-config FILE]. Hooks of msprobe are built in."""

import argparse
import json

import torch
from toys.engine import Qwen2ForCausalLM, run
from toys.switches import Switches


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rollout")
    parser.add_argument("--log", required=True)
    parser.add_argument("--msprobe-dump-config")
    args = parser.parse_args()
    with open(args.rollout, encoding="utf-8") as file:
        rollout = json.load(file)
    model = Qwen2ForCausalLM(Switches((("one_channel", 0),)))  # a fault of this engine: one channel of layer 0 is too large
    debugger = None
    if args.msprobe_dump_config:
        from msprobe.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(config_path=args.msprobe_dump_config)
        debugger.start(model=model)
    prompt = torch.tensor(rollout["prompt"])
    with torch.no_grad():
        run(model, prompt, torch.arange(len(prompt)))
    if debugger is not None:
        debugger.stop()
        debugger.step()
    inner = rollout["request_id"] + "-0a1b2c3d"  # as vLLM from 0.14 on makes ids of its own
    with open(args.log, "a", encoding="utf-8") as file:
        print(json.dumps({"phase": "prefill", "step": 0, "request_ids": [inner]}), file=file)


if __name__ == "__main__":
    main()
