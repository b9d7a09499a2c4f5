"""Intervals by bootstrap over images, which are drawn within their classes.

A class is a stratum: its images are drawn with replacement from its own. Drawing n of n underestimates the variance of
a class's mean by the factor (n - 1) / n, a third with 3 images a class, where 95 % intervals cover only about 89 %.
Drawing n - 1 of n and giving each class its full weight corrects that: P. J. McCarthy and C. B. Snowden, "The Bootstrap
and Finite Population Sampling" (1985); J. N. K. Rao and C. F. J. Wu, "Resampling Inference with Complex Survey Data"
(JASA 1988).

Classes of one image, which shows nothing of their variance, are drawn from together as one stratum, which rather
overestimates it (collapsed strata; W. G. Cochran, "Sampling Techniques", chapter 5A). A single such class joins the
smallest of the others.

If every class is all correct or all misclassified, nothing varies; with few misclassified images, percentiles cover
less than they claim. For shares, `adjusted_means` therefore adds pseudo-images: two correct and two misclassified ones
on average, as A. Agresti and B. A. Coull do ("Approximate Is Better than 'Exact' for Interval Estimation of Binomial
Proportions", The American Statistician 52, 1998; for paired shares A. Agresti and Y. Min, Statistics in Medicine 24,
2005). In a resample the four are all correct or all misclassified, so that half of the resamples stay near the images;
with two and two in each, intervals of small shares begin too high. bench/intervals.py simulates the coverage.

If images have groups, such as patients, whole groups are drawn, each within the class of its images, or among all
groups of several classes. Means are ratios then, as groups differ in size; a pseudo-image counts as many images as the
design effect, and percentiles are those of `Resamples.level`, as Student's t has longer tails.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.errors import CleansetError
from cleanset.statistics.basics import LEVEL, Floats, Interval, Ints
from cleanset.statistics.groups import NO_INTERVAL, Units, design_effects

RESAMPLES = 1000
# pseudo-images in a resample: about the square of the normal quantile of 95 %
PSEUDO_IMAGES = 4
# resamples that are summed at a time: 40 MB for 50,000 images
BLOCK = 100


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The way images, or groups, are drawn: `resamples` times, n - 1 of the n of a class, from a named seed."""

    resamples: int = RESAMPLES
    seed: str = "bootstrap"

    def resample(self, classes: npt.ArrayLike, units: Units | None = None) -> "Resamples":
        """Draw images, or groups; `classes` has the class index of each image, and their order is part of the seed.

        Sort the images by name, so that equal inputs give equal intervals, and use the same resamples for all models,
        so that differences are paired. Raises CleansetError for fewer than two images, or groups.
        """
        indices = np.asarray(classes)
        of_units = indices if units is None else _classes_of(units, indices)
        if len(of_units) < 2:
            what = "images" if units is None else "groups of images"
            raise CleansetError(f"bootstrap: found {len(of_units)} {what}; expected 2 or more; leave the interval out")
        generator = np.random.default_rng(seed_of(self.seed))
        # two bytes a count: 1,000 resamples of 50,000 images take 100 MB
        counts = np.zeros((self.resamples, len(of_units)), np.uint16)
        by_size: dict[int, list[Ints]] = {}
        drawn_from = strata(of_units)
        for members in drawn_from:
            size = len(members)
            _count(generator.integers(size, size=(self.resamples, size - 1)), members, counts)
            by_size.setdefault(size, []).append(members)
        # n / (n - 1) gives a class its full weight with one image fewer drawn
        weights = tuple((np.concatenate(by_size[size]), size / (size - 1)) for size in sorted(by_size))
        if units is None:
            return Resamples(indices, counts, weights, self.seed)
        of_images = tuple((np.flatnonzero(np.isin(units.codes, members)), weight) for members, weight in weights)
        return Resamples(indices, counts[:, units.codes], of_images, self.seed, units, len(drawn_from))


