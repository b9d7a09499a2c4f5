"""Error by corruption and severity, CE, mCE and relative CE (ImageNet-C).

Formulas: D. Hendrycks and T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (ICLR 2019). CE is a ratio of sums over the severities, not a mean of ratios. Every array has corruptions
and severities as its last two axes, so that bootstrap draws can be in front of them.

Calibration of confidences under shift: expected calibration error (ECE) and negative log-likelihood (NLL).

ECE: C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On Calibration of Modern Neural Networks" (ICML 2017), section 2,
with 15 bins of equal width. How corruptions affect both: Y. Ovadia and others, "Can You Trust Your Model's
Uncertainty?" (NeurIPS 2019).

Effective robustness: the accuracy under shift beyond what other models of the same clean accuracy have.

R. Taori and others, "Measuring Robustness to Natural Distribution Shifts in Image Classification" (NeurIPS 2020),
section 2: the accuracies of models without robustness measures lie on a line after a logit transformation of both; a
model's effective robustness is its accuracy under shift minus that of the line at its clean accuracy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.corruptions.params import ALL_CORRUPTIONS, CORRUPTIONS, SEVERITIES, corruptions_of
from cleanset.studies.robustness.sampled import Sampled

Floats = npt.NDArray[np.float64]

MIN_REFERENCE_ERRORS = 10
"""Errors of the reference over all severities of a corruption below which it has no CE."""

# all 50,000 validation images in the published JPEG files; from the README of hendrycks/robustness at commit 76d9393,
# since later versions only link a spreadsheet; by name, as lists of corruptions come in several orders
ALEXNET_ERRORS: dict[str, tuple[float, ...]] = {
    "gaussian_noise": (0.69528, 0.82542, 0.93554, 0.98138, 0.99452),
    "shot_noise": (0.71224, 0.85108, 0.93574, 0.98182, 0.99146),
    "impulse_noise": (0.78374, 0.89808, 0.94870, 0.98720, 0.99548),
    "defocus_blur": (0.65624, 0.73202, 0.85036, 0.91364, 0.94714),
    "glass_blur": (0.64308, 0.75054, 0.88806, 0.91622, 0.93344),
    "motion_blur": (0.58430, 0.70048, 0.82108, 0.89750, 0.92638),
    "zoom_blur": (0.70008, 0.76992, 0.80784, 0.84198, 0.87198),
    "snow": (0.71726, 0.88392, 0.86468, 0.91870, 0.94952),
    "frost": (0.61390, 0.79734, 0.88790, 0.89942, 0.93430),
    "fog": (0.67474, 0.76050, 0.84378, 0.87260, 0.94500),
    "brightness": (0.45140, 0.48502, 0.54048, 0.62166, 0.72440),
    "contrast": (0.64548, 0.76150, 0.88874, 0.97760, 0.99270),
    "elastic_transform": (0.52596, 0.70116, 0.55686, 0.64076, 0.80554),
    "pixelate": (0.52218, 0.54620, 0.73728, 0.87092, 0.91262),
    "jpeg_compression": (0.51002, 0.54718, 0.57294, 0.65458, 0.74778),
    "speckle_noise": (0.66192, 0.74440, 0.90246, 0.94548, 0.97268),
    "gaussian_blur": (0.54732, 0.70444, 0.82574, 0.89864, 0.95940),
    "spatter": (0.47196, 0.62194, 0.75052, 0.84132, 0.90182),
    "saturate": (0.59342, 0.65514, 0.51174, 0.70834, 0.82260),
}
"""AlexNet's top-1 errors at severities 1 to 5, by corruption; not every row increases with severity."""

ALEXNET_CLEAN_ERROR = 0.43478
"""AlexNet's error on the unchanged validation images: torchvision's weights, top-1 accuracy 56.522 %."""

