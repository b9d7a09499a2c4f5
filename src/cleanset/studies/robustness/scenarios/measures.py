"""Measures of every model in the scenarios of XIMAGENET-12, with intervals, on the images that have a mask.

Formulas: "XIMAGENET-12: An Explainable AI Benchmark Dataset for Model Robustness Evaluation", section 4 and table 3.
The text and the published numbers differ: the text takes standard deviations with n (`as_written`), table 3 follows
from variances with n - 1 (`as_published`). The accuracies of all cells also go into `regression` and `by_image`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.statistics.basics import Flags, Floats, Ints
from cleanset.statistics.bootstrap import Resamples
from cleanset.studies.robustness.answer_arrays import Chosen
from cleanset.studies.robustness.results import DEFINITIONS, Definition, FamilyStudy
from cleanset.studies.robustness.sampled import Sampled, mean_of, sampled_means, undefined
from cleanset.studies.robustness.scenarios.by_image import by_image
from cleanset.studies.robustness.scenarios.params import ORIGINAL, ScenarioMeasures, Scenarios
from cleanset.studies.robustness.scenarios.regression import FACTORS, baseline_first, regression
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED


def squared_deviations(accuracies: Floats, mu: float | Floats) -> Floats:
    """The squares of accuracies minus mu; accuracies have one axis more than mu, the last."""
    squares: Floats = (accuracies - np.asarray(mu, np.float64)[..., np.newaxis]) ** 2
    return squares


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


def sampled_score(
    correct: Flags,
    unchanged: Flags,
    definition: Definition,
    resamples: Resamples,
    trained: tuple[Floats, float] | None = None,
) -> Sampled:
    """Score; `correct` is images x scenarios, `unchanged` by image, whose accuracy is mu.

    Accuracies by scenario are over all images, and not means of class means, as classes may differ in size. The inner
    part is over the means of each class's accuracies in the scenarios; or, given `trained`, over the accuracies of
    models that were trained on the scenarios, with their own mu. Those are of other images and not resampled.
    """
    mu = float(unchanged.mean())
    mus = resamples.means(unchanged)
    if trained is None:
        classes = np.unique(resamples.classes)
        by_class = np.stack([correct[resamples.classes == each].mean(axis=0) for each in classes])
        inner = squared_deviations(by_class.mean(axis=-1), mu)
        inners = squared_deviations(resamples.class_means(correct).mean(axis=-1), mus)
    else:
        inner = squared_deviations(*trained)
        inners = inner[np.newaxis]
    value = score_of_squares(squared_deviations(correct.mean(axis=0), mu), inner, definition)
    draws = score_of_squares(squared_deviations(resamples.means(correct), mus), inners, definition)
    return Sampled(float(value), draws, shifted=True, largest=1)


COMPARED = ("accuracy", "mean_accuracy", "score_as_published", "score_as_written")
"""The measures that models are compared by."""


@dataclass(frozen=True, eq=False)
class ScenarioStudy(FamilyStudy):
    """The answers of all models in the scenarios, each correct or not."""

    compared = COMPARED
    wanted: Scenarios
    measures: ScenarioMeasures

    def tables(self) -> dict[str, pd.DataFrame]:
        """Accuracy by model, scenario and class; the parts of Score; the regression, if all models saw all images.

        If masks have several origins, accuracy by origin, too.
        """
        cells = cells_of(self, "class_index", self.images.class_indices)
        origins = self.images.origins
        found = {"scenario_accuracies": cells}
        if origins is not None and len(set(origins)) > 1:
            found["scenario_origins"] = cells_of(self, "origin", origins)
        if self.wanted.names and len(cells):
            found["scenario_scores"] = score_parts(self)
        # its closed form needs every cell
        fitted = regression_of(self, cells) | _by_image_of(self) if self.images.is_whole else {}
        return found | {f"scenario_{name}": table for name, table in fitted.items()}

    def measured(self, role: str, chosen: Chosen, resamples: Resamples) -> Iterator[Sampled]:
        """Accuracy by scenario, its mean, and Score by both definitions, of a model on the chosen images."""
        nulls = self.correct(role, chosen, [CLEAN, UNCHANGED])
        names = self.wanted.names
        for name, each in sampled_means(nulls, [CLEAN, UNCHANGED], resamples, answers=role).items():
            yield each.named(f"accuracy_{name}")
        if not names:
            return
        correct = self.correct(role, chosen, names)
        accuracies = sampled_means(correct, names, resamples, answers=role)
        for name in names:
            yield accuracies[name].named("accuracy", name)
        yield mean_of(accuracies, names).named("mean_accuracy")
        classes = len(np.unique(self.images.class_indices[chosen]))
        for definition in DEFINITIONS:
            name = f"score_{definition}"
            if (problem := self._problem_of_score(role, classes)) is not None:
                yield undefined(name, problem, resamples)
                continue
            trained = self.trained_accuracies(role) if self.measures.inner == "trained" else None
            yield sampled_score(correct, nulls[:, 1], definition, resamples=resamples, trained=trained).named(name)

    def correct(self, role: str, chosen: Chosen, names: Sequence[str]) -> Flags:
        """Whether a model is correct on the chosen images: images x changes, which are the named ones."""
        return np.hstack([self.answers[role][name][chosen] for name in names])

    def _problem_of_score(self, role: str, classes: int) -> str | None:
        is_single = len(self.wanted.names) < 2
        if self.measures.inner == "trained":
            if is_single:
                return "Score needs two scenarios"
            return None if role in self.measures.trained else "no accuracies of networks trained on each scenario"
        return "Score needs two scenarios and two classes" if is_single or classes < 2 else None

    def trained_accuracies(self, role: str) -> tuple[Floats, float]:
        """The accuracies of the networks trained on each scenario, and of the one trained on originals."""
        found = self.measures.trained[role]
        return np.array([value for name, value in found.items() if name != ORIGINAL]), found[ORIGINAL]


def cells_of(study: ScenarioStudy, key: str, of_images: Ints | npt.NDArray[np.object_]) -> pd.DataFrame:
    """Images, correct ones and accuracy by model, scenario (unchanged is one) and key, sorted.

    `of_images`: the key of each image, its class_index or the origin of its mask. For the first of the study's
    selections.
    """
    parts = []
    for role, answers in study.answers.items():
        chosen = study.images.of_first(role)
        for name in (UNCHANGED, *study.wanted.names):
            correct = answers[name][chosen, 0]
            parts.append(pd.DataFrame({"model": role, "scenario": name, key: of_images[chosen], "correct": correct}))
    grouped = pd.concat(parts, ignore_index=True).groupby(["model", "scenario", key], sort=True)["correct"]
    table = pd.DataFrame({"images": grouped.size(), "correct": grouped.sum().astype("int64")})
    return table.assign(accuracy=table["correct"] / table["images"]).reset_index()


def score_parts(study: ScenarioStudy) -> pd.DataFrame:
    """The parts of Score by model: accuracy, and its squared deviation from the accuracy on unchanged images.

    The part `external` has a row for each scenario, `internal` one for each class index, whose accuracy is the mean
    over the scenarios, or one for each scenario that networks were trained on. For the first of the study's selections.
    """
    images = study.images
    measures = study.measures
    rows = list[tuple[str, str, str, float, float]]()
    for role, answers in study.answers.items():
        chosen = images.of_first(role)
        correct = study.correct(role, chosen, study.wanted.names)
        classes = images.class_indices[chosen]
        mu = float(answers[UNCHANGED][chosen].mean())
        accuracies = [("external", name, answers[name][chosen].mean()) for name in study.wanted.names]
        if measures.inner == "classes":
            accuracies += [("internal", str(each), correct[classes == each].mean()) for each in np.unique(classes)]
        rows += [(role, part, level, float(each), float((each - mu) ** 2)) for part, level, each in accuracies]
        if measures.inner == "trained" and role in measures.trained:
            values, inner_mu = study.trained_accuracies(role)
            names = [name for name in measures.trained[role] if name != ORIGINAL]
            squares = squared_deviations(values, inner_mu).tolist()
            found = zip(names, values.tolist(), squares, strict=True)
            rows += [(role, "internal", name, accuracy, square) for name, accuracy, square in found]
    return pd.DataFrame(rows, columns=["model", "part", "level", "accuracy", "squared_deviation"])


def regression_of(study: ScenarioStudy, cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The regression of the cells' accuracies on model, scenario and class; empty without two levels to compare.

    Raises CleansetError as `regression` does.
    """
    scenarios = study.wanted.names
    sizes = len(study.answers), len(scenarios) + 1, cells["class_index"].nunique()
    if sum(size > 1 for size in sizes) < 2 or not scenarios:
        return {}
    return regression(cells, _baselines(study))


def _baselines(study: ScenarioStudy) -> list[object]:
    """The baseline of each of FACTORS: the params', or the first model, the unchanged images and the first class."""
    first = {
        "model": next(iter(study.answers)),
        "scenario": UNCHANGED,
        "class_index": int(study.images.class_indices.min()),
    }
    return list((first | study.measures.baselines.model_dump(exclude_none=True)).values())


def _by_image_of(study: ScenarioStudy) -> dict[str, pd.DataFrame]:
    """The effects of model, scenario and class with images as what varies; empty without scenarios.

    All models have seen all images. Raises CleansetError for an unknown baseline.
    """
    if not study.wanted.names:
        return {}
    names = [UNCHANGED, *study.wanted.names]
    chosen = study.images.of_first(next(iter(study.answers)))
    classes = study.images.class_indices[chosen]
    known = (list(study.answers), names, np.unique(classes).tolist())
    levels = [
        baseline_first(each, factor, base) for each, factor, base in zip(known, FACTORS, _baselines(study), strict=True)
    ]
    models, scenarios, _ = levels
    correct = np.stack([study.correct(str(model), chosen, list(map(str, scenarios))) for model in models], axis=1)
    return by_image(correct, classes, levels, FACTORS)
