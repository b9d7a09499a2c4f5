"""Local features of an image (ORB, Rublee 2011), by which the part that two images share is found.

OpenCV computes them, which comes with the extra `text`.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.fingerprints import reduction

MAX_FEATURES = 300
"""Features of an image, the strongest corners."""
_MAX_SIDE_PIXELS = 256
"""Longest side at which corners are looked for: at 512, twice the time for as many copies."""
_EDGE_PIXELS = 16
"""Pixels at each edge in which no corner counts."""
_MAX_SMALL_SIDE_PIXELS = 128


@dataclass(frozen=True, slots=True, eq=False)
class LocalFeatures:
    """The corners of an image, and a small copy to compare parts of it."""

    size: tuple[int, int]
    """Width and height in the pixels that `points` are given in."""

    points: NDArray[np.float32]
    """Features x 2: the place of each from the left and from the top."""

    descriptors: NDArray[np.uint8]
    """Features x 32: 256 comparisons of brightness around each, turned by its direction."""

    small: NDArray[np.uint8]
    """The brightness of the image, with no side longer than 128 pixels."""


def can_find_features() -> bool:
    """Whether OpenCV is there, which the extra text brings."""
    return find_spec("cv2") is not None


def local_features(image: Image.Image) -> LocalFeatures:
    """The local features of a decoded image of any mode and size; none where it has no corner."""
    import cv2

    grey = image.convert("L")
    grey = grey.reduce(reduction(grey.size, _MAX_SIDE_PIXELS))
    # 6 levels of 1.2: a copy of half the size is matched
    orb = cv2.ORB.create(
        nfeatures=MAX_FEATURES, scaleFactor=1.2, nlevels=6, edgeThreshold=_EDGE_PIXELS, fastThreshold=10
    )
    # OpenCV fails for an image of a few pixels, which has nothing but edges
    has_inside = min(grey.size) > 2 * _EDGE_PIXELS
    corners, descriptors = orb.detectAndCompute(np.asarray(grey), None) if has_inside else ((), None)
    return LocalFeatures(
        size=grey.size,
        points=np.array([corner.pt for corner in corners], np.float32).reshape(-1, 2),
        descriptors=np.asarray(descriptors if len(corners) else np.zeros((0, 32)), np.uint8),
        small=np.asarray(grey.reduce(reduction(grey.size, _MAX_SMALL_SIDE_PIXELS))),
    )
