"""The base image, from which changed images are made; storing a changed one, showing it to a model and to people."""

import io
from dataclasses import dataclass
from math import floor, log2

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.codec import decode
from cleanset.images.preprocessing import MAX_RESIZED_PIXELS, RES256CROP224

BASE_SIZE = RES256CROP224.size
"""Pixels; height and width of a base image."""

SHORT_SIDE = RES256CROP224.resize
"""Pixels of the short side before the base image is cropped."""

MIN_QUALITY, MAX_QUALITY = 1, 100

GRAY = 127.5

Pixels = NDArray[np.uint8]
"""RGB pixels of shape (height, width, 3)."""


def base_image(image: Image.Image) -> NDArray[np.uint8]:
    """The short side resized to 256 (bilinear) and the central 224 x 224 pixels: uint8 of shape (224, 224, 3).

    As the images of ImageNet-C and ImageNet-P were made. Raises ValueError for too elongated an image.
    """
    return np.ascontiguousarray(RES256CROP224(image).transpose(1, 2, 0))


def wide_image(image: Image.Image) -> NDArray[np.uint8]:
    """The image before `base_image` crops it, uint8 of shape (height, width, 3), the shorter being 256.

    Perturbations that move an image bring in what lies beside its central part. Raises ValueError as `base_image` does.
    """
    short = min(image.size)
    width, height = (SHORT_SIDE * side // short for side in image.size)
    if width * height > MAX_RESIZED_PIXELS:
        raise ValueError(
            f"{image.width} x {image.height} pixels, resized to {width} x {height}; "
            f"expected at most {MAX_RESIZED_PIXELS:,} then"
        )
    return np.asarray(image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR))


def central(image: NDArray[np.uint8], size: int = BASE_SIZE) -> NDArray[np.uint8]:
    """The central `size` x `size` pixels of an image at least as large, as torchvision's CenterCrop: half to even."""
    top = round((image.shape[0] - size) / 2)
    left = round((image.shape[1] - size) / 2)
    return image[top : top + size, left : left + size]


@dataclass(frozen=True, slots=True)
class Resized:
    """Both sides resized to `size` (bilinear), nothing cropped: RobustBench's Res224 for any size.

    An image of `size` x `size` stays as it is.
    """

    size: int

    @property
    def name(self) -> str:
        """Its name in tables, such as Res224."""
        return f"Res{self.size}"

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels, uint8 of shape (3, size, size), red first."""
        resized = image.convert("RGB").resize((self.size, self.size), Image.Resampling.BILINEAR)
        return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


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


def enlarged_difference(before: Pixels, after: Pixels, size: tuple[int, int]) -> tuple[Image.Image, float]:
    """The difference of two images of one size, medium gray where there is none, at another size; and its factor.

    The factor is the largest power of 2 with which the largest difference fits. Single pixels are taken where the
    image is made smaller: a mean would weaken noise.
    """
    found = after.astype(np.float64) - before
    largest = float(np.abs(found).max())
    factor = 2.0 ** floor(log2(GRAY / largest)) if largest else 1.0
    image = Image.fromarray(np.floor(GRAY + factor * found + 0.5).astype(np.uint8))
    return image.resize(size, Image.Resampling.NEAREST), factor
