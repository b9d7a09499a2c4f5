"""Calibration: whether a model is correct as often as its confidences say, by bins of confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Flags, Floats, Ints

CALIBRATION_BINS = 15
"""Number of bins, all of the same width."""
BIN_EDGES = tuple(number / CALIBRATION_BINS for number in range(CALIBRATION_BINS + 1))


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """The images whose confidence is above `low` and at most at `high`."""

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


def calibration_bins(confidences: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[ConfidenceBin, ...]:
    """The bins with their images; `confidences` are from 0 to 1, and `correct` is of the same images."""
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
    """The expected calibration error (ECE), 0 to 1; needs at least one image.

    The mean distance of accuracy and mean confidence of the bins, weighted by their images: C. Guo et al., On
    Calibration of Modern Neural Networks (ICML 2017), equation 3.
    """
    means = ((each, each.mean_confidence) for each in bins)
    gaps = (abs(each.correct - each.images * mean) for each, mean in means if mean is not None)
    return math.fsum(gaps) / sum(each.images for each in bins)


def debiased_calibration_error(confidences: npt.ArrayLike, correct: npt.ArrayLike) -> float:
    """The ECE without what chance adds to it, 0 to 1; needs at least one image.

    `confidences`, 0 to 1, and `correct`: by image, or of the shape images x answers. Few images make a gap between
    accuracy and confidence in every bin, even of a calibrated model: the plain ECE of 100 images is some .03 to .11 too
    high. As A. Kumar, P. Liang and T. Ma ("Verified Uncertainty Calibration", NeurIPS 2019) do, the mean distance that
    gaps of this size and noise would show is subtracted twice over. What is left of the bias is about half;
    bench/estimators.py has it. No interval comes with it: none that was tried covers as often as it says.
    """
    values = np.asarray(confidences, np.float64)
    is_correct = np.asarray(correct, bool)
    filled = [
        (place, each, each.mean_confidence)
        for place, each in enumerate(calibration_bins(values.ravel(), is_correct.ravel()))
        if each.mean_confidence is not None
    ]
    counts = _counts_by_image(values)
    correct_counts = _counts_by_image(values, is_correct)
    variances = [
        accuracy_variance(counts[:, place], correct_counts[:, place], confidence) for place, _, confidence in filled
    ]
    gaps = [each.correct / each.images - confidence for _, each, confidence in filled]
    answers = np.array([each.images for _, each, _ in filled], np.float64)
    distances = debiased_distances(np.array(gaps), np.array(variances))
    return max(0.0, math.fsum(answers * distances) / math.fsum(answers))


def _counts_by_image(confidences: Floats, flags: Flags | None = None) -> Ints:
    """The number of answers of each image in each bin, or of those that are flagged: images x bins."""
    images = len(confidences)
    places = np.arange(images).repeat(confidences.size // images) * CALIBRATION_BINS + bins_of(confidences).ravel()
    weights = None if flags is None else flags.ravel()
    found = np.bincount(places, weights, minlength=images * CALIBRATION_BINS)
    return found.reshape(images, CALIBRATION_BINS).astype(np.int64)


def accuracy_variance(answers: Ints, correct: Ints, confidence: float) -> float:
    """The variance of the accuracy of a bin, from the numbers of answers and of correct ones of each image in it.

    The cluster-robust estimate of a ratio, m / (m - 1) sum over its m images of (correct - accuracy * answers)^2 / n^2
    of n answers (K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear models", 1986), as
    answers to one image are not independent. It is written as the variance of independent answers times the design
    effect (L. Kish, "Survey Sampling", 1965), which is exactly 1 of one answer an image. `confidence`: their mean.
    """
    images = int(np.count_nonzero(answers))
    if images == 1:
        # one image shows nothing of its variance: then that of a calibrated model
        return confidence * (1 - confidence)
    count = int(answers.sum())
    hits = int(correct.sum())
    if hits in (0, count):
        return 0.0
    # whole numbers: the sum of the squares times count^2
    squares = (
        count**2 * int(correct @ correct) - 2 * count * hits * int(answers @ correct) + hits**2 * int(answers @ answers)
    )
    design_effect = images * squares / (count**2 * hits * (count - hits))
    accuracy = hits / count
    return accuracy * (1 - accuracy) * design_effect / (images - 1)


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
