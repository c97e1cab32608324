#!/bin/sh
# The user's own way to start it.
exec python3 "$(dirname "$0")/train.py" "$@"
