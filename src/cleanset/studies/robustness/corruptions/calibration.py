"""Calibration of confidences under shift: expected calibration error (ECE) and negative log-likelihood (NLL).

`statistics.calibration` has the bins of ECE. How corruptions affect both: Y. Ovadia and others, "Can You Trust Your
Model's Uncertainty?" (NeurIPS 2019).
"""

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Floats
from cleanset.statistics.bootstrap import Resamples
from cleanset.statistics.calibration import CALIBRATION_BINS, bins_of, debiased_distances
from cleanset.studies.robustness.sampled import Sampled, constant

UNIT = 2**-20
"""Confidences and losses are rounded to multiples of it, so that sums have the same bytes on every machine."""


def gaps_by_bin(confidences: Floats, correct: npt.NDArray[np.bool_]) -> Floats:
    """By image and bin, the sum of confidence minus correctness over the image's answers: shape images x
    CALIBRATION_BINS.

    `confidences`, 0 to 1, and `correct` have the shape images x answers.
    """
    gaps = np.zeros((len(confidences), CALIBRATION_BINS))
    rows = np.arange(len(confidences))[:, np.newaxis]
    np.add.at(gaps, (rows, bins_of(confidences)), rounded(confidences) - correct)
    return gaps


def rounded(values: Floats) -> Floats:
    """The nearest multiples of UNIT."""
    found: Floats = np.rint(values / UNIT) * UNIT
    return found


def sampled_ece(confidences: Floats, correct: npt.NDArray[np.bool_], resamples: Resamples) -> Sampled:
    """ECE, 0 to 1, of all answers together: the gap between confidence and accuracy of a bin, weighted by its size.

    `confidences` and `correct` have the shape images x answers. Debiased, with the variance of each bin's gap over
    resamples: see `debiased_calibration_error`. It has no interval: none that was tried covers as often as it says.
    """
    gaps = gaps_by_bin(confidences, correct)
    answers = confidences.shape[1]
    variances = resamples.means(gaps).var(axis=0)
    distances = debiased_distances(gaps.sum(axis=0) / len(gaps), variances)
    # nine digits: machines add up fractions in another order
    return constant(float(f"{max(0.0, distances.sum() / answers):.9g}"), resamples)


def sampled_nll(losses: Floats, resamples: Resamples) -> Sampled:
    """Mean NLL in nats of answers of shape images x answers: minus the log-probability of the image's class."""
    totals = rounded(losses).sum(axis=1)
    answers = losses.shape[1]
    return Sampled(float(totals.sum() / losses.size), resamples.means(totals) / answers, by_image=totals / answers)
