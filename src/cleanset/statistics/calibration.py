"""Calibration: whether a model is correct as often as its confidences say, by bins of confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Ints

CALIBRATION_BINS = 15
"""Number of bins, all of the same width."""
BIN_EDGES = tuple(number / CALIBRATION_BINS for number in range(CALIBRATION_BINS + 1))


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """The images whose confidence lies above `low` and at most at `high`."""

    low: float
    """0 to 1; the first bin has the confidence 0, too."""

    high: float
    images: int
    correct: int
    mean_confidence: float | None
    """0 to 1; None without images."""


def bins_of(confidences: npt.ArrayLike) -> Ints:
    """The number of the bin of each confidence, 0 to 14; bins are open below and closed above, the first on both sides.

    Shape as given. Confidences of float32 are compared with edges in float64.
    """
    return np.digitize(np.asarray(confidences, np.float64), BIN_EDGES[1:-1], right=True).astype(np.int64)


def calibration_bins(confidences: Sequence[float], correct: Sequence[bool]) -> tuple[ConfidenceBin, ...]:
    """The bins with their images; `confidences` are from 0 to 1, and `correct` tells of the same images."""
    values = np.asarray(confidences, np.float64)
    is_correct = np.asarray(correct, bool)
    places = bins_of(values)
    found = []
    for number in range(CALIBRATION_BINS):
        inside = places == number
        images = int(inside.sum())
        found.append(
            ConfidenceBin(
                low=BIN_EDGES[number],
                high=BIN_EDGES[number + 1],
                images=images,
                correct=int(is_correct[inside].sum()),
                # fsum rounds once, so that the order of the images does not matter
                mean_confidence=math.fsum(values[inside]) / images if images else None,
            )
        )
    return tuple(found)


def calibration_error(bins: Sequence[ConfidenceBin]) -> float:
    """The expected calibration error (ECE), 0 to 1; of at least one image.

    The mean distance of accuracy and mean confidence of the bins, weighted by their images: C. Guo et al., On
    Calibration of Modern Neural Networks (ICML 2017), equation 3.
    """
    means = ((each, each.mean_confidence) for each in bins)
    gaps = (abs(each.correct - each.images * mean) for each, mean in means if mean is not None)
    return math.fsum(gaps) / sum(each.images for each in bins)
