"""Measures of segmentation: accuracy and intersection over union by class, over all pixels and along boundaries.

Boundary IoU compares only the pixels of both masks that are within a distance of their own mask's boundary: Cheng et
al., "Boundary IoU: Improving Object-Centric Image Segmentation Evaluation", arXiv:2103.16562. As in that paper the
distance is 2 % of the image's diagonal, and a mask that the frame cuts has a boundary there.

All measures follow from counts of pixels, so that images, folds and scenarios are joined by adding counts.
"""

import math
from typing import Final

import cv2
import numpy as np
import pandas as pd

from cleanset.statistics.basics import Floats, Ints
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.robustness.scenarios.params import ORIGINAL
from cleanset.studies.robustness.scenarios.regression import regression
from cleanset.studies.training.params import SegmentationMeasures
from cleanset.studies.training.segmentation.examples import IGNORED_LABEL, Labels

COUNTS: Final = ("pixels", "intersection", "union", "boundary_intersection", "boundary_union")
"""The counts of a class: pixels of its label, those in both or either of label map and prediction, and those in both or
either of the bands along its boundaries."""

BOUNDARY_SHARE: Final = 0.02
"""Width of the band along a boundary, as a share of the image's diagonal, as Cheng et al. have it."""

BACKGROUND_CLASS: Final = -1
"""The `class_index` of the background in tables."""

CLASS_MEASURES: Final = ("accuracy", "iou", "boundary_iou")
"""The measures of a class."""

MEANS: Final = ("pixel_accuracy", "mean_accuracy", "mean_iou", "mean_boundary_iou")
"""The measures over all classes; the background is one of them."""

LabelCounts = Ints
"""Counts by label, int64 of shape (labels, 5); the columns are COUNTS."""


def boundary_distance(height: int, width: int) -> int:
    """The width of the band along boundaries in an image of that size, in pixels, at least 1."""
    return max(1, round(BOUNDARY_SHARE * math.hypot(height, width)))


