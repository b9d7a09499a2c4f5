"""The measures of scenarios, against counts written out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from pydantic import ValidationError

from cleanset.classes import imagenet
from cleanset.errors import CleansetError
from cleanset.evaluation.measures import Measure
from cleanset.statistics.bootstrap import Bootstrap
from cleanset.studies.robustness.answer_arrays import Answers, answers_by_change
from cleanset.studies.robustness.families import StudyParams
from cleanset.studies.robustness.images import Sources, Study
from cleanset.studies.robustness.measuring import studied_images
from cleanset.studies.robustness.results import ALL, StudiedImages
from cleanset.studies.robustness.scenarios.family import SCENARIO_FAMILY
from cleanset.studies.robustness.scenarios.measures import (
    ScenarioStudy,
    cells_of,
    regression_of,
    sampled_score,
    score_of_squares,
    score_parts,
    spread,
    squared_deviations,
)
from cleanset.studies.robustness.scenarios.params import Baselines, ScenarioMeasures, Scenarios
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED
from tests.studies.robustness.scenarios import ximagenet12
from tests.studies.robustness.sources import opened_of

SETS = [["a"], ["a", "b"], ["b"], ["a", "b"], ["a", "b"], ["b"]]
CLASSES = np.array([0, 0, 7, 7, 9, 9])
SCENARIOS = ("blur_background", "image_grey", "segmented_image")


EVERY = np.ones(len(SETS), np.bool_)


def answers(seed: int) -> Answers:
    generator = np.random.default_rng(seed)
    nulls = generator.random((2, len(SETS))) < 0.8
    correct = generator.random((len(SETS), len(SCENARIOS))) < 0.6
    columns = {CLEAN: nulls[0], UNCHANGED: nulls[1], **dict(zip(SCENARIOS, correct.T, strict=True))}
    return {name: each[:, np.newaxis] for name, each in columns.items()}


def study(
    scenarios: tuple[str, ...] = SCENARIOS,
    classes: np.ndarray = CLASSES,
    origins: list[str] | None = None,
    **measures: Any,
) -> ScenarioStudy:
    of_masks = None if origins is None else np.array(origins, object)
    images = StudiedImages(
        class_indices=classes,
        sets=SETS,
        roles=["a", "b"],
        bootstrap=Bootstrap(resamples=40),
        origins=of_masks,
        classes=imagenet(),
    )
    wanted = Scenarios.model_validate({"names": list(scenarios)})
    return ScenarioStudy(images, {"a": answers(1), "b": answers(2)}, wanted, ScenarioMeasures(**measures))


def line(lines: list[Measure], *key: str) -> Measure:
    (found,) = [each for each in lines if (each.selection, each.model, each.measure, each.change) == key]
    return found


def test_accuracy_by_hand() -> None:
    given, lines = study(), list(study().lines())
    for selection, images in (("union", range(6)), ("own", (1, 2, 3, 4, 5)), ("common", (1, 3, 4))):
        correct = given.correct("b", EVERY, SCENARIOS)
        shares = [sum(bool(correct[i, s]) for i in images) / len(images) for s in range(3)]
        for name, share in zip(SCENARIOS, shares, strict=True):
            assert line(lines, selection, "b", "accuracy", name).value == pytest.approx(share)
        assert line(lines, selection, "b", "mean_accuracy", "").value == pytest.approx(sum(shares) / 3)
        unchanged = sum(bool(given.answers["b"][UNCHANGED][i, 0]) for i in images) / len(images)
        assert line(lines, selection, "b", "accuracy_unchanged", "").value == pytest.approx(unchanged)


def test_what_score_is_made_of() -> None:
    """The deviations by hand, and the Score of the lines from them."""
    given = study()
    correct, mu = given.correct("a", EVERY, SCENARIOS), given.answers["a"][UNCHANGED].mean()
    table = score_parts(given)
    of_model = table[table["model"] == "a"]
    rows = {(row.part, row.level): (row.accuracy, row.squared_deviation) for row in of_model.itertuples()}
    assert list(rows) == [*(("external", name) for name in SCENARIOS), *(("internal", each) for each in "079")]
    assert rows["external", "image_grey"][0] == pytest.approx(correct[:, 1].sum() / 6)
    assert rows["internal", "7"][0] == pytest.approx(correct[2:4].sum() / 6)
    assert all(square == pytest.approx((accuracy - mu) ** 2) for accuracy, square in rows.values())
    sums = of_model.groupby("part")["squared_deviation"].sum()
    published = line(list(given.lines()), "union", "a", "score_as_published", "").value
    assert published == pytest.approx(1 - sums["external"] / 2 - sums["internal"] / 2)


def test_differences_are_paired() -> None:
    lines = list(study().lines())
    found = {(each.selection, each.measure, each.change): each for each in study().differences()}
    measures = [("accuracy", name) for name in SCENARIOS]
    measures += [("mean_accuracy", ""), ("score_as_published", ""), ("score_as_written", "")]
    assert set(found) == {(selection, *each) for selection in ("union", "common") for each in measures}
    for (selection, measure, change), each in found.items():
        values = [line(lines, selection, model, measure, change).value for model in "ab"]
        assert each.value == pytest.approx(values[0] - values[1])


def test_no_interval_of_score_reaches_above_1() -> None:
    """If few answers change, resamples are far below Score, and their reflections far above 1."""
    unchanged = np.arange(18) % 6 > 0
    correct = np.stack([unchanged] * 3, axis=1)
    correct[1:4, 0] = correct[7, 1] = False
    resamples = Bootstrap(1000).resample(np.arange(18) // 6)
    for definition in ("as_written", "as_published"):
        found = sampled_score(correct, unchanged, definition, resamples)
        assert found.interval().low < found.value < found.interval().high == 1


def test_score_needs_two_scenarios_and_two_classes() -> None:
    for given in (study(SCENARIOS[:1]), study(classes=np.zeros(6, np.int64))):
        found = line(list(given.lines()), "union", "a", "score_as_written", "")
        assert np.isnan(found.value)
        assert found.problem == "Score needs two scenarios and two classes"


def test_without_scenarios_only_the_nulls_are_measured() -> None:
    assert {each.measure for each in study(()).lines()} == {"accuracy_clean", "accuracy_unchanged"}
    empty = study(())
    assert regression_of(empty, cells_of(empty, "class_index", empty.images.class_indices)) == {}


def test_masks_of_several_origins_are_kept_apart() -> None:
    given = study(origins=["model", "person", "person", "model", "model", "model"])
    table = given.tables()["scenario_origins"]
    assert table.columns.tolist() == ["model", "scenario", "origin", "images", "correct", "accuracy"]
    assert len(table) == 2 * 4 * 2
    row = table[(table["model"] == "b") & (table["scenario"] == "image_grey") & (table["origin"] == "person")].iloc[0]
    correct = given.answers["b"]["image_grey"][1:3].sum()
    assert (row["images"], row["correct"], row["accuracy"]) == (2, correct, correct / 2)
    # what was measured before stays the same
    pd.testing.assert_frame_equal(given.tables()["scenario_accuracies"], study().tables()["scenario_accuracies"])


def test_masks_of_one_origin_have_no_table_of_origins() -> None:
    assert "scenario_origins" not in study(origins=["person"] * 6).tables()
    assert "scenario_origins" not in study().tables()


def images_of(classes: Sequence[str] | None, which: str = "union") -> StudiedImages:
    """Three images of the first three classes, and the classes of a further model."""
    rows = pd.DataFrame({"class_index": [0, 1, 2], "origin": ["person", "model", "person"]})
    rows["sets"] = [["a"] for _ in range(3)]
    weights = {"source": "timm", "name": "resnet18.a1_in1k", "weights": "w", "sha256": 64 * "0", "classes": classes}
    further = {} if classes is None else {"b": weights}
    params = StudyParams.model_validate({"images": which, "further_models": further}, context=imagenet())
    sources = Sources(images=rows, masks=rows, files={}, classes=imagenet(), study=Study(Path()))
    return studied_images(opened_of(sources, params, "a", "b"), SCENARIO_FAMILY, rows)


def test_origins_are_of_the_images() -> None:
    found = images_of(None).origins
    assert found is not None
    assert found.tolist() == ["person", "model", "person"]


def test_a_regression_needs_that_all_models_saw_all_images() -> None:
    """So a further model that has all classes of the images leaves it unchanged."""
    assert images_of(None).is_whole
    assert images_of(list(imagenet().keys)[:4]).is_whole
    assert not images_of(list(imagenet().keys)[:2]).is_whole
    assert not images_of(None, "own").is_whole
    whole = study()
    given = replace(whole, images=replace(whole.images, is_whole=True))
    assert "scenario_regression" in given.tables()
    assert "scenario_regression" not in whole.tables()


def test_cells_and_regression() -> None:
    given = study()
    cells = cells_of(given, "class_index", given.images.class_indices)
    assert len(cells) == 2 * 4 * 3
    row = cells[(cells["model"] == "b") & (cells["scenario"] == "image_grey") & (cells["class_index"] == 7)].iloc[0]
    assert (row["images"], row["correct"]) == (2, given.answers["b"]["image_grey"][2:4].sum())
    found = regression_of(given, cells)
    assert found["fitted"].iloc[0, :3].tolist() == ["a", UNCHANGED, 0]
    other = regression_of(study(baselines=Baselines(model="b", scenario="image_grey", class_index=9)), cells)
    assert other["fitted"].iloc[0, :3].tolist() == ["b", "image_grey", 9]
    # another baseline turns the sign of the difference between the models, and nothing else
    ours, theirs = (
        dict(zip(e["regression"]["factor"], e["regression"]["estimate"], strict=True))["model"] for e in (found, other)
    )
    assert ours == pytest.approx(-theirs)
    with pytest.raises(CleansetError, match="unknown baseline 'fog' of scenario"):
        regression_of(study(baselines=Baselines(scenario="fog")), cells)


def rows(**changed: object) -> pd.DataFrame:
    cells = [("x", CLEAN, 1, 1), ("x", UNCHANGED, 2, 1), ("x", "image_grey", 5, 1), ("x", "image_r", 1, 2)]
    table = pd.DataFrame(cells, columns=["file", "change", "class", "class_of_edition"])
    table["top5_class"] = [[each] for each in table.pop("class")]
    return table.assign(step=0, class_index=1, **changed)  # type: ignore[arg-type]


def read(rows: pd.DataFrame, which: str = "all") -> list[bool]:
    params = StudyParams.model_validate({"measures": {"scenarios": {"answers": which}}})
    changes = [(name, 0) for name in (CLEAN, UNCHANGED, "image_grey", "image_r")]
    values = SCENARIO_FAMILY.read(rows, params)
    found = answers_by_change(pd.Series(["x"]), rows, changes, values, np.array([True]))
    return [bool(each[0, 0]) for each in found.values()]


def test_answers_among_all_classes_and_among_those_of_the_edition() -> None:
    assert read(rows()) == [True, False, False, True]
    assert read(rows(), "restricted") == [True, True, True, False]


def test_answers_of_other_images_or_with_a_gap() -> None:
    with pytest.raises(CleansetError, match="found 'y'"):
        read(rows(file="y"))
    with pytest.raises(CleansetError, match="1 of 4 cells are missing: file x change image_r;"):
        read(rows().iloc[:3])


TRAINED = {"a": {"original": 0.8, "blur_background": 0.7, "random_background": 0.5}}


def test_score_over_networks_trained_on_each_scenario() -> None:
    """Squares of .1 and .3 around their own accuracy on originals, as table 3 has them: .1 over n - 1."""
    given = study(inner="trained", trained=TRAINED)
    lines = list(given.lines())
    correct, mu = given.correct("a", EVERY, SCENARIOS), given.answers["a"][UNCHANGED].mean()
    external = sum((correct[:, s].mean() - mu) ** 2 for s in range(3))
    found = line(lines, "union", "a", "score_as_published", "")
    assert found.value == pytest.approx(1 - (external / 2 + 0.1))
    assert found.low < found.value < found.high
    written = line(lines, "union", "a", "score_as_written", "").value
    assert written == pytest.approx(1 - ((external / 3) ** 0.5 + (0.1 / 2) ** 0.5))
    without = line(lines, "union", "b", "score_as_published", "")
    assert (np.isnan(without.value), without.problem) == (True, "no accuracies of networks trained on each scenario")


def test_what_such_a_score_is_made_of() -> None:
    table = score_parts(study(inner="trained", trained=TRAINED))
    internal = table[table["part"] == "internal"]
    assert internal["model"].tolist() == ["a", "a"]
    assert internal["level"].tolist() == ["blur_background", "random_background"]
    assert internal["squared_deviation"].tolist() == pytest.approx([0.01, 0.09])


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"inner": "trained"}, "inner: trained needs accuracies by model in trained"),
        (
            {"trained": {"a": {"original": 0.8, "fog": 0.5, "image_r": 0.5}}},
            r"trained\.a\.fog\.\[key\]\s+Value error, expected one of original, ",
        ),
        (
            {"trained": {"a": {"image_r": 0.8, "image_g": 0.5, "image_b": 0.5}}},
            r"trained\.a: accuracies of image_r, im",
        ),
        ({"trained": {"a": {"original": 0.8, "image_g": 0.5}}}, "expected original and 2 scenarios or more"),
        ({"trained": {"a": {"original": 80, "image_g": 0.5}}}, "less than or equal to 1"),
    ],
)
def test_trained_accuracies_that_cannot_be(section: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScenarioMeasures.model_validate(section)


DENSENET_WRITTEN = 0.525464
"""Score as written of table 5, whose inner part is over its 12 classes."""


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
    studied = StudiedImages(
        class_indices=classes,
        sets=[[]] * len(classes),
        roles=["a"],
        bootstrap=Bootstrap(resamples=2),
        selections=(ALL,),
        classes=imagenet(),
    )
    unchanged = columns.pop(UNCHANGED)
    of_all = columns | {CLEAN: unchanged, UNCHANGED: unchanged}
    answers = {name: each[:, np.newaxis] for name, each in of_all.items()}
    wanted = Scenarios.model_validate({"names": [*columns], "published": "folder"})
    return ScenarioStudy(studied, {"a": answers}, wanted, ScenarioMeasures())


def scores(given: ScenarioStudy) -> dict[str, float]:
    return {each.measure: each.value for each in given.lines() if each.measure.startswith("score")}


def test_the_score_over_the_classes_of_table_5() -> None:
    found = scores(table_5())
    assert round(found["score_as_written"], 6) == DENSENET_WRITTEN
    assert found["score_as_published"] == pytest.approx(1 - (0.089400 + 0.037966 * 12 / 11), abs=1e-6)


def test_the_accuracy_of_a_scenario_is_over_images_and_not_classes() -> None:
    """Where class 2 has twice as many images; the inner part is over classes all the same."""
    whole = table_5()
    places = np.concatenate([np.arange(1200), np.flatnonzero(whole.images.class_indices == 2)])
    answers = {"a": {name: each[places] for name, each in whole.answers["a"].items()}}
    images = replace(whole.images, class_indices=whole.images.class_indices[places], sets=[[]] * 1300)
    numbers = {name: np.array(each) / 100 for name, each in ximagenet12.DENSENET_BY_CLASS.items()}
    mu = (numbers["unchanged"].sum() + 0.93) / 13
    by_class = np.stack([each for name, each in numbers.items() if name != "unchanged"])
    outside = ((by_class.sum(axis=1) + by_class[:, 2]) / 13 - mu) ** 2
    inside = (by_class.mean(axis=0) - mu) ** 2
    expected = 1 - np.sqrt(outside.sum() / 8) - np.sqrt(inside.sum() / 12)
    assert scores(replace(whole, images=images, answers=answers))["score_as_written"] == pytest.approx(expected)
