"""zoom_blur, brightness, saturate, and the kernels of blurs: faster, with the same digits on every processor.

The three, 60 % of the time that imagecorruptions 1.1.5 takes for the 15 corruptions, and the motion blur of ImageMagick
are compiled by numba. Every sum and product is in the order and precision of the original, and numba never contracts
them, so that no value differs. Numba keeps the code next to this file or in the user's cache: compiling takes each
worker process seconds.

Kernels of Gaussian, motion and defocus blurs have the same digits on every processor. With AVX-512 numpy computes exp
by other code, whose last digit is wrong for some values: for one exp(-1/8), a weight of gaussian_blur at severity 2.
Without AVX2 OpenCV smooths the disk of defocus_blur with other roundings. One such digit changes pixels, since they
are truncated.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Context, Decimal
from functools import lru_cache
from math import ceil, cos, floor, hypot, radians, sin
from typing import Any, Literal, ParamSpec, TypeVar, cast

import imagecorruptions.corruptions as library
import numba
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import correlate1d

from cleanset.images.preprocessing import Pixels
from cleanset.statistics.basics import Floats, Ints, Singles

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

Taps = tuple[Ints, Ints, Floats, Floats]
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
        _add_zoomed(values, _zoom_taps(image.shape[0], float(factor)), _zoom_taps(image.shape[1], float(factor)), total)
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
def _zoom_taps(length: int, factor: float) -> Taps:
    """The sources and weights that scipy.ndimage.zoom of order 1 takes the first `length` places from.

    What is enlarged are the central ceil(length / factor) places.
    """
    inner = ceil(length / factor)
    first = (length - inner) // 2
    outer = round(inner * factor)
    at = np.arange(length, dtype=np.float64) * ((inner - 1) / (outer - 1))
    # by a rounding error the last place may be outside, where scipy takes 0
    inside = at <= inner - 1
    lower = np.where(inside, np.floor(at), 0).astype(np.int64)
    left = np.where(inside, 1.0 - (at - lower), 0.0)
    right = np.where(inside, 1.0 - left, 0.0)
    return first + lower, first + np.minimum(lower + 1, inner - 1), left, right


@compiled
def _add_zoomed(values: Singles, rows: Taps, columns: Taps, total: Singles) -> None:
    """Add the enlarged values to the total; products by axis and sums in the order of scipy's NI_ZoomShift."""
    upper = np.empty(values.shape[1:])
    lower = np.empty(values.shape[1:])
    for row in range(values.shape[0]):
        above = rows[2][row]
        below = rows[3][row]
        for column in range(values.shape[1]):
            for channel in range(3):
                upper[column, channel] = values[rows[0][row], column, channel] * above
                lower[column, channel] = values[rows[1][row], column, channel] * below
        for column in range(values.shape[1]):
            at = columns[0][column]
            after = columns[1][column]
            left = columns[2][column]
            right = columns[3][column]
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


_Float = TypeVar("_Float", bound=np.floating)

VECTORS = 16
"""Columns of the largest disk, of 21, that OpenCV smooths in vectors of AVX2."""

_DIGITS = Context(prec=40)
"""Decimal digits, enough that rounding to them and then to float64 gives the correctly rounded float64."""


@contextmanager
def exact_kernels() -> Iterator[None]:
    """Let imagecorruptions blur with these kernels, and put its own functions back at the end.

    They belong to the process: to be used in worker processes, never in threads.
    """
    own = library.gaussian, library.disk
    library.gaussian = gaussian
    library.disk = disk
    try:
        yield
    finally:
        library.gaussian, library.disk = own


def motion_blur(image: Pixels, radius: int, sigma: float, angle: float) -> Pixels:
    """The image, red first or grey, blurred along a direction as by ImageMagick 6 with 16 bits; `angle` in degrees."""
    width = 2 * radius + 1
    weights = _exp(-(np.arange(width) ** 2) / (2 * sigma**2))
    # lengths as ImageMagick has them: they decide which pixel is the nearest
    y = width * sin(radians(angle))
    x = width * cos(radians(angle))
    steps = [(ceil(step * y / hypot(y, x) - 0.5), ceil(step * x / hypot(y, x) - 0.5)) for step in range(width)]
    blurred = np.empty_like(image)
    channels = image.reshape(*image.shape[:2], -1)
    _blur_along(channels, weights / weights.sum(), np.array(steps), blurred.reshape(channels.shape))
    return blurred


@compiled
def _blur_along(image: Pixels, weights: Floats, steps: Ints, blurred: Pixels) -> None:
    """Write the weighted sum of the pixels at these steps, down and right, to `blurred`; edges are repeated."""
    height, width, channels = image.shape
    sums = np.empty((width, channels))
    for row in range(height):
        sums[:] = 0.0
        for step in range(len(weights)):
            source = image[min(max(row + steps[step, 0], 0), height - 1)]
            for column in range(width):
                at = min(max(column + steps[step, 1], 0), width - 1)
                for channel in range(channels):
                    sums[column, channel] += weights[step] * (257.0 * source[at, channel])
        for column in range(width):
            for channel in range(channels):
                # ImageMagick rounds to 16 bits and truncates to 8
                blurred[row, column, channel] = int(sums[column, channel] + 0.5) // 257


