"""Finished runs of a training study, read from the output of stage `train`, and the rows of their histories."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from cleanset.csv_files import read_frame
from cleanset.errors import CleansetError
from cleanset.json_files import json_record
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.run_params import Network, Run
from cleanset.studies.training.study import RunFiles, TrainingStudy
from cleanset.validation import join_names

# weight of what came before: the default of TensorBoard, whose curves source 002 shows in figure 3
SMOOTHING = 0.6
DATA_PARTS = ("train", "validation")
"""The parts of the data that a history has values of."""
VALUE = ["run", "fold", "measure", "part"]
"""The columns that name the subject of a value."""


class FinishedFold(NamedTuple):
    """The result of a run on a fold: its record, its history and its test results on the images left out."""

    fold: str
    record: Mapping[str, Any]
    history: pd.DataFrame
    test: pd.DataFrame


class FinishedRun(NamedTuple):
    """A run whose folds are all finished, with its settings."""

    name: str
    run: Run
    folds: Sequence[FinishedFold]

    @property
    def network(self) -> str:
        """The network in tables: source and name, and the encoder of a segmentation network."""
        return network_name(self.run.network)

    @property
    def parameters(self) -> float:
        """The network's parameters in millions."""
        return float(self.folds[0].record["parameters_in_millions"])

    def tests(self) -> pd.DataFrame:
        """The rows of all folds' test tables, with run and fold before them; empty for a run that tests nothing."""
        found = [each.test.assign(run=self.name, fold=each.fold) for each in self.folds if len(each.test)]
        if not found:
            return pd.DataFrame()
        table = pd.concat(found, ignore_index=True)
        return table[["run", "fold", *self.folds[0].test.columns]]


def network_name(network: Network) -> str:
    """A network in tables, such as torchvision:resnet50 or smp:fpn/test_efficientnet; a custom one by its callable."""
    if network.source == "module":
        return network.name
    name = f"{network.source}:{network.name}" + (f"/{network.encoder}" if network.encoder else "")
    return f"{name}, pretrained" if network.pretrained else name


def finished_runs(study: TrainingStudy, params: TrainingParams) -> tuple[list[FinishedRun], list[str]]:
    """The finished runs in the order of the params, and the names of those that have not been trained.

    Raises CleansetError if no run is finished, and for a file that is missing or damaged.
    """
    found, missing = [], []
    for name, run in params.runs.items():
        folder = study.run(name)
        if not folder.is_dir():
            missing.append(name)
            continue
        folds = [read_fold(study.fold(name, fold), name, fold) for fold in run.fold_names()]
        found.append(FinishedRun(name, run, folds))
    if not found:
        raise CleansetError(
            f"{study.runs}: no finished run; expected at least one of {join_names(missing)}: run its stage "
            "(dvc stage list)"
        )
    return found, missing


def read_fold(files: RunFiles, run: str, fold: str) -> FinishedFold:
    """The result of a run on a fold. Raises CleansetError for a file that is missing or damaged."""
    remedy = f"run dvc checkout data/runs/{run}, or train it again"
    record = json_record(files.record, "the record of a run", remedy, ("parameters_in_millions", "epoch"))
    history = read_frame(files.history, ("epoch", "step"), remedy)
    tested = ("scenario", "class_index", "images")
    test = read_frame(files.test, tested, remedy) if files.test.is_file() else pd.DataFrame()
    return FinishedFold(fold, record, history, test)


def smoothed(values: "pd.Series[float]", weight: float = SMOOTHING) -> "pd.Series[float]":
    """The exponential moving average of values in order, without the pull of its beginning.

    Each is divided by the sum of the weights so far, as TensorBoard does, so that the first equals the first value.
    """
    # as a loop: the sum of pandas leaves out infinite values, and differs in the last digit
    found, average, total = list[float](), 0.0, 0.0
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
            history, names = fold.history, [str(name).partition("_") for name in fold.history]
            for measure in dict.fromkeys(rest for part, _, rest in names if part in DATA_PARTS):
                for part in (each for each in DATA_PARTS if f"{each}_{measure}" in history):
                    values = history[["epoch", "step"]].assign(value=history[f"{part}_{measure}"].astype(float))
                    values = values.dropna(subset="value").assign(run=run.name, fold=fold.fold, measure=measure)
                    found.append(values.assign(part=part, smoothed=smoothed(values["value"])))
    return pd.concat(found, ignore_index=True)[[*VALUE, "epoch", "step", "value", "smoothed"]]


def final_values(runs: Iterable[FinishedRun], rows: pd.DataFrame) -> pd.DataFrame:
    """The last value of each measure and part, smoothed and raw, and its place, from `history_rows` of the runs.

    `chosen`: the epoch whose weights are kept; `value_of_chosen`: NaN where it was not measured then. Raises
    CleansetError for a chosen epoch that is not there.
    """
    chosen = []
    for run in runs:
        for fold in run.folds:
            epoch = int(fold.record["epoch"])
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
