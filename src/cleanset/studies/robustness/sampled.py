"""Statistics with their resampled values, from which intervals of ratios, means and differences follow.

CE is the ratio of two mean errors, mCE a mean of CEs, FR the ratio of two FPs: each is computed in every resample as
it is of all images. Models that are compared must be resampled together (one `Resamples` for all of them).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from cleanset.statistics.bootstrap import LEVEL, Interval, Resamples, percentile_interval, reflected_interval

Definition = Literal["as_written", "as_published"]
DEFINITIONS: tuple[str, ...] = get_args(Definition)
"""The formula of the text, and what the published code or numbers rest on."""

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


def mean_of(values: Mapping[str, Sampled], over: Sequence[str]) -> Sampled:
    """The mean of the named statistics, at least one, such as mCE over the test corruptions; KeyError if one lacks."""
    each = [values[name] for name in over]
    # resample by resample: the statistics are of the same images and so not independent
    draws: Floats = np.mean([one.draws for one in each], axis=0)
    return Sampled(float(np.mean([one.value for one in each])), draws, any(one.shifted for one in each))
