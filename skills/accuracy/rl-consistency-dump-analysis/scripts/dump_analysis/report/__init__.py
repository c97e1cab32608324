"""The report: its source of facts, what may not stand in it, and its two renderings."""
