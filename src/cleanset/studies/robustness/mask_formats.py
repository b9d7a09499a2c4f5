"""A mask file of any format as regions of its image."""

from cleanset.studies.robustness.imagenet_s import imagenet_s_regions
from cleanset.studies.robustness.masks import Regions, labelme_mask, png_mask, regions_of, rle_mask
from cleanset.validation import check_known

_READERS = {"png": png_mask, "coco": rle_mask, "labelme": labelme_mask}

IMAGENET_S = "imagenet_s"

FORMATS: tuple[str, ...] = (*_READERS, IMAGENET_S)

SUFFIXES: dict[str, str] = {"png": ".png", "coco": ".json", "labelme": ".json", IMAGENET_S: ".png"}
"""How the names of a format's files end."""


def read_regions(data: bytes, mask_format: str, wnid: str, where: str) -> Regions:
    """Object and background in a mask file; `wnid` is the image's class, which ImageNet-S needs.

    Raises CleansetError, naming `where`, for an unknown format, and as the format's reader does.
    """
    check_known("mask format", mask_format, FORMATS)
    if mask_format == IMAGENET_S:
        return imagenet_s_regions(data, wnid, where)
    return regions_of(_READERS[mask_format](data, where))