# RobustBench, model_info/imagenet/corruptions/unaggregated_results.csv: 5,000 official images, all corruptions and
# severities; mCE recomputed from its accuracies, against AlexNet's in the same file
PUBLISHED_MODELS: dict[str, tuple[float, float]] = {
    "Tian2022Deeper_DeiT-B": (67.5544, 41.6951),
    "Tian2022Deeper_DeiT-S": (62.9051, 47.6145),
    "Erichson2022NoisyMix_new": (53.2840, 59.4280),
    "Hendrycks2020Many": (52.9048, 60.0374),
    "Erichson2022NoisyMix": (52.4696, 60.4575),
    "Hendrycks2020AugMix": (49.3285, 64.1742),
    "Geirhos2018_SIN_IN": (45.7584, 68.6734),
    "Geirhos2018_SIN_IN_IN": (42.0035, 73.1860),
    "Standard_R50": (39.4829, 76.3774),
    "Geirhos2018_SIN": (39.9248, 76.6713),
    "Salman2020Do_50_2_Linf": (36.0925, 80.0039),
    "AlexNet": (21.1181, 100.0),
}
"""Mean accuracy and mCE in percent, by RobustBench's name of the model, the best mCE first."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The model whose errors CE is relative to.

    `errors` has corruptions as its index and severities as its columns. `images` is the number of images that the
    errors are of, None for published errors. `clean_error` is needed by relative CE only.
    """

    name: str
    errors: pd.DataFrame
    clean_error: float | None = None
    images: int | None = None


@dataclass(frozen=True, slots=True)
class MeanCE:
    """A mean over corruptions, and the corruptions that it would need and that have no CE; then it is NaN."""

    value: float
    over: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def problem(self) -> str | None:
        """The reason why the mean is missing, as one line; None if it is not."""
        if not self.over:
            return "no mCE: no corruptions to take the mean over"
        if self.lacking:
            return f"no mCE: {len(self.lacking)} of {len(self.over)} corruptions have no CE: {', '.join(self.lacking)}"
        return None


ALEXNET = Reference(
    "alexnet",
    pd.DataFrame.from_dict(ALEXNET_ERRORS, orient="index", columns=list(SEVERITIES)),
    ALEXNET_CLEAN_ERROR,
)
"""The published errors of AlexNet."""


def error_table(
    misclassified: npt.NDArray[np.bool_], corruptions: Sequence[str], severities: Sequence[int]
) -> pd.DataFrame:
    """The error, 0 to 1, with corruptions as the index and severities as columns.

    `misclassified` has the shape images x corruptions x severities, with at least one image.
    """
    errors = misclassified.sum(axis=0, dtype=np.int64) / len(misclassified)
    return pd.DataFrame(errors, index=list(corruptions), columns=list(severities))


def ce(errors: Floats, reference: Floats) -> Floats:
    """CE of errors with corruptions and severities as the last two axes: ratio of the sums over the severities."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = errors.sum(axis=-1) / reference.sum(axis=-1)
    return ratio


def relative_ce(errors: Floats, clean: Floats, reference: Floats, reference_clean: Floats) -> Floats:
    """Relative CE: as CE, of the errors beyond those on clean images; `clean` has the errors' axes but the last two."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = _beyond(errors, clean) / _beyond(reference, reference_clean)
    return ratio


def corruption_errors(errors: pd.DataFrame, reference: Reference) -> pd.Series:
    """CE by corruption; NaN where the reference makes fewer than MIN_REFERENCE_ERRORS errors in all.

    Raises CleansetError unless both have the five severities, and the reference all the corruptions.
    """
    own, others = _matching(errors, reference)
    return _where_enough(ce(own, others), others.sum(axis=-1), errors, reference)


