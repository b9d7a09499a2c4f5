"""Accuracies of trained networks by scenario, as mean and spread over folds, from their counts on held-out images."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.statistics.bootstrap import Interval
from cleanset.statistics.folds import fold_interval
from cleanset.statistics.shares import wilson
from cleanset.studies.robustness.scenarios.params import SCENARIOS
from cleanset.studies.training.params import ORIGINAL

CELL = ["run", "fold", "scenario", "class_index"]
COUNTED = ["images", "correct"]
SPLIT_TESTED_TO_TRAINED = 0.25
"""Images tested by images trained on, of one split of 80 and 20."""


def in_order(scenarios: Iterable[str]) -> list[str]:
    """The scenarios, each once: originals, then those of the benchmark in its order, then others by name."""
    wanted = set(scenarios)
    known = [name for name in (ORIGINAL, *SCENARIOS) if name in wanted]
    return known + sorted(wanted.difference(known))


def tested_to_trained(folds: int) -> float:
    """Images tested by images trained on: of a cross-validation, or of one split of 80 and 20."""
    return SPLIT_TESTED_TO_TRAINED if folds == 1 else 1 / (folds - 1)


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


def mean_accuracies(by_fold: pd.DataFrame) -> pd.DataFrame:
    """By run and scenario: folds, images, correct ones, the mean accuracy over folds, its spread and interval, loss.

    `spread`: the standard deviation over folds with n - 1, NaN for one. Rows of `fold_accuracies`.
    """
    rows = []
    for (run, scenario), found in by_fold.groupby(["run", "scenario"], sort=False):
        accuracies = found["accuracy"].to_numpy("float64")
        images, correct = int(found["images"].sum()), int(found["correct"].sum())
        ends = share_interval(accuracies, correct, images)
        spread = float(accuracies.std(ddof=1)) if len(found) > 1 else math.nan
        mean = float(accuracies.mean())
        loss = float(found["loss"].mean())
        rows.append((run, scenario, len(found), images, correct, mean, spread, ends.low, ends.high, loss))
    names = ["run", "scenario", "folds", *COUNTED, "accuracy", "spread", "low", "high", "loss"]
    return pd.DataFrame(rows, columns=names)


def share_interval(by_fold: np.ndarray, correct: int, images: int) -> Interval:
    """The interval of a mean share: over folds and over images, whichever end lies further out, within 0 to 1.

    Folds that agree by chance would have an interval without a width; images alone leave out how trainings differ.
    """
    low, high = wilson(correct, images)
    over_folds = fold_interval(by_fold, tested_to_trained(len(by_fold)))
    # one fold has no interval over folds: fmin and fmax leave NaN out
    return Interval(max(0.0, float(np.fmin(low, over_folds.low))), min(1.0, float(np.fmax(high, over_folds.high))))


def paired_folds(by_fold: pd.DataFrame, run: str, scenario: str, other: str, other_scenario: str) -> pd.DataFrame:
    """The rows of `fold_accuracies` of two runs by the folds that both have; columns of the other end in _other."""
    one = _of(by_fold, run, scenario)
    return one.merge(_of(by_fold, other, other_scenario), on="fold", suffixes=("", "_other"))


def _of(by_fold: pd.DataFrame, run: str, scenario: str) -> pd.DataFrame:
    return by_fold[(by_fold["run"] == run) & (by_fold["scenario"] == scenario)]


def check_scenarios(found: Sequence[str], run: str, wanted: Iterable[str]) -> None:
    """Raise CleansetError naming the first scenario that a run was not tested on."""
    for name in wanted:
        if name not in found:
            raise CleansetError(f"run {run}: not tested on {name}; expected it in its test.csv: train the run again")