def boundary_band(mask: Mask, distance: int) -> Mask:
    """The pixels of a mask at most `distance` rows and columns from a pixel outside it or outside the frame."""
    side = 2 * distance + 1
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (side, side))
    inner = cv2.erode(mask.astype(np.uint8), kernel, borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return mask & ~inner.astype(np.bool_)


def label_counts(truth: Labels, predicted: Labels, labels: int, *, with_boundaries: bool = True) -> LabelCounts:
    """The counts of one image by label, 0 to `labels` - 1; pixels that `truth` ignores count nowhere.

    Without boundaries their counts are 0. Raises ValueError for label maps of two shapes.
    """
    if truth.shape != predicted.shape:
        raise ValueError(f"label maps of {truth.shape} and {predicted.shape}; expected one shape")
    seen = truth != IGNORED_LABEL
    counts = np.zeros((labels, len(COUNTS)), np.int64)
    distance = boundary_distance(*truth.shape)
    present = set(np.unique(truth).tolist()) | set(np.unique(predicted[seen]).tolist())
    for label in sorted(present - {IGNORED_LABEL}):
        pairs = [(truth == label, predicted == label)]
        if with_boundaries:
            pairs.append((boundary_band(pairs[0][0], distance), boundary_band(pairs[0][1], distance)))
        found = [np.count_nonzero(pairs[0][0])]
        for one, other in pairs:
            found += [np.count_nonzero(one & other & seen), np.count_nonzero((one | other) & seen)]
        counts[label, : len(found)] = found
    return counts


def intersection_over_unions(counts: LabelCounts) -> Floats:
    """The IoU of each label, 0 to 1; NaN for a label in neither label map nor prediction."""
    with np.errstate(invalid="ignore"):
        found: Floats = counts[:, 1] / counts[:, 2]
    return found


def measures_by_class(counts: pd.DataFrame) -> pd.DataFrame:
    """The rows with the columns CLASS_MEASURES added, 0 to 1; NaN for a class in neither label map nor prediction.

    `counts` has the columns COUNTS. accuracy is the share of the class's pixels that are predicted as that class.
    """
    found = counts.copy()
    # a pandas division gives NaN for 0 / 0
    found["accuracy"] = counts["intersection"] / counts["pixels"]
    found["iou"] = counts["intersection"] / counts["union"]
    found["boundary_iou"] = counts["boundary_intersection"] / counts["boundary_union"]
    return found


def mean_measures(counts: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The columns MEANS by the keys, sorted; classes in neither label map nor prediction are left out of the means.

    `counts` has the keys, a row for each class and the background, and the columns COUNTS.
    """
    grouped = measures_by_class(counts).groupby(keys, sort=True)
    sums = grouped[["intersection", "pixels"]].sum()
    found = pd.DataFrame({"pixel_accuracy": sums["intersection"] / sums["pixels"]})
    return found.join(grouped[list(CLASS_MEASURES)].mean().add_prefix("mean_")).reset_index()


def summed_counts(counts: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Images and counts added up by the keys, sorted: over folds, for example."""
    return counts.groupby(keys, sort=True)[["images", *COUNTS]].sum().reset_index()


CELL_OF_CLASS: Final = ["run", "scenario", "class_index"]


def tables(tests: pd.DataFrame, wanted: SegmentationMeasures | None = None) -> dict[str, pd.DataFrame]:
    """The CSV files of EX3 by stem, from rows of all test.csv with their run and fold; empty without rows.

    Folds are joined by adding their counts; segmentation_folds has mean and spread over them. Runs and scenarios are
    in the order of the rows. Raises CleansetError for a baseline that is unknown.
    """
    if tests.empty:
        return {}
    wanted = wanted or SegmentationMeasures.model_validate({})
    classes = measures_by_class(_ordered(summed_counts(tests, CELL_OF_CLASS), tests))
    found = {
        "segmentation_classes": classes,
        "segmentation_means": _ordered(mean_measures(classes, CELL_OF_CLASS[:2]), tests),
        "segmentation_folds": _ordered(fold_spread(tests), tests),
    }
    for name, table in segmentation_regression(classes, wanted).items():
        found[f"segmentation_{name}"] = table.assign(measure=wanted.measure)
    return found


def _ordered(table: pd.DataFrame, tests: pd.DataFrame) -> pd.DataFrame:
    """The rows with runs and scenarios in the order of the tests; what follows in a row decides within them."""
    for name in ("scenario", "run"):
        places = {value: place for place, value in enumerate(dict.fromkeys(tests[name]))}
        table = table.sort_values(name, key=lambda values, places=places: values.map(places), kind="stable")
    return table.reset_index(drop=True)


def fold_spread(tests: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread over folds of each of MEANS, by run and scenario: run, scenario, measure, folds, mean, spread.

    The spread is the standard deviation with n - 1, NaN for one fold.
    """
    means = mean_measures(tests, ["run", "scenario", "fold"])
    long = means.melt(["run", "scenario", "fold"], list(MEANS), var_name="measure")
    grouped = long.groupby(["run", "scenario", "measure"], sort=False)["value"]
    found = pd.DataFrame({"folds": grouped.size(), "mean": grouped.mean(), "spread": grouped.std(ddof=1)})
    return found.reset_index()


def segmentation_regression(classes: pd.DataFrame, wanted: SegmentationMeasures) -> dict[str, pd.DataFrame]:
    """The regression of a measure on run, scenario and class, without the background; empty with nothing to compare.

    `classes` are rows of segmentation_classes. Scenarios and classes are limited to those tested in every run; a class
    without images is left out. Raises CleansetError as `regression` does.
    """
    rows = classes[(classes["class_index"] != BACKGROUND_CLASS) & (classes["images"] > 0)]
    runs = list(dict.fromkeys(rows["run"]))
    for name in ("scenario", "class_index"):
        tested = rows.groupby(name)["run"].nunique()
        rows = rows[rows[name].map(tested) == len(runs)]
    # each factor needs a second level, else it explains nothing
    if min(rows[name].nunique() for name in CELL_OF_CLASS) < 2:
        return {}
    scenarios = list(dict.fromkeys(rows["scenario"]))
    first = ORIGINAL if ORIGINAL in scenarios else scenarios[0]
    levels = {"model": runs[0], "scenario": first, "class_index": int(rows["class_index"].min())}
    cells = rows.rename(columns={"run": "model"}).assign(accuracy=rows[wanted.measure])
    chosen = levels | wanted.baselines.model_dump(exclude_none=True)
    return regression(cells[[*levels, "accuracy"]], list(chosen.values()))
