"""The finished runs of a training study, read from the files that the stage train wrote."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.parsing import parse_json
from cleanset.studies.training.experiments.pairs import ComparedRun
from cleanset.studies.training.histories import History
from cleanset.studies.training.params import Network, Run, TrainingParams
from cleanset.studies.training.study import RunFiles, TrainingStudy
from cleanset.validation import join_names, shown

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
    """A network in tables, such as torchvision:resnet50 or smp:fpn/test_efficientnet."""
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
            f"{study.runs}: no finished run; expected at least one of {join_names(missing)}: run dvc repro train@NAME"
        )
    return found, missing


def read_fold(files: RunFiles, run: str, fold: str) -> FinishedFold:
    """The result of a run on a fold. Raises CleansetError for a file that is missing or damaged."""
    remedy = f"run dvc checkout train@{run}, or dvc repro --force train@{run}"
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
