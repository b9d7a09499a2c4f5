"""Masks of objects: checking, cropping, resizing with the image, and comparing them.

A mask is in the stored pixels of the original image, as crop boxes are; no EXIF orientation is applied.
"""

from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from cleanset.errors import CleansetError
from cleanset.images.boxes import Box, check_box
from cleanset.images.preprocessing import base_image

Mask = NDArray[np.bool_]
"""True where the object is; bool of shape (height, width)."""

T = TypeVar("T")

MIN_AREA_SHARE = 0.01
"""Minimum share of the image's area for an object that gets a generated background."""

MIN_PART_SHARE = 0.1
"""Minimum share of the largest connected part's area; smaller parts do not count as objects."""

Unsuitable = Literal["several_objects", "too_small", "cut_off"]


class Regions(NamedTuple):
    """The object and the background of an image; what is in neither stays as it is, whatever changes."""

    object: Mask
    background: Mask


def regions_of(mask: Mask, ignored: Mask | None = None) -> Regions:
    """A mask as object, and all beside it as background but for the `ignored` pixels."""
    background = ~mask if ignored is None else ~mask & ~ignored
    return Regions(mask, background)


def with_both(mask: Mask, where: str) -> Mask:
    """The mask. Raises CleansetError if it is empty or full."""
    if not mask.any():
        raise CleansetError(f"{where}: empty mask; expected an object: draw it, or remove the file")
    if mask.all():
        raise CleansetError(f"{where}: full mask, no background; expected some: draw it again, or remove the file")
    return mask


def check_mask(mask: Mask, width: int, height: int, where: str) -> None:
    """Raise CleansetError, naming `where`, unless a mask is of the original's size and has object and background."""
    if mask.shape != (height, width):
        raise CleansetError(
            f"{where}: mask of {mask.shape[1]} x {mask.shape[0]} pixels for an image of {width} x {height}; "
            "expected the size of the original, uncropped image"
        )
    with_both(mask, where)


def by_image(masks: Iterable[tuple[str, T]], image_ids: Collection[str], what: str = "mask") -> dict[str, T]:
    """The masks by image id, sorted. Raises CleansetError for an unknown image, and for two masks of one."""
    known, found = set(image_ids), dict[str, T]()
    for image_id, mask in sorted(masks, key=lambda each: each[0]):
        if image_id not in known:
            raise CleansetError(f"{image_id}: {what} of an unknown image; expected one of the sets: remove it")
        if image_id in found:
            raise CleansetError(f"{image_id}: two {what}s; expected one an image: remove one")
        found[image_id] = mask
    return found


def cropped_mask(mask: Mask, box: Box) -> Mask:
    """The part of a mask inside the box that its image is cropped to; it may be empty or full.

    Raises ValueError for a box that is not inside the mask.
    """
    check_box(box, mask.shape[1], mask.shape[0])
    left, top, right, bottom = box
    return mask[top:bottom, left:right]


def base_mask(mask: Mask) -> Mask:
    """The mask of the base image, bool of shape (224, 224): True where at least half of what a pixel shows is object.

    It may be empty or full. Raises ValueError as `base_image` does.
    """
    return base_image(Image.fromarray(mask.astype(np.uint8) * 255))[..., 0] >= 128


def base_regions(regions: Regions) -> Regions:
    """The regions of the base image; a pixel that is half of each belongs to the object."""
    mask = base_mask(regions.object)
    return Regions(mask, base_mask(regions.background) & ~mask)


def intersection_over_union(one: Mask, other: Mask) -> float:
    """Pixels in both masks by pixels in either, 0 to 1. Raises ValueError for other shapes or two empty masks."""
    if one.shape != other.shape:
        raise ValueError(f"masks of {one.shape} and {other.shape}; expected one shape")
    union = int(np.count_nonzero(one | other))
    if not union:
        raise ValueError("two empty masks; expected an object in one of them")
    return int(np.count_nonzero(one & other)) / union


def unsuitable(mask: Mask) -> Unsuitable | None:
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
