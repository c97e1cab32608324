"""noise_floor.json: how far runs that must agree part by themselves, at each boundary."""

from typing import Literal

import msgspec

Method = Literal["single_vs_stacked", "within_batch", "repeat"]


class FloorPoint(msgspec.Struct, frozen=True):
    """The worst over all pairs at one boundary. ``ulp_p99``: the distance that 99 % of the elements keep within, by its bin's end."""

    boundary: str
    layer: int | None
    dtype: str
    max_abs: float
    rel_l2: float
    ulp_p99: int
    share: float


class NoiseFloor(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["noise_floor/1"] = "noise_floor/1"
    method: Method
    points: list[FloorPoint]
    runs: int
