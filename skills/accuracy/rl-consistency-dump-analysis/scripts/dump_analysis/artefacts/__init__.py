"""One module a file format that passes between stages, and `io` that reads and writes them all."""
