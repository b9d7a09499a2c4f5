"""One share: its intervals and limits: Wilson's, exact, and valid at whatever number one stops."""

import math
from collections.abc import Callable
from statistics import NormalDist

from cleanset.statistics.basics import LEVEL, Interval

_HALVINGS = 60
_MIXED_SHARES = 64


def wilson(correct: int, images: int) -> Interval:
    """Wilson's score interval of a share, without correction for continuity, within 0 to 1.

    For a population from which `images` were drawn, `correct` of them correct (E. B. Wilson, 1927; method 3
    in R. G. Newcombe, 1998). Unlike the normal approximation it does not collapse to a point at shares of 0 and 1.
    Raises ValueError unless 0 <= correct <= images and images > 0.
    """
    if not 0 <= correct <= images or images == 0:
        raise ValueError(f"{correct} of {images}; expected a share of at least one image")
    return score_interval(correct / images, images, NormalDist().inv_cdf((1 + LEVEL) / 2))


def score_interval(share: float, images: float, quantile: float) -> Interval:
    """Wilson's interval of a share of independent images, perhaps of an effective number of them."""
    square = quantile * quantile / images
    centre = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * math.sqrt(share * (1 - share) / images + square / (4 * images))
    # at the ends the two terms are equal but for rounding
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return Interval(low, high)


def lower_limit(successes: int, trials: int, level: float = LEVEL) -> float:
    """The one-sided lower limit of a share, 0 to 1; 0 without a success, or without a trial.

    The share with which as many successes or more have the probability 1 - `level` (C. J. Clopper and E. S. Pearson,
    1934): no true share is below it with more than that probability.
    """
    from scipy.stats import beta

    _check(successes, trials)
    return float(beta.ppf(1 - level, successes, trials - successes + 1)) if successes else 0.0


def exact_interval(successes: int, trials: int) -> tuple[float, float]:
    """The two-sided interval of Clopper and Pearson, within 0 to 1; all of it without a trial."""
    one_sided = (1 + LEVEL) / 2
    return lower_limit(successes, trials, one_sided), 1 - lower_limit(trials - successes, trials, one_sided)


def likelihood_ratio(successes: int, trials: int, share: float, other: float) -> float:
    """The likelihood of the trials with the one share, divided by that with the other, both between 0 and 1.

    An e-value against every share on the far side of `other`: for `share` > `other`, the probability that it ever
    reaches 1 / a, at any number of trials, is at most a if the true share is `other` or less (A. Wald, "Sequential
    tests of statistical hypotheses", 1945; J. Ville, 1939).
    """
    _check(successes, trials)
    logarithm = successes * math.log(share / other) + (trials - successes) * math.log((1 - share) / (1 - other))
    # exp overflows above 709
    return math.exp(min(logarithm, 700.0))


def lower_limit_at_any_time(successes: int, trials: int, level: float = LEVEL) -> float:
    """The one-sided lower limit of a share, 0 to 1, valid at whatever number of trials one stops.

    The smallest share whose evidence, the mean of its likelihood ratios to larger shares, spread evenly, is below
    1 / (1 - `level`): as a mixture of e-values it is one, too (H. Robbins, "Statistical methods related to the law of
    the iterated logarithm", 1970), so that no limit of the whole sequence is above the true share with more than that
    probability.
    """
    _check(successes, trials)
    if successes == 0:
        return 0.0

    def evidence(share: float) -> float:
        larger = (share + (1 - share) * (place + 0.5) / _MIXED_SHARES for place in range(_MIXED_SHARES))
        return math.fsum(likelihood_ratio(successes, trials, each, share) for each in larger) / _MIXED_SHARES

    return _root(lambda share: evidence(share) * (1 - level) < 1)


def _check(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials}; expected a share")


def _root(is_above: Callable[[float], bool]) -> float:
    """The share at which a condition becomes true, from below: never above it."""
    low = 0.0
    high = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return low
