"""The image through lit water: caustic_refraction of ImageNet-C-bar.

The order of operations, and which of them are in single precision, is that of the authors' program (`c_bar`) with
numpy before 2: there a pixel between four of the image is computed in single precision, and one at the border, with a
neighbour outside, in part in double precision.
"""

from math import acos, asin, cos, floor, sin, sqrt

import numpy as np

from cleanset.images.preprocessing import Pixels
from cleanset.statistics.basics import Floats, Singles
from cleanset.studies.robustness.corruptions.c_bar_fields import Shape
from cleanset.studies.robustness.exact import compiled, gaussian

ITERATIONS = 5
"""Steps of a caustic."""

INTENSITY = 0.005
"""Reciprocal scale of a caustic's bright lines."""

TURN = 6.28318530718
"""A full turn, as the program has it."""

REFRACTION = 4.0
"""Refractive index of the water."""

STEEP = 1.0 - 1e-3
"""Vertical part of a normal from which onwards light is not bent."""

LUMA = (0.2126, 0.7152, 0.0722)
"""Weights of red, green and blue."""


def refracted(image: Pixels, time: float, size: float, lens: float, light: float) -> Pixels:
    """The image moved and lit by the slopes of a caustic.

    `time` and `size` (pixels) choose the caustic; `lens`: pixels that a fully bent ray moves; `light`: brightness a
    unit of slope.
    """
    colours = np.repeat(caustic(image.shape[:2], time, size)[..., np.newaxis], 3, axis=2)
    # along the colours too, as the program does
    smoothed = gaussian(colours, 1.0, mode="reflect")
    values, is_single = _refract(image.astype(np.float32) / np.float32(255), _luma(smoothed), lens, light)
    scaled = values.astype(np.float32) * np.float32(255) if is_single else values * 255
    pixels: Pixels = scaled.astype(np.uint8)
    return pixels


def _luma(colours: Floats) -> Floats:
    """The luma of each pixel, with a border of 0."""
    luma = colours[..., 0] * LUMA[0] + colours[..., 1] * LUMA[1] + colours[..., 2] * LUMA[2]
    return np.pad(luma, 1)


@compiled
def caustic(shape: Shape, time: float, size: float) -> Floats:
    """A caustic, 0 to 1, that repeats after `size` pixels."""
    field = np.empty((shape[0], shape[1]))
    for y in range(shape[0]):
        for x in range(shape[1]):
            down = (y / size % 1) * TURN - 250
            right = (x / size % 1) * TURN - 250
            moved_down = down
            moved_right = right
            total = 1.0
            for step in range(ITERATIONS):
                at = time * (1.0 - 3.5 / (step + 1))
                next_down = down + (cos(at - moved_down) + sin(at + moved_right))
                moved_right = right + (sin(at - moved_right) + cos(at + moved_down))
                moved_down = next_down
                first = down / (sin(moved_down + at) / INTENSITY)
                second = right / (cos(moved_right + at) / INTENSITY)
                total += 1.0 / sqrt(first * first + second * second)
            total = 1.17 - (total / 5.0) ** 1.4
            field[y, x] = min(abs(total) ** 8.0, 1.0)
    return field


@compiled
def _refract(image: Singles, luma: Floats, lens: float, light: float) -> tuple[Floats, bool]:
    """The values of the moved and lit image, 0 to 1, and whether all of them are in single precision.

    `luma` has a border of one pixel.
    """
    height, width = image.shape[:2]
    found = np.empty(image.shape)
    is_single = True
    for row in range(height):
        for column in range(width):
            slope_down = luma[row + 2, column + 1] - luma[row, column + 1]
            slope_right = luma[row + 1, column + 2] - luma[row + 1, column]
            down, right = _bent(slope_down, slope_right)
            y = row + np.rint(down * lens * 1000) / 1000
            x = column + np.rint(right * lens * 1000) / 1000
            top = floor(y)
            left = floor(x)
            is_inner = 0 <= top < height - 1 and 0 <= left < width - 1
            is_single = is_single and is_inner
            for channel in range(3):
                value = _between(image, y, x, channel)
                for added in (-slope_right * light, slope_down * light):
                    value = _single(value + _single(added)) if is_inner else value + added
                found[row, column, channel] = min(max(value, 0.0), 1.0)
    return found, is_single


@compiled
def _bent(slope_down: float, slope_right: float) -> tuple[float, float]:
    """The horizontal parts, down and right, of vertical light bent by a surface with these slopes."""
    length = sqrt(slope_down * slope_down + slope_right * slope_right + 1.0)
    down = slope_down / length
    right = slope_right / length
    vertical = 1.0 / length
    if vertical >= STEEP:
        return 0.0, 0.0
    bent = asin(sin(acos(vertical)) / REFRACTION)
    horizontal = sqrt(down * down + right * right)
    return (
        cos(bent) * down - sin(bent) * vertical * down / horizontal,
        cos(bent) * right - sin(bent) * vertical * right / horizontal,
    )


@compiled
def _between(image: Singles, y: float, x: float, channel: int) -> float:
    """The value between four pixels; those outside the image are 0, and count in double precision."""
    top = floor(y)
    left = floor(x)
    upper, upper_single = _beside(image, top, x, left, channel)
    lower, lower_single = _beside(image, top + 1, x, left, channel)
    # the order of the operations decides roundings
    upper_weight = 1.0 - y + top
    lower_weight = 1.0 - (top + 1) + y
    upper = _single(upper * _single(upper_weight)) if upper_single else upper * upper_weight
    lower = _single(lower * _single(lower_weight)) if lower_single else lower * lower_weight
    return _single(upper + lower) if upper_single and lower_single else upper + lower


@compiled
def _beside(image: Singles, row: int, x: float, left: int, channel: int) -> tuple[float, bool]:
    """The value between two pixels of a row, and whether it is in single precision."""
    height, width = image.shape[:2]
    is_row = 0 <= row < height
    has_left = is_row and 0 <= left < width
    has_right = is_row and 0 <= left + 1 < width
    first = _single(image[row, left, channel] * _single(1.0 - x + left)) if has_left else 0.0
    second = _single(image[row, left + 1, channel] * _single(1.0 - (left + 1) + x)) if has_right else 0.0
    if has_left and has_right:
        return _single(first + second), True
    return first + second, False


@compiled
def _single(value: float) -> float:
    """The value rounded to single precision."""
    return np.float64(np.float32(value))
