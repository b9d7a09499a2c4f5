"""Measures of every model in the scenarios of source 002, with intervals, on the images that have a mask.

Formulas: "XIMAGENET-12: An Explainable AI Benchmark Dataset for Model Robustness Evaluation", section 4 and table 3.
The text and the published numbers differ: the text takes standard deviations with n (`as_written`), table 3 follows
from variances with n - 1 (`as_published`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.results import (
    CLEAN,
    UNCHANGED,
    Chosen,
    Definition,
    FamilyStudy,
    Sampled,
    SampledMeasure,
    SeenAnswers,
    StudiedImages,
    cube,
    mean_of,
    over_all_images,
    sampled_means,
    undefined_measure,
)
from cleanset.studies.robustness.scenarios.params import ORIGINAL, Baselines, ScenarioMeasures, Scenarios
from cleanset.studies.robustness.scenarios.regression import Regression, regression

Floats = npt.NDArray[np.float64]
Inner = Literal["classes", "trained"]
"""The inner part of the score: over classes (the text), or over models trained on each scenario (table 3)."""

CELL = ["model", "scenario", "class_index"]


def accuracy_by_cell(predictions: pd.DataFrame) -> pd.DataFrame:
    """Images, correct ones and accuracy by model, scenario and class_index, sorted; `correct` is a column of bools."""
    return accuracy_by(predictions, CELL)


def squared_deviations(accuracies: Floats, mu: float | Floats) -> Floats:
    """The squares of accuracies minus mu; accuracies have one axis more than mu, the last."""
    squares: Floats = (accuracies - np.asarray(mu, np.float64)[..., np.newaxis]) ** 2
    return squares


def class_squares(accuracies: Floats, mu: float | Floats) -> Floats:
    """The squared deviations by class of accuracies with classes and scenarios as the last axes: of scenario means."""
    return squared_deviations(accuracies.mean(axis=-1), mu)


def spread(squares: Floats, definition: Definition) -> Floats:
    """The spread of squared deviations on the last axis: sqrt(sum / n) `as_written`, sum / (n - 1) `as_published`."""
    n = squares.shape[-1]
    total = squares.sum(axis=-1)
    found: Floats = np.sqrt(total / n) if definition == "as_written" else total / (n - 1)
    return found


def score_of_squares(external: Floats, internal: Floats, definition: Definition) -> Floats:
    """Score of squared deviations, by scenario and of the inner part, each on the last axis: 1 - sum of both spreads.

    Axes in front of the last are bootstrap draws; Score's intervals are `reflected_interval`s.
    """
    scores: Floats = 1 - (spread(external, definition) + spread(internal, definition))
    return scores


def accuracy_by(predictions: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Images, correct ones and accuracy by the keys, sorted; `correct` is a column of bools."""
    grouped = predictions.groupby(keys, sort=True)["correct"]
    table = pd.DataFrame({"images": grouped.size(), "correct": grouped.sum().astype("int64")})
    table["accuracy"] = table["correct"] / table["images"]
    return table.reset_index()


def sampled_score(
    correct: npt.NDArray[np.bool_],
    unchanged: npt.NDArray[np.bool_],
    definition: Definition,
    resamples: Resamples,
    trained: tuple[Floats, float] | None = None,
) -> Sampled:
    """Score; `correct` is images x scenarios, `unchanged` by image, whose accuracy is mu.

    Accuracies by scenario are over all images, and not means of class means, as classes may differ in size. The inner
    part is over the means of each class's accuracies in the scenarios; or, given `trained`, over the accuracies of
    models that were trained on the scenarios, with their own mu. Those are of other images and not resampled.
    """
    mu, mus = float(unchanged.mean()), resamples.means(unchanged)
    if trained is None:
        classes = np.unique(resamples.classes)
        by_class = np.stack([correct[resamples.classes == each].mean(axis=0) for each in classes])
        inner, inners = class_squares(by_class, mu), class_squares(resamples.class_means(correct), mus)
    else:
        inner = squared_deviations(*trained)
        inners = inner[np.newaxis]
    value = score_of_squares(squared_deviations(correct.mean(axis=0), mu), inner, definition)
    draws = score_of_squares(squared_deviations(resamples.means(correct), mus), inners, definition)
    return Sampled(float(value), draws, shifted=True)


Correct = npt.NDArray[np.bool_]

COMPARED = ("accuracy", "mean_accuracy", "score_as_published", "score_as_written")
"""The measures that models are compared by."""

