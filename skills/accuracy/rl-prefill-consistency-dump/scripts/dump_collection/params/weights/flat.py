"""Flat parameters of FSDP1, cut into the weights that they hold by what the other side's weights hold."""

from typing import Sequence

from msprobe_files.errors import DumpError

from ..pairing import Paired
from ..sources import Parameter, Side
from .matrices import Files


def unflattened(files: Files, train: Side, infer: Side, flat: Sequence[Parameter]) -> Paired:
    """The other side's weights paired with where a flat parameter holds them."""
    raise DumpError("Cannot compare flat parameters")
