"""Simulated people who rate images, for a pilot: how careful they are, what they answer, and how long they take.

The ratings of careful people follow the model of the analysis, with the variances of the published studies; all draws
depend on the seed and the person alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np

from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.realness.mixed import Variances
from cleanset.studies.realness.ratings import SCALE, SIDES

Manner = Literal["careful", "careless", "fast", "biased"]
"""careful: rates and passes all checks. careless: answers at random. fast: rates, in a second, and guesses at checks.
biased: gives the first answer to everything."""

TrialKind = Literal["image", "attention", "pair", "plate"]

MANNERS: tuple[Manner, ...] = (
    "careful", "careful", "careless", "careful", "careful", "fast", "careful", "careful", "biased", "careful",
)  # fmt: skip
"""Of ten people, in their order; the next ten are alike."""

SECONDS: Mapping[Manner, float] = {"careful": 6.0, "careless": 2.0, "fast": 1.0, "biased": 3.0}
"""Median time for an answer."""
SPREAD = 0.5
"""Standard deviation of the logarithm of the time."""
MEAN_RATING = 0.7
"""Of real images, as in the published studies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTrial:
    """A trial as a person sees it, and what a careful person sees in it."""

    kind: TrialKind
    stimulus: str
    truth: str = ""
    """Of an image, real or modified; of an attention check, the place of its answer in the scale, from 0; of a pair,
    the side of the modified image; of a plate, its digit or none."""


class SimulatedPerson:
    """A person of a pilot. `effect`: the mean rating of modified images minus that of real ones, -4 to 4."""

    def __init__(self, number: int, seed: int, *, effect: float, variances: Variances) -> None:
        self.number = number
        self.manner = MANNERS[number % len(MANNERS)]
        self.seed = seed
        self._variances = variances
        self._random = np.random.default_rng(change_seed(seed, "pilot", "person", number))
        slope = self._random.normal(0, variances.slope**0.5)
        self._means = {"real": MEAN_RATING, "modified": MEAN_RATING + effect + slope}
        self._own = self._random.normal(0, variances.person**0.5)

    def answer(self, trial: SeenTrial) -> tuple[int, float]:
        """The answer to a trial, as its place among the choices from 0, and the seconds that it takes."""
        seconds = float(self._random.lognormal(log(SECONDS[self.manner]), SPREAD))
        return self._choice(trial), seconds

    def _choice(self, trial: SeenTrial) -> int:
        choices = {"pair": len(SIDES), "plate": 10}.get(trial.kind, len(SCALE))
        guess = int(self._random.integers(choices))
        if self.manner == "biased":
            return 0
        if self.manner == "careless":
            return guess
        if trial.kind == "image":
            return self._rating(trial)
        is_right = self.manner == "careful" or trial.kind == "plate"
        return self._correct(trial) if is_right else guess

    def _correct(self, trial: SeenTrial) -> int:
        if trial.kind == "pair":
            return SIDES.index(trial.truth)
        if trial.kind == "plate":
            return 9 if trial.truth == "none" else int(trial.truth) - 1
        return int(trial.truth)

    def _rating(self, trial: SeenTrial) -> int:
        variances = self._variances
        of_image = np.random.default_rng(image_seed(change_seed(self.seed, "pilot", "image", 0), trial.stimulus))
        spread = variances.real if trial.truth == "real" else variances.modified
        mean = self._means[trial.truth] + self._own + of_image.normal(0, spread**0.5)
        drawn = round(float(self._random.normal(mean, variances.residual**0.5)))
        return SCALE.index(max(SCALE[0], min(SCALE[-1], drawn)))
