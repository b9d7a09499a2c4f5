"""The preprocessings of timm's, torchvision's and RobustBench's models, pixel for pixel as their transforms."""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MAX_RESIZED_PIXELS = 100_000_000
"""The size to which an image may be resized: a line of 1 x 65,000 pixels would take gigabytes."""

_FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


class Preprocessing(Protocol):
    """A named preprocessing: from a decoded image to what a network sees, before normalisation."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels, uint8 of shape (3, size, size), red first."""


@dataclass(frozen=True, slots=True)
class ResizeAndCrop:
    """Short side to `resize`, then the central `size` x `size` pixels, as torchvision does it on Pillow images."""

    name: str
    resize: int
    size: int
    interpolation: Literal["bilinear", "bicubic"]

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        """The pixels, uint8 of shape (3, size, size), red first. Raises ValueError for too elongated an image."""
        width, height = image.size
        # torchvision's Resize: the long side is truncated, not rounded
        if width <= height:
            target = (self.resize, int(self.resize * height / width))
        else:
            target = (int(self.resize * width / height), self.resize)
        if target[0] * target[1] > MAX_RESIZED_PIXELS:
            raise ValueError(
                f"{width} x {height} pixels, resized to {target[0]} x {target[1]}; "
                f"expected at most {MAX_RESIZED_PIXELS:,} then"
            )
        image = image.convert("RGB").resize(target, _FILTERS[self.interpolation])
        # torchvision's CenterCrop: half to even
        left = round((target[0] - self.size) / 2.0)
        top = round((target[1] - self.size) / 2.0)
        image = image.crop((left, top, left + self.size, top + self.size))
        return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


RES256CROP224 = ResizeAndCrop("Res256Crop224", 256, 224, "bilinear")
"""RobustBench's preprocessing for ImageNet."""


def timm_preprocessing(size: int, crop_pct: float, interpolation: str, crop_mode: str) -> ResizeAndCrop:
    """The preprocessing of timm's evaluation for a model's data configuration.

    Raises ValueError for a crop mode or interpolation other than those of the models used here.
    """
    if crop_mode != "center" or interpolation not in _FILTERS:
        raise ValueError(f"crop mode {crop_mode!r} with {interpolation!r}; expected center with bilinear or bicubic")
    resize = math.floor(size / crop_pct)
    name = f"timm-{interpolation}-{resize}-{size}"
    return ResizeAndCrop(name, resize, size, "bicubic" if interpolation == "bicubic" else "bilinear")


def torchvision_preprocessing(resize: int, size: int, interpolation: str) -> ResizeAndCrop:
    """The preprocessing that torchvision publishes beside weights: short side to `resize`, central `size` pixels.

    Raises ValueError for another interpolation than bilinear or bicubic.
    """
    if interpolation not in _FILTERS:
        raise ValueError(f"interpolation {interpolation!r}; expected bilinear or bicubic")
    name = f"torchvision-{interpolation}-{resize}-{size}"
    return ResizeAndCrop(name, resize, size, "bicubic" if interpolation == "bicubic" else "bilinear")
