"""Accuracy by model, scenario and class, and the robustness score of XIMAGENET-12.

Formulas: "XIMAGENET-12: An Explainable AI Benchmark Dataset for Model Robustness Evaluation", section 4 and table 3.
The text and the published numbers differ: the text takes standard deviations with n (`as_written`), table 3 follows
from variances with n - 1 (`as_published`).
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.sampled import DEFINITIONS, Definition, Sampled
from cleanset.validation import shown

Floats = npt.NDArray[np.float64]
Inner = Literal["classes", "trained"]
"""The inner part of the score: over classes (the text), or over models trained on each scenario (table 3)."""

CELL = ["model", "scenario", "class_index"]


def accuracy_by_cell(predictions: pd.DataFrame) -> pd.DataFrame:
    """Images, correct ones and accuracy by model, scenario and class_index, sorted; `correct` is a column of bools."""
    return accuracy_by(predictions, CELL)


def squared_deviations(accuracies: Floats, mu: float | Floats) -> Floats:
    """The squares of accuracies minus mu; accuracies have one axis more than mu, the last."""
    squares: Floats = (accuracies - np.asarray(mu, np.float64)[..., np.newaxis]) ** 2
    return squares


def class_squares(accuracies: Floats, mu: float | Floats) -> Floats:
    """The squared deviations by class of accuracies with classes and scenarios as the last axes: of scenario means."""
    return squared_deviations(accuracies.mean(axis=-1), mu)


def spread(squares: Floats, definition: Definition) -> Floats:
    """The spread of squared deviations on the last axis: sqrt(sum / n) `as_written`, sum / (n - 1) `as_published`.

    Raises CleansetError for an unknown definition, and for fewer than two values.
    """
    n = squares.shape[-1]
    if definition not in DEFINITIONS:
        raise CleansetError(f"score: found definition {shown(definition)}; expected {' or '.join(DEFINITIONS)}")
    if n < 2:
        raise CleansetError(f"score: found {n} accuracies to take a variance of; expected 2 or more; leave Score out")
    total = squares.sum(axis=-1)
    found: Floats = np.sqrt(total / n) if definition == "as_written" else total / (n - 1)
    return found


def score_of_squares(external: Floats, internal: Floats, definition: Definition) -> Floats:
    """Score of squared deviations, by scenario and of the inner part, each on the last axis: 1 - sum of both spreads.

    Axes in front of the last are bootstrap draws; Score's intervals are `reflected_interval`s.
    """
    scores: Floats = 1 - (spread(external, definition) + spread(internal, definition))
    return scores


def accuracy_by(predictions: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Images, correct ones and accuracy by the keys, sorted; `correct` is a column of bools."""
    grouped = predictions.groupby(keys, sort=True)["correct"]
    table = pd.DataFrame({"images": grouped.size(), "correct": grouped.sum().astype("int64")})
    table["accuracy"] = table["correct"] / table["images"]
    return table.reset_index()


def sampled_score(
    correct: npt.NDArray[np.bool_],
    unchanged: npt.NDArray[np.bool_],
    definition: Definition,
    resamples: Resamples,
    trained: tuple[Floats, float] | None = None,
) -> Sampled:
    """Score; `correct` is images x scenarios, `unchanged` by image, whose accuracy is mu.

    Accuracies by scenario are over all images, and not means of class means, as classes may differ in size. The inner
    part is over the means of each class's accuracies in the scenarios; or, given `trained`, over the accuracies of
    models that were trained on the scenarios, with their own mu. Those are of other images and not resampled.
    """
    mu, mus = float(unchanged.mean()), resamples.means(unchanged)
    if trained is None:
        classes = np.unique(resamples.classes)
        by_class = np.stack([correct[resamples.classes == each].mean(axis=0) for each in classes])
        inner, inners = class_squares(by_class, mu), class_squares(resamples.class_means(correct), mus)
    else:
        inner = squared_deviations(*trained)
        inners = inner[np.newaxis]
    value = score_of_squares(squared_deviations(correct.mean(axis=0), mu), inner, definition)
    draws = score_of_squares(squared_deviations(resamples.means(correct), mus), inners, definition)
    return Sampled(float(value), draws, shifted=True)
