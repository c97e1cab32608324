"""Toys that the real msprobe dumps, and sample pairs, for the tests of replay."""

from sampled import sample, toys

__all__ = ["sample", "toys"]
