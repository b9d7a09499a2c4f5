"""Accuracies by scenario: their mean, spread and interval over folds, from counts on held-out images."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Interval
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
    """Images tested by images trained on, in a fold that tests one of so many parts, also where few folds are run."""
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


def mean_accuracies(by_fold: pd.DataFrame, parts: int) -> pd.DataFrame:
    """By run and scenario: folds, images, correct ones, the mean accuracy over folds, its spread and interval, loss.

    `spread`: the standard deviation over folds with n - 1, NaN for one. `parts`: those that the images are divided
    into, of which a fold tests one. Rows of `fold_accuracies`.
    """
    rows = []
    for (run, scenario), found in by_fold.groupby(["run", "scenario"], sort=False):
        accuracies = found["accuracy"].to_numpy("float64")
        images = int(found["images"].sum())
        correct = int(found["correct"].sum())
        interval = share_interval(accuracies, correct, images, parts)
        rows.append(
            {
                "run": run,
                "scenario": scenario,
                "folds": len(found),
                "images": images,
                "correct": correct,
                "accuracy": accuracies.mean(),
                "spread": float(accuracies.std(ddof=1)) if len(found) > 1 else math.nan,
                "low": interval.low,
                "high": interval.high,
                "loss": found["loss"].mean(),
            }
        )
    columns = ["run", "scenario", "folds", *COUNTED, "accuracy", "spread", "low", "high", "loss"]
    return pd.DataFrame(rows, columns=columns)


def share_interval(by_fold: NDArray[np.float64], correct: int, images: int, parts: int) -> Interval:
    """The interval of a mean share: over folds and over images, whichever end lies further out, within 0 to 1.

    Folds that agree by chance would have an interval without a width; images alone leave out how trainings differ.
    """
    low, high = wilson(correct, images)
    over_folds = fold_interval(by_fold, tested_to_trained(parts))
    # one fold has no interval over folds: fmin and fmax leave NaN out
    return Interval(max(0.0, float(np.fmin(low, over_folds.low))), min(1.0, float(np.fmax(high, over_folds.high))))
