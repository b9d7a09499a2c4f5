"""Masks of ImageNet-S (Gao et al., 2022): objects of ImageNet's validation images, drawn by people.

A mask is a PNG of the image's size and name, whose red + 256 x green is a number: 0 for other things, 1 to 919 for a
class, by the order of their wnids, and 1000 for pixels that are ignored.
"""

from functools import cache
from pathlib import Path

import numpy as np

from cleanset.classes import ClassTable, imagenet
from cleanset.errors import CleansetError
from cleanset.plumbing.validation import shown
from cleanset.statistics.basics import Ints
from cleanset.studies.robustness.scenarios.masks import Regions, read_png, regions_of

OTHER = 0
"""The number of pixels of ImageNet-S that belong to none of its classes."""


IGNORED = 1000
"""The number of pixels of ImageNet-S that are ignored."""


IMAGENET_S_CLASSES = 919


WITHOUT_MASKS = frozenset(Path(__file__).with_name("imagenet_s_without_masks.txt").read_text("utf-8").split())
"""The 81 classes of ILSVRC2012 that ImageNet-S leaves out: places, parts and others that cannot be drawn around."""


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


def _numbers(data: bytes, where: str) -> Ints:
    """The number of each pixel's class, int64 of shape (height, width)."""
    image = read_png(data, where)
    if image.mode != "RGB":
        raise CleansetError(f"{where}: PNG of mode {image.mode}; expected RGB, as ImageNet-S stores class numbers")
    pixels = np.asarray(image).astype(np.int64)
    numbers: Ints = pixels[..., 0] + 256 * pixels[..., 1]
    wrong = numbers[(numbers > IMAGENET_S_CLASSES) & (numbers != IGNORED)]
    if wrong.size:
        raise CleansetError(
            f"{where}: class number {wrong[0]}; expected 0 to {IMAGENET_S_CLASSES}, or {IGNORED} for ignored"
        )
    return numbers


def _names(numbers: Ints) -> tuple[str, ...]:
    found = sorted({int(number) for number in np.unique(numbers)} - {OTHER, IGNORED})
    return tuple(imagenet_s_wnids()[number - 1] for number in found)


IMAGENET_S = "imagenet_s"


def check_format_suits(mask_format: str, classes: ClassTable, where: str) -> None:
    """Raise CleansetError, naming `where`, for a mask of ImageNet-S and images of other classes."""
    if mask_format == IMAGENET_S:
        classes.require_imagenet(f"{where}, a mask of format {IMAGENET_S}", "png, coco or labelme")
