"""Two one-sided tests: is an effect so close to 0 that it makes no difference (D. J. Schuirmann, 1987)?

And how many people such a test needs.

In a balanced study the effect is a difference of two means, and its variance is (Snijders and Bosker, "Multilevel
Analysis", 2nd ed. 2012, chapter 11, with images as a second, crossed factor)

    slope / people + residual * (1 / all real ratings + 1 / all modified ratings)
                   + real / real images + modified / modified images

An image counts at most as often as it is used: many people cannot make up for few images. The power is that of two
one-sided tests with people - 1 degrees of freedom, from the t distribution around the true effect.
"""

import math
from dataclasses import dataclass

from scipy.stats import norm, t

from cleanset.errors import CleansetError
from cleanset.studies.realness.mixed import Effect, Variances

BOUND = 0.2
"""Largest difference that counts as equivalent, in steps of the scale, as published (arXiv 2507.07776)."""
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Equivalence:
    """The two one-sided tests of an effect against -bound and +bound.

    `above`: p-value of the null hypothesis that the effect is at most -bound; `below`: that it is at least +bound. The
    interval has the level 1 - 2 alpha: it lies within the bounds exactly if the tests find equivalence.
    """

    bound: float
    alpha: float
    above: float
    below: float
    interval: tuple[float, float]

    @property
    def p(self) -> float:
        """The larger of the two p-values."""
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


PUBLISHED = Variances(person=0.198, slope=0.376, covariance=-0.191, real=0.501, modified=0.143, residual=0.928)
"""The medians over the six published studies of different people (without cadv_4_6), each by `mixed.fit`."""
POWER = 0.8
MAX_PEOPLE = 100_000


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """Numbers of real and modified images, and how many of each one person rates."""

    real_images: int
    modified_images: int
    real_each: int
    modified_each: int


@dataclass(frozen=True, slots=True)
class EquivalenceQuestion:
    """A planned test: its bound and level, and the effect that is assumed to be true."""

    bound: float
    alpha: float
    effect: float = 0.0


def standard_error(people: int, design: StudyDesign, variances: Variances) -> float:
    """The standard error of the effect with a number of people."""
    real, modified = people * design.real_each, people * design.modified_each
    ratings = variances.slope / people + variances.residual * (1 / real + 1 / modified)
    images = variances.real / min(real, design.real_images) + variances.modified / min(modified, design.modified_images)
    return math.sqrt(ratings + images)


def power(people: int, design: StudyDesign, variances: Variances, question: EquivalenceQuestion) -> float:
    """The probability, 0 to 1, that the tests find equivalence; `people` is at least 2."""
    error = standard_error(people, design, variances)
    critical, degrees = quantile(1 - question.alpha, people - 1), people - 1
    misses = (upper_tail((question.bound + side * question.effect) / error - critical, degrees) for side in (1, -1))
    # in a study that is much too small both misses are likely, and their sum is above 1
    return max(0.0, 1 - sum(misses))


def people_needed(
    design: StudyDesign, variances: Variances, question: EquivalenceQuestion, wished: float = POWER
) -> int:
    """The smallest number of people with at least the wanted power.

    Raises CleansetError if no number of people is enough, because there are too few images or the effect is not
    smaller than the bound.
    """

    def enough(people: int) -> bool:
        return power(people, design, variances, question) >= wished

    if not enough(MAX_PEOPLE):
        raise CleansetError(
            f"the plan: even {MAX_PEOPLE:,} people who rate {design.real_images} real and {design.modified_images} "
            f"modified images have less than {100 * wished:g} % power for a bound of {question.bound:g}; "
            f"take more images or a wider bound"
        )
    # the power grows with the number of people
    low, high = 1, MAX_PEOPLE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