def relative_corruption_errors(errors: pd.DataFrame, clean_error: float, reference: Reference) -> pd.Series:
    """Relative CE by corruption; NaN where the reference makes fewer than MIN_REFERENCE_ERRORS errors more than clean.

    Raises CleansetError as `corruption_errors` does, and for a reference without an error on clean images.
    """
    own, others = _matching(errors, reference)
    if reference.clean_error is None:
        raise CleansetError(
            f"reference {reference.name}: found no error on clean images; expected one for relative CE; "
            "measure the reference on clean images"
        )
    clean, others_clean = np.float64(clean_error), np.float64(reference.clean_error)
    relative = relative_ce(own, np.asarray(clean), others, np.asarray(others_clean))
    return _where_enough(relative, _beyond(others, np.asarray(others_clean)), errors, reference)


def mean_corruption_error(errors: pd.Series, over: Sequence[str] = CORRUPTIONS) -> MeanCE:
    """mCE or relative mCE of CE by corruption: the mean over the 15 test corruptions, or those of `over`.

    NaN where one of them has no CE, or where `over` is empty.
    """
    values = errors.reindex(list(over))
    lacking = tuple(str(name) for name in values.index[values.isna()])
    value = float("nan") if lacking or not len(values) else float(values.mean())
    return MeanCE(value, tuple(over), lacking)


def unseen_corruptions(trained_on: Iterable[str]) -> tuple[str, ...]:
    """The test corruptions that a model was not trained on; `trained_on` names corruptions or groups.

    Raises CleansetError for a name that is neither.
    """
    seen = corruptions_of(trained_on)
    return tuple(name for name in CORRUPTIONS if name not in seen)


def _beyond(errors: Floats, clean: Floats) -> Floats:
    """The sum over the severities of the errors beyond the error on clean images."""
    beyond: Floats = errors.sum(axis=-1) - errors.shape[-1] * clean[..., np.newaxis]
    return beyond


def _matching(errors: pd.DataFrame, reference: Reference) -> tuple[Floats, Floats]:
    """The errors and the reference's of the same corruptions, with the five severities."""
    for name, table in (("errors", errors), (f"reference {reference.name}", reference.errors)):
        if sorted(int(each) for each in table.columns) != list(SEVERITIES):
            found = ", ".join(str(each) for each in table.columns) or "none"
            raise CleansetError(
                f"{name}: found severities {found}; expected 1 to 5 for CE; measure all five or leave CE out"
            )
    if absent := [name for name in errors.index if name not in reference.errors.index]:
        raise CleansetError(
            f"reference {reference.name}: found no errors of {', '.join(absent)}; expected those of every corruption "
            f"that has errors ({', '.join(n for n in ALL_CORRUPTIONS if n in reference.errors.index)}); "
            "measure the reference on them too"
        )
    columns = list(SEVERITIES)
    return errors[columns].to_numpy("float64"), reference.errors.loc[errors.index, columns].to_numpy("float64")


def _where_enough(values: Floats, sums: Floats, errors: pd.DataFrame, reference: Reference) -> pd.Series:
    """The values by corruption; NaN where the reference's errors, `sums` in shares, are too few images."""
    # sums of shares are whole numbers of images but for rounding
    few = np.rint(sums * reference.images) < MIN_REFERENCE_ERRORS if reference.images is not None else sums <= 0
    return pd.Series(np.where(few, np.nan, values), index=errors.index)


def sampled_ces(
    errors: Mapping[str, Sampled], reference: Mapping[str, Sampled], estimates: pd.Series
) -> dict[str, Sampled]:
    """CE by corruption of mean errors over the same severities, or of their differences to those on clean images.

    `estimates` are from `corruption_errors` or `relative_corruption_errors` and say, by NaN, which have none.
    """
    found = {name: errors[name] / reference[name] for name in errors}
    return {
        name: Sampled(float("nan"), np.full_like(each.draws, np.nan)) if np.isnan(estimates[name]) else each
        for name, each in found.items()
    }


BINS = 15
"""Bins of equal width; a confidence between two belongs to the lower one."""

UNIT = 2**-20
"""Confidences and losses are rounded to multiples of it, so that sums have the same bytes on every machine."""


