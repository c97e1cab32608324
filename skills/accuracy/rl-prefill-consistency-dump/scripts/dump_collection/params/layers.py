"""The two layers that look at built models: structure from names and shapes, weights from values."""

from typing import Dict, List, NamedTuple, Optional, Sequence

from msprobe_files.errors import DumpError

from . import structure, weights
from .items import Compared
from .sources import read_side

LAYERS = ("structure", "weights")


class Found(NamedTuple):
    """``layers``: what each checked layer found, by its name. ``errors``: why another could not be checked, for the user."""

    layers: Dict[str, Compared]
    errors: List[str]


def compare(train: Sequence[str], infer: Sequence[str], previous: Optional[str], stated: weights.Stated) -> Found:
    """Both layers, as far as the paths allow: lists of shapes hold no values; an error of one keeps what the other found.

    ``previous``: an earlier checkpoint, which alone proves that a weight is stale. ``stated``: of the configurations, how rows are read.
    """
    found = Found({}, [])
    try:
        sides = read_side("train", train), read_side("infer", infer)
        found.layers["structure"] = structure.compare_sides(*sides)
        if all(side.valued for side in sides):
            found.layers["weights"] = weights.compare_sides(*sides, previous, stated)
        elif previous is not None:
            raise DumpError("Cannot look for stale weights: lists hold no values. Hand checkpoints or dumps, or leave out --previous.")
    except DumpError as error:
        found.errors.append(str(error))
    return found
