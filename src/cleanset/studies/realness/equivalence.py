"""Two one-sided tests: is an effect so close to 0 that it makes no difference (D. J. Schuirmann, 1987)."""

import math
from dataclasses import dataclass

from scipy.stats import norm, t

from cleanset.studies.realness.mixed import Effect

BOUND = 0.2
"""Steps of the scale, as published (arXiv 2507.07776): what is within it makes no difference."""
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The two one-sided tests of an effect against -bound and +bound.

    `above`: p-value of the null hypothesis that the effect is at most -bound; `below`: that it is at least +bound. The
    interval has the level 1 - 2 alpha: it lies within the bounds exactly where the tests find equivalence.
    """

    bound: float
    alpha: float
    above: float
    below: float
    interval: tuple[float, float]

    @property
    def p(self) -> float:
        """The p-value of both, the larger one."""
        return max(self.above, self.below)

    @property
    def is_equivalent(self) -> bool:
        """Whether both null hypotheses are rejected."""
        return self.p < self.alpha


def equivalence(effect: Effect, bound: float = BOUND, alpha: float = ALPHA) -> Equivalence:
    """The two one-sided tests of an effect, with its degrees of freedom. Raises ValueError for a bound of 0 or less."""
    if bound <= 0 or not 0 < alpha < 0.5:
        raise ValueError(f"bound {bound}, alpha {alpha}; expected a bound above 0 and an alpha between 0 and 0.5")
    above = upper_tail((effect.estimate + bound) / effect.standard_error, effect.degrees)
    below = upper_tail((bound - effect.estimate) / effect.standard_error, effect.degrees)
    return Equivalence(bound, alpha, above, below, interval(effect, 1 - 2 * alpha))


def interval(effect: Effect, level: float) -> tuple[float, float]:
    """The confidence interval of an effect."""
    half = quantile((1 + level) / 2, effect.degrees) * effect.standard_error
    return effect.estimate - half, effect.estimate + half


def upper_tail(value: float, degrees: float) -> float:
    """The probability of more than `value` under Student's t, or under the normal for infinite degrees."""
    return float(norm.sf(value) if math.isinf(degrees) else t.sf(value, degrees))


def quantile(share: float, degrees: float) -> float:
    """The quantile of Student's t, or of the normal for infinite degrees."""
    return float(norm.ppf(share) if math.isinf(degrees) else t.ppf(share, degrees))
