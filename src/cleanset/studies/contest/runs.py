"""A run of a defence, checked on reading, and how many mistakes it makes among its most confident answers."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from cleanset.statistics.coverage import Eligibility, Flags, Floats
from cleanset.studies.contest.days import Day
from cleanset.studies.contest.entries import Count, DefenceName, Text
from cleanset.studies.contest.rules import Name
from cleanset.validation import Section, Sha256


class EligibilityFigures(Section):
    """Counts of a defence on an eligibility list, as in `coverage.Eligibility`."""

    images: Annotated[int, Field(ge=1, le=1_000_000_000)]
    correct: Count
    mistakes: Count
    mistakes_at_80: Count

    @model_validator(mode="after")
    def _no_more_than_there_are(self) -> Self:
        if self.correct + self.mistakes > self.images or self.mistakes_at_80 > self.mistakes:
            raise ValueError(
                f"{self.correct} correct, {self.mistakes} mistakes, {self.mistakes_at_80} of them at 80 %, of "
                f"{self.images} images; expected no more than there are"
            )
        return self

    def eligibility(self) -> Eligibility:
        return Eligibility(self.images, self.correct, self.mistakes, self.mistakes_at_80)


class UnpublishedFigures(EligibilityFigures):
    """Counts on an unpublished list; `list_sha256` is the list's digest, which tells nothing of its images."""

    list_sha256: Sha256


class WarningSign(Section):
    """A sign that a defence only looks strong, with its evidence as a sentence."""

    sign: Name
    text: Text


CoverageStep = Annotated[list[Count], Field(min_length=2, max_length=2)]


class DefenceRun(Section):
    """All of results/runs/<team>/<name>/<date>.json: one run of a defence over every submitted image.

    `digest`: of defence.yaml and its files, as in the stake; `model`: of the model's entry in the edition's
    params.yaml. `answers`: by SHA-256 of the image, the name of a group or `abstain`. `unpublished`: the same as
    `eligibility` on a second list. `coverage`: the result of `coverage_steps`. `confined`: whether a command saw
    nothing but its files and the images; None for a model. `signs`: found in a model's answers and gradients; None for
    a command.
    """

    defence: DefenceName
    date: Day
    digest: Sha256
    model: Sha256 | None = None
    confined: bool | None = None
    images_per_minute: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    eligibility: EligibilityFigures
    unpublished: UnpublishedFigures | None = None
    coverage: list[CoverageStep] | None = None
    signs: list[WarningSign] | None = None
    answers: dict[Sha256, Name]

    @model_validator(mode="after")
    def _steps_that_end_at_all_answers(self) -> Self:
        if self.coverage is None:
            return self
        last, found = [0, 0], self.eligibility
        for step in self.coverage:
            # mistakes are among the images answered: they cannot grow faster than these
            if step[0] <= last[0] or not last[1] <= step[1] <= last[1] + step[0] - last[0]:
                raise ValueError(f"coverage: {step} after {last}; expected more images, and no more mistakes than they")
            last = step
        if last != [found.correct + found.mistakes, found.mistakes]:
            raise ValueError(f"coverage: ends at {last}; expected all answers and mistakes of eligibility")
        return self


CoverageSteps = list[tuple[int, int]]
"""Images answered and mistakes among them, the most confident first; the last step has all answers."""


def coverage_steps(correct: Flags, abstains: Flags, confidence: Floats | None = None) -> CoverageSteps:
    """The steps of a defence on a list of images; steps inside a stretch without mistakes are left out.

    `correct` counts only where the defence does not abstain. Equally confident answers are one step, so that the order
    of the list decides nothing; without `confidence` all are. Empty where the defence abstains on everything.
    """
    ranked = np.zeros(len(correct)) if confidence is None else confidence.astype(np.float64)
    answered, mistakes = ranked[~abstains], ~correct[~abstains]
    steps = [
        (int((answered >= each).sum()), int(mistakes[answered >= each].sum())) for each in np.unique(answered)[::-1]
    ]
    around = zip([(0, 0), *steps], steps, [*steps[1:], None], strict=False)
    return [step for before, step, after in around if after is None or not before[1] == step[1] == after[1]]


def points(steps: Sequence[tuple[int, int]], images: int) -> list[tuple[float, float]]:
    """Coverage and accuracy, 0 to 1, for each number of answers that the steps determine."""
    found = []
    for before, (covered, mistakes) in pairwise([(0, 0), *steps]):
        first = before[0] + 1 if before[1] == mistakes else covered
        found += [(count / images, 1 - mistakes / count) for count in range(first, covered + 1)]
    return found
