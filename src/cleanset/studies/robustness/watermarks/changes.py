"""The watermark of ImageNet-W as a change of a study's images.

The authors' program draws the text 捷径捷径捷径 (shortcut, three times) in white at half opacity, in a font of 36
pixels, from 1 % of the width and 40 % of the height of an image of 224 x 224 pixels. With their font the pixels are
those of their program. Without it the text is made of the strokes in `strokes.yaml`.
"""

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from math import hypot
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import BASE_SIZE, Pixels
from cleanset.plumbing.files import sha256
from cleanset.plumbing.yaml_files import data_beside
from cleanset.sets.folder import read_regular_file
from cleanset.studies.robustness.images import base_pixels

TEXT = "捷径捷径捷径"
FONT_SIZE = 36
"""Pixels, of an image of 224 x 224."""
LEFT = 0.01
"""The left edge of the text, as a share of the image's width."""
TOP = 0.4
"""The top of the text, as a share of the image's height."""
COLOUR = (255, 255, 255)
ALPHA = 128
"""Half opacity, of 255."""

STROKES_TOP = 90
"""The row that strokes are placed from."""
REPEATED = 3
"""Times that the two characters are next to each other."""
DISTANCE = 2 * FONT_SIZE
"""Pixels from one repetition to the next."""
ENLARGED = 8
"""Strokes are drawn this many times as large, and reduced."""


@dataclass(frozen=True, slots=True)
class FontFile:
    """A font file; small, as the cache of watermarks is looked up by it."""

    path: Path
    """Where it is."""
    sha256: str
    """The SHA-256 of its bytes."""

    def font(self) -> ImageFont.FreeTypeFont:
        """The font. Raises CleansetError for a file that is missing, of another digest, or no font."""
        try:
            data = read_regular_file(self.path)
        except OSError as error:
            raise CleansetError(
                f"{self.path}: {error.strerror}; expected the font that watermarks.font names: put it there"
            ) from None
        if (found := sha256(data)) != self.sha256:
            raise CleansetError(
                f"{self.path}: SHA-256 {found}; expected {self.sha256}, as watermarks.font_sha256 in params.yaml has it"
            )
        try:
            # without the layout library that a machine may have or not
            return ImageFont.truetype(BytesIO(data), FONT_SIZE, layout_engine=ImageFont.Layout.BASIC)
        except OSError as error:
            raise CleansetError(f"{self.path}: {error}; expected a font, such as an OpenType file") from None


@dataclass(frozen=True, slots=True)
class WatermarkedImage:
    """Images with the watermark as a change: a callable that can be pickled."""

    font: FontFile | None = None
    """The font of the text; None: its strokes are drawn."""

    def __call__(self, file: ImageFile, _change: str, _step: int, _seed: int) -> Pixels:
        """The base image with the watermark; nothing is drawn by lot. Raises CleansetError as `FontFile.font`."""
        return watermarked(base_pixels(file), self.font)


def watermarked(pixels: Pixels, font: FontFile | None = None) -> Pixels:
    """An image with the watermark over it.

    `pixels` is uint8 of shape (224, 224, 3), red first, and stays unchanged; so is the result. Raises ValueError for
    another array, and CleansetError as `FontFile.font`.
    """
    if pixels.dtype != np.uint8 or pixels.shape != (BASE_SIZE, BASE_SIZE, 3):
        raise ValueError(
            f"array of {pixels.dtype} and shape {pixels.shape}; expected uint8 of shape ({BASE_SIZE}, {BASE_SIZE}, 3)"
        )
    image = Image.fromarray(pixels).convert("RGBA")
    return np.asarray(Image.alpha_composite(image, _overlay(font)).convert("RGB"))


@cache
def _overlay(font: FontFile | None) -> Image.Image:
    """The watermark on a transparent image."""
    overlay = Image.new("RGBA", (BASE_SIZE, BASE_SIZE), (*COLOUR, 0))
    fill = (*COLOUR, ALPHA)
    draw = ImageDraw.Draw(overlay)
    if font is None:
        draw.bitmap((0, 0), text_mask(), fill)
    else:
        draw.text((LEFT * BASE_SIZE, TOP * BASE_SIZE), TEXT, fill, font.font())
    return overlay


def text_mask() -> Image.Image:
    """How much of each pixel the strokes of the text cover, 0 to 255."""
    mask = Image.new("L", (BASE_SIZE * ENLARGED, BASE_SIZE * ENLARGED))
    draw = ImageDraw.Draw(mask)
    for character in data_beside(__file__, "strokes.yaml"):
        for stroke in character["strokes"]:
            outline = _outline(stroke)
            for repetition in range(REPEATED):
                left = DISTANCE * repetition
                draw.polygon([((x + left) * ENLARGED, (y + STROKES_TOP) * ENLARGED) for x, y in outline], 255)
    return mask.reduce(ENLARGED)


def _outline(stroke: list[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """The outline of a stroke, from its points and its width at each: down one side and up the other."""
    sides: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for place, (x, y, width) in enumerate(stroke):
        before_x, before_y, _ = stroke[max(place - 1, 0)]
        after_x, after_y, _ = stroke[min(place + 1, len(stroke) - 1)]
        along_x = after_x - before_x
        along_y = after_y - before_y
        half = width / 2 / hypot(along_x, along_y)
        sides[0].append((x - along_y * half, y + along_x * half))
        sides[1].append((x + along_y * half, y - along_x * half))
    return sides[0] + sides[1][::-1]
