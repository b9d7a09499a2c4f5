"""The base image, which changes are made of, and how a model of any input size sees a changed one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cleanset.images.preprocessing import RES256CROP224

BASE_SIZE = RES256CROP224.size
"""Pixels; height and width of a base image."""


def base_image(image: Image.Image) -> NDArray[np.uint8]:
    """The short side resized to 256 (bilinear) and the central 224 x 224 pixels: uint8 of shape (224, 224, 3).

    As the images of ImageNet-C and ImageNet-P were made. Raises ValueError for too elongated an image.
    """
    return np.ascontiguousarray(RES256CROP224(image).transpose(1, 2, 0))


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
