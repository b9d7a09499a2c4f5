"""Agreement of raters beyond chance: Fleiss' kappa, Gwet's AC1 and Krippendorff's ordinal alpha, with intervals.

All take counts: a row for each image, a column for each category, how many raters gave it. Images with one rating are
left out. If nearly all ratings are of one category, kappa is low however well raters agree (A. R. Feinstein and
D. V. Cicchetti, Journal of Clinical Epidemiology 43, 1990); AC1 is not (K. L. Gwet, British Journal of Mathematical and
Statistical Psychology 61, 2008), so both are side by side. Intervals are percentiles of a bootstrap over images. From
fewer than MIN_RATED images nothing is given, as any value is possible; where every draw is the same, no interval: ten
images on which all agree do not show that all would agree on others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cleanset.statistics.basics import LEVEL, Floats, Ints
from cleanset.statistics.bootstrap import RESAMPLES, percentile_interval, seed_of
from cleanset.statistics.formats import NOTHING, decimal, interval_text, rounded

MIN_RATED = 10
"""Images with two ratings or more from which a coefficient is given."""
ENDS_DIGITS = 6
"""Decimals of the ends of an interval: machines add up fractions in another order."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement, with its 95 % interval."""

    value: float
    """At most 1; 0 for agreement by chance."""

    interval: tuple[float, float] | None
    """The ends of the interval; None if all draws are alike."""


def kappa(counts: Ints) -> Coefficient | None:
    """Fleiss' kappa; None from too few images, and where only one category was ever given."""
    return _coefficient(counts, _observed_and_shares, _kappa)


def ac1(counts: Ints) -> Coefficient | None:
    """Gwet's AC1, whose chance agreement is that of guesses alone; None from too few images."""
    return _coefficient(counts, _observed_and_shares, _ac1)


def ordinal_alpha(counts: Ints) -> Coefficient | None:
    """Krippendorff's alpha for categories in the order of the columns; None as `kappa`.

    The distance of two categories is the number of ratings from one to the other: K. Krippendorff, "Computing
    Krippendorff's Alpha-Reliability" (2011).
    """
    return _coefficient(counts, _coincidences, _alpha)


def _coefficient(
    counts: Ints, of_rows: Callable[[Ints], Floats], statistic: Callable[[Floats, int], Floats]
) -> Coefficient | None:
    """A statistic of the mean over images of what `of_rows` makes of each, and of their number, with its interval."""
    several = counts[counts.sum(axis=1) >= 2]
    if len(several) < MIN_RATED:
        return None
    # images with the same ratings are drawn together: there are few kinds
    kinds, images = np.unique(several, axis=0, return_counts=True)
    values = of_rows(kinds)
    value = float(statistic(_weighted(images[np.newaxis], values), len(several))[0])
    if not np.isfinite(value):
        return None
    generator = np.random.default_rng(seed_of("agreement of raters"))
    drawn = generator.multinomial(len(several), images / len(several), size=RESAMPLES)
    draws = statistic(_weighted(drawn, values), len(several))
    interval = percentile_interval(draws[np.isfinite(draws)], LEVEL)
    low, high = (rounded(end, ENDS_DIGITS) for end in interval)
    return Coefficient(value, (low, high) if low < high else None)


def _weighted(images: Ints, values: Floats) -> Floats:
    """The mean over images: draws x kinds and kinds x anything to draws x anything."""
    found: Floats = np.tensordot(images, values, 1) / images.sum(axis=1).reshape(-1, *[1] * (values.ndim - 1))
    return found


def _observed_and_shares(counts: Ints) -> Floats:
    """The share of equal pairs of ratings of each image, and then the share of each category."""
    raters = counts.sum(axis=1, keepdims=True)
    same = (counts * (counts - 1)).sum(axis=1, keepdims=True) / (raters * (raters - 1))
    return np.hstack([same, counts / raters])


def _kappa(means: Floats, _images: int) -> Floats:
    chance = (means[:, 1:] ** 2).sum(axis=1)
    return _beyond(means[:, 0], chance)


def _ac1(means: Floats, _images: int) -> Floats:
    shares = means[:, 1:]
    chance = (shares * (1 - shares)).sum(axis=1) / (shares.shape[1] - 1)
    return _beyond(means[:, 0], chance)


def _beyond(observed: Floats, chance: Floats) -> Floats:
    """The agreement beyond chance; NaN where chance explains all, up to rounding."""
    rest = 1 - chance
    defined = rest > 1e-12
    return np.where(defined, (observed - chance) / np.where(defined, rest, 1), np.nan)


def _coincidences(counts: Ints) -> Floats:
    """The pairs of ratings of each image by their categories, each rating in as many as it counts."""
    raters = counts.sum(axis=1)[:, np.newaxis, np.newaxis]
    pairs = counts[:, :, np.newaxis] * counts[:, np.newaxis, :]
    pairs -= counts[:, :, np.newaxis] * np.eye(counts.shape[1], dtype=np.int64)
    found: Floats = pairs / (raters - 1)
    return found


def _alpha(means: Floats, images: int) -> Floats:
    of_category = means.sum(axis=2)
    total = of_category.sum(axis=1)
    upto = np.cumsum(of_category, axis=1)
    middle = upto - of_category / 2
    distance = (middle[:, :, np.newaxis] - middle[:, np.newaxis, :]) ** 2
    observed = (means * distance).sum(axis=(1, 2))
    products = of_category[:, :, np.newaxis] * of_category[:, np.newaxis, :]
    # a rating is compared with all others, but not with itself
    expected = (products * distance).sum(axis=(1, 2)) / (total - 1 / images)
    defined = expected > 1e-12
    return np.where(defined, 1 - observed / np.where(defined, expected, 1), np.nan)


def coefficient_text(value: float | None, interval: Sequence[float] | None) -> str:
    """A coefficient of agreement with its interval, which is wide: two digits; – without a coefficient."""
    if value is None:
        return NOTHING
    if interval is None:
        return f"{decimal(value)} (no interval)"
    return f"{decimal(value)} ({interval_text(interval)})"
