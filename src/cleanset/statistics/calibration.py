"""Calibration: whether a model is correct as often as its confidences say, by bins of confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Floats, Ints

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


def debiased_calibration_error(bins: Sequence[ConfidenceBin]) -> float:
    """The ECE without what chance adds to it, 0 to 1; of at least one image.

    Few images make a gap between accuracy and confidence in every bin, even of a calibrated model: the plain ECE of 100
    images is some .03 to .11 too high. As A. Kumar, P. Liang and T. Ma ("Verified Uncertainty Calibration", NeurIPS
    2019) do, the mean distance that gaps of this size and noise would show is subtracted twice over. What is left of
    the bias is about half; bench/estimators.py has it. No interval comes with it.
    """
    filled = [(each, each.mean_confidence) for each in bins if each.mean_confidence is not None]
    images = np.array([each.images for each, _ in filled], np.float64)
    accuracies = np.array([each.correct / each.images for each, _ in filled])
    confidences = np.array([confidence for _, confidence in filled])
    # one image tells nothing of its variance: then that of a calibrated model
    varied = np.where(images > 1, accuracies * (1 - accuracies), confidences * (1 - confidences))
    variances = varied / np.maximum(images - 1, 1)
    distances = debiased_distances(accuracies - confidences, variances)
    return max(0.0, math.fsum(images * distances) / math.fsum(images))


def debiased_distances(gaps: Floats, variances: Floats) -> Floats:
    """The distances of gaps from 0, less what noise adds: 2 |gap| minus the mean of |x|, x normal around the gap."""
    deviations = np.sqrt(variances)
    is_noisy = deviations > 0
    scaled = np.abs(gaps) / np.where(is_noisy, deviations, 1)
    density = np.exp(-(scaled**2) / 2) * math.sqrt(2 / math.pi)
    inside = np.array([math.erf(each / math.sqrt(2)) for each in scaled])
    # the mean of a folded normal distribution
    expected = np.where(is_noisy, deviations * (density + scaled * inside), np.abs(gaps))
    found: Floats = 2 * np.abs(gaps) - expected
    return found
