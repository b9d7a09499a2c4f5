"""Differences of two models: exact tests and intervals on the same images or on others, Holm, means over folds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import LEVEL, Floats, Interval, positive_p
from cleanset.statistics.shares import wilson


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
        """The accuracy of the first model minus the second's, -1 to 1."""
        return (self.only_first - self.only_second) / self.images


def mcnemar_p(counts: PairedCounts) -> float:
    """The two-sided p-value of McNemar's exact test that both models have the same accuracy.

    Twice the smaller tail of a binomial distribution with share 1/2 over the images that only one of them classifies
    correctly, at most 1 (Q. McNemar, 1947). Computed in whole numbers and rounded once.
    """
    return float(mcnemar_p_values([counts.only_first], [counts.only_second])[0])


def mcnemar_p_values(only_first: npt.ArrayLike, only_second: npt.ArrayLike) -> Floats:
    """The p-values of McNemar's test for the counts of many pairs; the sums of equal totals are computed once."""
    ones = np.asarray(only_first, np.int64)
    others = np.asarray(only_second, np.int64)
    cases, places = np.unique(np.stack([ones + others, np.minimum(ones, others)]), axis=1, return_inverse=True)
    found = np.empty(cases.shape[1])
    before = -1
    for place, (draws, fewer) in enumerate(cases.T.tolist()):
        if draws != before:
            before = draws
            summed = 0
            term = tail = 1
        # sorted by total, then by the smaller count: the sum continues from the case before
        for successes in range(summed + 1, fewer + 1):
            term = term * (draws - successes + 1) // successes  # the next binomial coefficient
            tail += term
        summed = fewer
        # the quotient of two whole numbers is correctly rounded, however many digits they have
        found[place] = positive_p(min(1.0, 2 * tail / (1 << draws)))
    return found[places.ravel()]


def sign_test_p(differences: npt.ArrayLike) -> float:
    """The two-sided p-value of the exact sign test that neither of two models is more often the better one.

    `differences`: one model's measure minus the other's by image; 0 counts for neither. For one answer an image it is
    McNemar's test; for means over several changes it stays exact, since the image is the unit (W. J. Conover,
    "Practical Nonparametric Statistics", chapter 3.4).
    """
    # means of other columns may differ by rounding where they are equal
    signs = np.sign(np.round(np.asarray(differences, np.float64), 12))
    above = int((signs > 0).sum())
    below = int((signs < 0).sum())
    return mcnemar_p(PairedCounts(0, above, below, len(signs) - above - below))


def difference_interval(counts: PairedCounts) -> Interval:
    """The interval of the difference of two paired shares, within -1 to 1; raises ValueError without images.

    Method 10 of R. G. Newcombe, Improved confidence intervals for the difference between binomial proportions based on
    paired data (Statistics in Medicine 17, 1998): Wilson's intervals of both shares, squared and added, with their
    correlation phi corrected for continuity.
    """
    images = counts.images
    first = counts.both + counts.only_first
    second = counts.both + counts.only_second
    intervals = wilson(first, images), wilson(second, images)
    phi = _corrected_phi(counts, first, second)
    return squared_and_added(counts.difference, (first / images, second / images), intervals, phi)


def squared_and_added(
    difference: float, shares: Sequence[float], intervals: Sequence[Interval], phi: float
) -> Interval:
    """The interval of a difference of two shares, from the interval of each and the correlation of their estimates."""
    first, second = shares
    (first_low, first_high), (second_low, second_high) = intervals

    def distance(of_first: float, of_second: float) -> float:
        squared = of_first**2 - 2 * phi * of_first * of_second + of_second**2
        return math.sqrt(max(squared, 0.0))  # below 0 only by rounding

    low = difference - distance(first - first_low, second_high - second)
    high = difference + distance(first_high - first, second - second_low)
    return Interval(max(low, -1.0), min(high, 1.0))


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


def holm(values: npt.ArrayLike) -> list[float]:
    """The p-values of several tests after Holm's correction, in the same order (S. Holm, 1979)."""
    given = np.asarray(values, np.float64)
    order = np.argsort(given, kind="stable")
    scaled = np.minimum(1.0, np.arange(len(given), 0, -1) * given[order])
    corrected = np.empty(len(given))
    # never below the one before, so that the order of the p-values stays
    corrected[order] = np.maximum.accumulate(scaled)
    return corrected.tolist()


def fold_interval(values: npt.ArrayLike, tested_to_trained: float) -> Interval:
    """The interval of the mean of one value a fold, from Student's t and a corrected variance; NaN ends for one fold.

    `tested_to_trained`: images tested by images trained on, 1 / (folds - 1) in a cross-validation. Folds share most of
    their training images, so that the usual variance of a mean, s^2 / folds, is too small; the corrected one is
    s^2 (1 / folds + tested_to_trained) (C. Nadeau and Y. Bengio, Inference for the generalization error, Machine
    Learning 52, 2003). Raises ValueError without values.
    """
    from scipy import stats

    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not len(found):
        raise ValueError(f"values of shape {found.shape}; expected one a fold")
    if len(found) == 1:
        return Interval(math.nan, math.nan)
    mean = float(found.mean())
    folds = len(found)
    variance = float(found.var(ddof=1)) * (1 / folds + tested_to_trained)
    half = float(stats.t.ppf((1 + LEVEL) / 2, folds - 1)) * math.sqrt(variance)
    return Interval(mean - half, mean + half)


def unpaired_difference(correct: int, images: int, other_correct: int, other_images: int) -> Interval:
    """The interval of the difference of two shares of independent images, within -1 to 1.

    Method 10 of R. G. Newcombe, Interval estimation for the difference between independent proportions (Statistics in
    Medicine 17, 1998): the distances of both shares to the ends of their Wilson intervals, squared and added. For the
    same images it is too wide rather than too narrow. Raises ValueError as `wilson` does.
    """
    share = correct / images
    (low, high) = wilson(correct, images)
    other = other_correct / other_images
    (other_low, other_high) = wilson(other_correct, other_images)
    difference = share - other
    below = math.hypot(share - low, other_high - other)
    above = math.hypot(high - share, other - other_low)
    return Interval(max(difference - below, -1.0), min(difference + above, 1.0))
