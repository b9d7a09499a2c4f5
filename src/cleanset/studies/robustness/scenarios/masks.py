"""Masks of objects: reading their files, checking, cropping, resizing with the image, and comparing them.

A mask is in the stored pixels of the original image, as crop boxes are; no EXIF orientation is applied. Files are PNG,
COCO's run lengths, labelme's polygons, and ImageNet-S.

ImageNet-S (Gao et al., 2022) has objects of ImageNet's validation images, drawn by people: a PNG of the image's size
and name, whose red + 256 x green is a number: 0 for other things, 1 to 919 for a class, by the order of their wnids,
and 1000 for pixels that are ignored.

A study's images have a mask each, or a reason why scenarios cannot use it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from scipy import ndimage
from skimage.draw import polygon2mask

from cleanset.classes import ClassTable, imagenet
from cleanset.dataset.ilsvrc import VALIDATION_IMAGES
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.boxes import Box, box_of, check_box
from cleanset.images.codec import MAX_AREA, decode_file
from cleanset.images.preprocessing import base_image
from cleanset.json_files import parse_json
from cleanset.sets.folder import read_regular_file
from cleanset.studies.robustness.family import CommonParams
from cleanset.studies.robustness.images import MASKS, SetImages, StudyFile
from cleanset.studies.robustness.scenarios.params import GENERATED, Scenarios
from cleanset.validation import check_known, shown, validate

Mask = NDArray[np.bool_]
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
    """A mask as object, and all beside it as background but for the `ignored` pixels."""
    background = ~mask if ignored is None else ~mask & ~ignored
    return Regions(mask, background)


def with_both(mask: Mask, where: str) -> Mask:
    """The mask. Raises CleansetError if it is empty or full."""
    if not mask.any():
        raise CleansetError(f"{where}: empty mask; expected an object: draw it, or remove the file")
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


_PNG_MODES = ("1", "L", "P", "I", "I;16", "RGB")

OTHER = 0
"""The number of pixels of ImageNet-S that belong to none of its classes."""

IGNORED = 1000
"""The number of pixels of ImageNet-S that are ignored."""

IMAGENET_S_CLASSES = 919

WITHOUT_MASKS = frozenset(Path(__file__).with_name("imagenet_s_without_masks.txt").read_text("utf-8").split())
"""The 81 classes of ILSVRC2012 that ImageNet-S leaves out: places, parts and others that cannot be drawn around."""


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


def read_png(data: bytes, where: str) -> Image.Image:
    """The decoded PNG. Raises CleansetError, naming `where`."""
    return decode_file(data, where, "a mask as PNG", "PNG")


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

    Since the fourth length, it is the difference to the length two before. Anything but a text stays as it is.
    """
    if not isinstance(text, str):
        return text
    runs: list[int] = []
    value = shift = 0
    for character in text:
        group = ord(character) - 48
        if not 0 <= group < 64 or shift > 60:
            raise ValueError(f"{shown(character)} cannot stand there")
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


Side = Annotated[int, Field(ge=1)]
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


@cache
def imagenet_s_wnids() -> tuple[str, ...]:
    """The wnids of the 919 classes; class 1 comes first."""
    return tuple(wnid for wnid in imagenet().keys if wnid not in WITHOUT_MASKS)


def segmented_classes(data: bytes, where: str) -> tuple[str, ...]:
    """The wnids of the classes in a file of ImageNet-S, sorted. Raises CleansetError, naming `where`."""
    return _names(_numbers(data, where))


def imagenet_s_regions(data: bytes, wnid: str, where: str) -> Regions:
    """The object of one class, and the background; ignored pixels are in neither, other classes in the background.

    Raises CleansetError, naming `where`, for a file without that class, and for another file.
    """
    numbers = _numbers(data, where)
    number = {name: number for number, name in enumerate(imagenet_s_wnids(), 1)}.get(wnid)
    if number is None or not (numbers == number).any():
        found = ", ".join(_names(numbers)) or "no class"
        raise CleansetError(f"{where}: has {found}; expected {shown(wnid)}, the class of the image in its set")
    return regions_of(numbers == number, numbers == IGNORED)


def _numbers(data: bytes, where: str) -> NDArray[np.int64]:
    """The number of each pixel's class, int64 of shape (height, width)."""
    image = read_png(data, where)
    if image.mode != "RGB":
        raise CleansetError(f"{where}: PNG of mode {image.mode}; expected RGB, as ImageNet-S stores class numbers")
    pixels = np.asarray(image).astype(np.int64)
    numbers: NDArray[np.int64] = pixels[..., 0] + 256 * pixels[..., 1]
    wrong = numbers[(numbers > IMAGENET_S_CLASSES) & (numbers != IGNORED)]
    if wrong.size:
        raise CleansetError(
            f"{where}: class number {wrong[0]}; expected 0 to {IMAGENET_S_CLASSES}, or {IGNORED} for ignored"
        )
    return numbers


