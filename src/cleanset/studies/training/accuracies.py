"""Accuracies by scenario: their mean, spread and interval over folds, from counts on held-out images."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.evaluation.measures import NAN, Measure, columns_of
from cleanset.statistics.basics import Floats, Interval
from cleanset.statistics.differences import fold_interval
from cleanset.statistics.shares import wilson
from cleanset.studies.robustness.scenarios.params import ORIGINAL, SCENARIOS

CELL = ["run", "fold", "scenario", "class_index"]
"""The columns that name a row of a test table."""
COUNTED = ["images", "correct"]
"""The columns of counts of images."""


def in_order(scenarios: Iterable[str]) -> list[str]:
    """The scenarios, each once: originals, then the benchmark's in its order, then others by name."""
    wanted = set(scenarios)
    known = [name for name in (ORIGINAL, *SCENARIOS) if name in wanted]
    return known + sorted(wanted.difference(known))


def tested_to_trained(parts: int) -> float:
    """Images tested by images trained on, in a fold that tests one of some parts, even if few folds are run."""
    return 1 / (parts - 1)


def fold_accuracies(tests: pd.DataFrame) -> pd.DataFrame:
    """Images, correct ones, accuracy and mean loss by run, fold and scenario, from rows by class index besides.

    Raises CleansetError for a cell that is there twice, or has no images or more correct ones than images.
    """
    twice = tests[tests.duplicated(CELL)]
    if len(twice):
        raise CleansetError(f"{cell_name(twice.iloc[0])}: counted twice; expected one row: train the run again")
    wrong = tests[(tests["images"] < 1) | (tests["correct"] < 0) | (tests["correct"] > tests["images"])]
    if len(wrong):
        first = wrong.iloc[0]
        raise CleansetError(
            f"{cell_name(first)}: {first['correct']} of {first['images']} images correct; expected a share of at least "
            "one image: train the run again"
        )
    sums = tests.assign(weighted=tests["loss"] * tests["images"])
    found = sums.groupby(CELL[:3], sort=False)[[*COUNTED, "weighted"]].sum().reset_index()
    found["accuracy"] = found["correct"] / found["images"]
    found["loss"] = found["weighted"] / found["images"]
    return found.drop(columns="weighted")


def cell_name(row: pd.Series) -> str:
    """A row of a test table in a message."""
    return f"run {row['run']}, {row['fold']}, {row['scenario']}, class {row['class_index']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldMean(Measure):
    """The mean accuracy over the folds of a run, the `model`, in a scenario, the `change`."""

    folds: int = 0
    """The number of folds."""
    correct: int = 0
    """The number of correctly classified images."""
    spread: float = NAN
    """The standard deviation over folds with n - 1; NaN for one."""
    loss: float = NAN
    """The mean loss over folds."""


ACCURACY_COLUMNS = {
    **columns_of("folds", *COUNTED, run="model", scenario="change"),
    **columns_of("spread", "low", "high", "loss", accuracy="value"),
}
"""The columns of accuracies.csv."""

Means = Mapping[tuple[str, str], FoldMean]
"""Mean accuracies by run and scenario."""


def mean_accuracies(by_fold: pd.DataFrame, parts: int) -> Means:
    """The mean accuracy of each run in each scenario, from rows of `fold_accuracies`.

    `parts`: those that the images are divided into; a fold tests one.
    """
    means: dict[tuple[str, str], FoldMean] = {}
    for key, found in by_fold.groupby(["run", "scenario"], sort=False):
        run, scenario = map(str, key)
        accuracies = found["accuracy"].to_numpy("float64")
        images = int(found["images"].sum())
        correct = int(found["correct"].sum())
        means[run, scenario] = FoldMean.of(
            float(accuracies.mean()),
            accuracy_interval(accuracies, correct, images, parts),
            measure="accuracy",
            change=scenario,
            model=run,
            images=images,
            correct=correct,
            folds=len(found),
            spread=float(accuracies.std(ddof=1)) if len(found) > 1 else NAN,
            loss=float(found["loss"].mean()),
        )
    return means


def accuracy_interval(by_fold: Floats, correct: int, images: int, parts: int) -> Interval:
    """The interval of a mean share: over folds and over images, whichever end is further out, within 0 to 1.

    Folds that agree by chance would have an interval without a width; images alone leave out how trainings differ.
    """
    low, high = wilson(correct, images)
    over_folds = fold_interval(by_fold, tested_to_trained(parts))
    # one fold has no interval over folds: fmin and fmax leave NaN out
    return Interval(max(0.0, float(np.fmin(low, over_folds.low))), min(1.0, float(np.fmax(high, over_folds.high))))
