"""What is read off a model's logits: the top-5 classes, their probabilities, the log-odds of the first."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOP = 5

Columns = dict[str, NDArray[Any]]
"""By the name of a table's column, a value or row for each of n images."""
ReadOff = Callable[[NDArray[np.float64]], Columns]
"""From logits of shape (n, classes) to columns; raises ValueError if a logit is not finite."""


class Ranked(NamedTuple):
    """The top-5 classes of n images and their probabilities, highest first, each (n, 5); log-odds of the first (n)."""

    classes: NDArray[np.int16]
    probabilities: NDArray[np.float32]
    log_odds: NDArray[np.float32]


def ranked(logits: NDArray[np.float64]) -> Ranked:
    """The top-5 classes by softmax probability, from logits of shape (n, classes).

    Of equal probabilities the lower class comes first. The log-odds of the top-1 class, log(p / (1 - p)), are its
    logit minus the logsumexp of the others: the same order as p, also where p rounds to 1. Raises ValueError if a
    logit is not finite.
    """
    if not np.isfinite(logits).all():
        raise ValueError("a logit is NaN or infinite")
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :TOP]
    return Ranked(
        order.astype(np.int16),
        np.take_along_axis(probabilities, order, axis=1).astype(np.float32),
        _log_odds(logits, order[:, :1]).astype(np.float32),
    )


def top5(logits: NDArray[np.float64]) -> Columns:
    """What `ranked` gives, as the columns of SCORES."""
    found = ranked(logits)
    return {"top5_class": found.classes, "top5_probability": found.probabilities, "log_odds": found.log_odds}


def _log_odds(logits: NDArray[np.float64], classes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The log-odds of one class of each image; `classes` of shape (n, 1)."""
    others = logits.copy()
    np.put_along_axis(others, classes, -np.inf, axis=1)
    largest = others.max(axis=1, keepdims=True)
    log_sum = largest + np.log(np.exp(others - largest).sum(axis=1, keepdims=True))
    difference: NDArray[np.float64] = (np.take_along_axis(logits, classes, axis=1) - log_sum)[:, 0]
    return difference


def log_odds_of(probabilities: NDArray[np.float32]) -> NDArray[np.float32]:
    """log(p / (1 - p)) of probabilities stored as float32, where no logits are known.

    What rounds to 1 gets the smallest log-odds that do, 17.33; what rounds to 0 the largest, -103.97.
    """
    exact = probabilities.astype(np.float64).clip(2.0**-150, 1 - 2.0**-25)
    found: NDArray[np.float32] = (np.log(exact) - np.log1p(-exact)).astype(np.float32)
    return found