def _names(numbers: NDArray[np.int64]) -> tuple[str, ...]:
    found = sorted({int(number) for number in np.unique(numbers)} - {OTHER, IGNORED})
    return tuple(imagenet_s_wnids()[number - 1] for number in found)


_READERS = {"png": png_mask, "coco": rle_mask, "labelme": labelme_mask}

IMAGENET_S = "imagenet_s"

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


class MaskSource(NamedTuple):
    """A folder of masks, the format of its files, and who made them."""

    folder: Path
    format: str = "png"
    origin: str = ""

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The folder of `FORMAT:FOLDER`, or of `FOLDER` with PNG files."""
        form, colon, folder = text.partition(":")
        return cls(Path(folder), form) if colon else cls(Path(text))


class MaskFile(NamedTuple):
    """A file of a source, and the source's name for it."""

    path: Path
    name: str
    source: MaskSource


def find_masks(sources: Iterable[MaskSource]) -> dict[str, MaskFile]:
    """The mask files by image id.

    Raises CleansetError for a source that is not a folder, a file that is not named by an image id, and two masks of
    one image.
    """
    found = dict[str, MaskFile]()
    for source in sources:
        files = sorted(source.folder.glob(f"*{MASK_SUFFIXES[source.format]}"))
        # a misspelled folder would leave out all its images without a word
        if not files:
            raise CleansetError(
                f"{source.folder}: no masks; expected files like "
                f"ILSVRC2012_val_00000001{MASK_SUFFIXES[source.format]}: put them there, or take the folder out of "
                "masks"
            )
        for path in files:
            if not _is_image_id(path.stem):
                raise CleansetError(
                    f"{path}: mask of an unknown image; expected ILSVRC2012_val_ and eight digits, 00000001 to "
                    f"{VALIDATION_IMAGES:08d}: remove it"
                )
            if path.stem in found:
                raise CleansetError(f"{path.stem}: two masks of one image: remove one")
            found[path.stem] = MaskFile(path, f"{source.folder.name}/{path.name}", source)
    return dict(sorted(found.items()))


def _is_image_id(name: str) -> bool:
    match = re.fullmatch(r"ILSVRC2012_val_([0-9]{8})", name)
    return match is not None and 1 <= int(match[1]) <= VALIDATION_IMAGES


def check_format_suits(mask_format: str, classes: ClassTable, where: str) -> None:
    """Raise CleansetError, naming `where`, for a mask of ImageNet-S and images of other classes."""
    if mask_format == IMAGENET_S:
        classes.require_imagenet(f"{where}, a mask of format {IMAGENET_S}", "png, coco or labelme")


def mask_table(
    images: pd.DataFrame,
    masks: Mapping[str, MaskFile],
    size_of: Callable[[str], tuple[int, int]],
    classes: ClassTable,
    *,
    is_placed: bool,
) -> pd.DataFrame:
    """The rows of MASKS for rows of STUDY_IMAGES; `is_placed`: images must suit a generated background.

    `size_of`: width and height of a decoded file. Raises CleansetError for a mask that cannot be read, is empty or
    full, or is of another size than its image.
    """
    keys = classes.keys
    rows: list[tuple[str | None, ...]] = []
    columns = (images[name] for name in ("file", "image_id", "class_index", "crop"))
    for file, image_id, class_index, crop in zip(*columns, strict=True):
        mask = masks.get(image_id)
        if mask is None:
            rows.append((file, None, None, None, None, "no_mask"))
            continue
        check_format_suits(mask.source.format, classes, str(mask.path))
        data = read_regular_file(mask.path)
        left_out = why_left_out(
            data, mask, keys[class_index], size=size_of(file), crop=box_of(crop), is_placed=is_placed
        )
        rows.append((file, mask.name, sha256(data), mask.source.format, mask.source.origin, left_out))
    return pd.DataFrame(rows, columns=MASKS.names)


