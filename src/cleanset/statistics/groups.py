"""Intervals and tests whose unit is the group of an image: a patient, a film, a session.

Images of one group resemble each other: for 20 groups of ten images with an intraclass correlation of .3, Wilson's
interval over 200 images covers .70 in place of .95. Here the variance is that of the groups' sums, as in a cluster
sample. An image without a group is a group of its own, and if no two images share a group, `Units` is None and
everything is as over images.

Shares get Wilson's interval with the effective number of images, images / design effect, and a quantile of Student's t
(N. Dean and M. Pagano, "Evaluating Confidence Interval Methods for Binomial Proportions in Clustered Surveys", Journal
of Survey Statistics and Methodology 3, 2015). Two choices make it hold with few groups, of other sizes, and of high
shares, where a sample without its rare bad group has too small a design effect: two pseudo-groups, one correct and one
misclassified, count in the design effect, and the degrees of freedom are of the effective number of groups (L. Kish,
1965). bench/groups.py simulates the coverage.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Self

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import LEVEL, Flags, Floats, Interval, Ints, positive_p
from cleanset.statistics.differences import (
    PairedCounts,
    difference_interval,
    mcnemar_p,
    sign_test_p,
    squared_and_added,
)
from cleanset.statistics.formats import counted
from cleanset.statistics.shares import score_interval, wilson

PSEUDO_SHARE = 0.25
"""Size of a pseudo-group, relative to the mean size of an image's group."""
FEW_GROUPS = 10
"""Groups below which a note says that they are few."""
NO_INTERVAL = Interval(math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Units:
    """The group of each image as a number from 0; groups of one image count, too."""

    codes: Ints

    @classmethod
    def of(cls, groups: Sequence[str] | None) -> Self | None:
        """The units of images with these groups, empty for an image without one; None if no two share a group."""
        if groups is None or not any(groups):
            return None
        # a name that no group has for each image without one
        names = [group or (place,) for place, group in enumerate(groups)]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        found = np.array([numbers[name] for name in names], np.int64)
        return cls(found) if len(numbers) < len(found) else None

    def only(self, chosen: npt.ArrayLike) -> Self | None:
        """The units of some of the images, by flags or places; None if no two of them share a group."""
        found = np.unique(self.codes[np.asarray(chosen)], return_inverse=True)[1].astype(np.int64)
        return type(self)(found) if len(found) and found.max() + 1 < len(found) else None

    @cached_property
    def sizes(self) -> Ints:
        """The number of images of each group."""
        return np.bincount(self.codes)

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.sizes)

    @property
    def mean_size(self) -> float:
        """The size of an image's group, on average over the images: the largest possible design effect."""
        return float(np.square(self.sizes).sum() / self.sizes.sum())

    @property
    def effective(self) -> float:
        """The number of groups of equal size with as much information; at most `count`."""
        return float(self.sizes.sum() / self.mean_size)

    def sums(self, values: npt.ArrayLike) -> Floats:
        """The sum of each group's values: images x anything to groups x anything."""
        array = np.asarray(values, np.float64)
        found = np.zeros((self.count, *array.shape[1:]))
        np.add.at(found, self.codes, array)
        return found

    @property
    def number(self) -> str:
        """The number of groups in words."""
        return counted(self.count, "group")

    @property
    def text(self) -> str:
        """The unit in words, for tables: `by 20 groups`."""
        return f"by {self.number}"

    @property
    def statement(self) -> str:
        """The unit in a sentence, with a warning where there are few groups."""
        if self.effective < 2:
            return f"No intervals: nearly all images are of one of {self.number}, which shows nothing about others."
        few = "; so few may not show how much groups differ" if self.count < FEW_GROUPS else ""
        return f"Intervals and tests are {self.text}, as images of one group are not independent{few}."

    def t(self, level: float = LEVEL, strata: int = 1) -> float | None:
        """The quantile of Student's t of an interval; None with fewer than two effective groups."""
        from scipy.stats import t

        if self.effective < 2:
            return None
        return float(t.ppf((1 + level) / 2, max(self.effective - strata, 1)))

    def expanded_level(self, strata: int = 1) -> float | None:
        """The level of percentiles that cover LEVEL with few groups; None with fewer than two effective groups.

        T. Hesterberg, "What Teachers Should Know about the Bootstrap" (The American Statistician 69, 2015).
        """
        quantile = self.t(strata=strata)
        return None if quantile is None else 2 * NormalDist().cdf(quantile) - 1


def design_effects(values: npt.ArrayLike, units: Units) -> Floats:
    """By how much groups raise the variance of the mean of each column of values in 0..1, images x columns.

    From 1 to the mean size of an image's group. Groups' squared residuals are divided by 1 less their share of the
    images, as a mean is nearer to a large group.
    """
    array = np.asarray(values, np.float64)
    size = PSEUDO_SHARE * units.mean_size
    images = len(array) + 2 * size
    mean = (array.sum(axis=0) + size) / images
    rest = 1 - units.sizes / len(array)
    squares = np.square(units.sums(array - mean)) / np.maximum(rest, 1e-9)[:, np.newaxis]
    of_groups = squares.sum(axis=0) + size**2 * (mean**2 + (1 - mean) ** 2)
    of_images = np.square(array - mean).sum(axis=0) + size * (mean**2 + (1 - mean) ** 2)
    found: Floats = np.clip(of_groups / of_images, 1, units.mean_size)
    return found


