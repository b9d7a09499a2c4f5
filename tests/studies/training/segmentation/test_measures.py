"""Measures and tables of segmentation from small label maps and counts, by hand."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import ndimage

from cleanset.errors import CleansetError
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.training.params import SegmentationMeasures
from cleanset.studies.training.segmentation.examples import Labels
from cleanset.studies.training.segmentation.measures import (
    boundary_band,
    boundary_distance,
    intersection_over_unions,
    label_counts,
    mean_measures,
    measures_by_class,
    summed_counts,
    tables,
)
from tests.properties import examples

_DIGITS = {".": 0, "?": 255}


def labels_of(*rows: str) -> Labels:
    """A label map: a point is background, a question mark ignored, a digit a label."""
    return np.array([[_DIGITS.get(each) if each in _DIGITS else int(each) for each in row] for row in rows], np.uint8)


def mask_of(*rows: str) -> Mask:
    return np.array([[each == "#" for each in row] for row in rows])


TRUTH = labels_of(
    "......",
    ".1111.",
    ".1111.",
    ".1111.",
    ".1111.",
    "......",
)
PREDICTED = labels_of(
    "......",
    "..1111",
    "..1111",
    "..1111",
    "..1122",
    "......",
)


def test_counts_of_two_hand_drawn_label_maps() -> None:
    # a diagonal of 8.5 pixels: the band is 1 pixel wide
    counts = label_counts(TRUTH, PREDICTED, 3)
    truth_band = mask_of("......", ".####.", ".#..#.", ".#..#.", ".####.", "......")
    predicted_band = mask_of("......", "..####", "..#..#", "..####", "..##..", "......")
    assert (boundary_band(TRUTH == 1, 1) == truth_band).all()
    assert (boundary_band(PREDICTED == 1, 1) == predicted_band).all()
    # 12 pixels each, 6 of them in both
    assert counts[1].tolist() == [16, 11, 19, 6, 18]
    assert counts[2].tolist() == [0, 0, 2, 0, 2]
    assert counts[0, :3].tolist() == [20, 16, 24]


def test_a_perfect_prediction_has_iou_1_everywhere() -> None:
    counts = label_counts(TRUTH, TRUTH, 3)
    np.testing.assert_array_equal(intersection_over_unions(counts), [1, 1, np.nan])
    assert (counts[:, 3] == counts[:, 4]).all()


def test_without_boundaries_only_their_counts_are_0() -> None:
    whole = label_counts(TRUTH, PREDICTED, 3)
    without = label_counts(TRUTH, PREDICTED, 3, with_boundaries=False)
    assert (without[:, :3] == whole[:, :3]).all()
    assert not without[:, 3:].any()


def test_label_maps_of_two_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one shape"):
        label_counts(TRUTH, PREDICTED[:, :5], 3)


@pytest.mark.parametrize(
    ("height", "width", "expected"), [(480, 640, 16), (224, 224, 6), (1, 1, 1), (30, 40, 1), (375, 500, 12)]
)
def test_the_band_is_two_hundredths_of_the_diagonal(height: int, width: int, expected: int) -> None:
    assert boundary_distance(height, width) == expected


@examples(60)
@given(
    mask=arrays.arrays(np.bool_, st.tuples(st.integers(1, 20), st.integers(1, 20))),
    distance=st.integers(1, 6),
)
def test_the_band_is_what_scipy_measures_as_near(mask: Mask, distance: int) -> None:
    """The chessboard distance of each pixel to the nearest one outside, the frame's outside included."""
    away = ndimage.distance_transform_cdt(np.pad(mask, 1), metric="chessboard")[1:-1, 1:-1]
    assert (boundary_band(mask, distance) == (mask & (away <= distance))).all()


@examples(60)
@given(
    pair=st.tuples(st.integers(1, 12), st.integers(1, 12)).flatmap(
        lambda shape: st.tuples(
            arrays.arrays(np.uint8, shape, elements=st.sampled_from([0, 1, 2, 255])),
            arrays.arrays(np.uint8, shape, elements=st.integers(0, 2)),
        )
    )
)
def test_counts_are_those_of_a_loop_over_pixels(pair: tuple[Labels, Labels]) -> None:
    truth, predicted = pair
    counts = label_counts(truth, predicted, 3)
    expected = [[0] * 3 for _ in range(3)]
    for one, other in zip(truth.ravel().tolist(), predicted.ravel().tolist(), strict=True):
        if one == 255:
            continue
        expected[one][0] += 1
        expected[one][1] += one == other
        for label in {one, other}:
            expected[label][2] += 1
    assert counts[:, :3].tolist() == expected
    # both bands are parts of their masks
    assert (counts[:, 3] <= counts[:, 1]).all()
    assert (counts[:, 4] <= counts[:, 2]).all()


def table(*rows: tuple[str, int, int, int, int, int, int, int]) -> pd.DataFrame:
    names = ["scenario", "class_index", "images", "pixels", "intersection", "union"]
    return pd.DataFrame(rows, columns=[*names, "boundary_intersection", "boundary_union"])


COUNTED = table(
    ("image_r", -1, 2, 60, 50, 80, 5, 10),
    ("image_r", 7, 2, 40, 10, 40, 1, 4),
    ("original", -1, 2, 60, 60, 60, 10, 10),
    ("original", 7, 2, 40, 30, 40, 2, 4),
    ("original", 9, 0, 0, 0, 0, 0, 0),
)


def test_measures_by_class() -> None:
    found = measures_by_class(COUNTED)
    assert found["accuracy"].tolist()[:4] == pytest.approx([50 / 60, 0.25, 1, 0.75])
    assert found["iou"].tolist()[:4] == pytest.approx([0.625, 0.25, 1, 0.75])
    assert found["boundary_iou"].tolist()[:4] == pytest.approx([0.5, 0.25, 1, 0.5])
    assert all(math.isnan(found[name].iloc[4]) for name in ("accuracy", "iou", "boundary_iou"))


def test_means_leave_out_classes_that_are_nowhere() -> None:
    found = mean_measures(COUNTED, ["scenario"]).set_index("scenario")
    expected = [[0.6, (50 / 60 + 0.25) / 2, 0.4375, 0.375], [0.9, 0.875, 0.875, 0.75]]
    np.testing.assert_allclose(found.loc[["image_r", "original"]].to_numpy("float64"), expected)


def test_folds_are_joined_by_adding_their_counts() -> None:
    twice = summed_counts(pd.concat([COUNTED, COUNTED]), ["scenario", "class_index"])
    pd.testing.assert_frame_equal(measures_by_class(twice)[["iou"]], measures_by_class(COUNTED)[["iou"]])
    assert twice["images"].tolist() == [4, 4, 4, 4, 0]


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
