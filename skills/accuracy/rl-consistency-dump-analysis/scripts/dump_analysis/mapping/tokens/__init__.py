"""Which rows of the two sides are the same tokens, and which forward and sequence they are of."""
