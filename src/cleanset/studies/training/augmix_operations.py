"""AugMix's operations on images, with the magnitudes of its authors' code.

D. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty" (2020).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from numpy.random import Generator
from PIL import Image, ImageEnhance, ImageOps


class Magnitudes(NamedTuple):
    """The severity, 1 to 10, and the generator that draws the magnitudes of operations."""

    severity: int
    generator: Generator

    def drawn(self, largest: float) -> float:
        """A magnitude up to `largest` times the severity's share."""
        return float(self.generator.uniform(0.1, self.severity)) * largest / 10

    def signed(self, value: float) -> float:
        """The value, or as likely its negative."""
        return -value if self.generator.uniform() > 0.5 else value

    def enhanced(self, kind: ImageEnhance._Enhance) -> Image.Image:
        """An image under an enhancement by .1 to 1.9."""
        return kind.enhance(self.drawn(1.8) + 0.1)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on an image, and the corruptions of ImageNet-C that it amounts to."""

    change: Callable[[Image.Image, Magnitudes], Image.Image]
    """Function from an image in mode RGB to the changed image."""
    amounts_to: tuple[str, ...] = ()
    """The test corruptions that it amounts to."""


def affine(image: Image.Image, matrix: Sequence[float]) -> Image.Image:
    """The image under an affine map of its pixels; pixels from beyond its edges are black.

    `matrix`: a, b, c, d, e, f map the pixel (x, y) of the result to (a x + b y + c, d x + e y + f) of the image.
    """
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


OPERATIONS: Mapping[str, Operation] = {
    # each channel is stretched to 0..255
    "AutoContrast": Operation(lambda image, _: ImageOps.autocontrast(image)),
    # the histogram of each channel is equalized
    "Equalize": Operation(lambda image, _: ImageOps.equalize(image)),
    # 4 bits of each channel or fewer are kept
    "Posterize": Operation(lambda image, given: ImageOps.posterize(image, 4 - int(given.drawn(4)))),
    # by up to 30 degrees
    "Rotate": Operation(
        lambda image, given: image.rotate(given.signed(int(given.drawn(30))), Image.Resampling.BILINEAR)
    ),
    # values above a threshold of 256 levels or fewer are inverted
    "Solarize": Operation(lambda image, given: ImageOps.solarize(image, 256 - int(given.drawn(256)))),
    # along the rows or columns, by up to .3
    "ShearX": Operation(lambda image, given: affine(image, (1, given.signed(given.drawn(0.3)), 0, 0, 1, 0))),
    "ShearY": Operation(lambda image, given: affine(image, (1, 0, 0, given.signed(given.drawn(0.3)), 1, 0))),
    # along the rows or columns, by up to a third of the width or height
    "TranslateX": Operation(
        lambda image, given: affine(image, (1, 0, given.signed(int(given.drawn(image.width / 3))), 0, 1, 0))
    ),
    "TranslateY": Operation(
        lambda image, given: affine(image, (1, 0, 0, 0, 1, given.signed(int(given.drawn(image.height / 3)))))
    ),
    # from .1 to 1.9 times; so saturation, contrast, brightness, and from blurred to sharp
    "Color": Operation(lambda image, given: given.enhanced(ImageEnhance.Color(image)), ("saturate",)),
    "Contrast": Operation(lambda image, given: given.enhanced(ImageEnhance.Contrast(image)), ("contrast",)),
    "Brightness": Operation(lambda image, given: given.enhanced(ImageEnhance.Brightness(image)), ("brightness",)),
    "Sharpness": Operation(
        lambda image, given: given.enhanced(ImageEnhance.Sharpness(image)), ("defocus_blur", "gaussian_blur")
    ),
}
"""The operations by their authors' names, in the order that they are drawn from."""
