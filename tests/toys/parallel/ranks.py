"""The ranks of one group, and what they exchange: over gloo, added in the order of the ranks, so that every rank has the same bits."""

import torch
import torch.distributed as dist
from torch import Tensor

from toys.arithmetic import rounded


class Ranks:
    """One group that this process belongs to. Every process makes every group, in the same order."""

    def __init__(self, members: list[int]) -> None:
        self.members, self.count = members, len(members)
        self._group = dist.new_group(members) if self.count > 1 else None
        self.at = members.index(dist.get_rank()) if dist.get_rank() in members else 0

    def parts(self, x: Tensor) -> list[Tensor]:
        """What every rank handed in, by rank; all of one shape."""
        if self._group is None:
            return [x]
        wide = x.detach().float().contiguous()
        found = [torch.empty_like(wide) for _ in self.members]
        dist.all_gather(found, wide, group=self._group)
        return [part.to(x.dtype) for part in found]

    def joined(self, x: Tensor, axis: int) -> Tensor:
        """All parts along an axis."""
        return torch.cat(self.parts(x), axis)

    def summed(self, x: Tensor) -> Tensor:
        """bfloat16 parts added from the first rank to the last, rounded after each."""
        total, *others = self.parts(x)
        for other in others:
            total = rounded(total.float() + other.float())
        return total

    def share(self, x: Tensor, axis: int = 0) -> Tensor:
        """This rank's equal part of what all ranks hold."""
        return x.chunk(self.count, axis)[self.at]