_SCORES: tuple[Definition, ...] = ("as_published", "as_written")


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioAnswers:
    """One model's correct predictions: images x scenarios; of clean and unchanged images: images."""

    correct: Correct
    clean: Correct
    unchanged: Correct


@dataclass(frozen=True, eq=False)
class ScenarioStudy(FamilyStudy):
    """The answers of all models in the scenarios; `baselines`: what the regression compares with, None without it.

    `inner`: the inner part of Score; `trained`: for it, by model and scenario, accuracies of networks trained on each.
    `origins`: of each image's mask; None for published images.
    """

    compared = COMPARED
    scenarios: Sequence[str]
    answers: Mapping[str, ScenarioAnswers]
    baselines: Baselines | None = None
    inner: Inner = "classes"
    trained: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    origins: npt.NDArray[np.object_] | None = None

    def tables(self) -> dict[str, pd.DataFrame]:
        """Accuracy by model, scenario and class; the parts of Score; the regression, if it has baselines.

        Where masks have several origins, accuracy by these, too.
        """
        cells = cells_of(self)
        found = {"scenario_accuracies": cells}
        if self.origins is not None and len(set(self.origins)) > 1:
            found["scenario_origins"] = accuracy_by_origin(self)
        if self.scenarios and len(cells):
            found["scenario_scores"] = score_parts(self)
        base, regression = self.baselines, None
        if base is not None:
            regression = regression_of(self, cells, (base.model, base.scenario, base.class_index))
        if regression is not None:
            found["scenario_regression"] = regression.estimates
            found["scenario_anova"] = regression.anova
            found["scenario_fitted"] = regression.fitted
        return found

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[SampledMeasure]:
        """Accuracy by scenario, its mean, and Score by both definitions, of a model on the chosen images."""
        answers = self.answers[role]
        correct, unchanged = answers.correct[chosen], answers.unchanged[chosen]
        nulls = np.stack([answers.clean[chosen], unchanged], axis=1)
        for name, each in sampled_means(nulls, [CLEAN, UNCHANGED], resamples, role).items():
            yield SampledMeasure(f"accuracy_{name}", "", each)
        if not self.scenarios:
            return
        accuracies = sampled_means(correct, self.scenarios, resamples, role)
        for name in self.scenarios:
            yield SampledMeasure("accuracy", name, accuracies[name])
        yield SampledMeasure("mean_accuracy", "", mean_of(accuracies, self.scenarios))
        classes = len(np.unique(self.images.classes[chosen]))
        for definition in _SCORES:
            name = f"score_{definition}"
            if (problem := self._problem_of_score(role, classes)) is not None:
                yield undefined_measure(name, "", problem, resamples)
                continue
            trained = self.trained_accuracies(role) if self.inner == "trained" else None
            yield SampledMeasure(name, "", sampled_score(correct, unchanged, definition, resamples, trained))

    def _problem_of_score(self, role: str, classes: int) -> str | None:
        if self.inner == "trained":
            if len(self.scenarios) < 2:
                return "Score needs two scenarios"
            return None if role in self.trained else "no accuracies of networks trained on each scenario"
        return "Score needs two scenarios and two classes" if len(self.scenarios) < 2 or classes < 2 else None

    def trained_accuracies(self, role: str) -> tuple[Floats, float]:
        """The accuracies of the networks trained on each scenario, and of the one trained on originals."""
        found = self.trained[role]
        return np.array([value for name, value in found.items() if name != ORIGINAL]), found[ORIGINAL]


def read_study(
    wanted: Scenarios, measures: ScenarioMeasures, answers: SeenAnswers, images: StudiedImages, is_union: bool
) -> ScenarioStudy:
    """The scenarios of the params, with the answers to them; `is_union`: all models saw all images of their classes."""
    names = wanted.expanded()
    found, origins, have_seen_all = dict[str, ScenarioAnswers](), None, True
    for name, seen, seen_images, predictions in answers:
        have_seen_all &= bool(np.all(seen))
        found[name] = read_answers(seen_images, predictions, names, measures.answers, seen)
        if "origin" in seen_images:
            origins = np.full(len(seen), "", object) if origins is None else origins
            # a model may have seen only its own set's images
            origins[seen] = seen_images["origin"]
    # the regression's closed form needs every cell, so all models must have seen the same images
    baselines = measures.baselines if is_union and have_seen_all else None
    return ScenarioStudy(images, names, found, baselines, measures.inner, measures.trained, origins)