def _classes_of(units: Units, classes: npt.NDArray[np.generic]) -> Ints:
    """The class of the images of each group as a number; -1 for a group of several classes."""
    numbers = np.unique(classes, return_inverse=True)[1]
    least = np.full(units.count, len(numbers))
    most = np.full(units.count, -1)
    np.minimum.at(least, units.codes, numbers)
    np.maximum.at(most, units.codes, numbers)
    return np.where(least == most, least, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Resamples:
    """The count of each image in each resample, and the weight of a drawn image by the size of its stratum.

    `seed`: the name that the pseudo-images are drawn from, together with the name of the statistic they are added to.
    `units`: the groups that were drawn, in a number of `strata`; None: images.
    """

    classes: npt.NDArray[np.generic]
    counts: npt.NDArray[np.uint16]
    weights: tuple[tuple[Ints, float], ...]
    seed: str = ""
    units: Units | None = None
    strata: int = 1

    @property
    def level(self) -> float:
        """The level of percentiles of a statistic; NaN if there are too few groups for an interval."""
        if self.units is None:
            return LEVEL
        expanded = self.units.expanded_level(self.strata)
        return math.nan if expanded is None else expanded

    def means(self, values: npt.ArrayLike) -> Floats:
        """The mean of the images' values in each resample: images x anything to resamples x anything.

        For whole numbers (errors, flips, distances) the result has the same bytes on any machine.
        """
        array = np.asarray(values)
        flat = array.reshape(len(array), -1)
        total = np.zeros((len(self.counts), flat.shape[1]))
        # sums of whole numbers are exact in any order, so the weight is applied to the sum
        for members, weight in self.weights:
            total += weight * _sums(self.counts, members, flat[members].astype(np.float64))
        return (total / self._images()).reshape(len(total), *array.shape[1:])

    def _images(self) -> Floats | int:
        """The weight of the drawn images: their number, or of groups that of each resample, as a column."""
        if self.units is None:
            return len(self.classes)
        ones = np.ones((len(self.classes), 1))
        total = np.zeros((len(self.counts), 1))
        for members, weight in self.weights:
            total += weight * _sums(self.counts, members, ones[members])
        return total

    def adjusted_means(self, values: npt.ArrayLike, name: str, largest: npt.ArrayLike = 1) -> Floats:
        """The means with pseudo-images of the values 0 and `largest`: images x columns to resamples x columns.

        No value may be below 0 or above `largest`, one number or one a column. The pseudo-images are the same in all
        columns and wherever `name`, such as a model's, is the same, and independent otherwise: so means over changes of
        the same images keep their whole width, and equal models get a difference that has one.
        """
        array = np.asarray(values)
        generator = np.random.default_rng(seed_of(f"{self.seed} pseudo-images {name}"))
        misclassified = PSEUDO_IMAGES * generator.integers(2, size=len(self.counts))
        effects: Floats | int = 1 if self.units is None else design_effects(array / np.asarray(largest), self.units)
        total: Floats = self.means(array) * len(array) + misclassified[:, np.newaxis] * np.asarray(largest) * effects
        return total / (len(array) + PSEUDO_IMAGES * effects)

    def class_means(self, values: npt.ArrayLike) -> Floats:
        """The mean by class in each resample, classes sorted: images x anything to resamples x classes x anything.

        A class of one image keeps its value in every resample, and so does a class that shares a stratum with such ones
        in a resample without its images.
        """
        array = np.asarray(values)
        flat = array.reshape(len(array), -1).astype(np.float64)
        found = []
        for each in np.unique(self.classes):
            members = np.flatnonzero(self.classes == each)
            counts = self.counts[:, members].astype(np.float64)
            counts[(counts.sum(axis=1) == 0) | (len(members) == 1)] = 1
            found.append(counts @ flat[members] / counts.sum(axis=1, keepdims=True))
        return np.stack(found, axis=1).reshape(len(self.counts), len(found), *array.shape[1:])


def seed_of(name: str) -> int:
    """The seed that a name stands for: its SHA-256 as a number."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest(), "big")


def strata(classes: npt.NDArray[np.generic]) -> list[Ints]:
    """The positions of the images of each stratum: one for each class, sorted; classes of one image together last."""
    # stable: the order of the images within a class is part of the seed
    order = np.argsort(classes, kind="stable").astype(np.int64)
    starts = np.flatnonzero(np.diff(classes[order])) + 1
    groups = np.split(order, starts)
    several = [group for group in groups if len(group) > 1]
    single = [group for group in groups if len(group) == 1]
    if len(single) == 1:
        smallest = min(range(len(several)), key=lambda place: len(several[place]))
        single.append(several.pop(smallest))
    return [*several, np.concatenate(single)] if single else several


def percentile_interval(draws: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """The interval between the percentiles of a statistic's resampled values, for means and ratios of means.

    NaN ends for a statistic that varies in no class, such as an error of 0: that no resample differs does not show that
    no other images would.
    """
    if math.isnan(level):
        return NO_INTERVAL
    outside = (1 - level) / 2
    # one NaN among the draws makes both ends NaN, without a warning
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(np.asarray(draws, np.float64), [outside, 1 - outside], axis=0)
    return Interval(float(low), float(high)) if low < high else NO_INTERVAL


def reflected_interval(estimate: float, draws: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """The percentiles reflected at the estimate (the basic bootstrap interval).

    For statistics such as Score that resampling shifts: a variance of class means is larger in a resample by about its
    excess in the sample, and percentiles would be off by twice that.
    """
    low, high = percentile_interval(draws, level)
    return Interval(2 * estimate - high, 2 * estimate - low)


def _count(drawn: Ints, members: Ints, counts: npt.NDArray[np.uint16]) -> None:
    """Add how often each member was drawn in each resample; `drawn` has positions in `members`."""
    rows = np.arange(len(drawn))[:, np.newaxis] * len(members)
    found = np.bincount((rows + drawn).ravel(), minlength=len(drawn) * len(members))
    counts[:, members] += found.reshape(len(drawn), len(members)).astype(np.uint16)


def _sums(counts: npt.NDArray[np.uint16], members: Ints, values: Floats) -> Floats:
    """The sum of the drawn members' values in each resample."""
    sums = np.empty((len(counts), values.shape[1]))
    for start in range(0, len(counts), BLOCK):
        sums[start : start + BLOCK] = counts[start : start + BLOCK, members].astype(np.float64) @ values
    return sums
