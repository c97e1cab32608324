"""Build providers with the public Megatron-Bridge, and hold the recordings in tests/samples/providers against them.

Each folder holds only config.json beside what was recorded. The command of the collection builds its provider anew; then the
same things must differ from config.json, and every field must be what was recorded, but for those that finalize() derives and
the recordings, taken before it, lack. Prints one line a folder; exit 1 where one is not as recorded.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "skills/accuracy/rl-prefill-consistency-dump/scripts"
SAMPLES = ROOT / "tests/samples/providers"
OUT = ROOT / "build/bridge"
BY_HAND = ("qwen3-hyper",)  # attributes were set on the finished provider: PROVENANCE.md
# What TransformerConfig.__post_init__ fills in of megatron-core 0.16.1.
DERIVED = {
    "kv_channels", "expert_tensor_parallel_size", "microbatch_group_size_per_vp_stage", "init_method", "output_layer_init_method",
    "embedding_init_method", "embedding_init_method_std", "recompute_modules", "cuda_graph_scope",
}  # fmt: skip
PLACES = {"hf_model_id"}  # a folder's name


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command of the collection, in this interpreter."""
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def differing(provider: Path, config: Path, work: Path) -> set[str]:
    """What the check finds to differ, whether or not it shuts the gate."""
    ran = run(SCRIPTS / "param_align_check.py", "--train-cfg", provider, "--infer-cfg", config, "--workdir", work)
    if ran.returncode not in (0, 1):
        sys.exit(ran.stderr)
    items = read(work / "param_alignment_report.json")["items"]
    return {f"{item['canonical']} {item['status']} {item['kind']}" for item in items if item["status"] != "EXACT"}


def unlike(name: str) -> list[str]:
    """What of a provider built anew is not as it was recorded."""
    folder, made = SAMPLES / name, OUT / f"{name}.json"
    ran = run(SCRIPTS / "param_align_provider_dump.py", folder, made, "--bridge", "AutoBridge", "--quiet")
    if ran.returncode:
        return [ran.stderr.strip().splitlines()[-1]]
    built, recorded = read(made), read(folder / "provider.json")
    found = []
    for part in ("fields", "extra"):
        names = set(built[part]) | set(recorded[part])
        found += [
            f"{part}.{key}: {built[part].get(key)} instead of {recorded[part].get(key)}"
            for key in sorted(names - PLACES)
            if built[part].get(key) != recorded[part].get(key) and not (key in DERIVED and built["finalized"])
        ]
    sides = [differing(path, folder / "config.json", OUT / f"{name}-{at}") for at, path in enumerate((made, folder / "provider.json"))]
    return found + [f"the check says otherwise: {told}" for told in sorted(sides[0] ^ sides[1])]


def main() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    failed = False
    for folder in sorted(path.parent for path in SAMPLES.glob("*/provider.json")):
        if folder.name in BY_HAND or "fields" not in read(folder / "provider.json"):
            print(f"{folder.name:30} not built by a bridge alone")
            continue
        wrong = unlike(folder.name)
        failed = failed or bool(wrong)
        print(f"{folder.name:30} {'; '.join(wrong) or 'as recorded'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
