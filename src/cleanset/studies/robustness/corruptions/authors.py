"""motion_blur, snow, frost and elastic_transform of ImageNet-C as in the authors' program: imagecorruptions differs.

Value for value as D. Hendrycks' make_imagenet_c.py (hendrycks/robustness) with ImageMagick 6. Its images have 224 x 224
pixels; others are treated alike. The library's elastic_transform is another, much harder corruption, its frost is of
six photographs enlarged by 1.1, and its snow and motion_blur round elsewhere. The photographs of frost in the library
have the bytes of the authors'.
"""

import importlib.resources
from collections.abc import Callable
from functools import lru_cache

import cv2
import imagecorruptions
import numpy as np

from cleanset.images.preprocessing import Pixels
from cleanset.statistics.basics import Singles
from cleanset.studies.robustness.exact import compiled, gaussian, motion_blur, snowflakes

ELASTIC: tuple[tuple[float, float, float], ...] = (
    (244 * 2, 244 * 0.7, 244 * 0.1),
    (244 * 2, 244 * 0.08, 244 * 0.2),
    (244 * 0.05, 244 * 0.01, 244 * 0.02),
    (244 * 0.07, 244 * 0.01, 244 * 0.02),
    (244 * 0.12, 244 * 0.01, 244 * 0.02),
)
"""Factor of the smoothed field, its sigma, and the largest move of a corner, in pixels, by severity."""

MOTION: tuple[tuple[int, int], ...] = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))
"""Radius and sigma of motion_blur, by severity."""

SNOW: tuple[tuple[float, float, float, float, int, int, float], ...] = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)
"""Mean and deviation of the noise, zoom, threshold, radius and sigma of the blur, share of the image, by severity."""

FROST: tuple[tuple[float, float], ...] = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
"""Weights of the image and of the frost, by severity."""

FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
"""The photographs of frost, in the order that is drawn from; the authors have a sixth, which they never draw."""


def elastic_transform(image: Pixels, severity: int, drawn: np.random.RandomState) -> Pixels:
    """The image under a drawn affine map, and then under a smoothed field of displacements."""
    factor, sigma, corner = ELASTIC[severity - 1]
    shape = image.shape[:2]
    centre = np.array(shape, np.float32) // 2
    side = min(shape) // 3
    corners = np.array([centre + side, (centre[0] + side, centre[1] - side), centre - side], np.float32)
    moved = corners + drawn.uniform(-corner, corner, corners.shape).astype(np.float32)
    values = cv2.warpAffine(
        image.astype(np.float32) / np.float32(255),
        cv2.getAffineTransform(corners, moved),
        shape[::-1],
        borderMode=cv2.BORDER_REFLECT_101,
    )
    right, down = (
        (gaussian(drawn.uniform(-1, 1, shape), sigma, mode="reflect", truncate=3) * factor).astype(np.float32)
        for _ in range(2)
    )
    displaced = np.empty_like(image)
    _displace(np.asarray(values, np.float32), down, right, displaced)
    return displaced


@compiled
def _displace(values: Singles, down: Singles, right: Singles, displaced: Pixels) -> None:
    """Write the values found at the displaced places, as scipy.ndimage.map_coordinates of order 1 does."""
    height, width = values.shape[:2]
    for row in range(height):
        for column in range(width):
            y = _reflected(row + np.float64(down[row, column]), height)
            x = _reflected(column + np.float64(right[row, column]), width)
            upper = int(np.floor(y))
            left = int(np.floor(x))
            first_row = 1.0 - (y - upper)
            first_column = 1.0 - (x - left)
            last_row = 1.0 - first_row
            last_column = 1.0 - first_column
            top = max(upper, 0)
            bottom = min(upper + 1, height - 1)
            start = max(left, 0)
            end = min(left + 1, width - 1)
            for channel in range(3):
                value = values[top, start, channel] * first_row * first_column
                value += values[top, end, channel] * first_row * last_column
                value += values[bottom, start, channel] * last_row * first_column
                value += values[bottom, end, channel] * last_row * last_column
                whole = min(max(np.float32(value), np.float32(0)), np.float32(1)) * np.float32(255)
                displaced[row, column, channel] = np.uint8(whole)


@compiled
def _reflected(at: float, length: int) -> float:
    """A coordinate mirrored at the edges of the outer pixels, as in scipy's mode "reflect"; less than a length out."""
    if at < 0.0:
        return -at - 1.0
    return 2.0 * length - at - 1.0 if at >= length else at


def _motion_blurred(image: Pixels, severity: int, drawn: np.random.RandomState) -> Pixels:
    """The image blurred along a drawn direction."""
    return motion_blur(image, *MOTION[severity - 1], drawn.uniform(-45, 45))


def snow(image: Pixels, severity: int, drawn: np.random.RandomState) -> Pixels:
    """The image, paler, under snowflakes that fall in a drawn direction and again upside down."""
    mean, deviation, zoom, threshold, radius, sigma, share = SNOW[severity - 1]
    flakes = snowflakes(drawn.normal(mean, deviation, image.shape[:2]), zoom, threshold)
    layer = (motion_blur(flakes, radius, sigma, drawn.uniform(-135, -45)) / 255.0)[..., np.newaxis]
    values = image.astype(np.float32) / np.float32(255)
    grey = np.asarray(cv2.cvtColor(values, cv2.COLOR_RGB2GRAY))[..., np.newaxis]
    pale = share * values + (1 - share) * np.maximum(values, grey * 1.5 + 0.5)
    snowy: Pixels = (np.clip(pale + layer + np.rot90(layer, k=2), 0, 1) * 255).astype(np.uint8)
    return snowy


def frost(image: Pixels, severity: int, drawn: np.random.RandomState) -> Pixels:
    """The image under a part of one of the photographs of frost, at its own size."""
    height, width = image.shape[:2]
    photograph = _photograph(FILES[drawn.randint(len(FILES))])
    # the authors' images are smaller than every photograph: for larger ones it is mirrored
    lacking = [(0, max(0, side + 1 - own)) for side, own in zip((height, width), photograph.shape, strict=False)]
    photograph = np.pad(photograph, [*lacking, (0, 0)], mode="symmetric") if np.any(lacking) else photograph
    top = drawn.randint(0, photograph.shape[0] - height)
    left = drawn.randint(0, photograph.shape[1] - width)
    own, added = FROST[severity - 1]
    part = photograph[top : top + height, left : left + width, ::-1]
    frosted: Pixels = np.clip(own * image + added * part, 0, 255).astype(np.uint8)
    return frosted


@lru_cache(maxsize=len(FILES))
def _photograph(file: str) -> Pixels:
    """A photograph of frost, blue first."""
    with importlib.resources.as_file(importlib.resources.files(imagecorruptions) / "frost" / file) as path:
        photograph = np.asarray(cv2.imread(str(path)), np.uint8)
    photograph.setflags(write=False)
    return photograph


DRAWN: dict[str, Callable[[Pixels, int, np.random.RandomState], Pixels]] = {
    "motion_blur": _motion_blurred,
    "snow": snow,
    "frost": frost,
    "elastic_transform": elastic_transform,
}
"""The corruptions that are made here, of image, severity and a generator."""
