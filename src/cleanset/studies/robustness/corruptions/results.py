"""Measures of every model on corrupted images, with intervals.

An image is misclassified where the model's top-1 class is not the class that the image has in the set.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.corruptions.measures import (
    Reference,
    alexnet,
    corruption_errors,
    effective_robustness,
    mce_problem,
    relative_corruption_errors,
    sampled_ece,
    sampled_nll,
)
from cleanset.studies.robustness.corruptions.params import (
    CORRUPTIONS,
    NAMED_GROUPS,
    PUBLISHED_REFERENCE,
    SEVERITIES,
    CorruptionMeasures,
    Corruptions,
    corruptions_of,
)
from cleanset.studies.robustness.results import (
    CLEAN,
    UNCHANGED,
    Chosen,
    FamilyStudy,
    Sampled,
    SampledMeasure,
    SeenAnswers,
    StudiedImages,
    cube,
    mean_of,
    over_all_images,
    sampled_means,
    shares,
    undefined_measure,
    undefined_names,
)
from cleanset.vocabulary import classes_in_use

Misclassified = npt.NDArray[np.bool_]

COMPARED = (
    "error",
    "group_error",
    "mean_error",
    "ce",
    "mce",
    "relative_mce",
    "mean_ece",
    "mean_nll",
    "effective_robustness",
)
"""The measures that models are compared by."""


@dataclass(frozen=True, slots=True, eq=False)
class Certainty:
    """One model's confidences or losses: images x corruptions x severities; `nulls` as those of CorruptionAnswers."""

    corrupted: npt.NDArray[np.float64]
    nulls: Mapping[str, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class CorruptionAnswers:
    """One model's misclassified images: images x corruptions x severities; `nulls` by CLEAN and UNCHANGED: images.

    `confidences`: those of the predictions, 0 to 1; `losses`: the NLL in nats; None: not known.
    """

    corrupted: Misclassified
    nulls: Mapping[str, Misclassified]
    confidences: Certainty | None = None
    losses: Certainty | None = None


@dataclass(frozen=True, eq=False)
class CorruptionStudy(FamilyStudy):
    """The answers of all models, and the reference that CE is relative to.

    `reference`: the published table or a role; `trained_on`: by role, corruptions or groups; `line`: the models that
    effective robustness is relative to.
    """

    compared = COMPARED
    corruptions: Sequence[str]
    severities: Sequence[int]
    answers: Mapping[str, CorruptionAnswers]
    reference: str
    trained_on: Mapping[str, Sequence[str]]
    line: Sequence[str] = ()

    def tables(self) -> dict[str, pd.DataFrame]:
        """The errors by severity and class."""
        cells = by_severity(self)
        return {"corruption_errors": cells, "errors_by_severity": shares(cells, "severity", "errors", "error")}

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[SampledMeasure]:
        """The errors of a model on the chosen images and, if all five severities were measured, CE."""
        for name in (CLEAN, UNCHANGED):
            yield SampledMeasure(f"error_{name}", "", self._null(role, name, chosen, resamples))
        errors = self._mean_errors(role, chosen, resamples)
        for name in self.corruptions:
            yield SampledMeasure("error", name, errors[name])
        for group, members in NAMED_GROUPS.items():
            if set(members) <= set(self.corruptions):
                yield SampledMeasure("group_error", group, mean_of(errors, members))
        yield SampledMeasure("mean_error", "", mean_of(errors, self.corruptions))
        yield from self._calibration(role, chosen, resamples)
        if self.line:
            yield self._effective_robustness(role, chosen, resamples)
        if self.reference == PUBLISHED_REFERENCE and not classes_in_use().is_imagenet:
            problem = "no mCE without a reference: name a model in measures.corruptions.reference"
            yield undefined_measure("mce", "", problem, resamples)
        elif tuple(self.severities) == SEVERITIES:
            yield from self._ratios(role, chosen, resamples, errors)
        else:
            found = ", ".join(map(str, self.severities))
            yield undefined_measure("mce", "", f"no mCE: severities {found}; CE needs 1 to 5", resamples)

    def _calibration(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[SampledMeasure]:
        """ECE and NLL on clean and unchanged images, by corruption, and their means over the corruptions."""
        answers = self.answers[role]
        confidences, losses = answers.confidences, answers.losses
        if confidences is None or losses is None:
            return
        for name in (CLEAN, UNCHANGED):
            sure, wrong = confidences.nulls[name][chosen, np.newaxis], answers.nulls[name][chosen, np.newaxis]
            yield SampledMeasure(f"ece_{name}", "", sampled_ece(sure, ~wrong, resamples))
            yield SampledMeasure(f"nll_{name}", "", sampled_nll(losses.nulls[name][chosen, np.newaxis], resamples))
        wrong = answers.corrupted[chosen]
        found: dict[str, dict[str, Sampled]] = {"ece": {}, "nll": {}}
        for place, name in enumerate(self.corruptions):
            sure = confidences.corrupted[chosen, place]
            found["ece"][name] = sampled_ece(sure, ~wrong[:, place], resamples)
            found["nll"][name] = sampled_nll(losses.corrupted[chosen, place], resamples)
        for measure, values in found.items():
            for name, each in values.items():
                yield SampledMeasure(measure, name, each)
            yield SampledMeasure(f"mean_{measure}", "", mean_of(values, self.corruptions))

    def _mean_errors(self, role: str, chosen: Chosen, resamples: Resamples) -> dict[str, Sampled]:
        """The mean error over the severities, by corruption."""
        wrong = self.answers[role].corrupted[chosen]
        # sums of whole numbers first: they are exact on any machine
        sums = sampled_means(wrong.sum(axis=2, dtype=np.int64), self.corruptions, resamples, role, wrong.shape[2])
        return {name: each.scaled(1 / wrong.shape[2]) for name, each in sums.items()}

    def _effective_robustness(self, role: str, chosen: Chosen, resamples: Resamples) -> SampledMeasure:
        """The accuracy on corrupted images beyond what the line of the named models gives for the clean accuracy."""
        images, cells = int(chosen.sum()), len(self.corruptions) * len(self.severities)

        def both(name: str) -> tuple[Sampled, Sampled]:
            mean = mean_of(self._mean_errors(name, chosen, resamples), self.corruptions)
            return self._null(name, CLEAN, chosen, resamples), mean

        clean, corrupted = both(role)
        found = effective_robustness(clean, corrupted, [both(name) for name in self.line], (images, images * cells))
        problem = "" if np.isfinite(found.value) else f"the models of the line ({', '.join(self.line)}) give none"
        return SampledMeasure("effective_robustness", "", found, problem)

    def _ratios(
        self, role: str, chosen: Chosen, resamples: Resamples, errors: Mapping[str, Sampled]
    ) -> Iterator[SampledMeasure]:
        """CE by corruption, mCE over the 15 and over those that the model was not trained on, relative mCE."""
        reference = self._reference(chosen, resamples)
        ces = corruption_errors(errors, reference)
        for name, each in ces.items():
            problem = ""
            if undefined_names(ces, [name]):
                is_known = np.isfinite(reference.errors[name].value)
                problem = f"the reference {'makes too few errors' if is_known else 'has no published errors'}"
            yield SampledMeasure("ce", name, each, problem)
        if not set(CORRUPTIONS) <= set(self.corruptions):
            return
        seen = corruptions_of(self.trained_on.get(role, ()))
        yield self._mean_ce("mce", ces, CORRUPTIONS, resamples)
        yield self._mean_ce("mce_unseen", ces, [name for name in CORRUPTIONS if name not in seen], resamples)
        relative = relative_corruption_errors(errors, self._null(role, UNCHANGED, chosen, resamples), reference)
        yield self._mean_ce("relative_mce", relative, CORRUPTIONS, resamples)

    def _mean_ce(
        self, measure: str, ces: Mapping[str, Sampled], over: Sequence[str], resamples: Resamples
    ) -> SampledMeasure:
        """mCE, over the named corruptions, or the reason why it is undefined."""
        if problem := mce_problem(ces, over):
            return undefined_measure(measure, "", problem, resamples)
        return SampledMeasure(measure, "", mean_of(ces, over))

    def _reference(self, chosen: Chosen, resamples: Resamples) -> Reference:
        """The reference's errors on the chosen images, or the published ones."""
        if self.reference == PUBLISHED_REFERENCE:
            return alexnet(self.corruptions, resamples)
        errors = self._mean_errors(self.reference, chosen, resamples)
        unchanged = self._null(self.reference, UNCHANGED, chosen, resamples)
        return Reference(errors, unchanged, int(chosen.sum()) * len(self.severities))

    def _null(self, role: str, name: str, chosen: Chosen, resamples: Resamples) -> Sampled:
        """The error on clean or unchanged images."""
        values = self.answers[role].nulls[name][chosen][:, np.newaxis]
        # a name of its own: in relative CE the same pseudo-images would cancel
        return sampled_means(values, [name], resamples, f"{role} {name}")[name]


def read_study(
    wanted: Corruptions, measures: CorruptionMeasures, answers: SeenAnswers, images: StudiedImages
) -> CorruptionStudy:
    """The corruptions of the params, with the answers to them."""
    names, severities = corruptions_of(wanted.names), wanted.sorted_severities()
    found = {
        name: read_answers(seen_images, predictions, names, severities, seen)
        for name, seen, seen_images, predictions in answers
    }
    return CorruptionStudy(images, names, severities, found, measures.reference, measures.trained_on, measures.line)


def read_answers(
    images: pd.DataFrame,
    predictions: pd.DataFrame,
    corruptions: Sequence[str],
    severities: Sequence[int],
    seen: Chosen,
) -> CorruptionAnswers:
    """The misclassified images of a model, from rows of STUDY_IMAGES that it saw and of PREDICTIONS.

    `seen`: which of all images it saw; the others count as not misclassified. Raises CleansetError if a row is missing,
    there twice, or of another image.
    """
    classes = dict(zip(images["file"], images["class_index"], strict=True))
    # the loss of a float32 that is rounded up may be a little below 0
    values: dict[str, Any] = {
        "wrong": predictions["top5_class"].str[0] != predictions["file"].map(classes),
        "confidence": np.exp(predictions["largest_logit"].astype(np.float64) - predictions["log_sum_exp"]).clip(0, 1),
        "loss": (predictions["log_sum_exp"].astype(np.float64) - predictions["class_logit"]).clip(0),
    }
    rows = predictions[["file", "change", "severity"]].assign(**values)
    is_null = rows["change"].isin([CLEAN, UNCHANGED])
    files = images["file"].tolist()
    axes = {"file": files, "change": list(corruptions), "severity": list(severities)}
    nulls = cube(rows[is_null], {"file": files, "change": [CLEAN, UNCHANGED]}, list(values)).astype(np.float64)
    found = over_all_images(cube(rows[~is_null], axes, list(values)).astype(np.float64), seen)
    nulls = over_all_images(nulls, seen)

    def certainty(place: int) -> Certainty:
        return Certainty(found[..., place], {CLEAN: nulls[:, 0, place], UNCHANGED: nulls[:, 1, place]})

    wrong = {CLEAN: nulls[:, 0, 0] > 0, UNCHANGED: nulls[:, 1, 0] > 0}
    return CorruptionAnswers(found[..., 0] > 0, wrong, certainty(1), certainty(2))


def by_severity(study: CorruptionStudy) -> pd.DataFrame:
    """The misclassified images by model, corruption, severity and class, of the first of the study's selections."""
    images, parts = study.images, []
    classes, places = np.unique(images.classes, return_inverse=True)
    for role, answers in study.answers.items():
        chosen = images.of_first(role)
        errors = np.zeros((len(classes), *answers.corrupted.shape[1:]), np.int64)
        # add.at, since `errors[places] += …` counts a class that comes twice only once
        np.add.at(errors, places[chosen], answers.corrupted[chosen])
        cells = pd.MultiIndex.from_product(
            [[role], classes, study.corruptions, study.severities], names=["model", "class_index", "change", "severity"]
        ).to_frame(index=False)
        counts = np.bincount(places[chosen], minlength=len(classes))
        cells["images"] = np.repeat(counts, errors[0].size)
        cells["errors"] = errors.ravel()
        parts.append(cells[["model", "change", "severity", "class_index", "images", "errors"]])
    return pd.concat(parts, ignore_index=True)
