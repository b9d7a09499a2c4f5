"""Kernels of Gaussian, motion and defocus blurs with the same digits on every processor.

With AVX-512 numpy computes exp by other code, whose last digit is wrong for some values: for one exp(-1/8), a weight of
gaussian_blur at severity 2. Without AVX2 OpenCV smooths the disk of defocus_blur with other roundings. One such digit
changes pixels, since they are truncated.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Literal, TypeVar

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
