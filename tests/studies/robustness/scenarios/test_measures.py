import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.measures import (
    accuracy_by_cell,
    accuracy_by_scenario,
    class_squares,
    score,
    score_of_squares,
    spread,
    squared_deviations,
)
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


def test_the_accuracy_by_model_and_scenario_is_over_images() -> None:
    found = accuracy_by_scenario(predictions())
    assert found.columns.tolist() == ["model", "scenario", "images", "correct", "accuracy"]
    assert found.to_numpy().tolist() == [
        ["a", "blur_object", 1, 0, 0.0],
        ["a", "unchanged", 3, 2, 2 / 3],
        ["b", "unchanged", 1, 1, 1.0],
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


def densenet() -> pd.DataFrame:
    """The cells of table 5, each of 100 images."""
    rows = [
        (scenario, index, 100, correct, correct / 100)
        for scenario, numbers in ximagenet12.DENSENET_BY_CLASS.items()
        for index, correct in enumerate(numbers)
    ]
    return pd.DataFrame(rows, columns=["scenario", "class_index", "images", "correct", "accuracy"])


def test_the_score_over_the_classes_of_table_5() -> None:
    found = score(densenet(), "as_written")
    assert round(found.score, 6) == DENSENET_WRITTEN
    assert found.external**2 == pytest.approx(0.078225, abs=5e-7)
    assert found.internal**2 == pytest.approx(0.037966, abs=5e-7)
    assert (found.definition, found.inner) == ("as_written", "classes")


def test_the_published_definition_of_the_same_cells() -> None:
    found = score(densenet(), "as_published")
    assert found.external == pytest.approx(0.089400, abs=5e-7)
    assert found.internal == pytest.approx(0.037966 * 12 / 11, abs=1e-6)
    assert found.score == 1 - (found.external + found.internal)


def test_the_accuracy_of_a_scenario_is_over_images_and_not_classes() -> None:
    cells = densenet()
    cells.loc[(cells["scenario"] == "unchanged") & (cells["class_index"] == 2), ["images", "correct"]] *= 9
    mu = (sum(ximagenet12.DENSENET_BY_CLASS["unchanged"]) + 8 * 93) / 2000
    means = [sum(values) / 1200 for name, values in ximagenet12.DENSENET_BY_CLASS.items() if name != "unchanged"]
    expected = math.sqrt(sum((mean - mu) ** 2 for mean in means) / 8)
    assert score(cells, "as_written").external == pytest.approx(expected)


def test_the_inner_part_over_models_trained_on_each_scenario() -> None:
    trained = np.array([0.9, 0.8, 0.6]), 0.9
    found = score(densenet(), "as_published", "trained", trained)
    assert found.internal == pytest.approx((0.01 + 0.09) / 2)
    assert found.score == pytest.approx(1 - 0.05 - found.external)
    absent = score(densenet(), "as_written", "trained")
    assert absent.external == score(densenet(), "as_written").external
    assert math.isnan(absent.internal)
    assert math.isnan(absent.score)


def test_the_score_of_draws_is_that_of_each() -> None:
    generator = np.random.default_rng(4)
    by_class, overall, mu = generator.random((6, 5, 3)), generator.random((6, 3)), generator.random(6)
    found = score_of_squares(squared_deviations(overall, mu), class_squares(by_class, mu), "as_written")
    for draw in range(6):
        outside = np.sqrt(np.mean((overall[draw] - mu[draw]) ** 2))
        inside = np.sqrt(np.mean((by_class[draw].mean(axis=1) - mu[draw]) ** 2))
        assert found[draw] == pytest.approx(1 - outside - inside)


def test_cells_that_are_missing_or_there_twice_are_named() -> None:
    cells = densenet()
    with pytest.raises(CleansetError, match="no accuracy of image_b class 2, unchanged class 11; expected every class"):
        score(cells.drop(index=[38, 107]), "as_written")
    with pytest.raises(CleansetError, match="more than one accuracy of blur_background class 1; expected one model's"):
        score(pd.concat([cells, cells[1:2]]), "as_written")
    with pytest.raises(CleansetError, match="found no scenario unchanged; expected its accuracy as mu"):
        score(cells[cells["scenario"] != "unchanged"], "as_written")


def test_unknown_names_and_single_values_are_refused() -> None:
    with pytest.raises(CleansetError, match="found definition 'text'; expected as_written or as_published"):
        score(densenet(), "text")  # type: ignore[arg-type]
    with pytest.raises(CleansetError, match="found inner part 'class'; expected classes or trained"):
        score(densenet(), "as_written", "class")  # type: ignore[arg-type]
    with pytest.raises(CleansetError, match="found 1 accuracies to take a variance of; expected 2 or more"):
        spread(np.array([0.5]), "as_written")
