"""The level of every interval, the quantiles of Student's t, and the types of arrays in statistics."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""The confidence level of intervals and bounds."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def t_quantile(share: float, degrees: int) -> float:
    """The quantile of Student's t, to .001 from 9 degrees of freedom on and shares of .025 to .975; without scipy.

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
