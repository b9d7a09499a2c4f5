"""Finished runs of a training study, read from the files that the stage train wrote: histories, and tables of all."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.parsing import parse_json
from cleanset.studies.training.experiments import (
    ComparedRun,
    Pair,
    TrainedScore,
    deviations,
    fold_accuracies,
    gains,
    inner_section,
    mean_accuracies,
    pairs,
    table_2,
    trained_scores,
)
from cleanset.studies.training.params import Network, Run, SegmentationMeasures, TrainingParams
from cleanset.studies.training.segmentation.measures import tables as segmentation_tables
from cleanset.studies.training.study import RunFiles, TrainingStudy
from cleanset.validation import join_names, shown

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

    def check_chosen(self) -> None:
        """Raise CleansetError if the chosen epoch is not in the rows."""
        if self.chosen_epoch not in self.rows["epoch"].tolist():
            raise CleansetError(
                f"run {self.run}, {self.fold}: epoch {self.chosen_epoch} is chosen, but its history has "
                f"{len(self.rows)} epochs; expected that epoch: train the run again"
            )


VALUE = ["run", "fold", "measure", "part"]
"""The columns that name what a value is of."""


def history_rows(histories: Iterable[History]) -> pd.DataFrame:
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
    columns = [*VALUE, "epoch", "step", "value", "smoothed"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def final_values(histories: Iterable[History], rows: pd.DataFrame) -> pd.DataFrame:
    """The last value of each measure and part, smoothed and raw, and its place, from `history_rows` of the histories.

    `chosen`: the epoch whose weights are kept; `value_of_chosen`: NaN where it was not measured then. Raises
    CleansetError for a chosen epoch that is not there.
    """
    chosen = []
    for each in histories:
        each.check_chosen()
        chosen.append((each.run, each.fold, each.chosen_epoch))
    last = rows.groupby(VALUE, sort=False).tail(1)
    last = last.merge(pd.DataFrame(chosen, columns=["run", "fold", "chosen"]), on=["run", "fold"])
    kept = rows[[*VALUE, "epoch", "value"]].rename(columns={"epoch": "chosen", "value": "value_of_chosen"})
    found = last.merge(kept, how="left", on=[*VALUE, "chosen"])
    return found[[*VALUE, "smoothed", "value", "epoch", "step", "chosen", "value_of_chosen"]]


def over_folds(histories: Sequence[History], measure: str, part: str) -> tuple[Floats, Floats]:
    """Epochs, and the mean over the folds of one run that have reached each epoch."""
    rows = pd.concat([
        pd.DataFrame({"epoch": each.rows["epoch"].to_numpy(), "value": each.values(measure, part)})
        for each in histories
    ]).dropna()  # fmt: skip
    means = rows.groupby("epoch")["value"].mean()
    return means.index.to_numpy("float64"), means.to_numpy("float64")


NOT_COMPARED = {"scenario", "test", "trained_on"}
"""Settings in which EX1 and EX2 of the same network differ."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedFold:
    """The result of a run on a fold: its record, its history and what its weights give on the images left out."""

    fold: str
    record: Mapping[str, Any]
    history: pd.DataFrame
    test: pd.DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class FinishedRun:
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

    def compared(self) -> ComparedRun:
        """The run with all that it is compared by with runs on other scenarios."""
        settings = self.run.model_dump(mode="json", exclude=NOT_COMPARED)
        # as text: sections within have no order of their own
        texts = {key: json.dumps(value, sort_keys=True) for key, value in settings.items()}
        run = self.run
        return ComparedRun(self.name, self.network, run.recipe, run.scenario, run.protocol, self.parameters, texts)

    def histories(self) -> list[History]:
        """The history of each fold."""
        return [History(self.name, each.fold, each.history, int(each.record["epoch"])) for each in self.folds]

    def tests(self) -> pd.DataFrame:
        """The rows of all folds' test tables, with run and fold before them; none for a run that tests nothing."""
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

    Raises CleansetError if none is finished, and for a file that is missing or damaged.
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
    record = parse_json(read_text(files.record, remedy), str(files.record), f"the record of a run: {remedy}")
    for key in ("parameters_in_millions", "epoch"):
        if not isinstance(record, dict) or not isinstance(record.get(key), int | float):
            raise CleansetError(f"{files.record}: no {key} as a number; expected the record of a run: {remedy}")
    history = _read_csv(files.history, ("epoch", "step"), remedy)
    test = _read_csv(files.test, ("scenario", "class_index", "images"), remedy) if files.test.is_file() else None
    return FinishedFold(fold, record, history, test if test is not None else pd.DataFrame())


