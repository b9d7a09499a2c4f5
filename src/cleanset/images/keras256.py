"""The preprocessing of "How to reproduce ImageNet validation results", with OpenCV's INTER_CUBIC in plain numpy.

OpenCV's cubic kernel differs from Pillow's: its parameter is -0.75, and it always takes 4 x 4 pixels, also where a
image is made smaller. The article computes in floating point; here too, in float64, and only the result is rounded,
half to even, and cut to 0..255. On 150 photographs, OpenCV 5.0.0 gives another value, by 1, 6 times in a million,
whether it is handed float32 (and rounded in this way) or uint8.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

A = -0.75
"""OpenCV's parameter of the cubic convolution; Pillow's is -0.5."""


@dataclass(frozen=True, slots=True)
class Keras256:
    """Short side to `resize` by 4 x 4 bicubic, the long side rounded down, then the central `size` x `size` pixels."""

    name: str = "keras256"
    resize: int = 256
    size: int = 224

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels before a model's own `preprocess_input`: uint8 of shape (3, size, size), red first."""
        rows, columns = image.height, image.width
        pixels: NDArray[Any] = np.asarray(image.convert("RGB"))
        for axis, length in ((1, columns), (0, rows)):
            target = length * self.resize // min(rows, columns)
            places, weights = taps(length, target, target // 2 - self.size // 2, self.size)
            pixels = _weighted(pixels, places, weights, axis)
        rounded = np.rint(pixels).clip(0, 255).astype(np.uint8)
        return np.ascontiguousarray(rounded.transpose(2, 0, 1))


KERAS256 = Keras256()


def taps(length: int, target: int, first: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The source pixels and weights of `count` pixels from `first` on, when `length` pixels are resized to `target`.

    Both of shape (4, count). Pixels' centres are at half numbers; beyond an edge its last pixel is repeated.
    """
    centre = (np.arange(first, first + count) + 0.5) * (length / target) - 0.5
    left = np.floor(centre)
    fraction = centre - left
    places = left.astype(np.intp) + np.arange(-1, 3)[:, None]
    outer, inner = _outer(1 + fraction), _inner(fraction)
    weights = np.stack([outer, inner, _inner(1 - fraction), np.zeros(count)])
    # OpenCV, too, takes the last weight as the rest
    weights[3] = 1 - weights.sum(axis=0)
    return places.clip(0, length - 1), weights


def _inner(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kernel up to distance 1."""
    return ((A + 2) * distance - (A + 3)) * distance * distance + 1


def _outer(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kernel from distance 1 to 2."""
    return ((A * distance - 5 * A) * distance + 8 * A) * distance - 4 * A


def _weighted(
    pixels: NDArray[Any], places: NDArray[np.intp], weights: NDArray[np.float64], axis: int
) -> NDArray[np.float64]:
    """The weighted sum of the four pixels along an axis; term by term, so that every machine gives the same bits."""
    shape = [1, 1, 1]
    shape[axis] = -1
    total: NDArray[np.float64] = pixels.take(places[0], axis) * weights[0].reshape(shape)
    for place, weight in zip(places[1:], weights[1:], strict=True):
        total += pixels.take(place, axis) * weight.reshape(shape)
    return total
