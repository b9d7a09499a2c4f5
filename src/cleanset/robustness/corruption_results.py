"""What is measured on corrupted images, for every model, on three selections of the images, with intervals.

An image is misclassified where the model's top-1 class is not the class that the image has in the set.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.robustness.measures.bootstrap import (
    Bootstrap,
    Interval,
    Resamples,
    paired_difference,
    percentile_interval,
)
from cleanset.robustness.measures.corruptions import (
    ALEXNET,
    Reference,
    ce,
    corruption_errors,
    error_table,
    mean_corruption_error,
    relative_ce,
    relative_corruption_errors,
    unseen_corruptions,
)
from cleanset.robustness.measures.cube import cube
from cleanset.robustness.names import CLEAN, CORRUPTION_GROUPS, CORRUPTIONS, SEVERITIES, UNCHANGED

Floats = npt.NDArray[np.float64]
Misclassified = npt.NDArray[np.bool_]

SELECTIONS = ("union", "own", "common")
"""The images of all sets, those of the model's own set, and those that are in every set."""


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """One model's misclassified images: images x corruptions x severities; `nulls` by CLEAN and UNCHANGED: images."""

    corrupted: Misclassified
    nulls: Mapping[str, Misclassified]


class Line(NamedTuple):
    """One measure of a model on a selection of so many `images`; the ends of its interval, NaN where there is none.

    `change` is a corruption or a group of them, empty where the measure is over all; the value is NaN where it is
    not defined, and `problem` then says why.
    """

    selection: str
    model: str
    measure: str
    change: str
    images: int
    value: float
    low: float
    high: float
    problem: str = ""


class Difference(NamedTuple):
    """A measure of a model minus that of another on the same images, with the interval of the paired difference."""

    selection: str
    measure: str
    model: str
    other: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class CorruptionStudy:
    """The answers of all models, and what they are measured with.

    `classes` and `sets` are those of the images, in one order; `reference` is that of the published table or a role;
    `trained_on`: by role, corruptions or groups. `selections`: those of SELECTIONS whose images every model has seen
    that is measured on them.
    """

    classes: npt.NDArray[np.int64]
    sets: Sequence[Sequence[str]]
    corruptions: Sequence[str]
    severities: Sequence[int]
    answers: Mapping[str, Answers]
    reference: str
    trained_on: Mapping[str, Sequence[str]]
    bootstrap: Bootstrap
    selections: Sequence[str] = SELECTIONS

    def selected(self, selection: str, role: str) -> npt.NDArray[np.bool_]:
        """Which images a selection has for a role."""
        wanted = {"union": set[str](), "own": {role}, "common": set(self.answers)}[selection]
        return np.array([wanted <= set(sets) for sets in self.sets])


def read_answers(
    images: pd.DataFrame, predictions: pd.DataFrame, corruptions: Sequence[str], severities: Sequence[int]
) -> Answers:
    """The misclassified images of a model, from rows of STUDY_IMAGES and of PREDICTIONS.

    Raises CleansetError if a row is missing, there twice, or of another image.
    """
    classes = dict(zip(images["file"], images["class_index"], strict=True))
    wrong = predictions["top5_class"].str[0] != predictions["file"].map(classes)
    rows = predictions[["file", "change", "severity"]].assign(wrong=wrong)
    is_null = rows["change"].isin([CLEAN, UNCHANGED])
    files = images["file"].tolist()
    axes = {"file": files, "change": list(corruptions), "severity": list(severities)}
    nulls = cube(rows[is_null], {"file": files, "change": [CLEAN, UNCHANGED]}, "wrong")
    return Answers(cube(rows[~is_null], axes, "wrong"), {CLEAN: nulls[:, 0], UNCHANGED: nulls[:, 1]})


def spread(answers: Answers, seen: npt.NDArray[np.bool_]) -> Answers:
    """Answers to the images that were seen, as answers to all: nothing is misclassified where no model looked."""
    nulls = {name: np.zeros(len(seen), np.bool_) for name in answers.nulls}
    corrupted = np.zeros((len(seen), *answers.corrupted.shape[1:]), np.bool_)
    corrupted[seen] = answers.corrupted
    for name, values in answers.nulls.items():
        nulls[name][seen] = values
    return Answers(corrupted, nulls)


def measured(study: CorruptionStudy) -> Iterator[Line]:
    """Every measure of every model on every selection that has two images or more."""
    for selection in study.selections:
        for role in study.answers:
            chosen = study.selected(selection, role)
            if chosen.sum() < 2:
                continue
            for each in _measures(study, role, chosen):
                interval = percentile_interval(each.draws) if np.isfinite(each.value) else Interval(np.nan, np.nan)
                count, low, high = int(chosen.sum()), interval.low, interval.high
                yield Line(selection, role, each.measure, each.change, count, each.value, low, high, each.problem)


