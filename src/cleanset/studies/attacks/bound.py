"""How few of all images a bound on the distance covers: source 004, appendix D, in logarithms."""

from math import floor, log10

LEVELS = 256
"""Values that a pixel's color can take."""


def linf_values(eps: float) -> int:
    """How many values a color can take at most within eps, in 0..1, of its own: 2 * 16 + 1 for 16/255.

    The source counts 32 for 16/255. Raises ValueError for an eps below 0.
    """
    if not eps >= 0:
        raise ValueError(f"eps {eps}; expected 0 or more")
    return min(LEVELS, 2 * floor(min(eps, 1) * (LEVELS - 1)) + 1)


def log10_covered(width: int, height: int, values: int, images: int, channels: int = 3) -> float:
    """The base-10 logarithm of an upper bound on the fraction of all images of a size that lie near one of `images`.

    Near: every color of every pixel has one of `values` values, of 256. That no two neighborhoods overlap makes it a
    bound; it is at most 0, which is all images. Source 004, appendix D: 229 x 229 pixels, 32 values and 40,152 images
    give -142072.2. Raises ValueError for a size, a number of values or of images that is out of range.
    """
    if min(width, height, channels, images) < 1:
        raise ValueError(f"{images} images of {width} x {height} x {channels}; expected 1 or more of each")
    if not 1 <= values <= LEVELS:
        raise ValueError(f"{values} values of a color; expected 1 to {LEVELS}")
    return min(0.0, log10(images) + width * height * channels * (log10(values) - log10(LEVELS)))
