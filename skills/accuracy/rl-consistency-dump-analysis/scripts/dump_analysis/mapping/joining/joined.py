"""What joining two sides gives."""

from typing import NamedTuple

from dump_analysis.floats import Array
from dump_analysis.mapping.joining.partial import PartialSide
from dump_analysis.mapping.recorded.nodes import Node, SideNodes
from dump_analysis.mapping.tokens.token_join import TokenJoin


class Joined(NamedTuple):
    """One joined row: a node of each side.

    ``columns``: None where they stand alike; else, for each column of infer, the column of train that holds it.
    ``weights``: share of the weights that join the two modules, 0 without.  ``likeness``: decades, −log10 of the distance
    of the two signatures in the best layer of their slots (4: equal within one rounding).
    ``why``: pattern | node | order | sum | transfer | name.
    """

    train: Node
    infer: Node
    columns: Array | None
    weights: float
    likeness: float
    why: str


class JoinedSides(NamedTuple):
    """What joins the sides. ``rows``: in the trainer's order of execution.

    ``modules``: (train entry, infer entry) -> (share of equal weights, "rows" | "cols" | "vec").  ``exchanged``: pairs of rows
    (of k and v, of gate and up) that roles or the other layers have joined, though the values of each are on the other's infer side.
    ``partial``: the side that lacks ranks.
    """

    rows: list[Joined]
    train: SideNodes
    infer: SideNodes
    modules: dict[tuple[str, str], tuple[float, str]]
    tokens: TokenJoin
    exchanged: list[tuple[Joined, Joined]]
    partial: PartialSide | None = None