def read_answers(
    images: pd.DataFrame,
    predictions: pd.DataFrame,
    scenarios: Sequence[str],
    which: Literal["all", "restricted"],
    seen: Chosen,
) -> ScenarioAnswers:
    """The correct predictions of a model, from rows of STUDY_IMAGES that it saw and of PREDICTIONS.

    `which`: the most probable of all 1,000 classes counts, or of the edition's classes (restricted); `seen`: which of
    all images it saw. Raises CleansetError if a row is missing, there twice, or of another image.
    """
    predicted = predictions["top5_class"].str[0] if which == "all" else predictions["class_of_edition"]
    classes = dict(zip(images["file"], images["class_index"], strict=True))
    rows = predictions[["file", "change"]].assign(correct=predicted == predictions["file"].map(classes))
    axes = {"file": images["file"].tolist(), "change": [CLEAN, UNCHANGED, *scenarios]}
    found = over_all_images(cube(rows, axes, "correct"), seen)
    return ScenarioAnswers(found[:, 2:], found[:, 0], found[:, 1])


def cells_of(study: ScenarioStudy) -> pd.DataFrame:
    """Images, correct ones and accuracy by model, scenario (unchanged is one) and class_index.

    Of the first of the study's selections.
    """
    return accuracy_by_cell(_predictions(study, class_index=study.images.classes))


def accuracy_by_origin(study: ScenarioStudy) -> pd.DataFrame:
    """Images, correct ones and accuracy by model, scenario (unchanged is one) and origin of the masks, sorted.

    Of the first of the study's selections.
    """
    return accuracy_by(_predictions(study, origin=study.origins), ["model", "scenario", "origin"])


def _predictions(study: ScenarioStudy, **columns: npt.NDArray[Any] | None) -> pd.DataFrame:
    """A row for each model, scenario and image: model, scenario, correct, and the columns, which are by image."""
    images, parts = study.images, []
    for role, answers in study.answers.items():
        chosen = images.of_first(role)
        given = {name: values[chosen] for name, values in columns.items() if values is not None}
        for place, name in enumerate([UNCHANGED, *study.scenarios]):
            correct = answers.unchanged if name == UNCHANGED else answers.correct[:, place - 1]
            parts.append(pd.DataFrame({"model": role, "scenario": name, **given, "correct": correct[chosen]}))
    return pd.concat(parts, ignore_index=True)


def score_parts(study: ScenarioStudy) -> pd.DataFrame:
    """The parts of Score by model: accuracy, and its squared deviation from the accuracy on unchanged images.

    The part `external` has a row for each scenario, `internal` one for each class index, whose accuracy is the mean
    over the scenarios, or one for each scenario that networks were trained on. Of the first of the study's selections.
    """
    images, rows = study.images, list[tuple[str, str, str, float, float]]()
    for role, answers in study.answers.items():
        chosen = images.of_first(role)
        correct, classes = answers.correct[chosen], images.classes[chosen]
        mu = float(answers.unchanged[chosen].mean())
        accuracies = [
            ("external", name, each) for name, each in zip(study.scenarios, correct.mean(axis=0), strict=True)
        ]
        if study.inner == "classes":
            accuracies += [("internal", str(each), correct[classes == each].mean()) for each in np.unique(classes)]
        rows += [(role, part, level, float(each), float((each - mu) ** 2)) for part, level, each in accuracies]
        if study.inner == "trained" and role in study.trained:
            values, inner_mu = study.trained_accuracies(role)
            names = [name for name in study.trained[role] if name != ORIGINAL]
            squares = squared_deviations(values, inner_mu).tolist()
            found = zip(names, values.tolist(), squares, strict=True)
            rows += [(role, "internal", name, accuracy, square) for name, accuracy, square in found]
    return pd.DataFrame(rows, columns=["model", "part", "level", "accuracy", "squared_deviation"])


def regression_of(
    study: ScenarioStudy, cells: pd.DataFrame, baselines: tuple[str | None, str | None, int | None]
) -> Regression | None:
    """The regression of the cells' accuracies on model, scenario and class; None without two levels to compare.

    `baselines`: model, scenario and class index; None stands for the first model, unchanged, and the first class.
    Raises CleansetError as `regression` does.
    """
    sizes = len(study.answers), len(study.scenarios) + 1, cells["class_index"].nunique()
    if sum(size > 1 for size in sizes) < 2 or not study.scenarios:
        return None
    model, scenario, class_index = baselines
    first = next(iter(study.answers)), UNCHANGED, int(cells["class_index"].min())
    return regression(
        cells,
        (
            model if model is not None else first[0],
            scenario if scenario is not None else first[1],
            class_index if class_index is not None else first[2],
        ),
    )
