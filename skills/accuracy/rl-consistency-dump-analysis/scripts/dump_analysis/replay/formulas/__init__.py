"""The operators that can be recomputed, one a file; a new one is its file and one line here."""

from dump_analysis.replay.formulas.kinds import Emulated, Formula, Given, Variant

__all__ = ["FORMULAS", "Emulated", "Formula", "Given", "Variant"]

FORMULAS: dict[str, Formula] = {}
