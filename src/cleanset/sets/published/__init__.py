"""The published set of source 000's authors; bench/replay.py repeats their procedure on it."""
