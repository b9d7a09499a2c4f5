"""How far two folders of masks agree: intersection over union for each image that both have (source 002, figure 6)."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.exports.folder import read_regular_file
from cleanset.studies.robustness.image_masks import MaskFile, MaskSource, find_masks
from cleanset.studies.robustness.mask_formats import FORMATS, IMAGENET_S, read_regions
from cleanset.studies.robustness.masks import Mask, intersection_over_union
from cleanset.validation import check_known

COLUMNS = ["image_id", "iou"]


class MaskFolder(NamedTuple):
    """A folder of masks and the format of its files."""

    folder: Path
    format: str


def agreement(one: MaskFolder, other: MaskFolder, wnids: Mapping[str, str]) -> pd.DataFrame:
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
        raise CleansetError(f"{one.folder} and {other.folder}: no image with a mask in both; expected some")
    rows = []
    for image_id in common:
        masks = [_object(masks[image_id], wnids.get(image_id, "")) for masks in found]
        if masks[0].shape != masks[1].shape:
            sizes = " and ".join(f"{mask.shape[1]} x {mask.shape[0]}" for mask in masks)
            raise CleansetError(
                f"{image_id}: masks of {sizes} pixels; expected the size of the original in both folders"
            )
        rows.append((image_id, intersection_over_union(masks[0], masks[1])))
    return pd.DataFrame(rows, columns=COLUMNS)


def _object(file: MaskFile, wnid: str) -> Mask:
    return read_regions(read_regular_file(file.path), file.source.format, wnid, str(file.path)).object
