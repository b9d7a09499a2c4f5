"""The preprocessings of models, pixel for pixel as their authors' transforms; the base image of changed images.

Transforms of timm, torchvision and RobustBench, and of "How to reproduce ImageNet validation results", with
OpenCV's INTER_CUBIC in plain NumPy. OpenCV's cubic kernel differs from Pillow's: its parameter is -0.75, and it always
takes 4 x 4 pixels, also where an image is reduced. The article computes in floating point; here too, in float64, and
only the result is rounded, half to even, and clipped to 0..255. On 150 photographs, OpenCV 5.0.0 gives another value,
by 1, 6 times in a million, whether it is given float32 (and rounded in this way) or uint8.

Changed images are made from a base image, stored, and shown to models and people.
"""

import io
import math
from dataclasses import dataclass
from math import floor, log2
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.codec import decode

MAX_RESIZED_PIXELS = 100_000_000
"""The size to which an image may be resized: a line of 1 x 65,000 pixels would take gigabytes."""

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


Pixels = NDArray[np.uint8]
"""RGB pixels of shape (height, width, 3), as images are stored and changed."""

PixelPlanes = NDArray[np.uint8]
"""RGB pixels of shape (3, height, width), red first, as networks take them."""


class Preprocessing(Protocol):
    """A named preprocessing: from a decoded image to a network's input, before normalisation."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def __call__(self, image: Image.Image) -> PixelPlanes:
        """The pixels, uint8 of shape (3, size, size), red first."""


@dataclass(frozen=True, slots=True)
class ResizeAndCrop:
    """Short side to `resize`, then the central `size` x `size` pixels, as torchvision does it on Pillow images.

    `resize` may also be a width and height, or None for an image that is only cropped, and padded with black if it is
    smaller.
    """

    name: str
    resize: int | tuple[int, int] | None
    size: int
    interpolation: Literal["bilinear", "bicubic"]

    def __call__(self, image: Image.Image) -> PixelPlanes:
        """The pixels, uint8 of shape (3, size, size), red first. Raises ValueError for too elongated an image."""
        width, height = image.size
        # torchvision's Resize: the long side is truncated, not rounded
        if self.resize is None:
            target = image.size
        elif isinstance(self.resize, tuple):
            target = self.resize
        elif width <= height:
            target = (self.resize, int(self.resize * height / width))
        else:
            target = (int(self.resize * width / height), self.resize)
        image = _resized(image, target, _FILTERS[self.interpolation])
        left, top = (_margin(side, self.size) for side in target)
        image = image.crop((left, top, left + self.size, top + self.size))
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))

    @property
    def description(self) -> str:
        """The steps in words, for people."""
        how = f" ({self.interpolation})"
        match self.resize:
            case None:
                resized = "not resized"
            case (width, height):
                resized = f"resized to {width} x {height} pixels{how}"
            case short_side:
                resized = f"short side to {short_side} pixels{how}"
        return f"{resized}, central {self.size} x {self.size}"


def _margin(side: int, size: int) -> int:
    """The pixels before the central `size` of a side; below zero, the pixels that torchvision's CenterCrop adds."""
    # half to even where pixels are cut off, rounded down where they are added
    return round((side - size) / 2.0) if side >= size else -((size - side) // 2)


def _resized(image: Image.Image, size: tuple[int, int], resampling: Image.Resampling) -> Image.Image:
    """The image as RGB at another size. Raises ValueError for too elongated an image, which would be too large."""
    width, height = size
    if width * height > MAX_RESIZED_PIXELS:
        raise ValueError(
            f"{image.width} x {image.height} pixels, resized to {width} x {height}; "
            f"expected at most {MAX_RESIZED_PIXELS:,} then"
        )
    return image.convert("RGB").resize(size, resampling)


RES256CROP224 = ResizeAndCrop("Res256Crop224", 256, 224, "bilinear")
"""RobustBench's usual preprocessing for ImageNet."""
ROBUSTBENCH = {
    each.name: each
    for each in (
        RES256CROP224,
        ResizeAndCrop("BicubicRes256Crop224", 256, 224, "bicubic"),
        ResizeAndCrop("Res224", (224, 224), 224, "bilinear"),
        ResizeAndCrop("Crop288", None, 288, "bilinear"),
    )
}
"""RobustBench's preprocessings for ImageNet, by their names there."""


def timm_preprocessing(size: int, crop_pct: float, interpolation: str, crop_mode: str) -> ResizeAndCrop:
    """The preprocessing of timm's evaluation for a model's data configuration.

    Raises ValueError for a crop mode or interpolation that no model here uses.
    """
    if crop_mode != "center" or interpolation not in _FILTERS:
        raise ValueError(f"crop mode {crop_mode!r} with {interpolation!r}; expected center with bilinear or bicubic")
    return _short_side_preprocessing("timm", math.floor(size / crop_pct), size, interpolation)


def torchvision_preprocessing(resize: int, size: int, interpolation: str) -> ResizeAndCrop:
    """The preprocessing that torchvision publishes with weights: short side to `resize`, central `size` pixels.

    Raises ValueError for another interpolation than bilinear or bicubic.
    """
    if interpolation not in _FILTERS:
        raise ValueError(f"interpolation {interpolation!r}; expected bilinear or bicubic")
    return _short_side_preprocessing("torchvision", resize, size, interpolation)


def _short_side_preprocessing(library: str, resize: int, size: int, interpolation: str) -> ResizeAndCrop:
    name = f"{library}-{interpolation}-{resize}-{size}"
    return ResizeAndCrop(name, resize, size, "bicubic" if interpolation == "bicubic" else "bilinear")


A = -0.75
"""OpenCV's parameter of the cubic convolution; Pillow's is -0.5."""


@dataclass(frozen=True, slots=True)
class Keras256:
    """Short side to `resize` by 4 x 4 bicubic, the long side rounded down, then the central `size` x `size` pixels."""

    name: str = "keras256"
    resize: int = 256
    size: int = 224

    def __call__(self, image: Image.Image) -> PixelPlanes:
        """The pixels before a model's own `preprocess_input`: uint8 of shape (3, size, size), red first."""
        rows = image.height
        columns = image.width
        pixels: NDArray[np.uint8 | np.float64] = np.asarray(image.convert("RGB"))
        for axis, length in ((1, columns), (0, rows)):
            target = length * self.resize // min(rows, columns)
            places, weights = taps(length, target, target // 2 - self.size // 2, self.size)
            pixels = _weighted(pixels, places, weights, axis)
        rounded = np.rint(pixels).clip(0, 255).astype(np.uint8)
        return np.ascontiguousarray(rounded.transpose(2, 0, 1))


KERAS256 = Keras256()
NAMED: dict[str, Preprocessing] = {each.name: each for each in (KERAS256, RES256CROP224)}
"""The preprocessings that people choose by a name, and not by a model."""


def taps(length: int, target: int, first: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The source pixels and weights of `count` pixels, starting with `first`, of `length` resized to `target`.

    Both of shape (4, count). Pixels' centres are at half numbers; beyond an edge its last pixel is repeated.
    """
    centre = (np.arange(first, first + count) + 0.5) * (length / target) - 0.5
    left = np.floor(centre)
    fraction = centre - left
    places = left.astype(np.intp) + np.arange(-1, 3)[:, None]
    outer = _outer(1 + fraction)
    inner = _inner(fraction)
    weights = np.stack([outer, inner, _inner(1 - fraction), np.zeros(count)])
    # OpenCV, too, takes the last weight as the rest
    weights[3] = 1 - weights.sum(axis=0)
    return places.clip(0, length - 1), weights


def _inner(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kernel up to distance 1."""
    return ((A + 2) * distance - (A + 3)) * distance * distance + 1


def _outer(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kernel from distance 1 to 2."""
    return ((A * distance - 5 * A) * distance + 8 * A) * distance - 4 * A


def _weighted(
    pixels: NDArray[np.uint8 | np.float64], places: NDArray[np.intp], weights: NDArray[np.float64], axis: int
) -> NDArray[np.float64]:
    """The weighted sum of the four pixels along an axis; term by term, so that every machine gives the same bits."""
    shape = [1, 1, 1]
    shape[axis] = -1
    total: NDArray[np.float64] = pixels.take(places[0], axis) * weights[0].reshape(shape)
    for place, weight in zip(places[1:], weights[1:], strict=True):
        total += pixels.take(place, axis) * weight.reshape(shape)
    return total


BASE_SIZE = RES256CROP224.size
"""Pixels; height and width of a base image."""

SHORT_SIDE = 256
"""Pixels of the short side before the base image is cropped."""

MIN_JPEG_QUALITY = 1
MAX_JPEG_QUALITY = 100

GRAY = 127.5


def base_image(image: Image.Image) -> Pixels:
    """The short side resized to 256 (bilinear) and the central 224 x 224 pixels: uint8 of shape (224, 224, 3).

    As the images of ImageNet-C and ImageNet-P were made. Raises ValueError for too elongated an image.
    """
    return np.ascontiguousarray(RES256CROP224(image).transpose(1, 2, 0))


def wide_image(image: Image.Image) -> Pixels:
    """The image before `base_image` crops it, uint8 of shape (height, width, 3), the shorter being 256.

    Perturbations that move an image bring in pixels from next to its central part. Raises ValueError as `base_image`
    does.
    """
    short = min(image.size)
    width, height = (SHORT_SIDE * side // short for side in image.size)
    return np.asarray(_resized(image, (width, height), Image.Resampling.BILINEAR))


def central(image: Pixels, size: int = BASE_SIZE) -> Pixels:
    """The central `size` x `size` pixels of an image at least as large, as torchvision's CenterCrop: half to even."""
    top = round((image.shape[0] - size) / 2)
    left = round((image.shape[1] - size) / 2)
    return image[top : top + size, left : left + size]


@dataclass(frozen=True, slots=True)
class Resized:
    """Both sides resized to `size` (bilinear), nothing cropped: RobustBench's Res224 for any size.

    An image of `size` x `size` stays unchanged. `is_nearest`: nearest-neighbour interpolation.
    """

    size: int
    is_nearest: bool = False

    @property
    def name(self) -> str:
        """Its name in tables, such as Res224."""
        return f"Res{self.size}"

    def __call__(self, image: Image.Image) -> PixelPlanes:
        """The pixels, uint8 of shape (3, size, size), red first."""
        resampling = Image.Resampling.NEAREST if self.is_nearest else Image.Resampling.BILINEAR
        resized = image.convert("RGB").resize((self.size, self.size), resampling)
        return np.ascontiguousarray(np.asarray(resized).transpose(2, 0, 1))


def jpeg(pixels: Pixels, quality: int) -> bytes:
    """The baseline JPEG of RGB pixels, uint8 of shape (height, width, 3), with colour at half the resolution (4:2:0).

    Its Huffman tables are the standard ones: optimised ones change the bytes, never the pixels. Raises ValueError for
    a quality other than 1 to 100.
    """
    if not MIN_JPEG_QUALITY <= quality <= MAX_JPEG_QUALITY:
        raise ValueError(f"JPEG quality {quality}; expected {MIN_JPEG_QUALITY} to {MAX_JPEG_QUALITY}")
    out = io.BytesIO()
    image = Image.fromarray(pixels, "RGB")
    image.save(out, format="JPEG", quality=quality, subsampling="4:2:0", optimize=False, progressive=False)
    return out.getvalue()


def through_jpeg(pixels: Pixels, quality: int | None) -> Pixels:
    """The pixels after `jpeg` and decoding, of the same shape; without a quality unchanged."""
    if quality is None:
        return pixels
    return np.asarray(decode(jpeg(pixels, quality)).convert("RGB"))


def enlarged_difference(before: Pixels, after: Pixels, size: tuple[int, int]) -> tuple[Image.Image, float]:
    """The difference of two images of one size, medium gray where they are equal, at another size; and its factor.

    The factor is the largest power of 2 with which the largest difference fits. Single pixels are taken where the
    image is made smaller: a mean would weaken noise.
    """
    found = after.astype(np.float64) - before
    largest = float(np.abs(found).max())
    factor = 2.0 ** floor(log2(GRAY / largest)) if largest else 1.0
    image = Image.fromarray(np.floor(GRAY + factor * found + 0.5).astype(np.uint8))
    return image.resize(size, Image.Resampling.NEAREST), factor
