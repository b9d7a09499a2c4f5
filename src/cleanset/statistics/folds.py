"""Intervals of what was measured once for each fold of a cross-validation, or on one split."""

import math

import numpy as np
import numpy.typing as npt

from cleanset.statistics.bootstrap import Interval
from cleanset.statistics.shares import LEVEL, wilson


def fold_interval(values: npt.ArrayLike, tested_to_trained: float, level: float = LEVEL) -> Interval:
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
    mean, folds = float(found.mean()), len(found)
    variance = float(found.var(ddof=1)) * (1 / folds + tested_to_trained)
    half = float(stats.t.ppf((1 + level) / 2, folds - 1)) * math.sqrt(variance)
    return Interval(mean - half, mean + half)


def unpaired_difference(
    correct: int, images: int, other_correct: int, other_images: int, level: float = LEVEL
) -> Interval:
    """The interval of the difference of two shares of independent images, within -1 to 1.

    Method 10 of R. G. Newcombe, Interval estimation for the difference between independent proportions (Statistics in
    Medicine 17, 1998): the distances of both shares to the ends of their Wilson intervals, squared and added. For the
    same images it is too wide rather than too narrow. Raises ValueError as `wilson` does.
    """
    share, (low, high) = correct / images, wilson(correct, images, level)
    other, (other_low, other_high) = other_correct / other_images, wilson(other_correct, other_images, level)
    difference = share - other
    below = math.hypot(share - low, other_high - other)
    above = math.hypot(high - share, other - other_low)
    return Interval(max(difference - below, -1.0), min(difference + above, 1.0))
