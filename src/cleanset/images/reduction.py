"""The size at which images are measured and compared: reduced by an integer factor."""

MAX_SIDE_PIXELS = 512
"""Longest side of a reduced image."""


def reduction(size: tuple[int, int], max_side: int = MAX_SIDE_PIXELS) -> int:
    """The reduction factor of an image of this size before it is measured."""
    return -(-max(size) // max_side)
