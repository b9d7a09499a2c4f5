"""The formats of mask files: PNG, COCO's run lengths, labelme's polygons, and ImageNet-S.

A mask has the stored pixels of the original image, as crop boxes do; no EXIF orientation is applied.
"""

from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from skimage.draw import polygon2mask

from cleanset.errors import CleansetError
from cleanset.images.codec import MAX_AREA
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.validation import AtLeastOne, check_known, shown, validate
from cleanset.studies.robustness.scenarios.imagenet_s import IMAGENET_S, imagenet_s_regions
from cleanset.studies.robustness.scenarios.masks import Mask, Regions, read_png, regions_of, with_both

_PNG_MODES = ("1", "L", "P", "I", "I;16", "RGB")


def png_mask(data: bytes, where: str) -> Mask:
    """The mask in a PNG: background where the value, palette index or all of red, green and blue are 0.

    Raises CleansetError, naming `where`, for no PNG, one with an alpha channel, and an empty or full mask.
    """
    image = read_png(data, where)
    if image.mode not in _PNG_MODES:
        raise CleansetError(
            f"{where}: PNG of mode {image.mode}; expected a single value for each pixel, 0 for background"
        )
    pixels = np.asarray(image)
    values = pixels.reshape(image.height, image.width, -1)
    return with_both(np.asarray(values.any(axis=-1)), where)


def rle_mask(text: str | bytes, where: str) -> Mask:
    """The mask in a COCO run-length encoding: JSON `{"size": [height, width], "counts": …}`.

    `counts` are the lengths of the runs of background and object in turn, down the columns, as a list or as COCO's
    text. Raises CleansetError, naming `where`, for anything else, and for an empty or full mask.
    """
    expected = 'COCO\'s {"size": [height, width], "counts": list or text}'
    found = validate(_RunLengths, parse_json(text, where, expected), where, f"; expected {expected}")
    (height, width) = found.size
    runs = found.counts
    if sum(runs) != height * width:
        raise CleansetError(f"{where}: runs of {sum(runs):,} pixels in all; expected {height} x {width}")
    # every second run is object; the first, background, may have length 0
    values = np.repeat(np.arange(len(runs)) % 2 == 1, runs)
    return with_both(np.ascontiguousarray(values.reshape(width, height).T), where)


def _runs(text: object) -> object:
    """The lengths in COCO's text: groups of five bits, written as characters above 47, the lowest group first.

    Since the fourth length, it is the difference to the length two before. Anything but a text stays unchanged.
    """
    if not isinstance(text, str):
        return text
    runs: list[int] = []
    value = shift = 0
    for character in text:
        group = ord(character) - 48
        if not 0 <= group < 64 or shift > 60:
            raise ValueError(f"{shown(character)} cannot be there")
        # five bits of the value; the sixth, 32, says that more follow
        value |= (group & 31) << shift
        shift += 5
        if not group & 32:
            # the sign bit of the last group
            if group & 16:
                value -= 1 << shift
            runs.append(value + runs[-2] if len(runs) > 2 else value)
            value = shift = 0
    if shift:
        raise ValueError("it ends within a number")
    return runs


def _readable(size: list[int]) -> list[int]:
    if size[0] * size[1] > MAX_AREA:
        raise ValueError(f"{size[0]} x {size[1]} pixels; expected at most {MAX_AREA:,}")
    return size


Side = AtLeastOne


Coordinate = Annotated[float, Field(gt=-MAX_AREA, lt=MAX_AREA)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _RunLengths(_Strict):
    size: Annotated[list[Side], Field(min_length=2, max_length=2), AfterValidator(_readable)]
    counts: Annotated[list[Annotated[int, Field(ge=0)]], BeforeValidator(_runs)]


class _Polygon(_Strict):
    shape_type: Literal["polygon"] = "polygon"
    points: Annotated[list[Annotated[list[Coordinate], Field(min_length=2, max_length=2)]], Field(min_length=3)]


class _LabelMe(_Strict):
    height: Side = Field(alias="imageHeight")
    width: Side = Field(alias="imageWidth")
    shapes: list[_Polygon]

    @model_validator(mode="after")
    def _is_readable(self) -> Self:
        _readable([self.height, self.width])
        return self


def labelme_mask(text: str | bytes, where: str) -> Mask:
    """The mask in a LabelMe file: all pixels whose centre is in one of its polygons.

    Raises CleansetError, naming `where`, for another shape than a polygon, one with fewer than three points, anything
    else that is not a LabelMe file, and an empty or full mask.
    """
    expected = "a LabelMe file with imageHeight, imageWidth and shapes"
    found = validate(_LabelMe, parse_json(text, where, expected), where, f"; expected {expected}")
    mask = np.zeros((found.height, found.width), np.bool_)
    for shape in found.shapes:
        # pixels are unit squares; skimage counts rows first, and has centres at whole numbers
        corners = np.array(shape.points, np.float64)[:, ::-1] - 0.5
        mask |= polygon2mask(mask.shape, corners)  # type: ignore[no-untyped-call]
    return with_both(mask, where)


_READERS = {"png": png_mask, "coco": rle_mask, "labelme": labelme_mask}


FORMATS: tuple[str, ...] = (*_READERS, IMAGENET_S)


MASK_SUFFIXES: dict[str, str] = {"png": ".png", "coco": ".json", "labelme": ".json", IMAGENET_S: ".png"}
"""The suffix of the files of each format."""


def read_regions(data: bytes, mask_format: str, wnid: str, where: str) -> Regions:
    """Object and background in a mask file; `wnid` is the image's class, which ImageNet-S needs.

    Raises CleansetError, naming `where`, for an unknown format, and as the format's reader does.
    """
    check_known("mask format", mask_format, FORMATS)
    if mask_format == IMAGENET_S:
        return imagenet_s_regions(data, wnid, where)
    return regions_of(_READERS[mask_format](data, where))
