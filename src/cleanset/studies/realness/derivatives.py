"""Numerical derivatives of a function of several parameters."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STEP = 3e-4
"""Of the numerical derivatives: their error is of its square, the criterion's rounding is divided by that."""


def derivatives(function: Callable[[Floats], Floats], point: Floats) -> Floats:
    """Numerical derivatives, of second order: a row for each value of the function, a column for each parameter."""
    steps = np.eye(len(point)) * STEP
    return np.stack([function(point + step) - function(point - step) for step in steps], axis=1) / (2 * STEP)


def second_derivatives(function: Callable[[Floats], float], point: Floats) -> Floats:
    """The second derivatives of a function."""
    steps = np.eye(len(point)) * STEP
    middle = function(point)
    ends = [function(point + step) + function(point - step) - 2 * middle for step in steps]
    hessian = np.diag(ends)
    for row, column in combinations(range(len(point)), 2):
        both = steps[row] + steps[column]
        mixed = function(point + both) + function(point - both) - 2 * middle
        hessian[row, column] = hessian[column, row] = (mixed - ends[row] - ends[column]) / 2
    return np.asarray(hessian / STEP**2)
