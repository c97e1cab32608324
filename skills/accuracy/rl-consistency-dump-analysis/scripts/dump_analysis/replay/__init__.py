"""Replay (floor 7): recompute what a module recorded from its own inputs and weights, so that local error parts from inherited error."""
