"""The two layers that look at built models: structure from names and shapes, weights from values."""

from typing import Dict, Optional, Sequence

from . import structure, weights
from .items import Compared
from .sources import read_side

LAYERS = ("structure", "weights")


def compare(train: Sequence[str], infer: Sequence[str], previous: Optional[str], kv_groups: Optional[int]) -> Dict[str, Compared]:
    """What each layer found, by its name; a layer that the paths do not allow is not there: lists of shapes hold no values.

    ``previous``: an earlier checkpoint, which alone proves that a weight is stale. Raises DumpError where a path cannot be used.
    """
    sides = read_side("train", train), read_side("infer", infer)
    found = {"structure": structure.compare_sides(*sides)}
    if all(side.valued for side in sides):
        found["weights"] = weights.compare_sides(*sides, previous, kv_groups)
    return found
