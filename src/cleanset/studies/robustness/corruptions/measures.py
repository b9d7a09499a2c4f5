"""Error by corruption and severity, CE, mCE and relative CE (ImageNet-C).

Formulas: D. Hendrycks and T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (ICLR 2019). CE is a ratio of sums over the severities, not a mean of ratios. Every array has corruptions
and severities as its last two axes, so that bootstrap draws can be in front of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.studies.robustness.corruptions.published import ALEXNET_CLEAN_ERROR, ALEXNET_ERRORS
from cleanset.studies.robustness.names import ALL_CORRUPTIONS, CORRUPTIONS, SEVERITIES, corruptions_of
from cleanset.studies.robustness.sampled import Sampled

Floats = npt.NDArray[np.float64]

MIN_REFERENCE_ERRORS = 10
"""Errors of the reference over all severities of a corruption below which it has no CE."""


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
