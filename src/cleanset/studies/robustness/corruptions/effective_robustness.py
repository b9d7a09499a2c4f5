"""Effective robustness: the accuracy under shift beyond that expected at the same clean accuracy.

R. Taori and others, "Measuring Robustness to Natural Distribution Shifts in Image Classification" (NeurIPS 2020),
section 2: the accuracies of models without robustness measures lie on a line after a logit transformation of both; a
model's effective robustness is its accuracy under shift minus the line's at its clean accuracy.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Floats
from cleanset.studies.robustness.sampled import Sampled

MIN_MODELS = 2
"""Models that a line needs, of different clean accuracy."""


def effective_robustness(
    clean: Sampled, shifted: Sampled, line: Sequence[tuple[Sampled, Sampled]], answers: tuple[int, int]
) -> Sampled:
    """Accuracy under shift minus the line's, in shares, from errors; NaN where the line is not defined.

    `clean` and `shifted` are the model's errors, `line` the errors of the models that the line is fitted to. `answers`:
    how many answers a clean and a shifted error are of. An accuracy of 0 or 1, whose logit is infinite, is moved by
    half an answer.
    """
    value = _beyond_effective([each.value for each in (clean, shifted)], [[a.value, b.value] for a, b in line], answers)
    draws = _beyond_effective([each.draws for each in (clean, shifted)], [[a.draws, b.draws] for a, b in line], answers)
    return Sampled(float(value), draws)


def _beyond_effective(
    model: Sequence[npt.ArrayLike], line: Sequence[Sequence[npt.ArrayLike]], answers: tuple[int, int]
) -> Floats:
    errors = np.asarray(line, np.float64)  # models x (clean, shifted) x resamples
    own = np.asarray(model, np.float64)
    if len(errors) < MIN_MODELS:
        return np.full(own.shape[1:], np.nan)
    x, y = (_logits(errors[:, place], answers[place]) for place in (0, 1))
    centred = x - x.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (centred * y).sum(axis=0) / np.where(spread > 0, spread, np.nan)
    expected = y.mean(axis=0) + slope * (_logits(own[0], answers[0]) - x.mean(axis=0))
    # rounded, since processors differ in the last digits of logarithms
    found: Floats = np.round((1 - own[1]) - 1 / (1 + np.exp(-expected)), 9)
    return found


def _logits(errors: Floats, answers: int) -> Floats:
    """The logits of the accuracies."""
    accuracies = np.clip(1 - errors, 0.5 / answers, 1 - 0.5 / answers)
    found: Floats = np.log(accuracies / (1 - accuracies))
    return found
