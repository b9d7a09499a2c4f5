"""What people are shown: all images in one size and format, so that nothing but the image tells which is real."""

import numpy as np
from PIL import Image, ImageOps

from cleanset.files import sha256
from cleanset.images.codec import decode, png
from cleanset.studies.realness.lists import shuffled

FORMATS = ("JPEG", "PNG")
TILES = 4
"""An image that is modified beyond doubt is cut into so many tiles a side."""
NAME_DIGITS = 16

Size = tuple[int, int]


def stimulus_name(seed: int, *parts: str) -> str:
    """The name of a stimulus: digits that tell nothing of what it is without the seed."""
    return sha256("\n".join((str(seed), *parts)).encode())[:NAME_DIGITS]


def shown_image(data: bytes, size: Size) -> Image.Image:
    """The stored pixels of a JPEG or PNG as RGB, its middle cut to the aspect ratio and resized to the size.

    An image of that size is left as it is. Raises ValueError for bytes that are no whole image.
    """
    image = decode(data, FORMATS).convert("RGB")
    if image.size != size:
        image = ImageOps.fit(image, size, Image.Resampling.LANCZOS)
    return Image.fromarray(np.asarray(image))  # without metadata


def beyond_doubt(image: Image.Image, seed: int) -> Image.Image:
    """The image as nobody takes it for real: cut into tiles, which change places, every other one as a negative."""
    pixels = np.asarray(image).copy()
    height, width = (side // TILES for side in pixels.shape[:2])
    places = [(row * height, column * width) for row in range(TILES) for column in range(TILES)]
    order = shuffled([str(place) for place in range(len(places))], seed, "tiles")
    original = pixels.copy()
    for place, (target, source) in enumerate(zip(places, (places[int(each)] for each in order), strict=True)):
        tile = original[source[0] : source[0] + height, source[1] : source[1] + width]
        pixels[target[0] : target[0] + height, target[1] : target[1] + width] = (
            255 - tile if sum(divmod(place, TILES)) % 2 else tile
        )
    return Image.fromarray(pixels)


def encoded(image: Image.Image) -> bytes:
    """The image as PNG."""
    return png(image)
