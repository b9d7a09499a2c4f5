"""The bound on how few of all images lie near some images: Unrestricted Adversarial Examples, appendix D."""

from dataclasses import dataclass
from math import floor, log10

from cleanset.studies.attacks.base import LEVELS

COLORS = 256
"""Number of values that a color can take."""
OF_SOURCE = "ImageNet's test images, as in appendix D", 229, 32, 40_152
"""The example of Unrestricted Adversarial Examples: size, values of a color, images."""


@dataclass(frozen=True, slots=True)
class CoveredFraction:
    """A row of the table on the bound: its subject, the sizes, and the base-10 logarithm of the fraction."""

    what: str
    side: int
    values: int
    images: int
    log10: float


def linf_values(eps: float) -> int:
    """The largest number of values that a color can take within eps, in 0..1, of its own: 2 * 16 + 1 for 16/255.

    The source counts 32 for 16/255.
    """
    return min(COLORS, 2 * floor(min(eps, 1) * LEVELS) + 1)


def log10_covered(side: int, values: int, images: int) -> float:
    """The base-10 logarithm of an upper bound on the fraction of all square images that lie near one of `images`.

    Near: every color of every pixel has one of `values` values, of 256. That no two neighborhoods overlap makes it a
    bound; it is at most 0, which is all images. Unrestricted Adversarial Examples, appendix D: 229 x 229 pixels, 32
    values and 40,152 images give -142072.2.
    """
    # in logarithms: the fraction itself is below the smallest float
    return min(0.0, log10(images) + 3 * side**2 * (log10(values) - log10(COLORS)))
