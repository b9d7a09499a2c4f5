"""Storing pixels as a JPEG of fixed settings and reading them again, as the images of the benchmarks were."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.codec import decode

MIN_QUALITY, MAX_QUALITY = 1, 100


def jpeg(pixels: NDArray[np.uint8], quality: int) -> bytes:
    """The baseline JPEG of RGB pixels, uint8 of shape (height, width, 3), with colour at half the resolution (4:2:0).

    Its Huffman tables are the standard ones: optimised ones change the bytes, never the pixels. Raises ValueError for
    a quality other than 1 to 100.
    """
    if not MIN_QUALITY <= quality <= MAX_QUALITY:
        raise ValueError(f"JPEG quality {quality}; expected {MIN_QUALITY} to {MAX_QUALITY}")
    out = io.BytesIO()
    image = Image.fromarray(pixels, "RGB")
    image.save(out, format="JPEG", quality=quality, subsampling="4:2:0", optimize=False, progressive=False)
    return out.getvalue()


def through_jpeg(pixels: NDArray[np.uint8], quality: int | None) -> NDArray[np.uint8]:
    """The pixels after `jpeg` and decoding, of the same shape; without a quality as they are."""
    if quality is None:
        return pixels
    return np.asarray(decode(jpeg(pixels, quality)).convert("RGB"))
