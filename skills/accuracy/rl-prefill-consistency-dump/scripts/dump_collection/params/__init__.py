"""Whether both sides build the same model: configurations compared by what their fields mean, before anything is dumped."""
