"""The level of every interval, and the types of its arrays."""

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""The confidence level of intervals and bounds."""
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
