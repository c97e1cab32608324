"""What was found of one weight."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from msprobe_files.weight_kinds import Difference

from dump_collection.params.pairing import Pair


class Found(NamedTuple):
    """A weight and how its sides compare. ``size``: rows and columns compared; ``keys``, ``dtypes``: of train and infer.

    ``how``: of what differs; ``side``: the one that the note speaks of; ``laid``: what was done to bring both into one layout.
    """

    name: str
    pair: Pair
    keys: Tuple[List[str], List[str]]
    dtypes: Tuple[str, str]
    size: Tuple[int, int]
    status: str = "EXACT"
    kind: Optional[str] = None
    note: Optional[Dict[str, Any]] = None
    how: Optional[Difference] = None
    side: str = ""
    laid: Optional[Dict[str, Any]] = None
