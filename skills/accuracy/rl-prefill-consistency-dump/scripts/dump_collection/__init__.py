"""What the commands of the collection skill do.

A room is a module or a package about one subject; rooms import only from lower floors (CONTRIBUTING.md). Python 3.8 and
the standard library alone, because the commands run inside other people's containers; the one exception says so.
"""