def snowflakes(noise: Floats, zoom: float, threshold: float) -> Pixels:
    """The layer of snow before its blur: the central part of enlarged noise, thresholded."""
    height, width = noise.shape
    flakes = library.clipped_zoom(noise[..., np.newaxis], zoom)[..., 0]
    top = (flakes.shape[0] - height) // 2
    left = (flakes.shape[1] - width) // 2
    flakes = flakes[top : top + height, left : left + width]
    whole: Pixels = (np.where(flakes < threshold, 0, np.clip(flakes, 0, 1)) * 255).astype(np.uint8)
    return whole


def gaussian(
    values: NDArray[_Float],
    sigma: float | Sequence[float],
    *,
    mode: Literal["nearest", "reflect"] = "nearest",
    truncate: float = 4.0,
    channel_axis: int | None = None,
) -> NDArray[_Float]:
    """Floating-point values blurred as by skimage.filters.gaussian; `sigma`: one for all axes, or one for each but the
    channels'."""
    axes = [axis for axis in range(values.ndim) if channel_axis is None or axis != channel_axis % values.ndim]
    for axis, own in zip(axes, np.broadcast_to(sigma, len(axes)).tolist(), strict=True):
        # the radius as scipy.ndimage.gaussian_filter1d rounds it
        weights = _weights(own, int(truncate * own + 0.5))
        if values.ndim == 2 and values.dtype == np.float64:
            values = correlated(values, weights, axis, mode)
        else:
            values = correlate1d(values, weights, axis=axis, output=values.dtype, mode=mode)
    return values


def correlated(
    values: NDArray[_Float], weights: Floats, axis: int, mode: Literal["nearest", "reflect"]
) -> NDArray[_Float]:
    """As `scipy.ndimage.correlate1d` of a matrix in float64 with symmetric weights, in a third of the time.

    The same sums in the same order, several places at a time: elastic_transform has up to 1,025 weights.
    """
    radius = len(weights) // 2
    columns = values if axis == 0 else values.T
    padded = np.pad(columns, ((radius, radius), (0, 0)), mode="edge" if mode == "nearest" else "symmetric")
    found = np.empty(columns.shape, values.dtype)
    _correlate_columns(np.ascontiguousarray(padded), weights, found)
    return np.ascontiguousarray(found if axis == 0 else found.T)


@compiled
def _correlate_columns(padded: NDArray[np.floating], weights: Floats, found: NDArray[np.floating]) -> None:
    """Write the weighted sums of each column: the centre first, then pairs of neighbours from the outermost inwards."""
    rows, columns = found.shape
    radius = len(weights) // 2
    for row in range(rows):
        for column in range(columns):
            found[row, column] = padded[row + radius, column] * weights[radius]
        for step in range(radius):
            weight = weights[step]
            for column in range(columns):
                found[row, column] += (padded[row + step, column] + padded[row + 2 * radius - step, column]) * weight


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


def _multiply_add(left: Singles, right: Singles | np.float32, added: Singles) -> Singles:
    """`left * right + added` as by a fused multiply-add: in float64, where the product is exact, then in float32."""
    total: Singles = (left.astype(np.float64) * right.astype(np.float64) + added.astype(np.float64)).astype(np.float32)
    return total


def _smoothed_by_three(values: Singles, sigma: float) -> Singles:
    side, centre = _weights(sigma, 1).astype(np.float32)[:2]
    before, at, after = _neighbours(values, 1, axis=1)
    rows = _multiply_add(at, centre, (before + after) * side)
    above, at, below = _neighbours(rows, 1, axis=0)
    return _multiply_add(above + below, side, at * centre)


def _smoothed_by_five(values: Singles, sigma: float) -> Singles:
    far, near, centre = _weights(sigma, 2).astype(np.float32)[:3]
    a, b, c, d, e = _neighbours(values, 2, axis=1)
    rows = _multiply_add(a + e, far, _multiply_add(b + d, near, c * centre))
    a, b, c, d, e = _neighbours(rows, 2, axis=0)
    smoothed = _multiply_add(a + e, far, _multiply_add(b + d, near, c * centre))
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


def _exp(exponents: NDArray[np.floating]) -> Floats:
    return np.array([rounded_exp(each) for each in exponents.tolist()])


@lru_cache(maxsize=2**12)
def rounded_exp(exponent: float) -> float:
    """The exponential, correctly rounded."""
    return float(_DIGITS.exp(Decimal(exponent)))
