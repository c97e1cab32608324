"""The distances in ULP of one boundary, as shares on either side: it shows, it does not decide."""

from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.report.said import Voice, count, share
from dump_analysis.wording import word

_BINS = ("1", "2", "3-4", "5-8", "9-64", ">64")
_NEAR = ("1", "2", "3-4")
_ENOUGH = 20  # elements that all go one way by chance once in half a million


class Bar(NamedTuple):
    """A bin: elements whose magnitude is smaller, and larger, on train."""

    label: str
    smaller: int
    larger: int


class Histogram(NamedTuple):
    """``of``: unequal elements in all bins; ``reading`` begins the caption."""

    boundary: str
    bars: tuple[Bar, ...]
    of: int
    reading: str
    caption: str
    finding: str

    def per_cent(self, number: int) -> str:
        """A share as it stands at a bar's end; empty for none."""
        if not number:
            return ""
        per_cent = 100 * number / self.of
        return "<1%" if per_cent < 1 else f"{min(int(per_cent + 0.5), 100 if number == self.of else 99)}%"


def histogram(finding: Finding, row: BoundaryResult | None, voice: Voice) -> Histogram | None:
    """The histogram of a finding's place; None where too few elements differ there to say anything."""
    if row is None or row.ulp is None:
        return None
    counted = row.ulp.histogram
    bars = [Bar(label.replace("-", "–").replace(">", "> "), *_pair(counted.get(label))) for label in _BINS]
    opposite = counted.get("opposite_sign", 0)
    crossed = opposite if isinstance(opposite, int) else sum(opposite)
    of = sum(bar.smaller + bar.larger for bar in bars) + crossed
    if of < _ENOUGH:
        return None
    smaller, larger = sum(bar.smaller for bar in bars), sum(bar.larger for bar in bars)
    bars.append(Bar(voice.say(word("col_sign")), crossed, 0))
    near = sum(sum(_pair(counted.get(label))) for label in _NEAR)
    far = bars[5].smaller + bars[5].larger + crossed
    if 0 in (smaller, larger) and not crossed:
        reading = word("hist_one_way")
    elif 2 * far >= of:
        reading = word("hist_far", share=share(far, of))
    else:
        reading = word("hist_near", share=share(near, of))
    caption = [word("hist_caption", n=count(of), boundary=row.boundary), word("hist_all")]
    return Histogram(row.boundary, tuple(bars), of, voice.say(reading), voice.flow(map(voice.say, caption)), finding.id)


def _pair(found: list[int] | int | None) -> tuple[int, int]:
    return (found[0], found[1]) if isinstance(found, list) else (found or 0, 0)
