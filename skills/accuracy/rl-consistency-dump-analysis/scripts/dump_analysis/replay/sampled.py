"""Some rows of a block: enough to refuse a trial that is wrong, before it is tried on everything."""

from dump_analysis.replay import heads
from dump_analysis.replay.blocks import Block

_ROWS = 48


def sample_of(block: Block) -> Block:
    """The last rows of a block: they see most keys and have the largest angles."""
    rows = slice(max(0, len(block.recorded) - _ROWS), len(block.recorded))
    inputs = heads.cut_to(block.given.inputs, rows)
    return Block(block.given._replace(inputs=inputs), block.recorded[rows], block.token + rows.start, block.column)
