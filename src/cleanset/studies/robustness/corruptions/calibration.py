"""Calibration of confidences under shift: expected calibration error (ECE) and negative log-likelihood (NLL).

How corruptions affect both: Y. Ovadia and others, "Can You Trust Your
Model's Uncertainty?" (NeurIPS 2019).
"""

import numpy as np
import numpy.typing as npt

from cleanset.statistics.basics import Floats
from cleanset.statistics.bootstrap import Resamples
from cleanset.statistics.calibration import debiased_calibration_error
from cleanset.studies.robustness.sampled import Sampled, constant

UNIT = 2**-20
"""Confidences and losses are rounded to multiples of it, so that sums have the same bytes on every machine."""


def rounded(values: Floats) -> Floats:
    """The nearest multiples of UNIT."""
    found: Floats = np.rint(values / UNIT) * UNIT
    return found


def sampled_ece(confidences: Floats, correct: npt.NDArray[np.bool_], resamples: Resamples) -> Sampled:
    """Debiased ECE, 0 to 1, of all answers together, which have the shape images x answers; without an interval."""
    found = debiased_calibration_error(rounded(confidences), correct)
    # nine digits: machines differ in the last digits of exponentials
    return constant(float(f"{found:.9g}"), resamples)


def sampled_nll(losses: Floats, resamples: Resamples) -> Sampled:
    """Mean NLL in nats of answers of shape images x answers: minus the log-probability of the image's class."""
    totals = rounded(losses).sum(axis=1)
    answers = losses.shape[1]
    return Sampled(float(totals.sum() / losses.size), resamples.means(totals) / answers, by_image=totals / answers)
