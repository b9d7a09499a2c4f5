"""A baseline that learns nothing but colors: logistic regression on a color histogram.

Source 004, appendix F, wants a task that cannot be solved without learning; where this baseline does well, it can.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError

BINS = 4
"""Of each of red, green and blue: 64 colors."""
PENALTY = 1e-3
"""Of the squared weights, per image: keeps them finite where colors alone separate the groups."""
FOLDS = 10
MAX_STEPS = 100
TOLERANCE = 1e-10

Floats = NDArray[np.float64]


def color_histogram(image: NDArray[np.uint8], bins: int = BINS) -> Floats:
    """The share of the pixels in each of `bins`^3 colors, from uint8 of shape (height, width, 3); their sum is 1."""
    levels = image.reshape(-1, 3).astype(np.int64) * bins // 256
    colors = (levels[:, 0] * bins + levels[:, 1]) * bins + levels[:, 2]
    return np.bincount(colors, minlength=bins**3) / len(colors)


@dataclass(frozen=True, slots=True)
class Logistic:
    """A logistic regression: its log-odds are linear in the features."""

    weights: Floats
    intercept: float

    def log_odds(self, features: Floats) -> Floats:
        """The log-odds of group 1, from features of shape (n, d)."""
        found: Floats = features @ self.weights + self.intercept
        return found


def fit(features: Floats, groups: NDArray[np.int64], penalty: float = PENALTY) -> Logistic:
    """The minimum of the mean negative log-likelihood + penalty / 2 * |weights|^2, by Newton's method.

    `features` of shape (n, d), `groups` 0 or 1 for each. Raises CleansetError if there are not images of both groups.
    """
    if set(groups.tolist()) != {0, 1}:
        raise CleansetError("color baseline: images of one group only; expected some of both: name more images")
    columns = np.column_stack([features, np.ones(len(features))])
    ridge = np.full(columns.shape[1], penalty)
    ridge[-1] = 0  # the intercept is free
    found = np.zeros(columns.shape[1])
    value = _loss(columns, groups, ridge, found)
    for _ in range(MAX_STEPS):
        probability = 1 / (1 + np.exp(-(columns @ found).clip(-700, 700)))
        gradient = columns.T @ (probability - groups) / len(columns) + ridge * found
        hessian = (columns.T * (probability * (1 - probability))) @ columns / len(columns) + np.diag(ridge)
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        while (next_value := _loss(columns, groups, ridge, found - step)) > value and np.abs(step).max() > TOLERANCE:
            step = step / 2  # a whole Newton step may overshoot
        found, value = found - step, next_value
        if np.abs(step).max() <= TOLERANCE:
            break
    return Logistic(found[:-1], float(found[-1]))


def _loss(columns: Floats, groups: NDArray[np.int64], ridge: Floats, at: Floats) -> float:
    log_odds = columns @ at
    return float((np.logaddexp(0, log_odds) - groups * log_odds).mean() + (ridge * at * at).sum() / 2)


def left_out_log_odds(features: Floats, groups: NDArray[np.int64], folds: int = FOLDS) -> Floats:
    """The log-odds of each image by a regression on the images outside its fold.

    Give the images sorted by name: within each group the first image goes to the first fold, the second to the second,
    and so on, so that nothing is drawn. Raises CleansetError as `fit` does, and for a group of fewer than two images.
    """
    if min(np.bincount(groups, minlength=2)[:2]) < 2:
        raise CleansetError("color baseline: a group of fewer than two images; expected two or more: name more images")
    fold = np.empty(len(groups), np.int64)
    for group in (0, 1):
        members = np.flatnonzero(groups == group)
        fold[members] = np.arange(len(members)) % folds
    found = np.empty(len(groups))
    for each in np.unique(fold):
        outside = fold != each
        found[~outside] = fit(features[outside], groups[outside]).log_odds(features[~outside])
    return found
