"""What replay finds on toys that store other formats than bfloat16, and of several faults at once; each must be found and nothing else."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import ModuleReplay
from toys import mapping
from toys.pairs import Dumped, Toys
from toys.switches import LAYERS, Side, Switches

# Where a fault of layer N is put in and found.
FOUND = {
    "eps": ["layers.N.input_norm"],
    "norm_gain_twice": ["layers.N.input_norm"],
    "missing_bias": ["layers.N.q", "layers.N.k", "layers.N.v"],
    "kv_swapped": ["layers.N.k", "layers.N.v"],
    "one_channel": ["layers.N.o_proj"],
    "missing_residual": ["layers.N.resid_attn"],
    "gate_up_order": ["layers.N.act_mul"],
    "updated_weight": ["layers.N.down"],
    "one_token": ["layers.N.down"],
}
ALSO = {("missing_residual", "infer"): ["layers.N.post_norm"]}  # the engine's norm after attention adds
SIDES: list[Side] = ["train", "infer"]


class Fault(NamedTuple):
    name: str
    layer: int
    side: Side

    @property
    def places(self) -> list[str]:
        found = [*FOUND[self.name], *ALSO.get((self.name, self.side), [])]
        return [place.replace(".N.", f".{self.layer}.") for place in found]


def logic(dumped: Dumped, folder: Path) -> dict[str, ModuleReplay]:
    """The modules that differ by logic, with the mapping written by hand."""
    (folder / "rows.json").write_text(json.dumps(mapping.rows(dumped.on)))
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    full, _ = pipeline.mapping_step(train, infer, folder / "rows.json")
    results, told = pipeline.replay_step(train, infer, full, "0" * 64, folder / pipeline.REPLAY, {}, quiet=True)
    assert told.errors == []
    replayed = [module for module in results.modules if not module.module.endswith("attn_core")]
    assert len(replayed) == 12 * LAYERS + 3
    assert [module.module for module in replayed if module.verdict == "unknown"] == []
    return {module.module: module for module in replayed if module.verdict == "logic"}


def dumped_with(toys: Toys, faults: list[Fault], stored: str) -> Dumped:
    on = {side: Switches(tuple((fault.name, fault.layer) for fault in faults if fault.side == side)) for side in SIDES}
    return toys.both(on["train"], on["infer"], stored)


@pytest.mark.parametrize("stored", ["float16", "float32"])
def test_a_clean_pair_is_right_in_every_format(toys: Toys, tmp_path: Path, stored: str) -> None:
    """Rounding points of bfloat16 alone, and a bound that is too tight where nothing is rounded to 16 bits."""
    assert logic(toys.both(stored=stored), tmp_path) == {}


CASES = [(name, SIDES[at % 2], "float16") for at, name in enumerate(FOUND)]
CASES += [(name, SIDES[(at + 1) % 2], "float32") for at, name in enumerate(FOUND) if at % 2 == 0]


@pytest.mark.parametrize(("name", "side", "stored"), CASES)
def test_a_fault_is_found_in_every_format(toys: Toys, tmp_path: Path, name: str, side: Side, stored: str) -> None:
    """Faults that only bfloat16's grid shows; in float32 orders of rounding are not told, faults still are."""
    fault = Fault(name, 1, side)
    assert sorted(logic(dumped_with(toys, [fault], stored), tmp_path)) == sorted(fault.places)


SEVERAL = [
    [Fault("eps", 1, "train"), Fault("gate_up_order", 2, "infer")],
    [Fault("one_token", 0, "infer"), Fault("one_channel", 1, "infer"), Fault("missing_bias", 2, "train")],
    [Fault("missing_residual", 1, "infer"), Fault("kv_swapped", 2, "infer"), Fault("eps", 0, "train")],
    [
        Fault("norm_gain_twice", 0, "infer"), Fault("updated_weight", 1, "train"), Fault("one_channel", 2, "train"),
        Fault("missing_residual", 0, "train"),
    ],
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(SEVERAL)))
def test_every_one_of_several_faults_is_found(toys: Toys, tmp_path: Path, at: int) -> None:
    """A fault that hides behind an earlier one, and what an earlier one leads to that is called a fault."""
    faults = SEVERAL[at]
    found = logic(dumped_with(toys, faults, ["bfloat16", "float16"][at % 2]), tmp_path)
    assert sorted(found) == sorted(place for fault in faults for place in fault.places)
    for fault in faults:
        if fault.name in ("kv_swapped", "updated_weight"):  # the dumps hold no proof of who is right
            continue
        for place in fault.places:
            assert found[place].side == fault.side, place