def differences(study: CorruptionStudy) -> Iterator[Difference]:
    """The mean error and mCE of each two models on the same images, where they are defined."""
    for selection in study.selections:
        if selection == "own":  # other images for each model
            continue
        chosen = study.selected(selection, "")
        if chosen.sum() < 2:
            continue
        found = {
            role: {each.measure: each for each in _measures(study, role, chosen) if not each.change}
            for role in study.answers
        }
        for one, other in combinations(found, 2):
            for measure in ("mean_error", "mce"):
                left, right = found[one].get(measure), found[other].get(measure)
                if left and right and np.isfinite(left.value) and np.isfinite(right.value):
                    interval = paired_difference(left.draws, right.draws)
                    value = left.value - right.value
                    yield Difference(selection, measure, one, other, value, interval.low, interval.high)


class _Measure(NamedTuple):
    """A value, its values in the resamples, and why it is missing."""

    measure: str
    change: str
    value: float
    draws: Floats
    problem: str = ""


def _measures(study: CorruptionStudy, role: str, chosen: Misclassified) -> Iterator[_Measure]:
    resamples = study.bootstrap.resample(study.classes[chosen])
    answers = study.answers[role]
    wrong = answers.corrupted[chosen]
    drawn = resamples.means(wrong)
    for name in (CLEAN, UNCHANGED):
        null = answers.nulls[name][chosen]
        yield _Measure(f"error_{name}", "", float(null.mean()), resamples.means(null))
    alone = {name: (name,) for name in study.corruptions}
    for measure, groups in (("error", alone), ("group_error", CORRUPTION_GROUPS)):
        for change, members in groups.items():
            if set(members) <= set(study.corruptions):
                at = [list(study.corruptions).index(name) for name in members]
                yield _Measure(measure, change, float(wrong[:, at].mean()), drawn[:, at].mean(axis=(1, 2)))
    yield _Measure("mean_error", "", float(wrong.mean()), drawn.mean(axis=(1, 2)))
    if tuple(study.severities) == SEVERITIES:
        yield from _ratios(study, role, chosen, resamples, drawn)


def _ratios(
    study: CorruptionStudy, role: str, chosen: Misclassified, resamples: Resamples, drawn: Floats
) -> Iterator[_Measure]:
    """CE by corruption, mCE over the 15 and over those that the model was not trained on, relative mCE."""
    reference, reference_drawn, reference_clean = _reference(study, chosen, resamples)
    errors, clean = _errors(study, role, chosen), float(study.answers[role].nulls[UNCHANGED][chosen].mean())
    found = corruption_errors(errors, reference)
    ratios = ce(drawn, reference_drawn)
    for place, name in enumerate(study.corruptions):
        problem = "" if np.isfinite(found[name]) else "the reference makes too few errors"
        yield _Measure("ce", name, float(found[name]), ratios[:, place], problem)
    if not set(CORRUPTIONS) <= set(study.corruptions):
        return
    unseen = unseen_corruptions(study.trained_on.get(role, ()))
    for measure, over in (("mce", CORRUPTIONS), ("mce_unseen", unseen)):
        mean = mean_corruption_error(found, over)
        at = [list(study.corruptions).index(name) for name in over]
        yield _Measure(measure, "", mean.value, ratios[:, at].mean(axis=1) if at else ratios[:, 0], mean.problem or "")
    relative = mean_corruption_error(relative_corruption_errors(errors, clean, reference))
    drawn_clean = resamples.means(study.answers[role].nulls[UNCHANGED][chosen])
    at = [list(study.corruptions).index(name) for name in CORRUPTIONS]
    ratios = relative_ce(drawn, drawn_clean, reference_drawn, reference_clean)[:, at]
    yield _Measure("relative_mce", "", relative.value, ratios.mean(axis=1), relative.problem or "")


def _errors(study: CorruptionStudy, role: str, chosen: Misclassified) -> pd.DataFrame:
    return error_table(study.answers[role].corrupted[chosen], study.corruptions, study.severities)


def _reference(study: CorruptionStudy, chosen: Misclassified, resamples: Resamples) -> tuple[Reference, Floats, Floats]:
    """The reference, its errors in the resamples or everywhere the published ones, and its errors without a change."""
    if study.reference == ALEXNET.name:
        table = ALEXNET.errors.loc[list(study.corruptions), list(study.severities)].to_numpy("float64")
        return ALEXNET, table, np.asarray(ALEXNET.clean_error, np.float64)
    answers = study.answers[study.reference]
    unchanged = answers.nulls[UNCHANGED][chosen]
    reference = Reference(
        study.reference, _errors(study, study.reference, chosen), float(unchanged.mean()), int(chosen.sum())
    )
    return reference, resamples.means(answers.corrupted[chosen]), resamples.means(unchanged)
