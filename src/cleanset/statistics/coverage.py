"""Models that abstain: confidence, thresholds, accuracy over coverage, and eligibility for the contest.

`as_published` repeats the kit of Unrestricted Adversarial Examples (openphilanthropy/unrestricted-adversarial-examples,
eval_kit.py): images as confident as the last covered one are covered too, the number of images is truncated in floating
point, and a coverage of less than one image covers all of them. `plain` covers exactly the given share, rounded down.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from cleanset.errors import CleansetError
from cleanset.plumbing.validation import Section, shown
from cleanset.statistics.basics import Flags, Floats

if TYPE_CHECKING:
    import pandas as pd

Confidence = Literal["max_logit", "softmax", "margin", "energy"]
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
Ranking = Literal["as_published", "plain"]
ELIGIBLE_SHARE = Fraction(4, 5)
"""Share of the eligibility list that must be correct."""
MAX_ABSTAINING = Fraction(1, 5)
"""Maximum share of the eligibility list on which a model may abstain."""
CURVE_POINTS = 100


def confidences(answers: "pd.DataFrame", kind: Confidence) -> Floats:
    """The confidence of each answer, from the columns that are stored of its logits; higher is more confident.

    `max_logit`: the largest logit, as in the published kit. `softmax`: the top-1 class's probability, 0 to 1, from its
    log-odds, since the stored probability is rounded to 1 above log-odds of 17. `margin`: the largest logit less
    the second. `energy`: the log-sum-exp of all logits, which is minus the energy (W. Liu and others, "Energy-based
    Out-of-distribution Detection", 2020).
    """
    if kind == "max_logit":
        return _column(answers, "largest_logit")
    if kind == "softmax":
        # clipped, since exp overflows above 709
        probability: Floats = 1 / (1 + np.exp(-_column(answers, "log_odds").clip(-700)))
        return probability
    if kind == "margin":
        return _column(answers, "largest_logit") - _column(answers, "second_logit")
    return _column(answers, "log_sum_exp")


def _column(answers: "pd.DataFrame", name: str) -> Floats:
    return answers[name].to_numpy(np.float64)


def covered(confidence: Floats, names: Sequence[str], coverage: float, ranking: Ranking) -> Flags:
    """Flags of the images covered at a coverage of 0 to 1; `names` break the ties of `plain`, the lower first.

    Raises CleansetError for no image, a confidence that is NaN, or a coverage out of range.
    """
    _check(confidence, coverage)
    if ranking == "as_published":
        return _as_confident(confidence, int(coverage * len(confidence)))
    found = np.zeros(len(confidence), np.bool_)
    found[ranked(confidence, names)[: images_of(coverage, len(confidence))]] = True
    return found


def ranked(confidence: Floats, names: Sequence[str]) -> list[int]:
    """The places of the images, the most confident first, equal ones by name."""
    return sorted(range(len(confidence)), key=lambda place: (-confidence[place], names[place]))


def images_of(coverage: float, images: int) -> int:
    """The number of images in the share `coverage`, rounded down: .29 of 100 is 29, not 28."""
    # the share as a decimal: in floating point .29 * 100 is 28.999999999999996
    return int(Fraction(str(float(coverage))) * images)


def _as_confident(confidence: Floats, count: int) -> Flags:
    """Flags of the images as confident as the count-th; as the last for a count of 0, the published index being -1."""
    found: Flags = confidence >= np.sort(confidence)[::-1][count - 1]
    return found


def _check(confidence: Floats, coverage: float) -> None:
    if not len(confidence):
        raise CleansetError("coverage: no image; expected at least one")
    if np.isnan(confidence).any():
        raise CleansetError("coverage: a confidence is NaN; expected numbers: look at the model's answers")
    check_coverage(coverage)


def check_coverage(coverage: float) -> None:
    """Raise CleansetError for a coverage that is not a share."""
    if not 0 <= coverage <= 1:
        raise CleansetError(f"coverage: found {shown(coverage)}; expected a share from 0 to 1, such as 0.8")


def threshold(confidence: Floats, coverage: float, ranking: Ranking = "as_published") -> float:
    """The lowest confidence with which a model answers, set on clean images so that it covers the share `coverage`.

    Ties at the threshold are answered, so that more may be covered. Raises CleansetError as `covered` does, and where
    `plain` would abstain on every image.
    """
    _check(confidence, coverage)
    count = images_of(coverage, len(confidence)) if ranking == "plain" else int(coverage * len(confidence))
    if count == 0 and ranking == "plain":
        raise CleansetError(
            f"coverage: {shown(coverage)} of {len(confidence)} images covers none of them: the threshold would abstain "
            "on all; expected at least one image: raise the coverage"
        )
    return float(np.sort(confidence)[::-1][count - 1])


class AtCoverage(NamedTuple):
    """A model's mistakes and accuracy on the covered images; `accuracy` is None if no image is covered."""

    wished: float
    covered: int
    mistakes: int
    accuracy: float | None


def at_coverage(
    confidence: Floats, correct: Flags, names: Sequence[str], coverage: float, ranking: Ranking = "as_published"
) -> AtCoverage:
    """The accuracy of the covered images: 1 - mistakes / covered. Raises CleansetError as `covered` does."""
    inside = covered(confidence, names, coverage, ranking)
    count = int(inside.sum())
    mistakes = int((inside & ~correct).sum())
    return AtCoverage(coverage, count, mistakes, 1 - mistakes / count if count else None)


ImageCount = Annotated[int, Field(ge=0, le=1_000_000_000)]


class Eligibility(Section):
    """A model on the eligibility list of a contest (Unrestricted Adversarial Examples, section 4.2)."""

    images: Annotated[int, Field(ge=1, le=1_000_000_000)]
    correct: ImageCount
    mistakes: ImageCount

    @model_validator(mode="after")
    def _no_more_than_there_are(self) -> Self:
        if self.correct + self.mistakes > self.images:
            raise ValueError(
                f"{self.correct} correct and {self.mistakes} mistakes of {self.images} images; expected no more than "
                "there are"
            )
        return self

    @property
    def answers_enough(self) -> bool:
        """Whether the model abstains on at most 20 % of the list (appendix B.2)."""
        # exact, as the share of correct answers
        return Fraction(self.images - self.correct - self.mistakes, self.images) <= MAX_ABSTAINING

    @property
    def is_eligible(self) -> bool:
        """Whether the model answers enough, and at least 80 % of the list correctly; abstaining is incorrect."""
        return self.answers_enough and Fraction(self.correct, self.images) >= ELIGIBLE_SHARE


def eligibility(correct: Flags, abstains: Flags) -> Eligibility:
    """The eligibility of a model, from a value for each image of the list.

    `correct` counts only where the model does not abstain. Raises CleansetError for an empty list.
    """
    if not len(correct):
        raise CleansetError("eligibility list: no image; expected at least one")
    return Eligibility(
        images=len(correct), correct=int((correct & ~abstains).sum()), mistakes=int((~correct & ~abstains).sum())
    )
