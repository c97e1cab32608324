"""The mapping of dumps without tensors: from names of shapes, order, statistics and digests."""
