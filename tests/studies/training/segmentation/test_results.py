"""The tables of EX3, and its regression against statsmodels."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from cleanset.errors import CleansetError
from cleanset.studies.training.params import SegmentationMeasures
from cleanset.studies.training.segmentation.measures import tables

RUNS = ("upernet", "deeplab", "fpn")
SCENARIOS = ("original", "image_r", "blur_object")
CLASSES = (3, 8, 20)


def drawn_tests(runs: tuple[str, ...] = RUNS, folds: tuple[str, ...] = ("fold_01",), seed: int = 1) -> pd.DataFrame:
    """Rows of test.csv with run and fold, drawn."""
    drawn, rows = np.random.RandomState(seed), []
    for run in runs:
        for fold in folds:
            for scenario in SCENARIOS:
                for class_index in (-1, *CLASSES):
                    pixels, predicted, both = 1000, drawn.randint(700, 1300), drawn.randint(100, 700)
                    counts = (pixels, both, pixels + predicted - both, both // 4, both // 4 + drawn.randint(1, 200))
                    rows.append((run, fold, scenario, class_index, 12 if class_index < 0 else 4, *counts))
    names = ["run", "fold", "scenario", "class_index", "images", "pixels", "intersection", "union"]
    return pd.DataFrame(rows, columns=[*names, "boundary_intersection", "boundary_union"])


def measures(**keys: object) -> SegmentationMeasures:
    return SegmentationMeasures.model_validate(keys)


def test_without_segmentation_there_are_no_tables() -> None:
    assert tables(drawn_tests().iloc[:0]) == {}


def test_runs_and_scenarios_keep_their_order_and_classes_are_sorted() -> None:
    found = tables(drawn_tests())["segmentation_classes"]
    assert list(dict.fromkeys(found["run"])) == list(RUNS)
    assert list(dict.fromkeys(found["scenario"])) == list(SCENARIOS)
    assert found["class_index"].tolist()[:4] == [-1, *CLASSES]
    means = tables(drawn_tests())["segmentation_means"]
    assert means[["run", "scenario"]].to_numpy().tolist() == [[run, each] for run in RUNS for each in SCENARIOS]


def test_folds_are_joined_and_their_spread_is_shown() -> None:
    tests = drawn_tests(folds=("fold_01", "fold_02", "fold_03"))
    found = tables(tests)
    rows = tests[(tests["run"] == "fpn") & (tests["scenario"] == "image_r")]
    by_fold = rows.groupby("fold")[["intersection", "pixels"]].sum()
    accuracies = by_fold["intersection"] / by_fold["pixels"]
    folds = found["segmentation_folds"]
    row = folds[(folds["run"] == "fpn") & (folds["scenario"] == "image_r") & (folds["measure"] == "pixel_accuracy")]
    assert row[["folds", "mean", "spread"]].to_numpy().tolist() == [
        [3, pytest.approx(accuracies.mean()), pytest.approx(accuracies.std())]
    ]
    means = found["segmentation_means"]
    joined = means[(means["run"] == "fpn") & (means["scenario"] == "image_r")]["pixel_accuracy"].item()
    assert joined == pytest.approx(rows["intersection"].sum() / rows["pixels"].sum())
    assert tables(drawn_tests())["segmentation_folds"]["spread"].isna().all()


@pytest.mark.parametrize("measure", ["accuracy", "iou", "boundary_iou"])
def test_the_regression_is_that_of_statsmodels(measure: str) -> None:
    tests = drawn_tests()
    baselines = {"model": "deeplab", "class_index": 8}
    found = tables(tests, measures(measure=measure, baselines=baselines))
    cells = found["segmentation_classes"]
    cells = cells[cells["class_index"] >= 0]
    formula = f"{measure} ~ C(run, Treatment('deeplab')) + C(scenario, Treatment('original'))"
    expected = smf.ols(f"{formula} + C(class_index, Treatment(8))", cells).fit()
    estimates = found["segmentation_regression"]
    assert (estimates["measure"] == measure).all()
    assert sorted(estimates["estimate"]) == pytest.approx(sorted(expected.params))
    assert sorted(estimates["p"]) == pytest.approx(sorted(expected.pvalues))
    anova = found["segmentation_anova"].set_index("source")
    assert float(str(anova.loc["regression", "f"])) == pytest.approx(expected.fvalue)


def test_the_baselines_are_the_first_run_original_and_the_first_class() -> None:
    found = tables(drawn_tests())["segmentation_regression"]
    levels = {factor: set(rows["level"]) for factor, rows in found.groupby("factor")}
    assert levels["model"] == set(RUNS) - {"upernet"}
    assert levels["scenario"] == set(SCENARIOS) - {"original"}
    assert levels["class_index"] == set(CLASSES) - {3}


def test_the_regression_takes_what_all_runs_were_tested_on() -> None:
    tests = drawn_tests()
    tests = tests[~((tests["run"] == "fpn") & (tests["scenario"] == "image_r"))]
    found = tables(tests)["segmentation_fitted"]
    assert set(found["scenario"]) == {"original", "blur_object"}


def test_one_run_has_no_regression() -> None:
    assert set(tables(drawn_tests(runs=("fpn",)))) == {
        "segmentation_classes",
        "segmentation_means",
        "segmentation_folds",
    }


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(CleansetError, match="unknown baseline 'unet' of model; expected one of deeplab, fpn, upernet"):
        tables(drawn_tests(), measures(baselines={"model": "unet"}))
