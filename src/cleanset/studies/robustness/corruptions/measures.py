"""Measures of every model on corrupted images, with intervals: error, CE, mCE and relative CE.

Formulas: D. Hendrycks and T. Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations" (ICLR 2019). CE is a ratio of sums over the severities, or of means over them, not a mean of ratios.
Confidences: ECE and negative log-likelihood (NLL) under shift, Y. Ovadia and others, "Can You Trust Your Model's
Uncertainty?" (NeurIPS 2019). Effective robustness: R. Taori and others, "Measuring Robustness to Natural Distribution
Shifts in Image Classification" (NeurIPS 2020), section 2: the accuracies of models without robustness measures are on a
line after a logit transformation of both; it is the accuracy under shift minus the line's at the model's clean
accuracy.

An image is misclassified where the model's top-1 class is not the class that the image has in the set.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.basics import Flags, Floats
from cleanset.statistics.bootstrap import Resamples
from cleanset.statistics.calibration import debiased_calibration_error
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.corruptions.params import (
    CORRUPTIONS,
    FURTHER_GROUPS,
    IMAGENET_C,
    NAMED_GROUPS,
    PUBLISHED_NUMBERS,
    PUBLISHED_REFERENCE,
    SEVERITIES,
    CorruptionMeasures,
    Corruptions,
    corruptions_of,
)
from cleanset.studies.robustness.results import FamilyStudy, shares
from cleanset.studies.robustness.sampled import (
    Sampled,
    constant,
    mean_of,
    ratio_to,
    sampled_means,
    undefined,
    undefined_names,
)
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED

ALEXNET_ERRORS: Mapping[str, Sequence[float]] = PUBLISHED_NUMBERS["alexnet_errors"]
"""AlexNet's top-1 errors at severities 1 to 5, by corruption; not every row increases with severity."""

ALEXNET_ERRORS_3DCC: Mapping[str, Sequence[float]] = PUBLISHED_NUMBERS["alexnet_errors_3dcc"]
"""The same of ImageNet-3DCC, on 5,000 images."""

PUBLISHED_ERRORS: Mapping[str, Sequence[float]] = {**ALEXNET_ERRORS, **ALEXNET_ERRORS_3DCC}
"""All published errors of AlexNet; none of ImageNet-C-bar's are."""

ALEXNET_CLEAN_ERROR = 0.43478
"""AlexNet's error on the unchanged validation images: torchvision's weights, top-1 accuracy 56.522 %."""


def relative_to(
    own: Mapping[str, Sampled], reference: Mapping[str, Sampled], answers: float, unchanged: Sequence[Sampled] = ()
) -> dict[str, Sampled]:
    """CE by corruption, of mean errors over the five severities; NaN if the reference makes too few errors.

    `answers`: how many answers a mean of the reference is of, infinitely many for published errors. `unchanged`: the
    errors on unchanged images, the model's and the reference's; with them it is relative CE, of the errors beyond.
    """
    if unchanged:
        own, reference = (
            {name: each[name] - null for name in own} for each, null in zip((own, reference), unchanged, strict=True)
        )
    return {name: ratio_to(reference[name], each, answers) for name, each in own.items()}


COMPARED = (
    "error",
    "group_error",
    "mean_error",
    "ce",
    "mce",
    "mce_c_bar",
    "mce_3dcc",
    "relative_mce",
    "mean_ece",
    "mean_nll",
    "effective_robustness",
)
"""The measures that models are compared by."""


