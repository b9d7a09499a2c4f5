"""Edits that anybody can see, for the pairs of the comprehension check and the examples that explain "modified".

The kinds are those that SCOOTER's instructions name: grey, a colour filter, dead pixels, sharp edges.
"""

from collections.abc import Callable, Mapping

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from cleanset.statistics.seeds import change_seed

DEAD_SHARE = 0.015
"""Share of dead pixels."""

VISIBLE_LEVELS = 32
"""A pixel is changed visibly where a channel differs by so much."""

VISIBLE_SHARE = 0.01
"""Share of visibly changed pixels from which an edit is one that anybody can see."""

# a faded film: warm, with weaker blue, the shadows lifted
_FILTER = (0.85, 0.20, 0.00, 36.0, 0.10, 0.80, 0.05, 22.0, 0.05, 0.20, 0.50, 20.0)


def dead_pixels(image: Image.Image, seed: int) -> Image.Image:
    """The image with single pixels whose channels are at the far end of their range."""
    pixels = np.asarray(image).copy()
    flat = pixels.reshape(-1, 3)
    # the raw stream, which is the same in all versions of NumPy
    drawn = np.random.PCG64(change_seed(seed, "study", "dead pixels", 0)).random_raw(round(DEAD_SHARE * len(flat)))
    places = drawn % len(flat)
    flat[places] = np.where(flat[places] > 127, 0, 255)
    return Image.fromarray(pixels)


EDITS: Mapping[str, Callable[[Image.Image, int], Image.Image]] = {
    # as by a filter of a camera application
    "filter": lambda image, _: image.convert("RGB", _FILTER),
    "dead_pixels": dead_pixels,
    "grey": lambda image, _: ImageOps.grayscale(image).convert("RGB"),
    "sharp_edges": lambda image, _: image.filter(ImageFilter.UnsharpMask(radius=3, percent=500, threshold=0)),
}
"""The edits by name."""


def is_visible(image: Image.Image, edited: Image.Image) -> bool:
    """Whether enough pixels differ clearly: a grey image has no colours to lose, an even one no edges."""
    difference = np.abs(np.asarray(image).astype(np.int16) - np.asarray(edited)).max(axis=2)
    return bool((difference >= VISIBLE_LEVELS).mean() >= VISIBLE_SHARE)


def visibly_edited(image: Image.Image, number: int, seed: int) -> Image.Image:
    """A copy with the edit whose turn it is; where that does not show in this image, the next one that does."""
    edits = list(EDITS.values())
    for turn in range(len(edits)):
        edited = edits[(number + turn) % len(edits)](image, seed)
        if is_visible(image, edited):
            return edited
    # dead pixels show in any image of a hundred pixels or more
    return dead_pixels(image, seed)
