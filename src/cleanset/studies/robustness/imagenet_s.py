"""ImageNet-S: objects of ImageNet's validation images, drawn by people (Gao et al., 2022).

A PNG of the image's size and name, whose red + 256 x green is a number: 0 for other things, 1 to 919 for a class, by
the order of their wnids, and 1000 for pixels that are ignored.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import wnids
from cleanset.errors import CleansetError
from cleanset.studies.robustness.masks import Regions, read_png, regions_of
from cleanset.validation import shown

OTHER, IGNORED = 0, 1000

CLASSES = 919

WITHOUT_MASKS = frozenset([
    "n02699494", "n02776631", "n02777292", "n02788148", "n02791270", "n02807133", "n02825657", "n02837789",
    "n02871525", "n02877765", "n02894605", "n02927161", "n02966193", "n02974003", "n02977058", "n02988304",
    "n03000247", "n03032252", "n03042490", "n03065424", "n03085013", "n03089624", "n03160309", "n03180011",
    "n03208938", "n03216828", "n03218198", "n03220513", "n03290653", "n03388043", "n03457902", "n03459775",
    "n03461385", "n03529860", "n03637318", "n03642806", "n03661043", "n03697007", "n03710637", "n03710721",
    "n03733281", "n03871628", "n03887697", "n03899768", "n03967562", "n04008634", "n04081281", "n04111531",
    "n04152593", "n04200800", "n04239074", "n04251144", "n04264628", "n04296562", "n04356056", "n04357314",
    "n04372370", "n04392985", "n04443257", "n04462240", "n04493381", "n04501370", "n04523525", "n04592741",
    "n04599235", "n06359193", "n06785654", "n07248320", "n07590611", "n07836838", "n07892512", "n07920052",
    "n09193705", "n09288635", "n09332890", "n09399592", "n09421951", "n09428293", "n09468604", "n09472597",
    "n10148035",
])  # fmt: skip
"""The 81 classes of ILSVRC2012 that ImageNet-S leaves out: places, parts and others that cannot be drawn around."""


@cache
def imagenet_s_wnids() -> tuple[str, ...]:
    """The wnids of the 919 classes; class 1 comes first."""
    return tuple(wnid for wnid in wnids() if wnid not in WITHOUT_MASKS)


def segmented_classes(data: bytes, where: str) -> tuple[str, ...]:
    """The wnids of the classes in a file of ImageNet-S, sorted. Raises CleansetError, naming `where`."""
    return _names(_numbers(data, where))


def imagenet_s_regions(data: bytes, wnid: str, where: str) -> Regions:
    """The object of one class, and the background; ignored pixels are in neither, other classes in the background.

    Raises CleansetError, naming `where`, for a file in which that class is not, and for another file.
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
    wrong = numbers[(numbers > CLASSES) & (numbers != IGNORED)]
    if wrong.size:
        raise CleansetError(f"{where}: class number {wrong[0]}; expected 0 to {CLASSES}, or {IGNORED} for ignored")
    return numbers


def _names(numbers: NDArray[np.int64]) -> tuple[str, ...]:
    found = sorted({int(number) for number in np.unique(numbers)} - {OTHER, IGNORED})
    return tuple(imagenet_s_wnids()[number - 1] for number in found)
