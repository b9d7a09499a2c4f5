"""The difference of two images, as an image in which it can be seen."""

from math import floor, log2

import numpy as np
from numpy.typing import NDArray
from PIL import Image

GRAY = 127.5

Pixels = NDArray[np.uint8]
"""Of shape (height, width, 3)."""


def enlarged_difference(before: Pixels, after: Pixels, size: tuple[int, int]) -> tuple[Image.Image, float]:
    """The difference of two images of one size, medium gray where there is none, at another size; and its factor.

    The factor is the largest power of 2 with which the largest difference fits. Single pixels are taken where the
    image is made smaller: a mean would weaken noise.
    """
    found = after.astype(np.float64) - before
    largest = float(np.abs(found).max())
    factor = 2.0 ** floor(log2(GRAY / largest)) if largest else 1.0
    image = Image.fromarray(np.floor(GRAY + factor * found + 0.5).astype(np.uint8))
    return image.resize(size, Image.Resampling.NEAREST), factor
