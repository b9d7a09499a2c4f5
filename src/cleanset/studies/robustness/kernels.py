"""Kernels of Gaussian, motion and defocus blurs with the same digits on every processor.

With AVX-512 numpy computes exp by other code, whose last digit is wrong for some values: for one exp(-1/8), a weight of
gaussian_blur at severity 2. Without AVX2 OpenCV smooths the disk of defocus_blur with other roundings. One such digit
changes pixels, since they are truncated.

frost of imagecorruptions 1.1.5, whose bytes would otherwise depend on the processor.

The library enlarges a photograph of frost by cv2.resize (bicubic), which OpenCV hands to Intel's IPP. IPP sums float32
products in another order for SSE 4.2, AVX2 and each kind of AVX-512, and does not exist elsewhere: some values that lie
halfway between two whole numbers are rounded to the other one, which changed up to 107 of 355 images of the sample.
`enlarged` sums in the order of IPP for AVX2, by elementwise float64 arithmetic, which is the same everywhere.
"""

import importlib.resources
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from functools import lru_cache
from math import ceil
from typing import Any, Literal, TypeVar

import cv2
import imagecorruptions
import imagecorruptions.corruptions as library
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
_Float = TypeVar("_Float", bound=np.floating[Any])

VECTORS = 16
"""Columns of the largest disk, of 21, that OpenCV smooths in vectors of AVX2."""

_DIGITS = Context(prec=40)
"""Decimal digits, enough that rounding to them and then to float64 gives the correctly rounded float64."""


@contextmanager
def exact_kernels() -> Iterator[None]:
    """Let imagecorruptions blur with these kernels, and put its own functions back at the end.

    They belong to the process: to be used in worker processes, never in threads.
    """
    own = library.gaussian, library.gauss_function, library.disk
    library.gaussian, library.gauss_function, library.disk = gaussian, _density, disk
    try:
        yield
    finally:
        library.gaussian, library.gauss_function, library.disk = own


def motion_blur(values: NDArray[Any], radius: int, sigma: float, angle: float) -> NDArray[np.float32]:
    """Values blurred along a direction, `angle` in degrees, as by imagecorruptions."""
    with exact_kernels():
        blurred: NDArray[np.float32] = library._motion_blur(values, radius, sigma, angle)
    return blurred


def gaussian(
    values: NDArray[_Float],
    sigma: float | Sequence[float],
    *,
    mode: Literal["nearest", "reflect"] = "nearest",
    truncate: float = 4.0,
    channel_axis: int | None = None,
) -> NDArray[_Float]:
    """Floating-point values blurred as by skimage.filters.gaussian; `sigma`: of all axes or each but the channels'."""
    axes = [axis for axis in range(values.ndim) if channel_axis is None or axis != channel_axis % values.ndim]
    for axis, own in zip(axes, np.broadcast_to(sigma, len(axes)).tolist(), strict=True):
        # the radius as scipy.ndimage.gaussian_filter1d rounds it
        values = correlate1d(values, _weights(own, int(truncate * own + 0.5)), axis, values.dtype, mode)
    return values


@lru_cache(maxsize=8)
def disk(radius: int, alias_blur: float) -> Singles:
    """The kernel of defocus_blur, read-only: a disk with a smoothed edge, as by OpenCV's GaussianBlur with AVX2."""
    reach = max(8, radius)
    squares = np.arange(-reach, reach + 1) ** 2
    hard = (squares[:, np.newaxis] + squares <= radius**2).astype(np.float32)
    hard /= np.float32(np.count_nonzero(hard))
    smoothed = _smoothed_by_three(hard, alias_blur) if radius <= 8 else _smoothed_by_five(hard, alias_blur)
    smoothed.setflags(write=False)
    return smoothed


def multiply_add(left: Singles, right: Singles | np.float32, added: Singles) -> Singles:
    """`left * right + added` as by a fused multiply-add: in float64, where the product is exact, then in float32."""
    total: Singles = (left.astype(np.float64) * right.astype(np.float64) + added.astype(np.float64)).astype(np.float32)
    return total


def _smoothed_by_three(values: Singles, sigma: float) -> Singles:
    side, centre = _weights(sigma, 1).astype(np.float32)[:2]
    before, at, after = _neighbours(values, 1, axis=1)
    rows = multiply_add(at, centre, (before + after) * side)
    above, at, below = _neighbours(rows, 1, axis=0)
    return multiply_add(above + below, side, at * centre)


def _smoothed_by_five(values: Singles, sigma: float) -> Singles:
    far, near, centre = _weights(sigma, 2).astype(np.float32)[:3]
    a, b, c, d, e = _neighbours(values, 2, axis=1)
    rows = multiply_add(a + e, far, multiply_add(b + d, near, c * centre))
    a, b, c, d, e = _neighbours(rows, 2, axis=0)
    smoothed = multiply_add(a + e, far, multiply_add(b + d, near, c * centre))
    # OpenCV has the last columns, which do not fill a vector, in code without fused multiply-adds
    smoothed[:, VECTORS:] = ((a + e) * far + ((b + d) * near + c * centre))[:, VECTORS:]
    return smoothed


def _neighbours(values: Singles, reach: int, axis: int) -> list[Singles]:
    """The values moved along an axis by -reach to reach, mirrored at the edge without repeating it."""
    width = [(reach, reach) if each == axis else (0, 0) for each in range(2)]
    padded = np.pad(values, width, mode="reflect")
    return [np.take(padded, range(start, start + values.shape[axis]), axis) for start in range(2 * reach + 1)]


def _weights(sigma: float, radius: int) -> Floats:
    """The weights of scipy.ndimage.gaussian_filter1d from -radius to radius, with the sum 1."""
    weights = _exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    normalised: Floats = weights / weights.sum()
    return normalised


def _density(x: NDArray[np.int64], mean: float, sigma: float) -> Floats:
    """The density of the normal distribution, from which imagecorruptions makes the kernels of motion_blur and snow."""
    density: Floats = _exp(-((x - mean) ** 2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    return density


def _exp(exponents: NDArray[np.floating[Any]]) -> Floats:
    return np.array([rounded_exp(each) for each in exponents.tolist()])


@lru_cache(maxsize=2**12)
def rounded_exp(exponent: float) -> float:
    """The exponential, correctly rounded."""
    return float(_DIGITS.exp(Decimal(exponent)))


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
