"""Whether both sides hold the same model before anything is dumped: configuration, structure, weights (stage 5)."""
