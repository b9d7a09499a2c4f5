"""The tables of EX3: measures by run, scenario and class, their spread over folds, and the regression of table 6."""

from typing import Final

import pandas as pd

from cleanset.studies.robustness.scenarios.params import ORIGINAL
from cleanset.studies.robustness.scenarios.regression import regression
from cleanset.studies.training.params import SegmentationMeasures
from cleanset.studies.training.segmentation.measures import (
    BACKGROUND_CLASS,
    MEANS,
    mean_measures,
    measures_by_class,
    summed_counts,
)

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
