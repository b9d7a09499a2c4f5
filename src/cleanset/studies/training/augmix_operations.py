"""AugMix's operations on images, with the magnitudes of its authors' code.

D. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve Robustness and Uncertainty" (2020).
"""

from collections.abc import Callable, Mapping
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


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation on an image, and the corruptions of ImageNet-C that it amounts to."""

    change: Callable[[Image.Image, Magnitudes], Image.Image]
    """Function from an image in mode RGB to the changed image."""
    amounts_to: tuple[str, ...] = ()
    """The test corruptions that it amounts to."""


def moved(image: Image.Image, matrix: tuple[float, float, float, float, float, float]) -> Image.Image:
    """The image under an affine map of its pixels; pixels from beyond its edges are black.

    `matrix`: (a, b, c, d, e, f) maps the pixel (x, y) of the result to (a x + b y + c, d x + e y + f) of the image.
    """
    return image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


def auto_contrast(image: Image.Image, _: Magnitudes) -> Image.Image:
    """Stretch each channel to 0..255."""
    return ImageOps.autocontrast(image)


def equalize(image: Image.Image, _: Magnitudes) -> Image.Image:
    """Equalize the histogram of each channel."""
    return ImageOps.equalize(image)


def posterize(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Keep 4 bits of each channel or fewer."""
    return ImageOps.posterize(image, 4 - int(given.drawn(4)))


def rotate(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Rotate by up to 30 degrees."""
    return image.rotate(given.signed(int(given.drawn(30))), Image.Resampling.BILINEAR)


def solarize(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Invert values above a threshold of 256 levels or fewer."""
    return ImageOps.solarize(image, 256 - int(given.drawn(256)))


def shear_x(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Shear along the rows by up to .3."""
    return moved(image, (1, given.signed(given.drawn(0.3)), 0, 0, 1, 0))


def shear_y(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Shear along the columns by up to .3."""
    return moved(image, (1, 0, 0, given.signed(given.drawn(0.3)), 1, 0))


def translate_x(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Move along the rows by up to a third of the width."""
    return moved(image, (1, 0, given.signed(int(given.drawn(image.width / 3))), 0, 1, 0))


def translate_y(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Move along the columns by up to a third of the height."""
    return moved(image, (1, 0, 0, 0, 1, given.signed(int(given.drawn(image.height / 3)))))


def color(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Scale the saturation by .1 to 1.9."""
    return ImageEnhance.Color(image).enhance(given.drawn(1.8) + 0.1)


def contrast(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Scale the contrast by .1 to 1.9."""
    return ImageEnhance.Contrast(image).enhance(given.drawn(1.8) + 0.1)


def brightness(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Scale the brightness by .1 to 1.9."""
    return ImageEnhance.Brightness(image).enhance(given.drawn(1.8) + 0.1)


def sharpness(image: Image.Image, given: Magnitudes) -> Image.Image:
    """Blur or sharpen, by a factor of .1 to 1.9."""
    return ImageEnhance.Sharpness(image).enhance(given.drawn(1.8) + 0.1)


OPERATIONS: Mapping[str, Operation] = {
    "AutoContrast": Operation(auto_contrast),
    "Equalize": Operation(equalize),
    "Posterize": Operation(posterize),
    "Rotate": Operation(rotate),
    "Solarize": Operation(solarize),
    "ShearX": Operation(shear_x),
    "ShearY": Operation(shear_y),
    "TranslateX": Operation(translate_x),
    "TranslateY": Operation(translate_y),
    "Color": Operation(color, ("saturate",)),
    "Contrast": Operation(contrast, ("contrast",)),
    "Brightness": Operation(brightness, ("brightness",)),
    "Sharpness": Operation(sharpness, ("defocus_blur", "gaussian_blur")),
}
"""The operations by their authors' names, in the order that they are drawn from."""
