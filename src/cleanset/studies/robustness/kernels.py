"""Kernels of Gaussian and motion blurs with the same digits on every processor.

With AVX-512 numpy computes exp by other code, whose last digit is wrong for some values: for one exp(-1/8), a weight of
gaussian_blur at severity 2. One such digit changes pixels, since they are truncated.
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
_Float = TypeVar("_Float", bound=np.floating[Any])

_DIGITS = Context(prec=40)
"""Enough that rounding twice, to these digits and to float64, is rounding once."""


@contextmanager
def exact_kernels() -> Iterator[None]:
    """Let imagecorruptions blur with these kernels, and put its own functions back at the end.

    They belong to the process: to be used in worker processes, never in threads.
    """
    own = library.gaussian, library.gauss_function
    library.gaussian, library.gauss_function = gaussian, _density
    try:
        yield
    finally:
        library.gaussian, library.gauss_function = own


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
        values = correlate1d(values, _weights(own, int(truncate * own + 0.5)), axis, values.dtype, mode)
    return values


def _weights(sigma: float, radius: int) -> Floats:
    """From -radius to radius, with the sum 1, as of scipy.ndimage.gaussian_filter1d."""
    weights = _exp(-0.5 / (sigma * sigma) * np.arange(-radius, radius + 1) ** 2)
    normalised: Floats = weights / weights.sum()
    return normalised


def _density(x: NDArray[np.int64], mean: float, sigma: float) -> Floats:
    """Of the normal distribution; imagecorruptions makes the kernel of motion_blur and snow of it."""
    density: Floats = _exp(-((x - mean) ** 2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    return density


def _exp(exponents: NDArray[np.floating[Any]]) -> Floats:
    return np.array([rounded_exp(each) for each in exponents.tolist()])


@lru_cache(maxsize=2**12)
def rounded_exp(exponent: float) -> float:
    """The exponential, correctly rounded."""
    return float(_DIGITS.exp(Decimal(exponent)))
