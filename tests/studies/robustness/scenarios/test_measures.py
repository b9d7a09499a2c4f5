from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.results import ALL, StudiedImages
from cleanset.studies.robustness.scenarios.measures import (
    accuracy_by_cell,
    class_squares,
    score_of_squares,
    spread,
    squared_deviations,
)
from cleanset.studies.robustness.scenarios.results import ScenarioAnswers, ScenarioStudy
from tests.studies.robustness.scenarios import ximagenet12

DENSENET_WRITTEN = 0.525464
"""Score as written of table 5, whose inner part is over its 12 classes."""


def predictions() -> pd.DataFrame:
    rows = [
        ("b", "unchanged", 5, True),
        ("a", "blur_object", 5, False),
        ("a", "unchanged", 7, True),
        ("a", "unchanged", 5, True),
        ("a", "unchanged", 5, False),
    ]
    return pd.DataFrame(rows, columns=["model", "scenario", "class_index", "correct"])


def test_the_accuracy_by_model_scenario_and_class() -> None:
    assert accuracy_by_cell(predictions()).to_numpy().tolist() == [
        ["a", "blur_object", 5, 1, 0, 0.0],
        ["a", "unchanged", 5, 2, 1, 0.5],
        ["a", "unchanged", 7, 1, 1, 1.0],
        ["b", "unchanged", 5, 1, 1, 1.0],
    ]


def squares(table: Mapping[str, tuple[float, ...]], model: str) -> npt.NDArray[np.float64]:
    return np.array(table[model]) / 100


@pytest.mark.parametrize("model", ximagenet12.PUBLISHED_SCORES)
def test_the_published_scores_and_variances(model: str) -> None:
    external, internal = squares(ximagenet12.EXTERNAL, model), squares(ximagenet12.INTERNAL, model)
    found = float(score_of_squares(external, internal, "as_published"))
    assert found == pytest.approx(ximagenet12.PUBLISHED_SCORES[model], abs=2e-4)
    variances = [float(spread(each, "as_published")) for each in (external, internal)]
    assert variances == pytest.approx(ximagenet12.PUBLISHED_VARIANCES[model], abs=1.5e-4)


@pytest.mark.parametrize("model", ximagenet12.WRITTEN_SCORES)
def test_the_scores_of_the_texts_formula(model: str) -> None:
    external, internal = squares(ximagenet12.EXTERNAL, model), squares(ximagenet12.INTERNAL, model)
    found = float(score_of_squares(external, internal, "as_written"))
    assert round(found, 4) == ximagenet12.WRITTEN_SCORES[model]


@pytest.mark.parametrize("model", ximagenet12.ACCURACIES)
def test_the_published_deviations_follow_from_the_accuracies(model: str) -> None:
    accuracies, mu = squares(ximagenet12.ACCURACIES, model), ximagenet12.IMPLIED_MU[model] / 100
    found = 100 * squared_deviations(accuracies, mu)
    assert found.tolist() == pytest.approx(ximagenet12.EXTERNAL[model], abs=0.0061)


def table_5(images: int = 100) -> ScenarioStudy:
    """A model with the accuracies of table 5, on that many images of each class."""
    classes, columns = np.repeat(np.arange(12), images), {}
    for name, numbers in ximagenet12.DENSENET_BY_CLASS.items():
        columns[name] = np.concatenate([np.arange(images) < correct * images / 100 for correct in numbers])
    unchanged = columns.pop("unchanged")
    studied = StudiedImages(classes, [[]] * len(classes), ["a"], Bootstrap(resamples=2), (ALL,))
    answers = ScenarioAnswers(np.stack(list(columns.values()), axis=1), unchanged, unchanged)
    return ScenarioStudy(studied, list(columns), {"a": answers})


def scores(given: ScenarioStudy) -> dict[str, float]:
    return {each.measure: each.value for each in given.lines() if each.measure.startswith("score")}


def test_the_score_over_the_classes_of_table_5() -> None:
    found = scores(table_5())
    assert round(found["score_as_written"], 6) == DENSENET_WRITTEN
    assert found["score_as_published"] == pytest.approx(1 - (0.089400 + 0.037966 * 12 / 11), abs=1e-6)


def test_the_accuracy_of_a_scenario_is_over_images_and_not_classes() -> None:
    """Where class 2 has twice as many images; the inner part is over classes all the same."""
    whole = table_5()
    places = np.concatenate([np.arange(1200), np.flatnonzero(whole.images.classes == 2)])
    answers = {name: answers_of(each, places) for name, each in whole.answers.items()}
    images = replace(whole.images, classes=whole.images.classes[places], sets=[[]] * 1300)
    numbers = {name: np.array(each) / 100 for name, each in ximagenet12.DENSENET_BY_CLASS.items()}
    mu = (numbers["unchanged"].sum() + 0.93) / 13
    by_class = np.stack([each for name, each in numbers.items() if name != "unchanged"])
    outside = ((by_class.sum(axis=1) + by_class[:, 2]) / 13 - mu) ** 2
    inside = (by_class.mean(axis=0) - mu) ** 2
    expected = 1 - np.sqrt(outside.sum() / 8) - np.sqrt(inside.sum() / 12)
    assert scores(replace(whole, images=images, answers=answers))["score_as_written"] == pytest.approx(expected)


def answers_of(answers: ScenarioAnswers, places: npt.NDArray[np.int64]) -> ScenarioAnswers:
    return ScenarioAnswers(answers.correct[places], answers.clean[places], answers.unchanged[places])


def test_the_score_of_draws_is_that_of_each() -> None:
    generator = np.random.default_rng(4)
    by_class, overall, mu = generator.random((6, 5, 3)), generator.random((6, 3)), generator.random(6)
    found = score_of_squares(squared_deviations(overall, mu), class_squares(by_class, mu), "as_written")
    for draw in range(6):
        outside = np.sqrt(np.mean((overall[draw] - mu[draw]) ** 2))
        inside = np.sqrt(np.mean((by_class[draw].mean(axis=1) - mu[draw]) ** 2))
        assert found[draw] == pytest.approx(1 - outside - inside)


def test_unknown_definitions_and_single_values_are_refused() -> None:
    with pytest.raises(CleansetError, match="found definition 'text'; expected as_written or as_published"):
        spread(np.array([0.5, 0.6]), "text")  # type: ignore[arg-type]
    with pytest.raises(CleansetError, match="found 1 accuracies to take a variance of; expected 2 or more"):
        spread(np.array([0.5]), "as_written")
