"""A report source filled from what an analysis has left in its folder."""
