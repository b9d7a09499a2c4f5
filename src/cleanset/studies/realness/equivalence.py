"""Equivalence by two one-sided tests: is an effect close enough to 0 to be irrelevant?

D. J. Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach for Assessing the
Equivalence of Average Bioavailability" (Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from scipy.stats import t

from cleanset.studies.realness.mixed import Effect

BOUND = 0.2
"""Largest difference that counts as equivalent, in steps of the scale, as published (arXiv 2507.07776)."""
ALPHA = 0.05
Bound = Annotated[float, Field(ge=0.001, le=4)]
Alpha = Annotated[float, Field(ge=0.0001, le=0.4999)]


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The two one-sided tests of an effect against -bound and +bound.

    `p_above_lower_bound`: p-value of the null hypothesis that the effect is at most -bound; `p_below_upper_bound`: that
    it is at least +bound; `p`: the larger of the two. The interval has the level 1 - 2 alpha: it is within the bounds
    exactly if the tests find equivalence.
    """

    bound: float
    alpha: float
    p_above_lower_bound: float
    p_below_upper_bound: float
    p: float
    interval: tuple[float, float]
    equivalent: bool


def equivalence(effect: Effect, bound: float = BOUND, alpha: float = ALPHA) -> Equivalence:
    """The two one-sided tests of an effect, with its degrees of freedom. Raises ValueError for a bound of 0 or less."""
    if bound <= 0 or not 0 < alpha < 0.5:
        raise ValueError(f"bound {bound}, alpha {alpha}; expected a bound above 0 and an alpha between 0 and 0.5")
    above = float(t.sf((effect.estimate + bound) / effect.standard_error, effect.degrees))
    below = float(t.sf((bound - effect.estimate) / effect.standard_error, effect.degrees))
    p = max(above, below)
    return Equivalence(
        bound=bound,
        alpha=alpha,
        p_above_lower_bound=above,
        p_below_upper_bound=below,
        p=p,
        interval=effect.interval(1 - 2 * alpha),
        equivalent=p < alpha,
    )
