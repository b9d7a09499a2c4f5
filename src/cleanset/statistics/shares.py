"""Confidence intervals of shares."""

import math
from statistics import NormalDist

LEVEL = 0.95
"""Confidence level of an interval unless another is given."""


def wilson(correct: int, images: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a share, without correction for continuity, within 0 to 1.

    For the share of a population of which `images` were drawn and `correct` are correct (E. B. Wilson, 1927; method 3
    in R. G. Newcombe, 1998). Unlike the normal approximation it does not collapse to a point at shares of 0 and 1.
    Raises ValueError unless 0 <= correct <= images and images > 0.
    """
    if not 0 <= correct <= images or images == 0:
        raise ValueError(f"{correct} of {images}; expected a share of at least one image")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, square = correct / images, z * z / images
    centre = (share + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(share * (1 - share) / images + square / (4 * images))
    # at the ends the two terms are equal but for rounding
    low = 0.0 if correct == 0 else centre - half
    high = 1.0 if correct == images else centre + half
    return low, high
