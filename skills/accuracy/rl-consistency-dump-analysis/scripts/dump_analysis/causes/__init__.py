"""What may be behind a difference: hypotheses with their grounds, and what the measures of one boundary look like.

A fingerprint says what kinds of cause a difference looks like and which they are not told from; it proves neither
rounding nor logic.
"""

from dump_analysis.causes.looks import fingerprint
from dump_analysis.causes.six import hypotheses

__all__ = ["fingerprint", "hypotheses"]
