"""How large the study's page shows images, and the window that it needs for them.

`static/study.js` reads the lengths from the page's data, so that the window that a plan names is the one that the page
asks for.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

NOMINAL_PIXELS_PER_MM = 96 / 25.4
"""CSS pixels in a millimetre, by definition; a real screen's differ."""


LENGTHS: Mapping[str, int] = {
    # up to which images are enlarged
    "preferred_width": 448,
    # the page's margins, left and right together
    "beside": 40,
    # between the images of a pair
    "gap": 20,
    # above and below the images: question, answers and margins
    "below": 260,
}
"""Lengths of the page in CSS pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLayout:
    """How the images of a plan are shown."""

    size: tuple[int, int]
    """Width and height of all images, in pixels."""

    width_mm: float | None = None
    """The width at which each is on every screen, in millimetres; None: whole device pixels for each of its own."""

    def least_window(self, images: int, pixel_ratio: float = 1.0) -> tuple[int, int]:
        """Width and height in CSS pixels of the smallest window for `images` of them side by side.

        `pixel_ratio`: device pixels for each CSS pixel. With `width_mm`, for a screen of 96 CSS pixels in an inch.
        """
        width, height = self.size
        scale = 1 / pixel_ratio if self.width_mm is None else self.width_mm * NOMINAL_PIXELS_PER_MM / width
        across = images * width * scale + LENGTHS["beside"] + LENGTHS["gap"] * (images - 1)
        return math.ceil(across), math.ceil(height * scale + LENGTHS["below"])

    def data(self) -> dict[str, object]:
        """What the page reads of it."""
        return {"size": self.size, "width_mm": self.width_mm, "lengths": LENGTHS}
