"""The masks of a study's images: which file each has, and why an image has none that scenarios can use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES
from cleanset.errors import CleansetError
from cleanset.exports.folder import read_regular_file
from cleanset.files import sha256
from cleanset.images.boxes import Box
from cleanset.studies.robustness.imagenet_s import segmented_classes
from cleanset.studies.robustness.mask_formats import IMAGENET_S, SUFFIXES, read_regions
from cleanset.studies.robustness.masks import (
    Regions,
    base_regions,
    by_image,
    check_mask,
    cropped_mask,
    unsuitable,
)
from cleanset.tables import FILE, NAME, SHA256, Table, nullable

LeftOut = Literal["no_mask", "other_class", "no_object", "no_background", "several_objects", "too_small", "cut_off"]
"""Why an image is in no scenario. `other_class`: its mask in ImageNet-S is of other classes than its set's;
`no_object`, `no_background`: what models see of the image has none."""

MASKS = Table(
    key=("file",),
    file=FILE,  # of STUDY_IMAGES
    mask=nullable(FILE),  # in the folder `masks` of the study
    mask_sha256=nullable(SHA256),
    mask_format=nullable(NAME),
    origin=nullable(NAME),  # person, generator or model
    left_out=nullable(NAME),  # one of LeftOut; null: the image is in the scenarios
)


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
    """What a mask's reading needs of its image: file, class, size of the decoded file, and its crop."""

    file: str
    image_id: str
    wnid: str
    size: tuple[int, int]
    crop: Box | None


def find_masks(folder: Path, sources: Iterable[MaskSource]) -> dict[str, MaskFile]:
    """The mask files by image id.

    Raises CleansetError for a source that is no folder, a file that is not named by an image id, and two of one image.
    """
    found: list[tuple[str, MaskFile]] = []
    for source in sources:
        files = sorted((folder / source.folder).glob(f"*{SUFFIXES[source.format]}"))
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
    return by_image(found, {image_id for image_id, _ in found})


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
        check_mask(regions.object, *image.size, where)
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
    """How many images are left out, by reason, sorted."""
    reasons, counts = np.unique(masks["left_out"].dropna().to_numpy(str), return_counts=True)
    return dict(zip(reasons.tolist(), counts.tolist(), strict=True))
