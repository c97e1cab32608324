"""Which msprobe is installed, and what its release is known to get wrong.

Read and measured on the wheels of mindstudio-probe 8.1.2, 8.2.1, 8.3.0, 8.3.3, 26.0.0, 26.1.0.post1 and 26.2.0.
"""

import re
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError

UNKNOWN = "unknown"
GET_26_2 = "Install it into the environment that runs this side: pip install mindstudio-probe==26.2.0 (it brings no torch)"


class Release(NamedTuple):
    """A release. ``numbers``: its first three numbers, None where it is unknown."""

    text: str
    numbers: Optional[Tuple[int, int, int]]

    def is_before(self, *numbers: int) -> bool:
        """Whether it is known to be older."""
        return self.numbers is not None and self.numbers < (*numbers, 0, 0)[:3]


def release_of(stated: Optional[str]) -> Release:
    """The release stated, else the one installed beside this interpreter, else ``unknown``.

    Raises DumpError where what is stated is no version.
    """
    if stated is None:
        from importlib import metadata

        try:
            stated = metadata.version("mindstudio-probe")
        except metadata.PackageNotFoundError:
            stated = UNKNOWN
    if stated == UNKNOWN:
        return Release(UNKNOWN, None)
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", stated)
    if not found:
        raise DumpError("Cannot use the msprobe version %r: expected numbers such as 26.2.0. Ask: pip show mindstudio-probe." % stated)
    return Release(stated, (int(found.group(1)), int(found.group(2)), int(found.group(3) or 0)))


def traps(release: Release, purpose: str, frameworks: Sequence[str], fp8: bool) -> Iterator[str]:
    """What a release gets wrong that a configuration cannot mend, each with its cure."""
    if release.numbers is None:
        yield (
            "the msprobe version is unknown: traps of releases before 26.2 are not ruled out. "
            "Ask in the environment of this side: pip show mindstudio-probe, and give --msprobe-version"
        )
    if release.is_before(26, 2):
        yield (
            "msprobe %s records the inputs of a module after its call: modules that work in place (an engine's fused add and norm) "
            "show their results. %s, or take the outputs of the producers" % (release.text, GET_26_2)
        )
    if release.is_before(9):
        yield "msprobe %s needs numpy<2 and pandas<2.1, else its import fails (np.unicode_)" % release.text
    if release.is_before(8, 2):
        yield "msprobe %s loses the whole dump where an argument is nested deeper than about 10. Use 8.2 or newer" % release.text
    if release.numbers is not None and release.numbers[:2] == (26, 0):
        yield "msprobe 26.0 requires protobuf<=3.20.2, which breaks ray and onnx: install it with --no-deps, or take 26.2.0"
    if fp8:
        yield _fp8(release)
    if "verl" in frameworks and not release.is_before(8, 3, 1):
        yield (
            "in a process that imported verl, msprobe from 8.3.1 on skips the second and the last module of named_modules(): of a trainer "
            "the inner model and lm_head, of an engine started by verl logits_processor. Hand start() a holder whose first child is the "
            "model and whose last child is nn.Identity(), or compare at the final norm"
        )
    if purpose == "mix":
        yield from _mix(release)


def _fp8(release: Release) -> str:
    if release.is_before(9):
        return "the model is quantised to fp8: msprobe %s drops every entry that touches fp8 (dump_error_info.log)" % release.text
    if release.is_before(26, 1):
        return "the model is quantised to fp8: msprobe %s writes float32 files that dump.json calls float8" % release.text
    return "the model is quantised to fp8: msprobe from 26.1 on stores such tensors of a card, and dies with a segfault on those of a CPU"


def _mix(release: Release) -> Iterator[str]:
    yield (
        "level mix replaces functions such as F.silu by wrapped ones: references taken before fail identity checks. Build the debugger "
        "before the model, and look functions up when they are called. On an NPU set NPU_ASD_ENABLE=0, else functions are lost"
    )
    if not release.is_before(26, 0):
        yield "level mix records no views, casts and transposes (risk_level FOCUS, the default from 26.0 on)"
