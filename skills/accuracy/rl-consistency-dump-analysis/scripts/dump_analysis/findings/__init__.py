"""Findings (floor 9): independent differences, from what was compared and from what was recomputed."""
