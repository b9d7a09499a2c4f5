"""A row of the table: one measure beside the authors' program."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Row:
    """What was compared and by how much it differs.

    `beside`: the authors' program. `on`: what both were run on. `values`: compared numbers, of which `differing`
    differ; `largest`: the largest difference, in the unit of the values. `moves`: what the difference changes.
    """

    measure: str
    beside: str
    on: str
    values: int
    differing: int
    largest: float
    moves: str = ""


def compared(measure: str, beside: str, on: str, ours: np.ndarray, theirs: np.ndarray, moves: str = "") -> Row:
    """The row of two arrays of one shape."""
    if ours.shape != theirs.shape:
        raise ValueError(f"{measure}: {ours.shape} values of cleanset and {theirs.shape} of {beside}")
    difference = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    return Row(measure, beside, on, ours.size, int((difference > 0).sum()), float(difference.max()), moves)
