"""The bins of confidence of the expected calibration error (ECE).

C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On Calibration of Modern Neural Networks" (ICML 2017), equation 3, with
15 bins of equal width.
"""

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Ints

CALIBRATION_BINS = 15
"""Bins of confidence, all of the same width."""

BIN_EDGES = tuple(number / CALIBRATION_BINS for number in range(CALIBRATION_BINS + 1))
"""The ends of the bins, from 0 to 1."""


def bins_of(confidences: npt.ArrayLike) -> Ints:
    """The bin of each confidence, 0 to 1, from 0: a bin is open below and closed above, and the first has 0, too."""
    # float32 confidences are compared with edges in float64
    found: Ints = np.digitize(np.asarray(confidences, np.float64), BIN_EDGES[1:-1], right=True).astype(np.int64)
    return found