def gaps_by_bin(confidences: Floats, correct: npt.NDArray[np.bool_]) -> Floats:
    """By image and bin, the sum of confidence minus correctness over the image's answers: shape images x BINS.

    `confidences`, 0 to 1, and `correct` have the shape images x answers.
    """
    bins = np.clip(np.ceil(confidences * BINS).astype(np.int64) - 1, 0, BINS - 1)
    gaps = np.zeros((len(confidences), BINS))
    np.add.at(gaps, (np.arange(len(confidences))[:, np.newaxis], bins), rounded(confidences) - correct)
    return gaps


def rounded(values: Floats) -> Floats:
    """The nearest multiples of UNIT."""
    found: Floats = np.rint(values / UNIT) * UNIT
    return found


def sampled_ece(confidences: Floats, correct: npt.NDArray[np.bool_], resamples: Resamples) -> Sampled:
    """ECE, 0 to 1, of all answers together: the gap between confidence and accuracy of a bin, weighted by its size.

    `confidences` and `correct` have the shape images x answers. Resampling makes gaps larger, so that the draws are
    reflected at the value, as the interval of Score is, and none is below 0.
    """
    gaps, answers = gaps_by_bin(confidences, correct), confidences.shape[1]
    value = np.abs(gaps.sum(axis=0)).sum() / (len(gaps) * answers)
    # bin by bin: numpy's sums of fractions depend on the processor
    draws = reduce(np.add, np.abs(resamples.means(gaps)).T)
    return Sampled(float(value), np.maximum(0, 2 * value - draws / answers))


def sampled_nll(losses: Floats, resamples: Resamples) -> Sampled:
    """Mean NLL in nats of answers of shape images x answers: minus the log-probability of the image's class."""
    totals, answers = rounded(losses).sum(axis=1), losses.shape[1]
    return Sampled(float(totals.sum() / losses.size), resamples.means(totals) / answers, by_image=totals / answers)


MIN_MODELS = 2
"""Models that a line needs, of different clean accuracy."""


def effective_robustness(
    clean: Sampled, shifted: Sampled, line: Sequence[tuple[Sampled, Sampled]], answers: tuple[int, int]
) -> Sampled:
    """Accuracy under shift minus that of the line, in shares, from errors; NaN where the line is not defined.

    `clean` and `shifted` are the model's errors, `line` those of the models that the line is fitted to. `answers`: how
    many answers a clean and a shifted error are of. An accuracy of 0 or 1, whose logit is infinite, is moved by half
    an answer.
    """
    value = _beyond_effective([each.value for each in (clean, shifted)], [[a.value, b.value] for a, b in line], answers)
    draws = _beyond_effective([each.draws for each in (clean, shifted)], [[a.draws, b.draws] for a, b in line], answers)
    return Sampled(float(value), draws)


def _beyond_effective(
    model: Sequence[npt.ArrayLike], line: Sequence[Sequence[npt.ArrayLike]], answers: tuple[int, int]
) -> Floats:
    errors = np.asarray(line, np.float64)  # models x (clean, shifted) x resamples
    own = np.asarray(model, np.float64)
    if len(errors) < MIN_MODELS:
        return np.full(own.shape[1:], np.nan)
    x, y = (_logits(errors[:, place], answers[place]) for place in (0, 1))
    centred = x - x.mean(axis=0)
    spread = (centred**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (centred * y).sum(axis=0) / np.where(spread > 0, spread, np.nan)
    expected = y.mean(axis=0) + slope * (_logits(own[0], answers[0]) - x.mean(axis=0))
    # rounded, since processors differ in the last digits of logarithms
    found: Floats = np.round((1 - own[1]) - 1 / (1 + np.exp(-expected)), 9)
    return found


def _logits(errors: Floats, answers: int) -> Floats:
    """The logits of the accuracies."""
    accuracies = np.clip(1 - errors, 0.5 / answers, 1 - 0.5 / answers)
    found: Floats = np.log(accuracies / (1 - accuracies))
    return found
