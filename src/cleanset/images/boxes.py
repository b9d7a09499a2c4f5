"""Crop boxes: their one shape, and the check against an image."""

from collections.abc import Collection
from typing import NamedTuple

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in stored pixels; right and bottom excluded."""


class Crop(NamedTuple):
    """The part of an image inside a box."""

    image_id: str
    box: Box

    def __str__(self) -> str:
        return f"{self.image_id} cropped to {list(self.box)}"


def box_of(crop: Collection[float] | None) -> Box | None:
    """A value of a column `crop` as a box; beside missing boxes pandas reads the edges as floats."""
    if crop is None:
        return None
    left, top, right, bottom = map(int, crop)
    return left, top, right, bottom


def check_box(box: Box, width: int, height: int) -> None:
    """Raise ValueError unless a box has an area and lies inside an image of `width` x `height` pixels."""
    left, top, right, bottom = box
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise ValueError(f"crop {list(box)} in an image of {width} x {height} pixels; expected a box inside it")
