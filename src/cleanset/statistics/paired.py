"""Comparing two models on the same images: exact paired tests, interval of the difference, Holm's correction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.statistics.shares import LEVEL, wilson


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """Number of images that both models classify correctly, only the first, only the second, and neither."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def images(self) -> int:
        """The number of images."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def difference(self) -> float:
        """The accuracy of the first model minus that of the second, -1 to 1."""
        return (self.only_first - self.only_second) / self.images


def mcnemar_p(counts: PairedCounts) -> float:
    """The two-sided p-value of McNemar's exact test that both models have the same accuracy.

    Twice the smaller tail of a binomial distribution with share 1/2 over the images that only one of them classifies
    correctly, at most 1 (Q. McNemar, 1947). Computed in whole numbers and rounded once.
    """
    draws, fewer = counts.only_first + counts.only_second, min(counts.only_first, counts.only_second)
    term = tail = 1
    for successes in range(1, fewer + 1):
        term = term * (draws - successes + 1) // successes  # the next binomial coefficient
        tail += term
    # the quotient of two whole numbers is correctly rounded, however many digits they have
    return min(1.0, 2 * tail / (1 << draws))


def sign_test_p(differences: npt.ArrayLike) -> float:
    """The two-sided p-value of the exact sign test that neither of two models is more often the better one.

    `differences`: one model's measure minus the other's by image; 0 counts for neither. Of one answer an image it is
    McNemar's test; of means over several changes it stays exact, since the image is the unit (W. J. Conover, "Practical
    Nonparametric Statistics", chapter 3.4).
    """
    # means of other columns may differ by rounding where they are equal
    signs = np.sign(np.round(np.asarray(differences, np.float64), 12))
    above, below = int((signs > 0).sum()), int((signs < 0).sum())
    return mcnemar_p(PairedCounts(0, above, below, len(signs) - above - below))


def difference_interval(counts: PairedCounts, level: float = LEVEL) -> tuple[float, float]:
    """The interval of the difference of two paired shares, within -1 to 1; raises ValueError without images.

    Method 10 of R. G. Newcombe, Improved confidence intervals for the difference between binomial proportions based on
    paired data (Statistics in Medicine 17, 1998): Wilson's intervals of both shares, squared and added, with their
    correlation phi corrected for continuity.
    """
    images, difference = counts.images, counts.difference
    first, second = counts.both + counts.only_first, counts.both + counts.only_second
    first_low, first_high = wilson(first, images, level)
    second_low, second_high = wilson(second, images, level)
    phi = _corrected_phi(counts, first, second)

    def distance(of_first: float, of_second: float) -> float:
        squared = of_first**2 - 2 * phi * of_first * of_second + of_second**2
        return math.sqrt(max(squared, 0.0))  # below 0 only by rounding

    low = difference - distance(first / images - first_low, second_high - second / images)
    high = difference + distance(first_high - first / images, second / images - second_low)
    return max(low, -1.0), min(high, 1.0)


def _corrected_phi(counts: PairedCounts, first: int, second: int) -> float:
    """The correlation of the two answers; 0 where one model has no or all images correct."""
    images = counts.images
    square = first * (images - first) * second * (images - second)
    if square == 0:
        return 0.0
    determinant = counts.both * counts.neither - counts.only_first * counts.only_second
    if determinant > 0:
        return max(determinant - images / 2, 0.0) / math.sqrt(square)
    return determinant / math.sqrt(square)


def holm(values: Sequence[float]) -> list[float]:
    """The p-values of several tests after Holm's correction, in the same order (S. Holm, 1979)."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        # never below the one before, so that the order of the p-values stays
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = largest
    return corrected
