"""The published set of SCOOTER's authors; bench/replay.py repeats their procedure on it."""
