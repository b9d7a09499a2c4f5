"""Crop boxes."""

from typing import NamedTuple

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in stored pixels; right and bottom excluded."""


class Crop(NamedTuple):
    """The part of a picture inside a box."""

    image_id: str
    box: Box

    def __str__(self) -> str:
        return f"{self.image_id} cropped to {list(self.box)}"
