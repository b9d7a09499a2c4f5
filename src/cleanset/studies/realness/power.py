"""How many people an equivalence test needs.

In a balanced study the effect is a difference of two means, and its variance is (Snijders and Bosker, "Multilevel
Analysis", 2nd ed. 2012, chapter 11, with images as a second, crossed factor)

    slope / people + residual * (1 / all real ratings + 1 / all modified ratings)
                   + real / real images + modified / modified images

An image counts as often as it is used at most: people cannot make up for few images. The power is that of two
one-sided tests with people - 1 degrees of freedom, from the t distribution around the true effect.
"""

import math
from dataclasses import dataclass

from cleanset.errors import CleansetError
from cleanset.studies.realness.equivalence import quantile, upper_tail
from cleanset.studies.realness.mixed import Variances

PUBLISHED = Variances(person=0.198, slope=0.376, covariance=-0.191, real=0.501, modified=0.143, residual=0.928)
"""The medians over the six published studies of different people (without cadv_4_6), each by `mixed.fit`."""
POWER = 0.8
MAX_PEOPLE = 100_000


@dataclass(frozen=True, slots=True)
class Design:
    """How many real and modified images there are, and how many of them each person rates."""

    real_images: int
    modified_images: int
    real_each: int
    modified_each: int


@dataclass(frozen=True, slots=True)
class Question:
    """The test that is planned: its bound and level, and the effect that is assumed to be true."""

    bound: float
    alpha: float
    effect: float = 0.0


def standard_error(people: int, design: Design, variances: Variances) -> float:
    """The standard error of the effect with so many people."""
    real, modified = people * design.real_each, people * design.modified_each
    ratings = variances.slope / people + variances.residual * (1 / real + 1 / modified)
    images = variances.real / min(real, design.real_images) + variances.modified / min(modified, design.modified_images)
    return math.sqrt(ratings + images)


def power(people: int, design: Design, variances: Variances, question: Question) -> float:
    """The probability, 0 to 1, that the tests find equivalence; `people` is at least 2."""
    error = standard_error(people, design, variances)
    critical, degrees = quantile(1 - question.alpha, people - 1), people - 1
    misses = (upper_tail((question.bound + side * question.effect) / error - critical, degrees) for side in (1, -1))
    return max(0.0, 1 - sum(misses))


def people_needed(design: Design, variances: Variances, question: Question, wished: float = POWER) -> int:
    """The least number of people with at least the wished power.

    Raises CleansetError where no number of people has it, because the images are too few or the effect is no less
    than the bound.
    """

    def enough(people: int) -> bool:
        return power(people, design, variances, question) >= wished

    if not enough(MAX_PEOPLE):
        raise CleansetError(
            f"the plan: even {MAX_PEOPLE:,} people who rate {design.real_images} real and {design.modified_images} "
            f"modified images have less than {100 * wished:g} % power for a bound of {question.bound:g}; "
            f"take more images or a wider bound"
        )
    low, high = 1, MAX_PEOPLE  # the power grows with the number of people
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
