"""Statistics with their resampled values, from which intervals of ratios, means and differences follow.

CE is the ratio of two mean errors, mCE a mean of CEs, FR the ratio of two FPs: each is computed in every resample as
it is of all images. Models that are compared must be resampled together (one `Resamples` for all of them).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.bootstrap import LEVEL, Interval, Resamples, percentile_interval, reflected_interval
from cleanset.studies.robustness.measures.definitions import Definition
from cleanset.studies.robustness.measures.scenarios import class_squares, score_of_squares, squared_deviations

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A statistic of all images, and of each resample; `shifted` where resampling shifts it, as it does Score."""

    value: float
    draws: Floats
    shifted: bool = False

    def interval(self, level: float = LEVEL) -> Interval:
        """The bootstrap interval: percentiles, reflected at the value if the statistic is shifted."""
        return (
            reflected_interval(self.value, self.draws, level)
            if self.shifted
            else percentile_interval(self.draws, level)
        )

    def __sub__(self, other: "Sampled") -> "Sampled":
        """The difference, resample by resample."""
        return Sampled(self.value - other.value, self.draws - other.draws, self.shifted or other.shifted)

    def __truediv__(self, other: "Sampled") -> "Sampled":
        """The ratio, resample by resample; NaN or infinite where the divisor is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value, draws = np.float64(self.value) / other.value, self.draws / other.draws
        return Sampled(float(value), draws, self.shifted or other.shifted)

    def scaled(self, factor: float) -> "Sampled":
        """The statistic times a number."""
        return Sampled(self.value * factor, self.draws * factor, self.shifted)


def constant(value: float, resamples: Resamples) -> Sampled:
    """A number that does not depend on the images, such as a published error; NaN for a statistic that is missing."""
    return Sampled(value, np.full(len(resamples.counts), value))


def sampled_means(values: npt.ArrayLike, names: Sequence[str], resamples: Resamples) -> dict[str, Sampled]:
    """The mean over the images of each column of values (images x names), by name."""
    array = np.asarray(values)
    draws = resamples.means(array)
    means = array.sum(axis=0, dtype=np.float64) / len(array)
    return {name: Sampled(float(means[place]), draws[:, place]) for place, name in enumerate(names)}


def sampled_ces(
    errors: Mapping[str, Sampled], reference: Mapping[str, Sampled], estimates: pd.Series
) -> dict[str, Sampled]:
    """CE by corruption of mean errors over the same severities, or of their differences to those on clean images.

    `estimates` are from `corruption_errors` or `relative_corruption_errors` and say, by NaN, which have none.
    """
    found = {name: errors[name] / reference[name] for name in errors}
    return {
        name: Sampled(float("nan"), np.full_like(each.draws, np.nan)) if np.isnan(estimates[name]) else each
        for name, each in found.items()
    }


def mean_of(values: Mapping[str, Sampled], over: Sequence[str]) -> Sampled:
    """The mean of the named statistics, at least one, such as mCE over the test corruptions; KeyError if one lacks."""
    each = [values[name] for name in over]
    draws: Floats = np.mean([one.draws for one in each], axis=0)
    return Sampled(float(np.mean([one.value for one in each])), draws, any(one.shifted for one in each))


def sampled_score(
    correct: npt.NDArray[np.bool_], unchanged: npt.NDArray[np.bool_], definition: Definition, resamples: Resamples
) -> Sampled:
    """Score whose inner part is over the classes; `correct` is images x scenarios, `unchanged` by image."""
    classes = np.unique(resamples.classes)
    by_class = np.stack([correct[resamples.classes == each].mean(axis=0) for each in classes])
    mu, mus = float(unchanged.mean()), resamples.means(unchanged)
    value = score_of_squares(squared_deviations(correct.mean(axis=0), mu), class_squares(by_class, mu), definition)
    draws = score_of_squares(
        squared_deviations(resamples.means(correct), mus),
        class_squares(resamples.class_means(correct), mus),
        definition,
    )
    return Sampled(float(value), draws, shifted=True)
