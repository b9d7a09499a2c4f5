"""Crop boxes: their one type, its conversions, and its checks (inside the image, no side below the given limit)."""

from collections.abc import Iterable
from enum import Enum
from typing import Final, Literal, NamedTuple

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in stored pixels; right and bottom excluded."""


class Unknown(Enum):
    """The box of an image that is to be cropped, while nobody has drawn it."""

    BOX = "unknown"


UNKNOWN_BOX: Final[Literal[Unknown.BOX]] = Unknown.BOX

CropBox = Box | Unknown | None
"""The box that an image is cropped to: UNKNOWN_BOX while nobody has drawn it, None for a whole image."""


class Crop(NamedTuple):
    """The part of an image inside a box."""

    image_id: str
    box: Box

    def __str__(self) -> str:
        return f"{self.image_id} cropped to {list(self.box)}"


def parse_box(edges: object) -> Box:
    """The box with these edges. Raises ValueError unless they are four whole numbers from 0 that enclose an area."""
    if not isinstance(edges, list | tuple) or len(edges) != 4 or any(type(e) is not int or e < 0 for e in edges):
        raise ValueError("expected four whole numbers from 0: left, top, right, bottom in pixels")
    left, top, right, bottom = edges
    if not has_area((left, top, right, bottom)):
        raise ValueError(f"crop {list(edges)} has no area; expected left < right and top < bottom")
    return left, top, right, bottom


def known_box(box: CropBox) -> Box | None:
    """A box that somebody has drawn; None for a whole image and for an unknown box."""
    return None if isinstance(box, Unknown) else box


def box_of(crop: Iterable[float] | None) -> Box | None:
    """A value of a column `crop` as a box; None for a whole image."""
    # pandas turns the edges into floats where other rows of the column have no box
    return None if crop is None else parse_box([int(edge) for edge in crop])


def has_area(box: Box) -> bool:
    """Whether a box contains any pixel."""
    left, top, right, bottom = box
    return left < right and top < bottom


def check_box(box: Box, width: int, height: int) -> None:
    """Raise ValueError unless a box has an area and is inside an image of `width` x `height` pixels."""
    left, top, right, bottom = box
    if not (has_area(box) and left >= 0 and top >= 0 and right <= width and bottom <= height):
        raise ValueError(f"crop {list(box)} in an image of {width} x {height} pixels; expected a box inside it")


def check_crop(box: Box, width: int, height: int, min_side: int) -> None:
    """Raise ValueError unless an image of `width` x `height` pixels may be cropped to a box.

    The box must be inside the image, be smaller than it, and have no side of fewer than `min_side` pixels.
    """
    check_box(box, width, height)
    left, top, right, bottom = box
    if box == (0, 0, width, height):
        raise ValueError(f"crop {list(box)} is the whole image; expected a box smaller than it")
    if min(right - left, bottom - top) < min_side:
        raise ValueError(
            f"crop {list(box)} is {right - left} x {bottom - top} pixels; expected edges of at least {min_side} "
            "(review.min_crop_pixels): draw a larger box, or give another verdict"
        )
