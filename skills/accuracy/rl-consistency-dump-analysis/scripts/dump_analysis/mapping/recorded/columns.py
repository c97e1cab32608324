"""Columns: which of one tensor are which of another, and nodes that are some columns of another node."""

from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.keys import keys_of
from dump_analysis.mapping.recorded.nodes import Node, Spot
from dump_analysis.mapping.recorded.token_rows import columns_op

ALIKE = 0.15  # relative L2 of a right pair in its best layer, once columns are aligned
_MOST_COLUMNS = 8192  # whose correlations are computed
_KEY_TOKENS = 16


class Order(NamedTuple):
    """How columns correspond. ``agree``: they do, as they stand or as ``columns`` (for each of infer the one of train)."""

    agree: bool
    columns: Array | None


def column_order(train: Array, infer: Array) -> Order:
    """How the columns of two samples [tokens, columns] correspond: as they stand, else by correlation, one to one."""
    if relative(train, infer) < ALIKE:
        return Order(True, None)
    if train.shape[1] > _MOST_COLUMNS:
        return Order(False, None)
    columns = (_standard(infer).T @ _standard(train)).argmax(1)
    one_to_one = len(np.unique(columns)) == len(columns)
    if one_to_one and relative(train[:, columns], infer) < ALIKE:
        return Order(True, columns)
    return Order(False, None)


def relative(left: Array, right: Array) -> float:
    """‖left − right‖ / ‖left‖."""
    return float(np.linalg.norm(left - right) / (np.linalg.norm(left) + 1e-30))


def _standard(sample: Array) -> Array:
    centred = sample - sample.mean(0)
    scaled: Array = centred / (np.linalg.norm(centred, axis=0) + 1e-9)
    return scaled


def column_keys(node: Node) -> Array:
    """A key for each column of a node, from up to 16 of its sampled tokens."""
    tokens = np.unique(np.linspace(0, len(node.sample) - 1, min(len(node.sample), _KEY_TOKENS)).astype(np.int64))
    return keys_of(node.sample[tokens].T)


def cut(node: Node, columns: Array, kind: str, spot: Spot) -> Node:
    """A node of some columns of another, in the order given."""
    op = columns_op(columns.tolist())
    sources = [source._replace(steps=(*(source.steps or ()), op)) for source in node.sources]
    run = op.op == "slice"  # a view then, not a copy
    sample = node.sample[:, op.start : op.stop] if run else node.sample[:, columns]
    return Node(sample, sources, node.combine, kind, [spot], spot.time)
