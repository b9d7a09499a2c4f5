"""The masks of a study's images: which file each has, and why an image has none that scenarios can use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.boxes import Box, box_of
from cleanset.sets.folder import read_regular_file
from cleanset.studies.robustness.changed_images import SetImages, StudyFile
from cleanset.studies.robustness.images import MASKS
from cleanset.studies.robustness.params import CommonParams
from cleanset.studies.robustness.scenarios.masks import (
    FORMATS,
    IMAGENET_S,
    SUFFIXES,
    Mask,
    Regions,
    base_regions,
    by_image,
    cropped_mask,
    intersection_over_union,
    read_regions,
    segmented_classes,
    unsuitable,
    with_both,
)
from cleanset.studies.robustness.scenarios.params import GENERATED, Scenarios
from cleanset.validation import check_known
from cleanset.vocabulary import class_keys

LeftOut = Literal["no_mask", "other_class", "no_object", "no_background", "several_objects", "too_small", "cut_off"]
"""The reason why an image is in no scenario. `other_class`: its mask in ImageNet-S is of other classes than its set's;
`no_object`, `no_background`: what models see of the image has none."""


class MaskSource(NamedTuple):
    """A folder of masks: its path inside `masks`, the format of its files, and who made them."""

    folder: str
    format: str
    origin: str


class MaskFile(NamedTuple):
    """A file of a source, and the source's name for it."""

    path: Path
    name: str
    source: MaskSource


@dataclass(frozen=True, slots=True)
class MaskedImage:
    """The image of a mask: file, class, size of the decoded file, and crop."""

    file: str
    image_id: str
    wnid: str
    size: tuple[int, int]
    crop: Box | None


def find_masks(folder: Path, sources: Iterable[MaskSource]) -> dict[str, MaskFile]:
    """The mask files by image id.

    Raises CleansetError for a source that is not a folder, a file that is not named by an image id, and two masks of
    one image.
    """
    found: list[tuple[str, MaskFile]] = []
    for source in sources:
        files = sorted((folder / source.folder).glob(f"*{SUFFIXES[source.format]}"))
        # a misspelled folder would leave out all its images without a word
        if not files:
            raise CleansetError(
                f"{folder / source.folder}: no masks; expected files like "
                f"ILSVRC2012_val_00000001{SUFFIXES[source.format]}: put them there, or take the folder out of masks"
            )
        for path in files:
            if not _is_image_id(path.stem):
                raise CleansetError(
                    f"{path}: mask of an unknown image; expected ILSVRC2012_val_ and eight digits, 00000001 to "
                    f"{VALIDATION_IMAGES:08d}: remove it"
                )
            found.append((path.stem, MaskFile(path, f"{source.folder}/{path.name}", source)))
    return by_image(found)


def _is_image_id(name: str) -> bool:
    match = re.fullmatch(r"ILSVRC2012_val_([0-9]{8})", name)
    return match is not None and 1 <= int(match[1]) <= VALIDATION_IMAGES


def mask_table(images: Sequence[MaskedImage], masks: Mapping[str, MaskFile], *, is_placed: bool) -> pd.DataFrame:
    """The rows of MASKS for the images; `is_placed`: images must suit a generated background.

    Raises CleansetError for a mask that cannot be read, is empty or full, or is of another size than its image.
    """
    rows: list[tuple[str | None, ...]] = []
    for image in images:
        mask = masks.get(image.image_id)
        if mask is None:
            rows.append((image.file, None, None, None, None, "no_mask"))
            continue
        data = read_regular_file(mask.path)
        left_out = _left_out(data, mask, image, is_placed)
        rows.append((image.file, mask.name, sha256(data), mask.source.format, mask.source.origin, left_out))
    return pd.DataFrame(rows, columns=MASKS.names)


