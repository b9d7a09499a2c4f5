"""Histories of training: smoothed, their final values, and the order in which they are drawn and written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError

Floats = npt.NDArray[np.float64]

SMOOTHING = 0.6
"""Weight of what came before; the default of TensorBoard, whose curves source 002 shows in figure 3."""
PARTS = ("train", "validation")
"""The parts of the data that a history has values of."""


def smoothed(values: npt.ArrayLike, weight: float = SMOOTHING) -> Floats:
    """The exponential moving average of values in order, without the pull of its beginning; NaN is passed over.

    Each is divided by the sum of the weights so far, as TensorBoard does, so that the first equals the first value.
    Raises ValueError unless 0 <= weight < 1.
    """
    if not 0 <= weight < 1:
        raise ValueError(f"weight {weight}; expected 0 or more and less than 1")
    found = np.asarray(values, np.float64)
    average, total, smooth = 0.0, 0.0, np.full(len(found), np.nan)
    for place, value in enumerate(found):
        if np.isnan(value):
            continue
        average = weight * average + (1 - weight) * value
        total = weight * total + (1 - weight)
        smooth[place] = average / total
    return smooth


class FinalValue(NamedTuple):
    """The last value of a history, smoothed and raw, and its place; `chosen`: the epoch whose weights are kept."""

    run: str
    fold: str
    measure: str
    part: str
    smoothed: float
    value: float
    epoch: int
    step: int
    chosen: int
    value_of_chosen: float


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The history of a run on a fold: rows by epoch; `chosen_epoch`: the one whose weights are kept."""

    run: str
    fold: str
    rows: pd.DataFrame
    chosen_epoch: int

    @property
    def measures(self) -> list[str]:
        """The names of what was measured, such as loss and accuracy, in the order of the columns."""
        names = [column.partition("_") for column in self.rows.columns]
        return list(dict.fromkeys(rest for part, _, rest in names if part in PARTS and rest))

    def values(self, measure: str, part: str) -> Floats:
        """A measure by epoch; NaN where it was not taken."""
        name = f"{part}_{measure}"
        if name not in self.rows:
            return np.full(len(self.rows), np.nan)
        return self.rows[name].to_numpy("float64")

    def final_values(self) -> list[FinalValue]:
        """The last value of each measure and part. Raises CleansetError if the chosen epoch is not in the rows."""
        epochs = self.rows["epoch"].tolist()
        if self.chosen_epoch not in epochs:
            raise CleansetError(
                f"run {self.run}, {self.fold}: epoch {self.chosen_epoch} is chosen, but its history has "
                f"{len(epochs)} epochs; expected that epoch: train the run again"
            )
        found, chosen = [], epochs.index(self.chosen_epoch)
        for measure in self.measures:
            for part in PARTS:
                values = self.values(measure, part)
                measured = np.flatnonzero(~np.isnan(values))
                if not len(measured):
                    continue
                last = int(measured[-1])
                smooth, raw = float(smoothed(values)[last]), float(values[last])
                place = int(self.rows["epoch"].iloc[last]), int(self.rows["step"].iloc[last])
                kept = float(values[chosen])
                found.append(
                    FinalValue(self.run, self.fold, measure, part, smooth, raw, *place, self.chosen_epoch, kept)
                )
        return found


def plotted(histories: Iterable[History]) -> pd.DataFrame:
    """Every value of all histories, a row each: run, fold, measure, part, epoch, step, value, smoothed."""
    parts = []
    for each in histories:
        for measure in each.measures:
            for part in PARTS:
                values = each.values(measure, part)
                rows = pd.DataFrame({"epoch": each.rows["epoch"], "step": each.rows["step"], "value": values})
                rows["smoothed"] = smoothed(values)
                names = {"run": each.run, "fold": each.fold, "measure": measure, "part": part}
                parts.append(rows.dropna(subset="value").assign(**names))
    columns = ["run", "fold", "measure", "part", "epoch", "step", "value", "smoothed"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def over_folds(histories: Sequence[History], measure: str, part: str) -> tuple[Floats, Floats]:
    """Epochs, and the mean over the folds of one run that have reached each epoch."""
    rows = pd.concat([
        pd.DataFrame({"epoch": each.rows["epoch"].to_numpy(), "value": each.values(measure, part)})
        for each in histories
    ]).dropna()  # fmt: skip
    means = rows.groupby("epoch")["value"].mean()
    return means.index.to_numpy("float64"), means.to_numpy("float64")
