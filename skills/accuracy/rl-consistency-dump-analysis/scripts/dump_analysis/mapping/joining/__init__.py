"""Nodes of the two sides joined: by signatures, weights, roles in the layer, and the flow of data."""
