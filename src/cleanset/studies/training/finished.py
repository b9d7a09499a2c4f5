"""Finished runs of a training study, read from the output of stage `train`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import read_frame
from cleanset.plumbing.files import read_bytes, sha256_of
from cleanset.plumbing.json_files import JsonMapping, JsonObject, json_record, parse_json
from cleanset.plumbing.validation import join_names
from cleanset.scoring.validity import MadeFrom, code_of
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.run_params import Network, Run
from cleanset.studies.training.study import RunFiles, StudyInputs, TrainingStudy

TRAINING_LIBRARIES = ("numpy", "opencv-python-headless", "pillow", "timm", "torch", "torchvision")
"""The libraries that decide a network's weights, whose versions are recorded."""
TRAINING = "studies/training"
CODE = ("studies/robustness", "studies/attacks", TRAINING)
"""The packages that decide a network's weights."""
LIBRARIES_BY_TASK = {
    "classification": TRAINING_LIBRARIES,
    "segmentation": (*TRAINING_LIBRARIES, "segmentation-models-pytorch"),
}


@dataclass(frozen=True, slots=True)
class FoldRecord:
    """What is read of a fold's record."""

    parameters_in_millions: float
    """The network's parameters in millions."""
    epoch: int
    """The epoch whose weights are kept, from 1."""
    epochs: int
    """Number of epochs trained."""
    training_images: int
    """Number of images that were trained on."""
    kept: str
    """Which epoch's weights are kept, and why, in words."""
    has_groups: bool = False
    """Whether the images have groups, which no division splits."""


class FinishedFold(NamedTuple):
    """The result of a run on a fold."""

    fold: str
    """Name of the fold."""
    record: FoldRecord
    """Its record."""
    history: pd.DataFrame
    """Its history: epoch, step, train_*, validation_*, rate."""
    test: pd.DataFrame
    """Its test results on the images left out; empty without any."""


class FinishedRun(NamedTuple):
    """A run whose folds are all finished."""

    name: str
    """Name of the run in params.yaml."""
    run: Run
    """Its settings."""
    folds: Sequence[FinishedFold]
    """The results of its folds, in their order."""

    @property
    def network(self) -> str:
        """The network in tables: source and name, and the encoder of a segmentation network."""
        return network_name(self.run.network)

    @property
    def parameters(self) -> float:
        """The network's parameters in millions."""
        return self.folds[0].record.parameters_in_millions

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
    found: list[FinishedRun] = []
    missing: list[str] = []
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


def study_facts(inputs: StudyInputs) -> JsonObject:
    """What all runs of a study depend on, as their records name it."""
    study = inputs.study
    return {
        "seed": inputs.params.seed,
        "threads": inputs.params.threads,
        "data_sha256": sha256_of(study.images),
        "folds_sha256": sha256_of(study.folds),
    }


def unfinished_runs(inputs: StudyInputs, names: Sequence[str]) -> list[str]:
    """The runs, of these, that stage `train` would train: without results, or with results of other settings.

    As DVC, it minds neither the device nor the versions of libraries. A scenario's photographs and generated images,
    which no record names, are left to DVC.
    """
    of_study = study_facts(inputs)
    return [name for name in names if not _is_finished(inputs, name, of_study)]


def _is_finished(inputs: StudyInputs, name: str, of_study: JsonMapping) -> bool:
    run = inputs.params.run(name)
    made_from = MadeFrom({**of_study, "settings": run.model_dump(mode="json")})
    for fold in run.fold_names():
        record = inputs.study.fold(name, fold).record
        if not record.is_file():
            return False
        content = parse_json(read_bytes(record), str(record), "the record of a run")
        if made_from.differences(content) or code_of(TRAINING) not in str(content.get("code")).split(", "):
            return False
    return True


NUMBERS = ("parameters_in_millions", "epoch", "epochs", "training_images")
"""The numbers of a run's record that are read."""


def read_fold(files: RunFiles, run: str, fold: str) -> FinishedFold:
    """The result of a run on a fold. Raises CleansetError for a file that is missing or damaged."""
    remedy = f"run dvc checkout data/runs/{run}, or train it again"
    content = json_record(files.record, "the record of a run", remedy, NUMBERS)
    if not isinstance(kept := content.get("kept"), str):
        raise CleansetError(f"{files.record}: no kept as text; expected the record of a run: {remedy}")
    record = FoldRecord(
        parameters_in_millions=float(content["parameters_in_millions"]),
        epoch=int(content["epoch"]),
        epochs=int(content["epochs"]),
        training_images=int(content["training_images"]),
        kept=kept,
        has_groups="split_by" in content,
    )
    history = read_frame(files.history, ("epoch", "step"), remedy)
    tested = ("scenario", "class_index", "images")
    test = read_frame(files.test, tested, remedy) if files.test.is_file() else pd.DataFrame()
    return FinishedFold(fold, record, history, test)