def why_left_out(
    data: bytes, mask: MaskFile, wnid: str, size: tuple[int, int], crop: Box | None = None, *, is_placed: bool = False
) -> LeftOut | None:
    """Why scenarios cannot use an image with the mask in this file; None if they can. Raises as `mask_table`.

    `wnid`, `size` and `crop`: the image's class, width and height of the decoded file, and crop.
    """
    where = str(mask.path)
    if mask.source.format == IMAGENET_S and wnid not in segmented_classes(data, where):
        return "other_class"
    whole = read_regions(data, mask.source.format, wnid, where)
    _check_size(whole, size, crop, where)
    regions = cropped_regions(whole, crop)
    if is_placed and regions.object.any() and (problem := unsuitable(regions.object)):
        return problem
    base = base_regions(regions)
    if not base.object.any():
        return "no_object"
    return None if base.background.any() else "no_background"


def _check_size(regions: Regions, size: tuple[int, int], crop: Box | None, where: str) -> None:
    """Raise CleansetError unless the mask is of the original's size, as far as a cropped image tells it."""
    height, width = regions.object.shape
    if crop is None:
        if (width, height) != size:
            wide, high = size
            raise CleansetError(
                f"{where}: mask of {width} x {height} pixels for an image of {wide} x {high}; expected the size of the "
                "original, uncropped image"
            )
        with_both(regions.object, where)
    elif crop[2] > width or crop[3] > height:
        raise CleansetError(
            f"{where}: mask of {width} x {height} pixels; expected the size of the original image, in which the crop "
            f"{list(crop)} lies"
        )


def cropped_regions(regions: Regions, crop: Box | None) -> Regions:
    """The regions of the original at the size of an image, cropped or whole."""
    if crop is None:
        return regions
    return Regions(cropped_mask(regions.object, crop), cropped_mask(regions.background, crop))


def has_scenarios(images: pd.DataFrame, masks: pd.DataFrame) -> pd.DataFrame:
    """The rows of STUDY_IMAGES whose mask scenarios can use, with the columns of MASKS beside."""
    if images["file"].tolist() != masks["file"].tolist():
        raise CleansetError(
            f"masks of {len(masks):,} images for {len(images):,} other images; expected the same: run dvc repro"
        )
    joined = images.merge(masks, on="file", validate="one_to_one")
    return joined[joined["left_out"].isna()].reset_index(drop=True)


def counts_by_value(column: pd.Series) -> dict[str, int]:
    """The number of rows of each value, such as a reason of `left_out`, sorted; missing values are not counted."""
    return {str(value): int(count) for value, count in column.value_counts().sort_index().items()}


def masks_found(
    images: pd.DataFrame,
    files: Mapping[str, StudyFile],
    folder: Path,
    wanted: CommonParams,
    classes: ClassTable,
    *,
    is_placed: bool | None = None,
) -> pd.DataFrame:
    """The rows of MASKS of some rows of STUDY_IMAGES, from the masks of a study; `files`: where the images lie.

    `is_placed`: images must suit a generated background; None: if the params name that scenario. Raises CleansetError
    as `find_masks` and `mask_table` do.
    """
    masks = find_masks(MaskSource(folder / each.folder, each.format, each.origin) for each in wanted.masks)
    read = SetImages(files)
    if is_placed is None:
        section = wanted.section(Scenarios)
        is_placed = section.published is None and GENERATED in section.names
    return mask_table(images, masks, lambda file: read(file).size, classes, is_placed=is_placed)


def agreement(one: MaskSource, other: MaskSource, wnids: Mapping[str, str]) -> pd.DataFrame:
    """The columns image_id and iou, 0 to 1, of each image that has a mask in both folders, sorted.

    `wnids`: the class of each image, which ImageNet-S needs. Raises CleansetError for an unknown format, a mask
    that cannot be read, two of other sizes, and folders that have no image in common.
    """
    for each in (one, other):
        check_known("mask format", each.format, FORMATS)
    found = [find_masks([each]) for each in (one, other)]
    common = sorted(set(found[0]) & set(found[1]))
    if IMAGENET_S in (one.format, other.format):
        common = [image_id for image_id in common if image_id in wnids]
    if not common:
        raise CleansetError(f"{one.folder} and {other.folder}: no image has a mask in both folders")
    rows = []
    for image_id in common:
        masks = [_object(masks[image_id], wnids.get(image_id, "")) for masks in found]
        if masks[0].shape != masks[1].shape:
            sizes = " and ".join(f"{mask.shape[1]} x {mask.shape[0]}" for mask in masks)
            raise CleansetError(
                f"{image_id}: masks of {sizes} pixels; expected the size of the original in both folders"
            )
        rows.append((image_id, intersection_over_union(masks[0], masks[1])))
    return pd.DataFrame(rows, columns=["image_id", "iou"])


def _object(file: MaskFile, wnid: str) -> Mask:
    return read_regions(read_regular_file(file.path), file.source.format, wnid, str(file.path)).object
