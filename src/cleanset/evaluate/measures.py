"""What is measured of a model's predictions: accuracy with its interval, by tier and by class, mean confidence."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from cleanset.statistics.shares import wilson
from cleanset.vocabulary import TIERS


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
