"""zoom_blur, brightness and saturate of imagecorruptions 1.1.5, value for value, compiled by numba.

These three take 60 % of the library's time for the 15 corruptions. Every sum and product here is in the library's
order and precision, and numba contracts none of them, so that no value differs (test_exact.py).
Numba keeps the code beside this file or in the user's cache: compiling takes each worker process seconds.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from math import ceil, floor
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

Pixels = NDArray[np.uint8]
"""An image, uint8 of shape (height, width, 3), red first."""

Taps = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""The two source places of each place along an axis, and their weights; both are 0 outside the source."""

ZOOMS: tuple[tuple[float, float], ...] = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))
"""Zoom factors of zoom_blur by severity: the end, excluded, and the step; the first factor is 1."""

ADDED_VALUES: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
"""Amount that brightness adds to HSV's value, by severity."""

SATURATIONS: tuple[tuple[float, float], ...] = ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2))
"""Factor of HSV's saturation and amount added to the product by saturate, by severity."""


def brightness(image: Pixels, severity: int) -> Pixels:
    """The image with HSV's value raised."""
    return with_hsv(image, 1.0, 0.0, ADDED_VALUES[severity - 1])


def saturate(image: Pixels, severity: int) -> Pixels:
    """The image with HSV's saturation multiplied and raised."""
    factor, added = SATURATIONS[severity - 1]
    return with_hsv(image, factor, added, 0.0)


def with_hsv(image: Pixels, factor: float, added_saturation: float, added_value: float) -> Pixels:
    """The image with saturation times `factor` plus `added_saturation` and with `added_value`, each clipped to 0..1.

    HSV as in skimage.color.rgb2hsv and hsv2rgb; the result is truncated, not rounded.
    """
    changed = np.empty_like(image)
    _change_hsv(np.ascontiguousarray(image), factor, added_saturation, added_value, changed)
    return changed


def zoom_blur(image: Pixels, severity: int) -> Pixels:
    """The mean of the image and of its enlargements, the image itself being counted twice."""
    # np.arange, as in the library: rounding decides whether the end is among the factors
    factors = np.arange(1, *ZOOMS[severity - 1])
    values = (image / 255.0).astype(np.float32)
    # the first factor is 1, by which scipy.ndimage.zoom returns the same values
    total = values.copy()
    for factor in factors[1:]:
        _add_zoomed(values, _taps(image.shape[0], float(factor)), _taps(image.shape[1], float(factor)), total)
    mean = (values + total) / (len(factors) + 1)
    return (np.clip(mean, 0, 1) * 255).astype(np.uint8)


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function as machine code, kept on disk where any folder for it can be written to."""
    # without fastmath, which would reorder sums and contract products
    dispatcher = numba.njit(function)
    keep_compiled(dispatcher)
    return cast(Callable[Parameters, Result], dispatcher)


def keep_compiled(dispatcher: Any) -> None:
    """Let numba keep a function's machine code on disk, for other processes, where a folder can be written to."""
    # numba raises where it finds no such folder
    with suppress(RuntimeError):
        dispatcher.enable_caching()


@lru_cache(maxsize=256)
def _taps(length: int, factor: float) -> Taps:
    """The sources and weights that scipy.ndimage.zoom of order 1 takes the first `length` places from.

    What is enlarged are the central ceil(length / factor) places.
    """
    inner = ceil(length / factor)
    first = (length - inner) // 2
    outer = round(inner * factor)
    at = np.arange(length, dtype=np.float64) * ((inner - 1) / (outer - 1))
    # by a rounding error the last place may lie outside, where scipy takes 0
    inside = at <= inner - 1
    lower = np.where(inside, np.floor(at), 0).astype(np.int64)
    left = np.where(inside, 1.0 - (at - lower), 0.0)
    right = np.where(inside, 1.0 - left, 0.0)
    return first + lower, first + np.minimum(lower + 1, inner - 1), left, right


@compiled
def _add_zoomed(values: NDArray[np.float32], rows: Taps, columns: Taps, total: NDArray[np.float32]) -> None:
    """Add the enlarged values to the total; products by axis and sums in the order of scipy's NI_ZoomShift."""
    upper, lower = np.empty(values.shape[1:]), np.empty(values.shape[1:])
    for row in range(values.shape[0]):
        above, below = rows[2][row], rows[3][row]
        for column in range(values.shape[1]):
            for channel in range(3):
                upper[column, channel] = values[rows[0][row], column, channel] * above
                lower[column, channel] = values[rows[1][row], column, channel] * below
        for column in range(values.shape[1]):
            at, after = columns[0][column], columns[1][column]
            left, right = columns[2][column], columns[3][column]
            for channel in range(3):
                value = upper[at, channel] * left + upper[after, channel] * right
                value = value + lower[at, channel] * left + lower[after, channel] * right
                total[row, column, channel] += np.float32(value)


@compiled
def _change_hsv(image: Pixels, factor: float, added_saturation: float, added_value: float, changed: Pixels) -> None:
    """Write the image with another saturation and value to `changed`."""
    for row in range(image.shape[0]):
        for column in range(image.shape[1]):
            red, green, blue = image[row, column]
            hue, saturation, value = _hsv(red / 255.0, green / 255.0, blue / 255.0)
            red, green, blue = _rgb(
                hue, _clipped(saturation * factor + added_saturation), _clipped(value + added_value)
            )
            changed[row, column, 0] = np.uint8(_clipped(red) * 255.0)
            changed[row, column, 1] = np.uint8(_clipped(green) * 255.0)
            changed[row, column, 2] = np.uint8(_clipped(blue) * 255.0)


@compiled
def _hsv(red: float, green: float, blue: float) -> tuple[float, float, float]:
    """Hue, saturation and value, as skimage.color.rgb2hsv."""
    value = max(red, green, blue)
    delta = value - min(red, green, blue)
    if delta == 0.0:
        return 0.0, 0.0, value
    # skimage takes the last of equal ones
    if blue == value:
        hue = 4.0 + (red - green) / delta
    elif green == value:
        hue = 2.0 + (blue - red) / delta
    else:
        hue = (green - blue) / delta
    hue /= 6.0
    return (hue + 1.0 if hue < 0.0 else hue), delta / value, value


@compiled
def _rgb(hue: float, saturation: float, value: float) -> tuple[float, float, float]:
    """Red, green and blue, as skimage.color.hsv2rgb."""
    sector = floor(hue * 6.0)
    rest = hue * 6.0 - sector
    low = value * (1.0 - saturation)
    falling = value * (1.0 - rest * saturation)
    rising = value * (1.0 - (1.0 - rest) * saturation)
    if sector == 1:
        return falling, value, low
    if sector == 2:
        return low, value, rising
    if sector == 3:
        return low, falling, value
    if sector == 4:
        return rising, low, value
    if sector == 5:
        return value, low, falling
    return value, rising, low


@compiled
def _clipped(value: float) -> float:
    """The value, clipped to 0..1."""
    return min(max(value, 0.0), 1.0)
