"""Modules whose two sides store one weight in two ways: gains less one, a bias on one side alone, a coarser format."""

from pathlib import Path
from typing import Any, NamedTuple

import dumping
import numpy as np
import programs
import pytest
import torch
from dump_analysis.artefacts.common import Modules
from dump_analysis.artefacts.replay_results import ModuleReplay
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.replay.whole import replay_pair
from msprobe_files.operands import parse
from torch import Tensor
from toys import arithmetic

TOKENS, WIDTH, LAYERS = 16, 64, 3
ENTRY = dumping.entry_of("m{}")


class Recorded(NamedTuple):
    """What a module recorded."""

    x: Tensor
    y: Tensor
    weights: dict[str, Tensor]


def write(root: Path, label: str, modules: list[Recorded]) -> Any:
    def of(x: Tensor) -> dumping.Tensor:
        return dumping.of(x.float().numpy(), str(x.dtype).removeprefix("torch."))

    entries = {
        ENTRY.format(at): {
            "input": [of(one.x)], "output": [of(one.y)], "parameters": {name: of(weight) for name, weight in one.weights.items()}
        }
        for at, one in enumerate(modules)
    }  # fmt: skip
    return dumping.side_of(root, label, entries)


def verdicts(root: Path, place: str, train: list[Recorded], infer: list[Recorded]) -> list[ModuleReplay]:
    """The replay of one place in some layers, its weights among the rows where both sides have them."""
    rows, weights = [], []
    for at in range(len(train)):
        entry, stem = ENTRY.format(at), f"layers.{at}.{place}"
        rows.append(Row(f"{stem}.out", at, *2 * (parse(f"{entry}.output.0"),), module=Modules(entry, entry)))
        for name in sorted(train[at].weights.keys() & infer[at].weights.keys()):
            weights.append(Row(f"{stem}.{name}", len(weights), *2 * (parse(f"{entry}.parameters.{name}"),)))
    sides = write(root, "train", train), write(root, "infer", infer)
    return replay_pair(SemanticMapping(boundaries=rows, weights=weights), *sides, {})[0]


def norm(seed: int, gain: Tensor, added: float) -> Recorded:
    """x / rms * (gain + added), rounded once."""
    x = programs.values(seed, TOKENS, WIDTH, dtype="bfloat16", scale=0.05)
    return Recorded(x, (arithmetic.normalised(x.float(), 1e-6) * (gain.float() + added)).to(torch.bfloat16), {"weight": gain})


def gains(seed: int) -> tuple[Tensor, Tensor]:
    """w, and 1 + w as bfloat16 holds it."""
    less = programs.values(seed + 100, WIDTH, dtype="bfloat16", scale=0.2)
    return less, (less.float() + 1.0).to(torch.bfloat16)


@pytest.mark.parametrize("turned", [False, True], ids=["train", "infer"])
def test_a_gain_stored_less_one_where_the_module_adds_it_is_the_same(tmp_path: Path, turned: bool) -> None:
    """A07: neither another function nor another weight."""
    less = [norm(at, gains(at)[0], 1.0) for at in range(LAYERS)]
    more = [norm(at, gains(at)[1], 0.0) for at in range(LAYERS)]
    found = verdicts(tmp_path, "input_norm", *((more, less) if turned else (less, more)))
    assert [(module.verdict, module.side) for module in found] == [("same", "unknown")] * LAYERS
    assert {module.evidence[-1].kind for module in found} == {"replay_gain_less_one"}


@pytest.mark.parametrize(
    ("added", "kind", "wrong"), [((1.0, 1.0), "replay_gain_twice", "infer"), ((0.0, 0.0), "replay_gain_never", "train")]
)
def test_an_offset_applied_twice_or_never_is_named(tmp_path: Path, added: tuple[float, float], kind: str, wrong: str) -> None:
    """A07, the variant: both sides follow from their own gains."""
    sides = [[norm(at, gains(at)[side], added[side]) for at in range(LAYERS)] for side in (0, 1)]
    found = verdicts(tmp_path, "input_norm", *sides)
    assert [(module.verdict, module.side) for module in found] == [("logic", wrong)] * LAYERS
    assert all(kind in [told.kind for told in module.evidence] for module in found)


def linear(seed: int, weight: Tensor, bias: Tensor | None, recorded: dict[str, Tensor]) -> Recorded:
    x = programs.values(seed, TOKENS, WIDTH, dtype="bfloat16")
    total = arithmetic.product(x, weight) + (bias.float() if bias is not None else 0.0)
    return Recorded(x, total.to(torch.bfloat16), recorded)


@pytest.mark.parametrize("turned", [False, True], ids=["train", "infer"])
@pytest.mark.parametrize("zeros", [False, True], ids=["none", "zeros"])
def test_a_bias_that_one_side_alone_has_is_logic(tmp_path: Path, turned: bool, zeros: bool) -> None:
    """Each side follows from its own weights by a right variant: rounding, if nobody looked."""
    sides: list[list[Recorded]] = [[], []]
    for at in range(LAYERS):
        weight = programs.values(at + 10, WIDTH, WIDTH, dtype="bfloat16", scale=0.1)
        bias = programs.values(at + 20, WIDTH, dtype="bfloat16")
        sides[0].append(linear(at, weight, bias, {"weight": weight, "bias": bias}))
        sides[1].append(linear(at, weight, None, {"weight": weight, "bias": torch.zeros_like(bias)} if zeros else {"weight": weight}))
    found = verdicts(tmp_path, "q", *(sides[::-1] if turned else sides))
    assert [(module.verdict, module.side) for module in found] == [("logic", "unknown")] * LAYERS
    assert all(module.would_decide for module in found)
    kind = "weight_zeros" if zeros else "replay_bias_alone"
    assert all(kind in [told.kind for told in module.evidence] for module in found)


def test_zeros_against_no_bias_are_the_same(tmp_path: Path) -> None:
    weight, bias = programs.values(1, WIDTH, WIDTH, dtype="bfloat16", scale=0.1), torch.zeros(WIDTH, dtype=torch.bfloat16)
    one = linear(0, weight, None, {"weight": weight, "bias": bias})
    found = verdicts(tmp_path, "q", [one], [one._replace(weights={"weight": weight})])
    assert [module.verdict for module in found] == ["same"]


def test_masters_in_float32_against_bfloat16_are_rounding(tmp_path: Path) -> None:
    """Each side follows from the weight as it stores it: how a weight is stored is where it is rounded."""
    masters = programs.values(1, WIDTH, WIDTH, dtype="float32", scale=0.1)
    low = masters.to(torch.bfloat16)
    train, infer = linear(0, masters, None, {"weight": masters}), linear(0, low, None, {"weight": low})
    assert not np.array_equal(train.y.float().numpy(), infer.y.float().numpy())
    (module,) = verdicts(tmp_path, "q", [train], [infer])
    assert (module.verdict, module.side) == ("rounding", "unknown")
    assert "weight_rounded" in [told.kind for told in module.evidence]
