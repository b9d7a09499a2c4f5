"""How many mistakes a defence makes among its most confident answers, as a run keeps it."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cleanset.statistics.coverage import Flags, Floats

Steps = list[tuple[int, int]]
"""Images answered and mistakes among them, the most confident first; from the last step on all are answered."""


def coverage_steps(correct: Flags, abstains: Flags, confidence: Floats | None = None) -> Steps:
    """The steps of a defence on a list of images, without those between which no mistake is made.

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
    """Coverage and accuracy, 0 to 1, of each number of answers that the steps tell."""
    found = []
    for before, (covered, mistakes) in pairwise([(0, 0), *steps]):
        first = before[0] + 1 if before[1] == mistakes else covered
        found += [(count / images, 1 - mistakes / count) for count in range(first, covered + 1)]
    return found
