"""Flaws that are drawn into photographs, by the names of the review's reasons.

As visible as what people leave in real photographs, not more: a stamp is half transparent, a frame narrow.
"""

from collections.abc import Callable
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

STAMPS = ("© photostock", "SAMPLE", "www.photos.example", "© 2009 J. Miller", "PREVIEW")
CAPTIONS = ("Holiday 2007", "Lot 214", "www.my-blog.example", "Fig. 3", "12/08/2006 14:31")

MIN_COLOUR = 16
"""Mean difference of the largest and the smallest of red, green and blue, from which on missing colours show."""

Planter = Callable[[Image.Image, Random], Image.Image]


def watermark(image: Image.Image, rng: Random) -> Image.Image:
    """A half transparent stamp in a corner or in the middle."""
    words, size = rng.choice(STAMPS), max(10, image.height // rng.randrange(9, 16))
    layer = Image.new("L", image.size)
    place = _place(image, rng.choice(["corner", "corner", "middle"]), words, size, rng)
    ImageDraw.Draw(layer).text(place, words, fill=rng.randrange(110, 190), font=_font(size))
    image.paste(rng.choice([(255, 255, 255), (20, 20, 20)]), (0, 0), layer)
    return image


def text(image: Image.Image, rng: Random) -> Image.Image:
    """Small opaque words near a lower corner."""
    words, size = rng.choice(CAPTIONS), max(10, image.height // rng.randrange(14, 22))
    place = _place(image, "corner", words, size, rng)
    ink = rng.choice([(255, 255, 255), (250, 220, 60), (230, 60, 40)])
    ImageDraw.Draw(image).text(place, words, fill=ink, font=_font(size), stroke_width=1, stroke_fill=(20, 20, 20))
    return image


def border(image: Image.Image, rng: Random) -> Image.Image:
    """A plain frame."""
    wide = max(3, min(image.size) * rng.randrange(2, 5) // 100)
    return ImageOps.expand(image, wide, rng.choice([(255, 255, 255), (0, 0, 0), (90, 70, 50)]))


def filtered(image: Image.Image, rng: Random) -> Image.Image:
    """Sepia, no colours, or far too much of them; sepia where there are few to begin with."""
    kind = rng.randrange(3)
    values = np.asarray(image).astype(np.int64)
    if kind == 0 or (values.max(axis=2) - values.min(axis=2)).mean() < MIN_COLOUR:
        return ImageOps.colorize(ImageOps.grayscale(image), (40, 24, 10), (255, 238, 200), (170, 125, 80))
    return ImageEnhance.Color(image).enhance(0.0 if kind == 1 else 3.0)


def noise(image: Image.Image, rng: Random) -> Image.Image:
    """Grain in every value."""
    values = np.asarray(image).astype(np.float64)
    grain = np.random.default_rng(rng.getrandbits(64)).normal(0, rng.randrange(22, 35), values.shape)
    return Image.fromarray(np.clip(values + grain, 0, 255).astype(np.uint8))


def blur(image: Image.Image, rng: Random) -> Image.Image:
    """The whole image out of focus."""
    return image.filter(ImageFilter.GaussianBlur(max(2.0, min(image.size) / rng.randrange(90, 130))))


PLANTERS: dict[str, Planter] = {
    "watermark": watermark,
    "text": text,
    "border": border,
    "filter": filtered,
    "noise": noise,
    "blur": blur,
}


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _place(image: Image.Image, where: str, words: str, size: int, rng: Random) -> tuple[int, int]:
    """The upper left corner of the words; near a lower corner, or in the middle."""
    wide, edge = int(_font(size).getlength(words)), max(2, size // 3)
    if where == "middle":
        return (image.width - wide) // 2, (image.height - size) // 2
    left = rng.choice([edge, max(edge, image.width - wide - edge)])
    return left, image.height - size - 2 * edge
