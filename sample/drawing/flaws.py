"""Planted flaws: what a reviewer must find, by the names of the review's reasons."""

from collections.abc import Callable
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

from drawing.canvas import Box, font
from drawing.tables import COLOURS

STAMP_SHARE = 18
"""Height of the strip at the bottom that holds a watermark, in percent of the image."""

Draw = Callable[[], Image.Image]
"""A function that draws the scene again, differently each time."""


def watermark(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, Box]:
    """A semi-transparent stamp in a lower corner; above it the image is clean."""
    layer = Image.new("L", image.size)
    brush = ImageDraw.Draw(layer)
    height = image.height * STAMP_SHARE // 100
    words = rng.choice(["© picturestock", "PHOTO BANK", "sample image", "© J. Painter 2012"])
    size = height * rng.randrange(40, 56) // 100
    size = size * min(100, 80 * image.width // int(font(size).getlength(words) + size * 2)) // 100
    wide = int(font(size).getlength(words)) + size * 2
    left = rng.choice([4, image.width - wide - 4])
    middle = image.height - height // 2
    half = size * 7 // 10
    brush.ellipse((left, middle - half, left + 2 * half, middle + half), outline=190, width=max(2, half // 4))
    brush.polygon(
        [
            (left + half, middle - half // 2),
            (left + half * 3 // 2, middle + half // 2),
            (left + half // 2, middle + half // 2),
        ],
        fill=190,
    )
    brush.text((left + 2 * half + size // 4, middle), words, fill=200, font=font(size), anchor="lm")
    image.paste((255, 255, 255), (0, 0), layer)
    return image, (0, 0, image.width, image.height - height)


def caption(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, Box]:
    """A strip with words under the image."""
    height = image.height * rng.randrange(12, 18) // 100
    paper, ink = rng.choice(COLOURS["caption paper and ink"])
    words = rng.choice(
        [
            "Greetings from the coast!",
            "Photo of the week",
            "www.my-picture-blog.example",
            "Summer 2009",
            "Lot 214 - see catalogue",
        ]
    )
    sheet = Image.new("RGB", (image.width, image.height + height), paper)
    sheet.paste(image, (0, 0))
    size = height * 55 // 100
    size = size * min(100, 100 * (image.width - 12) // int(font(size).getlength(words))) // 100
    ImageDraw.Draw(sheet).text(
        (image.width // 2, image.height + height // 2),
        words,
        fill=ink,
        font=font(size),
        anchor="mm",
    )
    return sheet, (0, 0, *image.size)


def border(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, Box]:
    """A frame around the image."""
    wide = min(image.size) * rng.randrange(6, 11) // 100
    colour = rng.choice(COLOURS["border"])
    sheet = ImageOps.expand(image, wide, colour)
    line = tuple(value * 6 // 10 for value in colour)
    ImageDraw.Draw(sheet).rectangle(
        (wide // 2, wide // 2, sheet.width - wide // 2 - 1, sheet.height - wide // 2 - 1),
        outline=line,
        width=max(1, wide // 8),
    )
    return sheet, (wide, wide, wide + image.width, wide + image.height)


def pair(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, Box]:
    """Two images of the same thing side by side; one of them is enough."""
    gap = rng.choice([0, 4, 8])
    sheet = Image.new("RGB", (2 * image.width + gap, image.height), (250, 250, 250))
    left = rng.choice([0, image.width + gap])
    sheet.paste(image, (left, 0))
    sheet.paste(draw(), (image.width + gap - left, 0))
    return sheet, (left, 0, left + image.width, image.height)


def grid(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, None]:
    """Four small images of the same thing."""
    half = image.width // 2, image.height // 2
    sheet = Image.new("RGB", image.size, (250, 250, 250))
    for index in range(4):
        part = (image if index == 0 else draw()).resize(half, Image.Resampling.BOX)
        sheet.paste(
            part.crop((0, 0, half[0] - 2, half[1] - 2)),
            (half[0] * (index % 2), half[1] * (index // 2)),
        )
    return sheet, None


def lettering(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, None]:
    """Large words across the object."""
    words = rng.choice(["SALE", "WOW!", "-50 %", "NEW"])
    size = image.height // 3
    size = size * min(100, 90 * image.width // int(font(size).getlength(words))) // 100
    place = (image.width // 2, image.height // 2)
    ImageDraw.Draw(image).text(
        place,
        words,
        fill=rng.choice([(255, 255, 255), (250, 220, 40)]),
        font=font(size),
        anchor="mm",
        stroke_width=max(1, size // 20),
        stroke_fill=(20, 20, 24),
    )
    return image, None


def tint(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, None]:
    """Sepia, solarised or poster colours."""
    kind = rng.randrange(3)
    if kind == 0:
        return ImageOps.colorize(ImageOps.grayscale(image), (40, 22, 10), (255, 236, 196), (170, 124, 80)), None
    if kind == 1:
        return ImageOps.solarize(image, 128), None
    return ImageOps.posterize(image, 2), None


def grain(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, None]:
    """Strong noise in every value."""
    values = np.asarray(image).astype(np.int16)
    strength = rng.randrange(80, 120)
    raw = [np.frombuffer(rng.randbytes(values.size), dtype=np.uint8).astype(np.int16) for _ in range(2)]
    change = ((raw[0] + raw[1] - 255) * strength // 255).reshape(values.shape)
    return Image.fromarray(np.clip(values + change, 0, 255).astype(np.uint8)), None


def haze(image: Image.Image, rng: Random, draw: Draw) -> tuple[Image.Image, None]:
    """The whole image out of focus."""
    radius = max(3, min(image.size) // rng.randrange(42, 60))
    for _ in range(2):
        image = image.filter(ImageFilter.BoxBlur(radius))
    return image, None


Planter = Callable[[Image.Image, Random, Draw], tuple[Image.Image, Box | None]]

CROPPABLE: dict[str, tuple[str, Planter]] = {
    "stamp": ("watermark", watermark),
    "caption": ("text", caption),
    "frame": ("border", border),
    "pair": ("collage", pair),
}
"""Flaws that a crop removes: name -> (the review's reason, what plants it)."""

LOST: dict[str, tuple[str, Planter]] = {
    "lettering": ("text", lettering),
    "tint": ("filter", tint),
    "grain": ("noise", grain),
    "haze": ("blur", haze),
    "grid": ("collage", grid),
}
"""Flaws that no crop removes: name -> (the review's reason, what plants it)."""

PLANTERS: dict[str, tuple[str, Planter]] = CROPPABLE | LOST
