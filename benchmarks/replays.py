"""Replay as a process, and what is wrong with its answer, judged by where the generator rounds and where it plants noise."""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from shapes import Size

COMMAND = Path(__file__).resolve().parent.parent / "skills/accuracy/rl-consistency-dump-analysis/scripts/replay_boundaries.py"


class _Made(NamedTuple):
    """The variant in which the trainer makes a value, and the engine that rounds at other points. ``noisy``: noise lies on its values."""

    train: str
    infer: str
    noisy: bool = True


_NORM, _LINEAR = _Made("cast_after_weight", "cast_before_weight"), _Made("plain", "plain")
_SUM = _Made("stepwise", "stepwise", noisy=False)
_LAYER = {
    "input_norm": _NORM, "q": _LINEAR, "k": _LINEAR, "v": _LINEAR, "o_proj": _LINEAR, "resid_attn": _SUM, "post_norm": _NORM,
    "gate": _LINEAR, "up": _LINEAR, "act_mul": _Made("silu+act_float32", "silu+act_rounded"), "down": _LINEAR, "resid_mlp": _SUM,
}  # fmt: skip


def command(train: Path, infer: Path, mapping: Path, output: Path) -> list[str]:
    """``replay_boundaries.py`` on two dumps with a mapping."""
    files = ["--mapping", str(mapping), "--output", str(output)]
    return [sys.executable, str(COMMAND), "--train", str(train), "--infer", str(infer), *files]


def wrong(size: Size, path: Path, *, noise: bool) -> str:
    """What replay_results.json says otherwise than was made, or nothing. ``noise``: the engine's values are the trainer's with noise.

    Attention is not judged.
    """
    found = {module["module"]: module for module in json.loads(path.read_text())["modules"]}
    made = {f"layers.{at}.{name}": one for at in range(size.layers) for name, one in _LAYER.items()}
    made |= {"embedding": _Made("gather", "gather", noisy=False), "final_norm": _NORM, "lm_head": _LINEAR}
    for name, one in made.items():
        if name not in found:
            return f"{name} was not recomputed"
        told = _unlike(found[name], one, noise=noise)
        if told:
            return f"{name}: {told}"
    return ""


def _unlike(module: dict[str, Any], made: _Made, *, noise: bool) -> str:
    train, infer, verdict = module["train"], module["infer"], module["verdict"]
    if (train["variant"], train["unexplained"]) != (made.train, 0):
        return f"the trainer is {train['variant']} but for {train['unexplained']} elements instead of {made.train}"
    if noise and made.noisy:
        return "" if infer["variant"] is None and verdict == "unknown" else f"noise is {infer['variant']}, {verdict}"
    variant = made.infer if not noise else made.train
    if (infer["variant"], infer["unexplained"]) != (variant, 0):
        return f"the engine is {infer['variant']} but for {infer['unexplained']} elements instead of {variant}"
    expected = "same" if variant == made.train else "rounding"
    return "" if verdict == expected else f"{verdict} instead of {expected}"
