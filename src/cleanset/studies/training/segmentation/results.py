"""Tables of EX3: measures by network, scenario and class, and the regression of table 6."""

from typing import Final

import pandas as pd

from cleanset.studies.robustness.scenarios.regression import Regression, regression
from cleanset.studies.training.params import ORIGINAL, SegmentationMeasures
from cleanset.studies.training.segmentation.measures import (
    BACKGROUND_CLASS,
    MEANS,
    mean_measures,
    measures_by_class,
    summed_counts,
)

CELL: Final = ["run", "scenario", "class_index"]


def tables(tests: pd.DataFrame, wanted: SegmentationMeasures | None = None) -> dict[str, pd.DataFrame]:
    """The CSV files of EX3 by stem, from rows of all test.csv with their run and fold; none for no rows.

    Folds are joined by adding their counts; segmentation_folds has mean and spread over them. Runs and scenarios are
    in the order of the rows. Raises CleansetError for a baseline that is unknown.
    """
    if tests.empty:
        return {}
    wanted = wanted or SegmentationMeasures.model_validate({})
    classes = measures_by_class(_ordered(summed_counts(tests, CELL), tests))
    found = {
        "segmentation_classes": classes,
        "segmentation_means": _ordered(mean_measures(classes, CELL[:2]), tests),
        "segmentation_folds": _ordered(fold_spread(tests), tests),
    }
    fitted = segmentation_regression(classes, wanted)
    if fitted is not None:
        found["segmentation_regression"] = fitted.estimates.assign(measure=wanted.measure)
        found["segmentation_anova"] = fitted.anova.assign(measure=wanted.measure)
        found["segmentation_fitted"] = fitted.fitted.assign(measure=wanted.measure)
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


def segmentation_regression(classes: pd.DataFrame, wanted: SegmentationMeasures) -> Regression | None:
    """The regression of a measure on run, scenario and class, without the background; None with nothing to compare.

    `classes` are rows of segmentation_classes. Scenarios and classes are those in which every run was tested; a class
    without images is left out. Raises CleansetError as `regression` does.
    """
    rows = classes[(classes["class_index"] != BACKGROUND_CLASS) & (classes["images"] > 0)]
    runs = list(dict.fromkeys(rows["run"]))
    for name in ("scenario", "class_index"):
        tested = rows.groupby(name)["run"].nunique()
        rows = rows[rows[name].map(tested) == len(runs)]
    levels = [rows[name].nunique() for name in CELL]
    # each factor needs a second level, else it explains nothing
    if min(levels, default=0) < 2:
        return None
    scenarios = list(dict.fromkeys(rows["scenario"]))
    first = ORIGINAL if ORIGINAL in scenarios else scenarios[0]
    chosen = wanted.baselines
    cells = rows.rename(columns={"run": "model"}).assign(accuracy=rows[wanted.measure])
    return regression(
        cells[["model", "scenario", "class_index", "accuracy"]],
        (
            runs[0] if chosen.model is None else chosen.model,
            first if chosen.scenario is None else chosen.scenario,
            int(rows["class_index"].min()) if chosen.class_index is None else chosen.class_index,
        ),
    )