def share_interval(correct: npt.ArrayLike, units: Units | None) -> Interval:
    """The interval of a share of images, within 0 to 1; NaN ends if there are too few groups for one."""
    flags = np.asarray(correct, np.bool_)
    if units is None:
        return wilson(int(flags.sum()), len(flags))
    quantile = units.t()
    if quantile is None:
        return NO_INTERVAL
    return score_interval(flags.mean(), _effective_images(flags, units), quantile)


def _effective_images(flags: Flags, units: Units) -> float:
    return float(len(flags) / design_effects(flags[:, np.newaxis], units)[0])


def mean_interval(values: npt.ArrayLike, units: Units) -> Interval:
    """The interval of a mean over images, by Student's t; NaN ends if there are too few groups for one."""
    array = np.asarray(values, np.float64)
    quantile = units.t()
    if quantile is None:
        return NO_INTERVAL
    mean = math.fsum(array) / len(array)
    residuals = units.sums(array - mean) / np.sqrt(1 - units.sizes / len(array))
    half = quantile * math.sqrt(math.fsum(np.square(residuals))) / len(array)
    return Interval(mean - half, mean + half)


def paired_interval(first: npt.ArrayLike, second: npt.ArrayLike, units: Units | None) -> Interval:
    """The interval of the difference of two shares of the same images, within -1 to 1.

    Newcombe's for pairs: the distances of both shares to the ends of their intervals, squared and added, with the
    correlation of the groups' sums, corrected for continuity.
    """
    flags = [np.asarray(each, np.bool_) for each in (first, second)]
    if units is None:
        return difference_interval(paired_counts(*flags))
    shares = [float(each.mean()) for each in flags]
    intervals = [share_interval(each, units) for each in flags]
    if not np.isfinite(intervals).all():
        return NO_INTERVAL
    residuals = [each.astype(np.float64) - share for each, share in zip(flags, shares, strict=True)]
    # groups that all have the same share show no correlation; their images do
    phi = _correlation(*map(units.sums, residuals)) or _correlation(*residuals)
    variance = math.prod(share * (1 - share) for share in shares)
    if phi > 0 and variance > 0:
        images = math.sqrt(math.prod(_effective_images(each, units) for each in flags))
        phi = max(phi - 1 / (2 * images * math.sqrt(variance)), 0.0)
    return squared_and_added(shares[0] - shares[1], shares, intervals, phi)


def _correlation(first: Floats, second: Floats) -> float:
    """The correlation of values that are 0 on average; 0 where one does not vary."""
    size = math.sqrt(math.fsum(np.square(first)) * math.fsum(np.square(second)))
    return math.fsum(first * second) / size if size > 1e-9 else 0.0


def paired_counts(first: Flags, second: Flags) -> PairedCounts:
    """The number of images that both models classify correctly, only one, and neither."""
    return PairedCounts(
        both=int((first & second).sum()),
        only_first=int((first & ~second).sum()),
        only_second=int((~first & second).sum()),
        neither=int((~first & ~second).sum()),
    )


def paired_p(first: npt.ArrayLike, second: npt.ArrayLike, units: Units | None) -> float:
    """The two-sided p-value of the exact test that two models have the same accuracy: McNemar's, by groups.

    If neither is better, the two models' answers to all images of a group may as well be exchanged. The share of all
    such exchanges that make the numbers of images that only one of them classifies correctly differ as much or more;
    if no group has more than one such image, it is McNemar's exact test. Five groups or fewer with such images never
    reach .05.
    """
    flags = [np.asarray(each, np.bool_) for each in (first, second)]
    if units is None:
        return mcnemar_p(paired_counts(*flags))
    sums = np.rint(units.sums(flags[0].astype(np.int64) - flags[1])).astype(np.int64)
    sizes = np.abs(sums[sums != 0])
    if (sizes <= 1).all():
        return sign_test_p(sums)
    total = int(sizes.sum())
    # the probability of each sum of exchanged groups, from -total to total
    chances = np.ones(1)
    for size in sizes.tolist():
        exchanged = np.zeros(len(chances) + 2 * size)
        exchanged[2 * size :] = chances / 2
        exchanged[: len(chances)] += chances / 2
        chances = exchanged
    far = np.abs(np.arange(-total, total + 1)) >= abs(int(sums.sum()))
    return positive_p(min(1.0, math.fsum(chances[far])))


def unit_sign_test_p(differences: npt.ArrayLike, units: Units | None) -> float:
    """The p-value of the exact sign test over groups, by the sum of each group's differences."""
    return sign_test_p(differences if units is None else units.sums(differences))
