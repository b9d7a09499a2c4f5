"""Perceptual hashes of an image and of its parts, by which near-duplicates are found (PDQ, Facebook 2019).

Images are measured and compared at a size that an integer factor reduces.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MAX_SIDE_PIXELS = 512
"""Longest side of a reduced image."""


def reduction(size: tuple[int, int], max_side: int = MAX_SIDE_PIXELS) -> int:
    """The reduction factor of an image of this size before it is measured."""
    return -(-max(size) // max_side)


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """Perceptual hashes, for comparing images."""

    hashes: NDArray[np.bool_]
    """256 bits for each of eight orientations: as stored, then turned and mirrored."""

    parts: NDArray[np.bool_]
    """256 bits of the whole image and of each of PARTS, as stored; one of them is close to a cropped copy."""


def fingerprint(small: Image.Image) -> Fingerprint:
    """The fingerprint of an image in RGB, reduced as for the measures."""
    import pdqhash  # of the extra review: images without fingerprints are read without it

    found, _ = pdqhash.compute_dihedral(np.asarray(small))
    hashes = np.array(found, np.bool_)
    return Fingerprint(hashes, _parts(small, hashes[0]))


def can_fingerprint() -> bool:
    """Whether PDQ is there, which the extras review and training bring."""
    return find_spec("pdqhash") is not None


Packed = NDArray[np.uint64]
"""The hashes of a fingerprint, 64 bits a number."""

MIN_QUALITY = 50
"""Limit of PDQ's quality, from 0 to 100, that its authors advise: images with little in them all look alike to it."""


def packed_hashes(image: Image.Image) -> Packed | None:
    """The hashes of an image, 8 orientations of 4 numbers, to compare many; None with too little to see."""
    import pdqhash

    factor = reduction(image.size)
    image = image.convert("RGB")
    hashes, quality = pdqhash.compute_dihedral(np.asarray(image.reduce(factor) if factor > 1 else image))
    return None if quality < MIN_QUALITY else np.packbits(np.array(hashes, np.bool_), axis=1).view(np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class PackedFingerprint:
    """A fingerprint to keep of many images: 64 bits a number, four numbers a hash."""

    hashes: Packed
    """One for each of eight orientations, first as stored."""

    parts: Packed
    """One for the whole image and one for each of PARTS, as stored."""


def packed_fingerprint(image: Image.Image) -> PackedFingerprint | None:
    """The fingerprint of an image, to compare many; None with too little to see."""
    hashes = packed_hashes(image)
    if hashes is None:
        return None
    factor = reduction(image.size)
    small = image.convert("RGB")
    parts = _parts(small.reduce(factor) if factor > 1 else small, np.unpackbits(hashes[0].view(np.uint8)).astype(bool))
    return PackedFingerprint(hashes, np.packbits(parts, axis=1).view(np.uint64))


def _spans(share: float) -> tuple[tuple[float, float], ...]:
    """A share of a side at its beginning, middle and end."""
    return tuple((start, start + share) for start in (0.0, (1 - share) / 2, 1 - share))


# a hash is within the limit of that of 95 to 100 % of each side, around the same middle: so these reach 8 % a side
PARTS = (
    *((*across, *down) for share in (0.94, 0.87) for down in _spans(share) for across in _spans(share)),
    *((*across, 0.0, 1.0) for across in _spans(0.91)),
    *((0.0, 1.0, *down) for down in _spans(0.91)),
)
"""Left, right, top and bottom of the parts of an image that are hashed, as shares of its sides."""

# longest side at which they are hashed: in a quarter of the time, as many copies are found as at twice the size
_MAX_PART_SIDE_PIXELS = 128


def _parts(small: Image.Image, whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    import pdqhash

    pixels = np.asarray(small.reduce(reduction(small.size, _MAX_PART_SIDE_PIXELS)))
    height, width = pixels.shape[:2]
    parts = (
        pixels[round(top * height) : round(bottom * height), round(left * width) : round(right * width)]
        for left, right, top, bottom in PARTS
    )
    return np.array([whole, *(pdqhash.compute(np.ascontiguousarray(part))[0] for part in parts)], np.bool_)
