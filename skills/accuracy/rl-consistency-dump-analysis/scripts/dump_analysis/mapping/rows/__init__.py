"""Joined nodes and parameters as rows of a mapping, and as gaps with their reason."""
