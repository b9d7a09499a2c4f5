"""Masks of objects: reading three formats, checking, cropping, resizing with the image, and comparing.

A mask is in the stored pixels of the original image, as crop boxes are; no EXIF orientation is applied. ImageNet-S
has a module of its own.
"""

from collections.abc import Collection, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from skimage.draw import polygon2mask

from cleanset.errors import CleansetError
from cleanset.images.base import base_image
from cleanset.images.boxes import Box, check_box
from cleanset.images.codec import MAX_AREA, decode
from cleanset.parsing import parse_json
from cleanset.validation import shown

Mask = NDArray[np.bool_]
"""True where the object is; bool of shape (height, width)."""

T = TypeVar("T")

MIN_AREA_SHARE = 0.01
"""Of the image's area; a smaller object is too small for a background made around it."""

MIN_PART_SHARE = 0.1
"""Of the largest connected part's area; smaller parts are no object of their own."""

Unsuitable = Literal["several_objects", "too_small", "cut_off"]

_PNG_MODES = ("1", "L", "P", "I", "I;16", "RGB")


class Regions(NamedTuple):
    """The object and the background of an image; what is in neither stays as it is, whatever changes."""

    object: Mask
    background: Mask


def regions_of(mask: Mask, ignored: Mask | None = None) -> Regions:
    """A mask as object, and all beside it as background but for the `ignored` pixels."""
    background = ~mask if ignored is None else ~mask & ~ignored
    return Regions(mask, background)


def png_mask(data: bytes, where: str) -> Mask:
    """The mask in a PNG: background where the value, palette index or all of red, green and blue are 0.

    Raises CleansetError, naming `where`, for no PNG, one with an alpha channel, and an empty or full mask.
    """
    image = read_png(data, where)
    if image.mode not in _PNG_MODES:
        raise CleansetError(f"{where}: PNG of mode {image.mode}; expected one value a pixel, 0 for background")
    pixels = np.asarray(image)
    values = pixels.reshape(image.height, image.width, -1)
    return _with_both(np.asarray(values.any(axis=-1)), where)


def read_png(data: bytes, where: str) -> Image.Image:
    """The decoded PNG. Raises CleansetError, naming `where`."""
    try:
        return decode(data, ("PNG",))
    except ValueError as error:
        raise CleansetError(f"{where}: cannot be read ({error}); expected a mask as PNG") from None


def rle_mask(text: str | bytes, where: str) -> Mask:
    """The mask in a COCO run-length encoding: JSON `{"size": [height, width], "counts": …}`.

    `counts` are the lengths of the runs of background and object in turn, down the columns, as a list or as COCO's
    text. Raises CleansetError, naming `where`, for anything else, and for an empty or full mask.
    """
    expected = 'COCO\'s {"size": [height, width], "counts": list or text}'
    rle = parse_json(text, where, expected)
    if not isinstance(rle, dict) or not _is_size(rle.get("size")):
        raise CleansetError(f"{where}: {shown(rle)}; expected {expected}")
    height, width = rle["size"]
    counts = rle.get("counts")
    try:
        runs = _runs(counts) if isinstance(counts, str) else counts
    except ValueError as error:
        raise CleansetError(f"{where}: counts {shown(counts)}: {error}; expected {expected}") from None
    if not isinstance(runs, list) or not all(_is_whole(run) and run >= 0 for run in runs):
        raise CleansetError(
            f"{where}: counts {shown(counts)}; expected a list of lengths, none negative, or COCO's text"
        )
    if sum(runs) != height * width:
        raise CleansetError(f"{where}: runs of {sum(runs):,} pixels in all; expected {height} x {width}")
    values = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return _with_both(np.ascontiguousarray(values.reshape(width, height).T), where)


def _runs(text: str) -> list[int]:
    """The lengths in COCO's text: groups of five bits from 48 on, the lowest first, and from the fourth length on
    the difference to the one two before."""
    runs: list[int] = []
    value = shift = 0
    for character in text:
        group = ord(character) - 48
        if not 0 <= group < 64 or shift > 60:
            raise ValueError(f"{shown(character)} cannot stand there")
        value |= (group & 31) << shift
        shift += 5
        if not group & 32:
            if group & 16:
                value -= 1 << shift
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    if shift:
        raise ValueError("it ends within a number")
    return runs


def labelme_mask(text: str | bytes, where: str) -> Mask:
    """The mask in a LabelMe file: all pixels whose centre is in one of its polygons.

    Raises CleansetError, naming `where`, for another shape than a polygon, one with fewer than three points, anything
    else that is no LabelMe file, and an empty or full mask.
    """
    expected = "a LabelMe file with imageHeight, imageWidth and shapes"
    labelled = parse_json(text, where, expected)
    if not isinstance(labelled, dict) or not isinstance(labelled.get("shapes"), list):
        raise CleansetError(f"{where}: {shown(labelled)}; expected {expected}")
    size = [labelled.get("imageHeight"), labelled.get("imageWidth")]
    if not _is_size(size):
        raise CleansetError(f"{where}: imageHeight and imageWidth {shown(size)}; expected whole numbers above 0")
    height, width = int(str(size[0])), int(str(size[1]))
    mask = np.zeros((height, width), np.bool_)
    for number, shape in enumerate(labelled["shapes"], 1):
        mask |= _filled(_polygon(shape, f"{where}, shape {number}"), height, width)
    return _with_both(mask, where)


def _polygon(shape: object, where: str) -> NDArray[np.float64]:
    """The corners of a polygon as x and y, pixels being unit squares; float64 of shape (corners, 2)."""
    kind = shape.get("shape_type", "polygon") if isinstance(shape, dict) else shape
    if not isinstance(shape, dict) or kind != "polygon":
        raise CleansetError(f"{where}: {shown(kind)}; expected a polygon")
    points = shape.get("points")
    if not isinstance(points, list) or not all(_is_point(point) for point in points):
        raise CleansetError(f"{where}: points {shown(points)}; expected a list of [x, y]")
    if len(points) < 3:
        raise CleansetError(f"{where}: a polygon with {len(points)} points; expected at least 3")
    return np.array(points, np.float64)


def _filled(polygon: NDArray[np.float64], height: int, width: int) -> Mask:
    """The pixels whose centre is inside; skimage counts rows first, and has centres at whole numbers."""
    inside: Mask = polygon2mask((height, width), polygon[:, ::-1] - 0.5)  # type: ignore[no-untyped-call]
    return inside


def _is_point(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_is_number(each) for each in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_AREA


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    """Whether a value is height and width of an image."""
    if not isinstance(value, list) or len(value) != 2 or not all(_is_whole(each) and each > 0 for each in value):
        return False
    return bool(value[0] * value[1] <= MAX_AREA)


def _with_both(mask: Mask, where: str) -> Mask:
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
    _with_both(mask, where)


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
    """Why no background can be made around the object, if so: it is several, touches the frame, or is very small."""
    labels, _ = ndimage.label(mask, structure=np.ones((3, 3)))
    areas = np.bincount(labels.ravel())[1:]
    if np.count_nonzero(areas >= MIN_PART_SHARE * areas.max(initial=0)) > 1:
        return "several_objects"
    if np.count_nonzero(mask) < MIN_AREA_SHARE * mask.size:
        return "too_small"
    if mask[[0, -1]].any() or mask[:, [0, -1]].any():
        return "cut_off"
    return None
