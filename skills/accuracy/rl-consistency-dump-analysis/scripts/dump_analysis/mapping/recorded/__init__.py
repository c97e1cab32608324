"""What a side recorded, as nodes: distinct matrices of [tokens, columns], when each was made, and what they say of each other."""