@dataclass(frozen=True, eq=False)
class CorruptionStudy(FamilyStudy):
    """The answers of all models: for each whether it is wrong, 1 or 0, its confidence, 0 to 1, and the NLL in nats."""

    compared = COMPARED
    wanted: Corruptions
    measures: CorruptionMeasures

    def tables(self) -> dict[str, pd.DataFrame]:
        """The errors by severity and class."""
        cells = by_severity(self)
        return {"corruption_errors": cells, "errors_by_severity": shares(cells, "severity", "errors", "error")}

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """The errors of a model on the chosen images and, if all five severities were measured, CE."""
        for name in (CLEAN, UNCHANGED):
            yield self._null(role, name, chosen, resamples).named(f"error_{name}")
        errors = self._mean_errors(role, chosen, resamples)
        for name in self.wanted.names:
            yield errors[name].named("error", name)
        for group, members in NAMED_GROUPS.items():
            if set(members) <= set(self.wanted.names):
                yield mean_of(errors, members).named("group_error", group)
        yield mean_of(errors, self.wanted.names).named("mean_error")
        yield from self._calibration(role, chosen, resamples)
        if self.measures.line:
            yield self._effective_robustness(role, chosen, resamples)
        if self.measures.reference == PUBLISHED_REFERENCE and not self.images.classes.is_imagenet:
            problem = "no mCE without a reference: name a model in measures.corruptions.reference"
            yield from (undefined(name, problem, resamples) for name in self._mean_ces())
        elif tuple(self.wanted.severities) == SEVERITIES:
            yield from self._ratios(role, chosen, resamples, errors)
        else:
            found = ", ".join(map(str, self.wanted.severities))
            missing = ", ".join(str(each) for each in SEVERITIES if each not in self.wanted.severities)
            problem = f"no mCE: severities {found}; CE needs 1 to 5, and lacks {missing}"
            yield from (undefined(name, problem, resamples) for name in self._mean_ces())

    def _mean_ces(self) -> Iterator[str]:
        """The mean CE of each benchmark that some of the corruptions are of, if the reference has errors on it."""
        if set(IMAGENET_C) & set(self.wanted.names):
            yield "mce"
        for group, members in FURTHER_GROUPS.items():
            has_errors = self.measures.reference != PUBLISHED_REFERENCE or set(members) <= set(PUBLISHED_ERRORS)
            if has_errors and set(members) & set(self.wanted.names):
                yield f"mce_{group}"

    def _calibration(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """ECE and NLL on clean and unchanged images, by corruption, and their means over the corruptions."""
        answers = {name: each[chosen] for name, each in self.answers[role].items()}
        eces = {name: sampled_ece(each[..., 1], each[..., 0] == 0, resamples) for name, each in answers.items()}
        nlls = {name: sampled_nll(each[..., 2], resamples) for name, each in answers.items()}
        for name in (CLEAN, UNCHANGED):
            yield eces[name].named(f"ece_{name}")
            yield nlls[name].named(f"nll_{name}")
        for measure, values in (("ece", eces), ("nll", nlls)):
            for name in self.wanted.names:
                yield values[name].named(measure, name)
            yield mean_of(values, self.wanted.names).named(f"mean_{measure}")

    def wrong(self, role: str, chosen: Chosen) -> Flags:
        """Whether a model misclassifies the chosen images: images x corruptions x severities."""
        answers = self.answers[role]
        return np.stack([answers[name][chosen, :, 0] > 0 for name in self.wanted.names], axis=1)

    def _mean_errors(self, role: str, chosen: Chosen, resamples: Resamples) -> dict[str, Sampled]:
        """The mean error over the severities, by corruption."""
        wrong = self.wrong(role, chosen)
        # sums of whole numbers first: they are exact on any machine
        sums = sampled_means(
            wrong.sum(axis=2, dtype=np.int64), self.wanted.names, resamples, answers=role, largest=wrong.shape[2]
        )
        return {name: each.scaled(1 / wrong.shape[2]) for name, each in sums.items()}

    def _effective_robustness(self, role: str, chosen: Chosen, resamples: Resamples) -> Sampled:
        """The accuracy on corrupted images beyond what the line of the named models gives for the clean accuracy."""
        images = int(chosen.sum())
        cells = len(self.wanted.changes())
        line = self.measures.line

        def both(name: str) -> tuple[Sampled, Sampled]:
            mean = mean_of(self._mean_errors(name, chosen, resamples), self.wanted.names)
            return self._null(name, CLEAN, chosen, resamples), mean

        clean, corrupted = both(role)
        found = effective_robustness(clean, corrupted, [both(name) for name in line], (images, images * cells))
        problem = "" if np.isfinite(found.value) else f"the models of the line ({', '.join(line)}) give none"
        return found.named("effective_robustness", problem=problem)

    def _ratios(
        self, role: str, chosen: Chosen, resamples: Resamples, errors: Mapping[str, Sampled]
    ) -> Iterator[Sampled]:
        """CE by corruption, mCE of each benchmark, over those that the model was not trained on, relative mCE."""
        names = self.wanted.names
        reference = self.measures.reference
        if reference == PUBLISHED_REFERENCE:
            # NaN for the corruptions of ImageNet-C-bar, whose errors were not published
            means = {name: float(np.mean(PUBLISHED_ERRORS.get(name, np.nan))) for name in names}
            others = {name: constant(mean, resamples) for name, mean in means.items()}
            unchanged = constant(ALEXNET_CLEAN_ERROR, resamples)
            answers = np.inf
        else:
            others = self._mean_errors(reference, chosen, resamples)
            unchanged = self._null(reference, UNCHANGED, chosen, resamples)
            answers = int(chosen.sum()) * len(self.wanted.severities)
        ces = relative_to(errors, others, answers)
        for name, each in ces.items():
            problem = ""
            if undefined_names(ces, [name]):
                is_known = np.isfinite(others[name].value)
                problem = f"the reference {'makes too few errors' if is_known else 'has no published errors'}"
            yield each.named("ce", name, problem)
        for group, members in FURTHER_GROUPS.items():
            if f"mce_{group}" in self._mean_ces() and set(members) <= set(names):
                yield self._mean_ce(f"mce_{group}", ces, members, resamples)
        if not set(CORRUPTIONS) <= set(names):
            return
        seen = corruptions_of(self.measures.trained_on.get(role, ()))
        yield self._mean_ce("mce", ces, CORRUPTIONS, resamples)
        yield self._mean_ce("mce_unseen", ces, [name for name in CORRUPTIONS if name not in seen], resamples)
        nulls = self._null(role, UNCHANGED, chosen, resamples), unchanged
        relative = relative_to(errors, others, answers, nulls)
        yield self._mean_ce("relative_mce", relative, CORRUPTIONS, resamples, what="relative ")

    def _mean_ce(
        self, measure: str, ces: Mapping[str, Sampled], over: Sequence[str], resamples: Resamples, *, what: str = ""
    ) -> Sampled:
        """mCE, over the named corruptions, or the reason why it is undefined; `what`: a word before mCE and CE."""
        if not over:
            problem = f"no {what}mCE: no corruptions to take the mean over"
            return undefined(measure, problem, resamples)
        if lacking := undefined_names(ces, over):
            found = f"{len(lacking)} of {len(over)} corruptions have no {what}CE: {', '.join(lacking)}"
            problem = f"no {what}mCE: {found}"
            return undefined(measure, problem, resamples)
        return mean_of(ces, over).named(measure)

    def _null(self, role: str, name: str, chosen: Chosen, resamples: Resamples) -> Sampled:
        """The error on clean or unchanged images."""
        values = self.answers[role][name][chosen, :, 0]
        # a name of its own: in relative CE the same pseudo-images would cancel
        return sampled_means(values, [name], resamples, answers=f"{role} {name}")[name]


def by_severity(study: CorruptionStudy) -> pd.DataFrame:
    """The misclassified images by model, corruption, severity and class, of the first of the study's selections."""
    images = study.images
    wanted = study.wanted
    parts = []
    classes, places = np.unique(images.class_indices, return_inverse=True)
    for role in study.answers:
        chosen = images.of_first(role)
        errors = np.zeros((len(classes), len(wanted.names), len(wanted.severities)), np.int64)
        # add.at, since `errors[places] += …` counts a class that comes twice only once
        np.add.at(errors, places[chosen], study.wrong(role, chosen))
        cells = pd.MultiIndex.from_product(
            [[role], classes, wanted.names, wanted.severities], names=["model", "class_index", "change", "severity"]
        ).to_frame(index=False)
        counts = np.bincount(places[chosen], minlength=len(classes))
        cells["images"] = np.repeat(counts, errors[0].size)
        cells["errors"] = errors.ravel()
        parts.append(cells[["model", "change", "severity", "class_index", "images", "errors"]])
    return pd.concat(parts, ignore_index=True)


UNIT = 2**-20
"""Confidences and losses are rounded to multiples of it, so that sums have the same bytes on every machine."""


def rounded(values: Floats) -> Floats:
    """The nearest multiples of UNIT."""
    found: Floats = np.rint(values / UNIT) * UNIT
    return found


def sampled_ece(confidences: Floats, correct: Flags, resamples: Resamples) -> Sampled:
    """Debiased ECE, 0 to 1, of all answers together, which have the shape images x answers; without an interval."""
    found = debiased_calibration_error(rounded(confidences), correct)
    # nine digits: machines differ in the last digits of exponentials
    return constant(float(f"{found:.9g}"), resamples)


def sampled_nll(losses: Floats, resamples: Resamples) -> Sampled:
    """Mean NLL in nats of answers of shape images x answers: minus the log-probability of the image's class."""
    totals = rounded(losses).sum(axis=1)
    answers = losses.shape[1]
    return Sampled(float(totals.sum() / losses.size), resamples.means(totals) / answers, by_image=totals / answers)


MIN_MODELS = 2
"""Models that a line needs, of different clean accuracy."""


def effective_robustness(
    clean: Sampled, shifted: Sampled, line: Sequence[tuple[Sampled, Sampled]], answers: tuple[int, int]
) -> Sampled:
    """Accuracy under shift minus the line's, in shares, from errors; NaN if the line is not defined.

    `clean` and `shifted` are the model's errors, `line` the errors of the models that the line is fitted to. `answers`:
    how many answers a clean and a shifted error are of. An accuracy of 0 or 1, whose logit is infinite, is moved by
    half an answer.
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
