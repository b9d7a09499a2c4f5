"""Plates in the manner of Ishihara's: a digit of dots that people with a red-green deficiency do not see.

Digit and ground differ along the direction in linear RGB that a dichromat does not see, by the projections of Vienot,
Brettel and Mollon (1999), and each dot has a brightness of its own, so that brightness reveals nothing. Plates for
protanopes and for deuteranopes take turns. This is a screening, no diagnosis: a screen is not calibrated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from cleanset.statistics.basics import Floats
from cleanset.statistics.seeds import change_seed

Deficiency = Literal["protan", "deutan"]
DEFICIENCIES: tuple[Deficiency, ...] = ("protan", "deutan")
MIN_SIDE = 96
"""Pixels along a side from which a digit of dots can be read."""

# linear RGB, 0 to 1: between digit and ground, and from there to each of them
_MIDDLE = (0.32, 0.32, 0.22)
_INVISIBLE: Mapping[Deficiency, tuple[float, float, float]] = {
    "protan": (1.0, -0.1266, -0.0045),
    "deutan": (1.0, -0.4139, 0.0316),
}
_STRENGTH = 0.24
_BRIGHTNESS = (0.7, 1.3)
_PAPER = (245, 241, 232)

# of a disc of radius 1
_RADII = (0.065, 0.05, 0.036, 0.025)
_TRIES = (500, 900, 1500, 2500)
_GAP = 0.008
_OVERSAMPLING = 4

# strokes of digits in a box of width 2 and height 4, as x and y from its lower left corner
_SEGMENTS: Mapping[str, tuple[tuple[int, int, int, int], ...]] = {
    "top": ((0, 4, 2, 4),),
    "middle": ((0, 2, 2, 2),),
    "bottom": ((0, 0, 2, 0),),
    "upper left": ((0, 2, 0, 4),),
    "upper right": ((2, 2, 2, 4),),
    "lower left": ((0, 0, 0, 2),),
    "lower right": ((2, 0, 2, 2),),
}
_STROKES: Mapping[str, tuple[str, ...]] = {
    "2": ("top", "upper right", "middle", "lower left", "bottom"),
    "3": ("top", "upper right", "middle", "lower right", "bottom"),
    "4": ("upper left", "middle", "upper right", "lower right"),
    "5": ("top", "upper left", "middle", "lower right", "bottom"),
    "6": ("top", "upper left", "middle", "lower left", "lower right", "bottom"),
    "7": ("top", "upper right", "lower right"),
}
PLATE_DIGITS = tuple(_STROKES)
"""The digits that are drawn; those that can be answered are all but 0."""
_HALF_STROKE = 0.12
_BOX = (-0.32, -0.62, 0.32, 0.31)
"""Left and lower edge of a digit's box in the disc; the size of its units across and up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A dot of a plate: place and radius in a disc of radius 1, y upwards."""

    x: float
    y: float
    radius: float
    colour: tuple[int, int, int]
    """sRGB, 0 to 255."""

    is_digit: bool


def plate_dots(digit: str, deficiency: Deficiency, seed: int) -> list[Dot]:
    """The dots of a plate, the largest first; the same for the same seed."""
    draw = _uniform(change_seed(seed, "study", f"plate {digit} {deficiency}", 0), 4 * sum(_TRIES))
    dots: list[Dot] = []
    taken = np.zeros((0, 3))
    rows = iter(draw.reshape(-1, 4))
    for radius, tries in zip(_RADII, _TRIES, strict=True):
        for _ in range(tries):
            distance, angle, brightness, _unused = next(rows)
            reach = (1 - radius) * np.sqrt(distance)
            x = float(reach * np.cos(2 * np.pi * angle))
            y = float(reach * np.sin(2 * np.pi * angle))
            apart = np.hypot(taken[:, 0] - x, taken[:, 1] - y) - taken[:, 2] - radius
            if (apart < _GAP).any():
                continue
            taken = np.vstack([taken, (x, y, radius)])
            is_digit = on_digit(digit, x, y)
            colour = _colour(deficiency, is_digit=is_digit, brightness=float(brightness))
            dots.append(Dot(x=x, y=y, radius=radius, colour=colour, is_digit=is_digit))
    return dots


def on_digit(digit: str, x: float, y: float) -> bool:
    """Whether a place of the disc is on a digit's strokes."""
    left, low, across, up = _BOX
    for name in _STROKES[digit]:
        for x0, y0, x1, y1 in _SEGMENTS[name]:
            is_across = left + across * x0 - _HALF_STROKE <= x <= left + across * x1 + _HALF_STROKE
            if is_across and low + up * y0 - _HALF_STROKE <= y <= low + up * y1 + _HALF_STROKE:
                return True
    return False


def plate(digit: str, deficiency: Deficiency, size: tuple[int, int], seed: int) -> Image.Image:
    """A plate as an image of a size: a disc of dots on paper."""
    width, height = (_OVERSAMPLING * side for side in size)
    image = Image.new("RGB", (width, height), _PAPER)
    draw = ImageDraw.Draw(image)
    scale = 0.48 * min(width, height)
    for dot in plate_dots(digit, deficiency, seed):
        x = width / 2 + scale * dot.x
        y = height / 2 - scale * dot.y
        radius = scale * dot.radius
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=dot.colour)
    return image.resize(size, Image.Resampling.BOX)


def _uniform(seed: int, count: int) -> Floats:
    # the raw stream, which is the same in all versions of NumPy
    return np.random.PCG64(seed).random_raw(count) / 2.0**64


def _colour(deficiency: Deficiency, *, is_digit: bool, brightness: float) -> tuple[int, int, int]:
    sign = _STRENGTH if is_digit else -_STRENGTH
    low, high = _BRIGHTNESS
    linear = (np.array(_MIDDLE) + sign * np.array(_INVISIBLE[deficiency])) * (low + (high - low) * brightness)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear.clip(0, 1) ** (1 / 2.4) - 0.055)
    red, green, blue = np.round(255 * encoded).astype(int).tolist()
    return red, green, blue
