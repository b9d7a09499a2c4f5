"""Exact intervals of a share of independent trials, and evidence about it that is valid whenever one looks."""

import math
from collections.abc import Callable

LEVEL = 0.95
_HALVINGS = 60


def lower_limit(successes: int, trials: int, level: float = LEVEL) -> float:
    """The one-sided lower limit of a share, 0 to 1; 0 without a success, or without a trial.

    The share with which as many successes or more have the probability 1 - `level` (C. J. Clopper and E. S. Pearson,
    1934): no true share is below it with more than that probability.
    """
    _check(successes, trials)
    if successes == 0:
        return 0.0
    return _root(lambda share: at_least(successes, trials, share) > 1 - level)


def exact_interval(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The two-sided interval of Clopper and Pearson, within 0 to 1; all of it without a trial."""
    one_sided = (1 + level) / 2
    return lower_limit(successes, trials, one_sided), 1 - lower_limit(trials - successes, trials, one_sided)


def at_least(successes: int, trials: int, share: float) -> float:
    """The binomial probability of as many successes or more."""
    if share in (0.0, 1.0):
        return float(share == 1.0 or successes == 0)
    return min(1.0, math.fsum(math.exp(_log_binomial(k, trials, share)) for k in range(successes, trials + 1)))


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


def _check(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials}; expected a share")


def _log_binomial(successes: int, trials: int, share: float) -> float:
    coefficient = math.lgamma(trials + 1) - math.lgamma(successes + 1) - math.lgamma(trials - successes + 1)
    return coefficient + successes * math.log(share) + (trials - successes) * math.log1p(-share)


def _root(is_above: Callable[[float], bool]) -> float:
    """The share at which a condition becomes true, from below: never above it."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return low
