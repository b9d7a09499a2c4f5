"""Statistics of all images and of each bootstrap resample: means, ratios and differences; 95 % intervals.

CE is the ratio of two mean errors, mCE a mean of CEs, FR the ratio of two FPs: each is computed in every resample in
the same way as for all images. Models that are compared must be resampled together (one `Resamples` for all of them).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import LEVEL, Floats, Interval
from cleanset.statistics.bootstrap import Resamples, percentile_interval, reflected_interval


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A statistic of all images, and of each resample."""

    value: float
    """The statistic of all images; NaN if it is undefined."""
    draws: Floats
    """The statistic of each resample."""
    shifted: bool = False
    """Whether resampling shifts it, as it does Score."""
    by_image: Floats | None = None
    """Each image's part of a mean, for paired tests; None for others, such as Score. A ratio's is relative to the
    divisor of all images."""
    largest: float = np.inf
    """The largest value that it can have, and its interval with it."""
    measure: str = ""
    """The measure that it is reported under."""
    change: str = ""
    """The change that it is reported under; empty: all of them."""
    problem: str = ""
    """Why it is undefined."""

    def named(self, measure: str, change: str = "", problem: str = "") -> "Sampled":
        """The statistic as a measure of a change, or without `change` of all of them."""
        return replace(self, measure=measure, change=change, problem=problem)

    def interval(self, level: float = LEVEL) -> Interval:
        """The bootstrap interval: percentiles and the value, or percentiles reflected at it if resampling shifts it.

        NaN ends for a measure without an interval: a statistic that nothing varies, such as CE relative to itself, or a
        ratio whose divisor is 0 in some resamples.
        """
        if self.shifted:
            low, high = reflected_interval(self.value, self.draws, level)
            found = Interval(low, float(np.minimum(high, self.largest)))
        else:
            ends = percentile_interval(self.draws, level)
            # pseudo-images draw the percentiles to the middle; NaN stays NaN
            found = Interval(float(np.minimum(ends.low, self.value)), float(np.maximum(ends.high, self.value)))
        has_width = np.isfinite([found.low, found.high]).all() and found.low < found.high
        return found if has_width else Interval(np.nan, np.nan)

    def __sub__(self, other: "Sampled") -> "Sampled":
        """The difference, resample by resample."""
        by_image = None
        if self.by_image is not None and other.by_image is not None:
            by_image = self.by_image - other.by_image
        # of two ratios that are both infinite in a resample
        with np.errstate(invalid="ignore"):
            draws = self.draws - other.draws
        return Sampled(self.value - other.value, draws, self.shifted or other.shifted, by_image)

    def __truediv__(self, other: "Sampled") -> "Sampled":
        """The ratio, resample by resample; NaN or infinite where the divisor is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.float64(self.value) / other.value
            draws = self.draws / other.draws
            by_image = None if self.by_image is None else self.by_image / other.value
        return Sampled(float(value), draws, self.shifted or other.shifted, by_image)

    def scaled(self, factor: float) -> "Sampled":
        """The statistic times a number."""
        by_image = None if self.by_image is None else self.by_image * factor
        return Sampled(self.value * factor, self.draws * factor, self.shifted, by_image)


MIN_REFERENCE_SUM = 10
"""Errors, flips or units of top-5 distance of a reference in all, below which a ratio to it is undefined."""


def ratio_to(reference: Sampled, own: Sampled, answers: float) -> Sampled:
    """A mean over answers relative to a reference's; NaN if the reference's sum is below MIN_REFERENCE_SUM.

    `answers`: how many the reference's mean is of; infinitely many for a published one, which need only be above 0.
    """
    # means of whole numbers are sums again but for rounding
    if np.rint(reference.value * answers) >= MIN_REFERENCE_SUM:
        return own / reference
    return Sampled(np.nan, np.full_like(own.draws, np.nan))


def undefined_names(values: Mapping[str, Sampled], over: Iterable[str]) -> list[str]:
    """The names of `over` whose statistic is undefined, so that their mean is, too."""
    return [name for name in over if not np.isfinite(values[name].value)]


def constant(value: float, resamples: Resamples) -> Sampled:
    """A number that does not depend on the images, such as a published error."""
    return Sampled(value, np.full(len(resamples.counts), value))


def undefined(measure: str, problem: str, resamples: Resamples) -> Sampled:
    """A measure that is undefined, with the reason."""
    return constant(np.nan, resamples).named(measure, problem=problem)


def sampled_means(
    values: npt.ArrayLike, names: Sequence[str], resamples: Resamples, answers: str, largest: npt.ArrayLike = 1
) -> dict[str, Sampled]:
    """The mean over the images of each column of values (images x names), by name.

    `answers`: whose they are, for pseudo-images of their own; `largest`: the largest possible value, one number or one
    a column.
    """
    array = np.asarray(values)
    draws = resamples.adjusted_means(array, answers, largest)
    means = array.sum(axis=0, dtype=np.float64) / len(array)
    return {
        name: Sampled(float(means[place]), draws[:, place], by_image=array[:, place].astype(np.float64))
        for place, name in enumerate(names)
    }


def mean_of(values: Mapping[str, Sampled], over: Sequence[str]) -> Sampled:
    """The mean of the named statistics, at least one, such as mCE over the test corruptions; KeyError if one lacks."""
    each = [values[name] for name in over]
    # resample by resample: the statistics are of the same images and so not independent
    draws: Floats = np.mean([one.draws for one in each], axis=0)
    parts = [one.by_image for one in each if one.by_image is not None]
    by_image = np.mean(parts, axis=0) if len(parts) == len(each) else None
    return Sampled(float(np.mean([one.value for one in each])), draws, any(one.shifted for one in each), by_image)
