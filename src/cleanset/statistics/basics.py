"""Intervals and their level, the quantiles of Student's t, the order of counts, and the types of arrays."""

import math
import sys
from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Name = TypeVar("Name", bound=str)

LEVEL = 0.95
"""The confidence level of intervals and bounds."""
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Interval(NamedTuple):
    """The ends of an interval; NaN if the statistic is NaN in a resample."""

    low: float
    high: float


def most_first(counts: Mapping[Name, int]) -> dict[Name, int]:
    """Counts by name, the largest first; equal ones by name."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def positive_p(p: float) -> float:
    """A p-value that is never 0: the smallest normal number where floating point has none."""
    return max(p, sys.float_info.min)


def t_quantile(share: float, degrees: int) -> float:
    """The quantile of Student's t, to .001 for 9 or more degrees of freedom and shares of .025 to .975; without scipy.

    The expansion around the normal quantile of M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions"
    (1964), 26.7.5.
    """
    z = NormalDist().inv_cdf(share)
    terms: tuple[float, ...] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + math.fsum(term / degrees**power for power, term in enumerate(terms, start=1))
