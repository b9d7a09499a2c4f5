"""Local features of an image (ORB, Rublee 2011), by which the part that two images share is found.

OpenCV computes them, which comes with the extra `text`.
"""

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.fingerprints import reduction

if TYPE_CHECKING:
    import cv2

MAX_FEATURES = 300
"""Features of an image, the strongest corners."""
_MAX_SIDE_PIXELS = 256
"""Longest side at which corners are looked for: at 512, twice the time for as many copies."""
_LEVEL_SCALE = 1.2
# so a copy of half the size is matched
_LEVELS = 6
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

    mirrored_descriptors: NDArray[np.uint8]
    """Descriptors of the same features in the mirrored image."""

    small: NDArray[np.uint8]
    """The brightness of the image, with no side longer than 128 pixels."""

    def mirrored(self) -> Self:
        """The features of the mirrored image."""
        return replace(
            self,
            points=np.stack((self.size[0] - 1 - self.points[:, 0], self.points[:, 1]), axis=1),
            descriptors=self.mirrored_descriptors,
            mirrored_descriptors=self.descriptors,
            small=self.small[:, ::-1],
        )


def can_find_features() -> bool:
    """Whether OpenCV is there, which the extra text brings."""
    return find_spec("cv2") is not None


def local_features(image: Image.Image) -> LocalFeatures:
    """The local features of a decoded image of any mode and size; none if it has no corner."""
    import cv2

    grey = image.convert("L")
    grey = grey.reduce(reduction(grey.size, _MAX_SIDE_PIXELS))
    orb = cv2.ORB.create(
        nfeatures=MAX_FEATURES, scaleFactor=_LEVEL_SCALE, nlevels=_LEVELS, edgeThreshold=_EDGE_PIXELS, fastThreshold=10
    )
    pixels = np.asarray(grey)
    # OpenCV fails for an image of a few pixels, which has nothing but edges
    has_inside = min(grey.size) > 2 * _EDGE_PIXELS
    corners, descriptors = orb.detectAndCompute(pixels, None) if has_inside else ((), None)
    if not corners:
        descriptors = np.zeros((0, 32), np.uint8)
    # in half the time of looking for them again
    moved = [_mirrored_corner(corner, grey.width) for corner in corners]
    mirrored = orb.compute(np.ascontiguousarray(pixels[:, ::-1]), moved)[1] if corners else descriptors
    return LocalFeatures(
        size=grey.size,
        points=np.array([_middle(corner) for corner in corners], np.float32).reshape(-1, 2),
        descriptors=np.asarray(descriptors, np.uint8),
        mirrored_descriptors=np.asarray(mirrored, np.uint8),
        small=np.asarray(grey.reduce(reduction(grey.size, _MAX_SMALL_SIDE_PIXELS))),
    )


def _middle(corner: "cv2.KeyPoint") -> tuple[float, float]:
    """The middle of a corner's pixel, which ORB names by its upper left pixel at the full size."""
    shift = (_LEVEL_SCALE**corner.octave - 1) / 2
    return corner.pt[0] + shift, corner.pt[1] + shift


def _mirrored_corner(corner: "cv2.KeyPoint", width: int) -> "cv2.KeyPoint":
    """A corner in the mirrored image, of the same level."""
    import cv2

    across = width - _LEVEL_SCALE**corner.octave - corner.pt[0]
    return cv2.KeyPoint(across, corner.pt[1], corner.size, 180 - corner.angle, corner.response, corner.octave)
