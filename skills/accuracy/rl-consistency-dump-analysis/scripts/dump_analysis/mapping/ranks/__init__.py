"""Which units of a side hold parts of one forward, and how they are put together: an assembly plan, proven on the data."""
