"""frost of imagecorruptions 1.1.5, whose bytes would otherwise depend on the processor.

The library enlarges a photograph of frost by cv2.resize (bicubic), which OpenCV hands to Intel's IPP. IPP sums float32
products in another order for SSE 4.2, AVX2 and each kind of AVX-512, and does not exist elsewhere: some values that lie
halfway between two whole numbers are rounded to the other one, which changed up to 107 of 355 images of the sample.
`enlarged` sums in the order of IPP for AVX2, by elementwise float64 arithmetic, which is the same everywhere.
"""

import importlib.resources
from functools import lru_cache
from math import ceil
from typing import Any

import cv2
import imagecorruptions
import numpy as np
from numpy.typing import NDArray

from cleanset.studies.robustness.kernels import Singles, multiply_add

Pixels = NDArray[np.uint8]
"""An image, uint8 of shape (height, width, 3)."""

FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg", "frost6.jpg")
"""The library's photographs of frost, in the order that it draws from."""

WEIGHTS: tuple[tuple[float, float], ...] = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
"""Weights of the image and of the frost, by severity."""

ENLARGEMENT = 1.1
"""Factor by which the library enlarges a photograph beyond what covers the image."""

CUBIC = -0.75
"""Parameter of the bicubic kernel, as in cv2.INTER_CUBIC."""


def frost(image: Pixels, severity: int, drawn: np.random.RandomState) -> Pixels:
    """The image, red first, under a part of one of the photographs of frost."""
    height, width = image.shape[:2]
    layer = _layer(FILES[drawn.randint(len(FILES))], height, width)
    # photograph, row, column: the library draws in this order
    top, left = drawn.randint(0, layer.shape[0] - height), drawn.randint(0, layer.shape[1] - width)
    part = layer[top : top + height, left : left + width, ::-1]
    own, added = WEIGHTS[severity - 1]
    frosted: Pixels = np.clip(own * image + added * part, 0, 255).astype(np.uint8)
    return frosted


@lru_cache(maxsize=len(FILES))
def _layer(file: str, height: int, width: int) -> Pixels:
    """A photograph of frost, blue first, larger than the image on both axes."""
    with importlib.resources.as_file(importlib.resources.files(imagecorruptions) / "frost" / file) as path:
        photograph = np.asarray(cv2.imread(str(path)), np.uint8)
    factor = max(height / photograph.shape[0], width / photograph.shape[1], 1) * ENLARGEMENT
    layer = enlarged(photograph, ceil(photograph.shape[0] * factor), ceil(photograph.shape[1] * factor))
    layer.setflags(write=False)
    return layer


def enlarged(image: Pixels, height: int, width: int) -> Pixels:
    """The image enlarged by bicubic interpolation, as by cv2.resize where IPP runs its code for AVX2."""
    columns, across = _taps(image.shape[1], width)
    first, second, third, fourth = (image[:, at].astype(np.float32) for at in columns)
    a, b, c, d = (weights[:, np.newaxis] for weights in across)
    rows, down = _taps(image.shape[0], height)
    wide = multiply_add(second, b, third * c) + multiply_add(first, a, fourth * d)
    first, second, third, fourth = (wide[at] for at in rows)
    a, b, c, d = (weights[:, np.newaxis, np.newaxis] for weights in down)
    values = multiply_add(first, a, second * b) + multiply_add(third, c, fourth * d)
    whole: Pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return whole


def _taps(length: int, enlarged_length: int) -> tuple[list[NDArray[np.int64]], list[Singles]]:
    """The four source places of each place along an axis, and their weights."""
    at = (np.arange(enlarged_length) + 0.5) * (length / enlarged_length) - 0.5
    lower = np.floor(at)
    # IPP keeps 1 + t in float32, so that t is a multiple of 2**-23; the weights are computed in float64
    t = ((at - lower).astype(np.float32) + np.float32(1) - np.float32(1)).astype(np.float64)
    weights = [_outer(1 + t), _inner(t), _inner(1 - t), _outer(2 - t)]
    places = [np.clip(lower.astype(np.int64) + shift, 0, length - 1) for shift in (-1, 0, 1, 2)]
    return places, [each.astype(np.float32) for each in weights]


def _inner(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bicubic kernel at distances of 0 to 1."""
    weights: NDArray[Any] = ((CUBIC + 2) * distance - (CUBIC + 3)) * distance * distance + 1
    return weights


def _outer(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The bicubic kernel at distances of 1 to 2, in the order of operations that gives IPP's digits."""
    cubed = CUBIC * distance * distance * distance
    weights: NDArray[Any] = cubed - 5 * CUBIC * distance * distance + 8 * CUBIC * distance - 4 * CUBIC
    return weights