def _left_out(data: bytes, mask: MaskFile, image: MaskedImage, is_placed: bool) -> LeftOut | None:
    where = str(mask.path)
    if mask.source.format == IMAGENET_S and image.wnid not in segmented_classes(data, where):
        return "other_class"
    whole = read_regions(data, mask.source.format, image.wnid, where)
    _check_size(whole, image, where)
    regions = _cropped(whole, image.crop)
    if is_placed and regions.object.any() and (problem := unsuitable(regions.object)):
        return problem
    base = base_regions(regions)
    if not base.object.any():
        return "no_object"
    return None if base.background.any() else "no_background"


def _check_size(regions: Regions, image: MaskedImage, where: str) -> None:
    """Raise CleansetError unless the mask is of the original's size, as far as a cropped image tells it."""
    height, width = regions.object.shape
    if image.crop is None:
        if (width, height) != image.size:
            wide, high = image.size
            raise CleansetError(
                f"{where}: mask of {width} x {height} pixels for an image of {wide} x {high}; expected the size of the "
                "original, uncropped image"
            )
        with_both(regions.object, where)
    elif image.crop[2] > width or image.crop[3] > height:
        raise CleansetError(
            f"{where}: mask of {width} x {height} pixels; expected the size of the original image, in which the crop "
            f"{list(image.crop)} lies"
        )


def read_base_regions(data: bytes, mask_format: str, wnid: str, crop: Box | None, where: str) -> Regions:
    """The regions of the base image of a whole or cropped image. Raises CleansetError as `read_regions` does."""
    return base_regions(_cropped(read_regions(data, mask_format, wnid, where), crop))


def _cropped(regions: Regions, crop: Box | None) -> Regions:
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


def unsuitable_counts(masks: pd.DataFrame) -> dict[str, int]:
    """The number of images left out, by reason, sorted."""
    reasons, counts = np.unique(masks["left_out"].dropna().to_numpy(str), return_counts=True)
    return dict(zip(reasons.tolist(), counts.tolist(), strict=True))


def masks_found(
    images: pd.DataFrame,
    files: Mapping[str, StudyFile],
    folder: Path,
    wanted: CommonParams,
    *,
    is_placed: bool | None = None,
) -> pd.DataFrame:
    """The rows of MASKS of some rows of STUDY_IMAGES, from the masks of a study; `files`: where the images lie.

    `is_placed`: images must suit a generated background; None: if the params name that scenario. Raises CleansetError
    as `find_masks` and `mask_table` do.
    """
    sources = [MaskSource(each.folder, each.format, each.origin) for each in wanted.masks]
    masks, read, names, masked = find_masks(folder, sources), SetImages(files), class_keys(), []
    columns = (images[name] for name in ("file", "image_id", "class_index", "crop"))
    for file, image_id, class_index, crop in zip(*columns, strict=True):
        # not decoded without a mask
        size = read(file).size if image_id in masks else (0, 0)
        masked.append(MaskedImage(file, image_id, names[class_index], size, box_of(crop)))
    if is_placed is None:
        section = wanted.section(Scenarios)
        is_placed = section.published is None and GENERATED in section.expanded()
    return mask_table(masked, masks, is_placed=is_placed)


class ComparedMasks(NamedTuple):
    """A folder of masks and the format of its files."""

    folder: Path
    format: str

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The folder of `FORMAT:FOLDER`, or of `FOLDER` with PNG files."""
        form, colon, folder = text.partition(":")
        return cls(Path(folder), form) if colon else cls(Path(text), "png")


def agreement(one: ComparedMasks, other: ComparedMasks, wnids: Mapping[str, str]) -> pd.DataFrame:
    """The columns image_id and iou, 0 to 1, of each image that has a mask in both folders, sorted.

    `wnids`: the class of each image, which ImageNet-S needs. Raises CleansetError for an unknown format, a mask
    that cannot be read, two of other sizes, and folders that have no image in common.
    """
    for each in (one, other):
        check_known("mask format", each.format, FORMATS)
    found = [find_masks(each.folder.parent, [MaskSource(each.folder.name, each.format, "")]) for each in (one, other)]
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
