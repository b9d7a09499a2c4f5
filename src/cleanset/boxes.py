"""Crop boxes."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in stored pixels; right and bottom excluded."""
