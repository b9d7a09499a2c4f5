"""Crop boxes."""

from collections.abc import Collection
from typing import NamedTuple

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in stored pixels; right and bottom excluded."""


class Crop(NamedTuple):
    """The part of a picture inside a box."""

    image_id: str
    box: Box

    def __str__(self) -> str:
        return f"{self.image_id} cropped to {list(self.box)}"


def box_of(crop: Collection[float] | None) -> Box | None:
    """What stands in a column `crop` as a box; beside missing boxes pandas reads the edges as floats."""
    if crop is None:
        return None
    left, top, right, bottom = map(int, crop)
    return left, top, right, bottom
