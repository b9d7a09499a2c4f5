"""Bounds of the number of flawed images in a finite set, from draws without replacement.

A flawed image that is drawn is found with probability `sensitivity`, each independently of the others; a lower
sensitivity than the true one only raises a bound.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cleanset.statistics.basics import LEVEL, Floats

# above the error of a sum of probabilities, so that equal ones compare the same on every processor
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Draws:
    """`drawn` of the `images` of a set were looked at, and `found` of them were flawed.

    Raises ValueError unless 0 <= found <= drawn <= images.
    """

    images: int
    drawn: int
    found: int

    def __post_init__(self) -> None:
        if not 0 <= self.found <= self.drawn <= self.images:
            raise ValueError(f"{self.found} of {self.drawn} of {self.images}; expected found <= drawn <= images")


def fixed_bound(draws: Draws, level: float = LEVEL, sensitivity: float = 1.0) -> int:
    """The largest number of flawed images that is not refuted, for a number of draws that was fixed beforehand.

    Exact: the largest D for which finding no more than `found` has a probability above 1 - `level`, by the
    hypergeometric distribution, thinned by the sensitivity (J. P. Buonaccorsi, "A note on confidence intervals for
    proportions in finite populations", The American Statistician 41, 1987, for sensitivity 1). In whole images.
    """
    _check_finite(level, sensitivity)
    low = draws.found
    high = draws.images
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most_found(draws, middle, sensitivity) > 1 - level + _ROUNDING:
            low = middle
        else:
            high = middle - 1
    return low


def open_bound(draws: Draws, level: float = LEVEL, sensitivity: float = 1.0) -> int:
    """The largest number of flawed images that is not refuted, valid whenever one stops, for whatever reason.

    The largest D with an e-value below 1 / (1 - `level`): I. Waudby-Smith and A. Ramdas, "Confidence sequences for
    sampling without replacement" (NeurIPS 2020), with a mixture over fewer flawed images only, since an upper bound is
    wanted. By Ville's inequality no bound of the whole sequence is below the truth with probability `level` or more.
    """
    _check_finite(level, sensitivity)
    return int(np.flatnonzero(log_e_values(draws, sensitivity) < -np.log1p(-level))[-1])


def log_e_values(draws: Draws, sensitivity: float = 1.0) -> Floats:
    """The logarithm of the e-value against each number of flawed images, 0 to `images`.

    The likelihood of the draws under fewer flawed images, averaged by `_weights`, by that under this number: a test
    martingale in the number of draws. With a true sensitivity above the given one it stays below 1 on average,
    since the ratio falls with each image found (both distributions have a monotone likelihood ratio).
    """
    likelihood = _log_likelihoods(draws, sensitivity)
    fewer = np.logaddexp.accumulate(likelihood + _log_weights(draws.images))
    mixture = np.concatenate([[-np.inf], fewer[:-1]])
    # 0 / 0 is not evidence; any likelihood against an impossible number refutes that number
    with np.errstate(invalid="ignore"):
        ratio = mixture - likelihood
    ratio[np.isneginf(mixture) & np.isneginf(likelihood)] = -np.inf
    # fewer flawed images than were found
    ratio[: draws.found] = np.inf
    return ratio


def _check_finite(level: float, sensitivity: float) -> None:
    if not 0 < level < 1 or not 0 <= sensitivity <= 1:
        raise ValueError(f"level {level}, sensitivity {sensitivity}; expected shares, the level between 0 and 1")


@lru_cache(maxsize=8)
def _log_weights(images: int) -> Floats:
    """Half of the weight on no flawed image, the rest by 1 / D, so that each order of magnitude has as much."""
    weights = np.full(images + 1, 0.5)
    if images:
        weights[1:] = 1 / np.arange(1, images + 1)
        weights[1:] *= 0.5 / weights[1:].sum()
    logarithms: Floats = np.log(weights)
    return logarithms


def _log_likelihoods(draws: Draws, sensitivity: float) -> Floats:
    """The logarithm of the probability of finding as many, for each number of flawed images, 0 to `images`."""
    from scipy.stats import binom, hypergeom

    total = np.full(draws.images + 1, -np.inf)
    flawed = np.arange(draws.images + 1)
    # of draws in which nothing is missed, as many were flawed as were found
    most = draws.found if sensitivity == 1 else draws.drawn
    for flawed_drawn in range(draws.found, most + 1):
        found = binom.logpmf(draws.found, flawed_drawn, sensitivity)
        total = np.logaddexp(total, hypergeom.logpmf(flawed_drawn, draws.images, flawed, draws.drawn) + found)
    return total


def _at_most_found(draws: Draws, flawed: int, sensitivity: float) -> float:
    """The probability of finding at most `found` if `flawed` images of the set are flawed."""
    from scipy.stats import binom, hypergeom

    flawed_drawn = np.arange(draws.drawn + 1)
    drawn = hypergeom.pmf(flawed_drawn, draws.images, flawed, draws.drawn)
    return float(drawn @ binom.cdf(draws.found, flawed_drawn, sensitivity))
