"""The histories of finished runs as rows: every value by epoch, smoothed, and the last ones."""

from collections.abc import Iterable

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.studies.training.finished import FinishedRun

SMOOTHING = 0.6
"""Weight of what came before: the default of TensorBoard, whose curves XIMAGENET-12 shows in figure 3."""
DATA_PARTS = ("train", "validation")
"""The parts of the data that a history has values of."""
VALUE = ["run", "fold", "measure", "part"]
"""The columns that name the subject of a value."""


def smoothed(values: "pd.Series[float]", weight: float = SMOOTHING) -> "pd.Series[float]":
    """The exponential moving average of values in order, without the pull of its beginning.

    Each is divided by the sum of the weights so far, as TensorBoard does, so that the first equals the first value.
    """
    # as a loop: the sum of pandas leaves out infinite values, and differs in the last digit
    found: list[float] = []
    average = 0.0
    total = 0.0
    for value in values:
        average = weight * average + (1 - weight) * value
        total = weight * total + (1 - weight)
        found.append(average / total)
    return pd.Series(found, values.index, "float64")


def history_rows(runs: Iterable[FinishedRun]) -> pd.DataFrame:
    """Every value of all histories, a row each: run, fold, measure, part, epoch, step, value, smoothed."""
    found = []
    for run in runs:
        for fold in run.folds:
            history = fold.history
            names = [str(name).partition("_") for name in history]
            for measure in dict.fromkeys(rest for part, _, rest in names if part in DATA_PARTS):
                for part in (each for each in DATA_PARTS if f"{each}_{measure}" in history):
                    values = history[["epoch", "step"]].assign(value=history[f"{part}_{measure}"].astype(float))
                    values = values.dropna(subset="value").assign(run=run.name, fold=fold.fold, measure=measure)
                    found.append(values.assign(part=part, smoothed=smoothed(values["value"])))
    return pd.concat(found, ignore_index=True)[[*VALUE, "epoch", "step", "value", "smoothed"]]


def final_values(runs: Iterable[FinishedRun], rows: pd.DataFrame) -> pd.DataFrame:
    """The last value of each measure and part, smoothed and raw, and its place, from `history_rows` of the runs.

    `chosen`: the epoch whose weights are kept; `value_of_chosen`: NaN if it was not measured then. Raises
    CleansetError for a chosen epoch that is not there.
    """
    chosen = []
    for run in runs:
        for fold in run.folds:
            epoch = fold.record.epoch
            if epoch not in fold.history["epoch"].tolist():
                raise CleansetError(
                    f"run {run.name}, {fold.fold}: epoch {epoch} is chosen, but its history has {len(fold.history)} "
                    "epochs; expected that epoch: train the run again"
                )
            chosen.append((run.name, fold.fold, epoch))
    last = rows.groupby(VALUE, sort=False).tail(1)
    last = last.merge(pd.DataFrame(chosen, columns=["run", "fold", "chosen"]), on=["run", "fold"])
    kept = rows[[*VALUE, "epoch", "value"]].rename(columns={"epoch": "chosen", "value": "value_of_chosen"})
    found = last.merge(kept, how="left", on=[*VALUE, "chosen"])
    return found[[*VALUE, "smoothed", "value", "epoch", "step", "chosen", "value_of_chosen"]]
