"""What is measured of a model's predictions: accuracy with its interval, by tier and by class, mean confidence."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import pandas as pd

from cleanset.vocabulary import TIERS

LEVEL = 0.95
"""Of the interval of an accuracy."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many of so many images are classified correctly; at least one image."""

    images: int
    correct: int

    @property
    def share(self) -> float:
        """The share of the images that are classified correctly, 0 to 1."""
        return self.correct / self.images

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson(self.correct, self.images)


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of one model on one set.

    `mean_confidence` is the mean softmax probability of the top-1 class, correct or not. `tiers` has the tiers that
    have images, in the order in which classes are filled; none where the set has no tiers. `classes` has the classes
    that have images, by class index, sorted.
    """

    overall: Accuracy
    mean_confidence: float
    tiers: dict[str, Accuracy]
    classes: dict[int, Accuracy]


def wilson(correct: int, images: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a share, without correction for continuity, within 0 to 1.

    For the share of a population of which `images` were drawn and `correct` are correct (E. B. Wilson, 1927; method 3
    in R. G. Newcombe, 1998). Unlike the normal approximation it is no point at 0 and 1. Raises ValueError for numbers
    that are no share, and without images.
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


def measures(predictions: pd.DataFrame) -> Measures:
    """The measures of predictions: a row for each image, with class_index, tier (or None), correct and confidence."""
    confidences = predictions["confidence"].astype("float64")
    tiers = {str(tier): accuracy for tier, accuracy in _by(predictions, "tier")}
    return Measures(
        Accuracy(len(predictions), int(predictions["correct"].sum())),
        math.fsum(confidences) / len(predictions),
        {tier: tiers[tier] for tier in TIERS if tier in tiers},
        {int(str(each)): accuracy for each, accuracy in _by(predictions, "class_index")},
    )


def _by(predictions: pd.DataFrame, column: str) -> Iterator[tuple[object, Accuracy]]:
    """The accuracy of the rows with each value of a column, values sorted; rows without one are left out."""
    for value, correct in predictions.groupby(column, dropna=True)["correct"]:
        yield value, Accuracy(len(correct), int(correct.sum()))
