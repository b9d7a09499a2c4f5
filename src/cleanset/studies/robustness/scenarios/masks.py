"""Regions of an image, object and background: cropped and resized with it, checked and compared."""

import io
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image
from scipy import ndimage

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_box
from cleanset.images.codec import decode_file
from cleanset.images.preprocessing import base_image
from cleanset.statistics.basics import Flags

Mask = Flags
"""True where the object is; bool of shape (height, width)."""

MIN_AREA_SHARE = 0.01
"""Minimum share of the image's area for an object that gets a generated background."""

MIN_PART_SHARE = 0.1
"""Minimum share of the largest connected part's area; smaller parts do not count as objects."""

LeftOut = Literal["no_mask", "other_class", "no_object", "no_background", "several_objects", "too_small", "cut_off"]
"""The reason why an image is in no scenario. `other_class`: its mask in ImageNet-S is of other classes than its set's;
`no_object`, `no_background`: the part of the image that models see lacks it."""


class Regions(NamedTuple):
    """The object and the background of an image; pixels in neither never change."""

    object: Mask
    background: Mask


def regions_of(mask: Mask, ignored: Mask | None = None) -> Regions:
    """A mask as object, and all next to it as background but for the `ignored` pixels."""
    background = ~mask if ignored is None else ~mask & ~ignored
    return Regions(mask, background)


EMPTY_MASK = "empty mask; expected an object: draw it, or remove the file"


def with_both(mask: Mask, where: str) -> Mask:
    """The mask. Raises CleansetError if it is empty or full."""
    if not mask.any():
        raise CleansetError(f"{where}: {EMPTY_MASK}")
    if mask.all():
        raise CleansetError(f"{where}: full mask, without a background: draw it again, or remove the file")
    return mask


def cropped_mask(mask: Mask, box: Box) -> Mask:
    """The part of a mask inside the box that its image is cropped to; it may be empty or full.

    Raises ValueError for a box that is not inside the mask.
    """
    check_box(box, mask.shape[1], mask.shape[0])
    left, top, right, bottom = box
    return mask[top:bottom, left:right]


def base_mask(mask: Mask) -> Mask:
    """The mask of the base image, bool of shape (224, 224): True where at least half of a pixel's area is object.

    It may be empty or full. Raises ValueError as `base_image` does.
    """
    return base_image(Image.fromarray(mask.astype(np.uint8) * 255))[..., 0] >= 128


def base_regions(regions: Regions) -> Regions:
    """The regions of the base image; a pixel that is half of each belongs to the object."""
    mask = base_mask(regions.object)
    return Regions(mask, base_mask(regions.background) & ~mask)


def intersection_over_union(one: Mask, other: Mask) -> float:
    """Pixels in both masks by pixels in either, 0 to 1; both are of one shape, and one of them has an object."""
    union = int(np.count_nonzero(one | other))
    return int(np.count_nonzero(one & other)) / union


def unsuitable(mask: Mask) -> LeftOut | None:
    """The reason why no background can be made around the object: several parts, tiny, or cut off; None if it can."""
    # parts that touch at a corner are one
    labels, _ = ndimage.label(mask, structure=np.ones((3, 3)))
    # label 0 is the background
    areas = np.bincount(labels.ravel())[1:]
    if np.count_nonzero(areas >= MIN_PART_SHARE * areas.max(initial=0)) > 1:
        return "several_objects"
    if np.count_nonzero(mask) < MIN_AREA_SHARE * mask.size:
        return "too_small"
    if mask[[0, -1]].any() or mask[:, [0, -1]].any():
        return "cut_off"
    return None


def cropped_regions(regions: Regions, crop: Box | None) -> Regions:
    """The regions of the original at the size of an image, cropped or whole."""
    if crop is None:
        return regions
    return Regions(cropped_mask(regions.object, crop), cropped_mask(regions.background, crop))


def read_png(data: bytes, where: str) -> Image.Image:
    """The decoded PNG. Raises CleansetError, naming `where`."""
    return decode_file(data, where, "a mask as PNG", "PNG")


def mask_png(mask: Image.Image) -> bytes:
    """A mask as PNG of one bit a pixel, the object white."""
    buffer = io.BytesIO()
    mask.convert("1", dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