def _read_csv(path: Path, columns: Iterable[str], remedy: str) -> pd.DataFrame:
    """A CSV file with at least these columns."""
    read_text(path, remedy)
    try:
        found = pd.read_csv(path)
    except (ValueError, pd.errors.ParserError) as error:
        raise CleansetError(f"{path}: no CSV table ({str(error).splitlines()[0]}); {remedy}") from None
    for name in columns:
        if name not in found:
            raise CleansetError(f"{path}: no column {shown(name)}; found {', '.join(found.columns)}: {remedy}")
    return found


DIGITS = 6
"""Decimals of numbers in tables and metrics: processors differ in the last digits of sums."""
LEVELS = 255
"""Distances in an image's values are shown as fractions of this."""


class Summary(NamedTuple):
    """The tables by the stem of their CSV file, and EX1 beside EX2."""

    tables: Mapping[str, pd.DataFrame]
    pairs: Sequence[Pair]
    trained: Mapping[str, Mapping[str, float]]

    def records(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, NaN as None; none without the table."""
        table = self.tables.get(name)
        rows = [] if table is None else table.astype(object).where(table.notna(), None).to_dict("records")
        return [{str(key): value for key, value in row.items()} for row in rows]


def summarise(runs: Sequence[FinishedRun], measures: SegmentationMeasures | None = None) -> Summary:
    """All tables of finished runs."""
    histories = [each for run in runs for each in run.histories()]
    rows = history_rows(histories)
    tables = {
        "runs": pd.DataFrame([_run_row(each) for each in runs]),
        "histories": rows,
        "final_values": final_values(histories, rows),
    }
    found, trained = list[Pair](), dict[str, dict[str, float]]()
    tests = [each.tests() for each in runs if each.run.task == "classification"]
    classified = pd.concat(tests, ignore_index=True) if any(map(len, tests)) else None
    if classified is not None:
        by_fold = fold_accuracies(classified)
        tables |= {
            "class_accuracies": classified,
            "fold_accuracies": by_fold,
            "accuracies": mean_accuracies(by_fold),
        }
        found = pairs(each.compared() for each in runs if each.run.task == "classification" and len(each.tests()))
        if found:
            deviating = deviations(found, by_fold)
            tables |= {
                "gains": gains(found, by_fold),
                "table_2": table_2(found, by_fold),
                "deviations": deviating,
                "trained_scores": pd.DataFrame(trained_scores(found, deviating), columns=TrainedScore._fields),
            }
            trained = inner_section(found, by_fold)
    segmented = [each.tests() for each in runs if each.run.task == "segmentation"]
    if any(map(len, segmented)):
        tables |= segmentation_tables(pd.concat(segmented, ignore_index=True), measures)
    return Summary({name: table.round(DIGITS) for name, table in tables.items()}, found, trained)


def _run_row(each: FinishedRun) -> dict[str, Any]:
    run, records = each.run, [fold.record for fold in each.folds]
    return {
        "run": each.name,
        "task": run.task,
        "recipe": run.recipe,
        "settings": recipe_text(run),
        "network": each.network,
        "parameters_in_millions": each.parameters,
        "scenario": run.scenario,
        "protocol": run.protocol,
        "size": run.size,
        "folds": len(records),
        "training_images": max(record.get("training_images", 0) for record in records),
        "epochs": round(float(np.mean([record["epochs"] for record in records])), 1),
        "kept_epochs": " ".join(str(int(record["epoch"])) for record in records),
        "kept": records[0].get("kept", "trained by an earlier version"),
        "trained_on": " ".join(run.trained_on or []),
    }


def recipe_text(run: Run) -> str:
    """The settings of a run's recipe, as text; distances as fractions of 255, those left out not at all."""
    if run.recipe == "standard":
        return ""
    section = getattr(run, "augmix" if run.recipe == "augmix_mixing" else run.recipe)
    found = []
    for key, value in section.model_dump(exclude_none=True).items():
        if run.recipe == "augmix_mixing" and key == "consistency":
            continue
        if key in ("eps", "step"):
            value = f"{value * LEVELS:.4g}/{LEVELS}"
        text = {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
        found.append(f"{key.replace('_', ' ')} {text}")
    return ", ".join(found)
