"""What a dump of several ranks is asked for by, and which place each rank has in it. Imports no torch."""

from typing import Literal, NamedTuple

from toys.switches import CLEAN, LAYERS, Switches

Model = Literal["megatron", "hf", "fsdp1", "fsdp2", "engine"]
Forwards = Literal["whole", "chunks", "prefix", "served", "two_requests"]
CHUNK = 16  # tokens of the first of two chunks, and of a cached prefix
DUMMY = 32  # tokens of a forward that warms the engine up
PARTIAL = Switches(tuple(("partial_sums", layer) for layer in range(LAYERS)))  # what two tensor-parallel ranks compute, on one rank


class Job(NamedTuple):
    """One dump. What a model has no use for stays as it is.

    ``zigzag``: a context-parallel rank has a chunk from the front and one from the back; else one chunk.
    ``prompts``: what each data-parallel replica runs; prompt 0 is the toy's own. ``sequence``: sequence parallel, of the trainer.
    ``reduces``: the engine's row-parallel layers add their ranks' parts themselves; else the layer around them does.
    ``identities``: the trainer's attention hands q and k through modules that do nothing, as models with norms there have norms.
    ``forwards``: what the engine is asked to run, one dump step for each forward:

    ``whole`` one prefill · ``chunks`` the prompt in two parts · ``prefix`` its second part alone, the first came from the cache ·
    ``served`` a dummy forward, the prefill, one decoded token · ``two_requests`` another prompt, then the prompt
    """

    model: Model
    tp: int = 1
    pp: int = 1
    cp: int = 1
    zigzag: bool = True
    sequence: bool = False
    prompts: tuple[int, ...] = (0,)
    reduces: bool = True
    identities: bool = True
    forwards: Forwards = "whole"
    on: Switches = CLEAN

    @property
    def world(self) -> int:
        """How many ranks there are."""
        return self.tp * self.cp * self.pp * len(self.prompts)

    def rank(self, *, tp: int = 0, cp: int = 0, dp: int = 0, pp: int = 0) -> int:
        """The rank at a place: tensor-parallel neighbours follow each other, stages are farthest apart."""
        return ((pp * len(self.prompts) + dp) * self.cp + cp) * self.tp + tp

    def stage_of(self, layer: int) -> tuple[int, int]:
        """Stage of a layer and its number there, from 0; earlier stages have one more where they do not divide evenly."""
        bounds = [-(-LAYERS * stage // self.pp) for stage in range(self.pp + 1)]
        stage = max(at for at in range(self.pp) if bounds[at] <= layer)
        return stage, layer - bounds[stage]

    def tokens_of(self, cp: int, tokens: int) -> list[int]:
        """Tokens of a context-parallel rank: of cp chunks its own or, of 2 cp, one from the front and its mirror image from the back."""
        width = tokens // (2 * self.cp)
        if self.cp == 1:
            return list(range(tokens))
        if not self.zigzag:
            return list(range(2 * width * cp, 2 * width * (cp + 1)))
        return [chunk * width + at for chunk in (cp, 2 * self.cp - 1 - cp) for at in range(width)]
