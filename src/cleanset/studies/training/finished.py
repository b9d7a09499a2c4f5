"""Finished runs, read from the output of stage `train`; a trained network as an entry of `further_models`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml
from pydantic import BaseModel

from cleanset.errors import CleansetError
from cleanset.evaluation.specs import TrainedModel
from cleanset.plumbing.csv_files import read_frame
from cleanset.plumbing.files import read_bytes, read_text, sha256_of
from cleanset.plumbing.json_files import JsonMapping, JsonObject, parse_record, read_json
from cleanset.plumbing.validation import join_names, validate
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


class FoldRecord(BaseModel, frozen=True, strict=True):
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
    split_by: str | None = None
    """The column that no division splits, if the images have groups."""


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
        content = parse_record(read_bytes(record), str(record), "the record of a run")
        if made_from.differences(content) or code_of(TRAINING) not in str(content.get("code")).split(", "):
            return False
    return True


def read_fold(files: RunFiles, run: str, fold: str) -> FinishedFold:
    """The result of a run on a fold. Raises CleansetError for a file that is missing or damaged."""
    remedy = f"run dvc checkout data/runs/{run}, or train it again"
    record = read_json(files.record, FoldRecord, "the record of a run", remedy)
    history = read_frame(files.history, ("epoch", "step"), remedy)
    tested = ("scenario", "class_index", "images")
    test = read_frame(files.test, tested, remedy) if files.test.is_file() else pd.DataFrame()
    return FinishedFold(fold, record, history, test)


RUN_REMEDY = "train the run, or run dvc checkout"
RECORD_KEYS = {"run", "classes", "weights_sha256"}
"""The keys of a record that are read, next to its settings."""
SETTINGS_KEYS = {"task", "network", "size", "resizing", "trained_on"}
"""The keys of a record's settings that are read."""


def model_entry(study: TrainingStudy, files: RunFiles, weights: Path | None = None) -> JsonObject:
    """The keys of a fold's network; `weights`: a copy of its weights, None: the fold's.

    Raises CleansetError for a fold that is not trained, a network that does not classify, and other weights.
    """
    path = weights or files.weights
    record = record_of_weights(files.record, path)
    known = study.read_classes()
    settings = record["settings"]
    network = network_of_record(record)
    classes = record["classes"]
    if network.source == "module" or not network.normalised:
        found = "is a module's" if network.source == "module" else "sees pixels without normalisation"
        raise CleansetError(
            f"{record['run']}: {network.name} {found}; expected a normalised network of timm or torchvision: see "
            f"cleanset evaluate --model {path}"
        )
    entry: JsonObject = {
        "source": network.source,
        "name": network.name,
        "weights": Path(os.path.relpath(path.resolve(), study.edition.folder.resolve())).as_posix(),
        "sha256": record["weights_sha256"],
        # all 1,000 in their order are what a network has anyway
        **({} if classes == list(known.keys) else {"classes": classes}),
        "size": settings["size"],
        "trained_on": settings["trained_on"],
    }
    validate(TrainedModel, entry, files.record, "; expected a network that a study can measure", context=known)
    return entry


def record_of_weights(
    path: Path, weights: Path, wanted: str = "classification", remedy: str = RUN_REMEDY
) -> JsonObject:
    """The record of the training of these weights.

    Raises CleansetError, which ends in `remedy`, for a record that is missing or not one, for other weights, and for
    another task than the wanted one.
    """
    record = parse_record(read_text(path, remedy), str(path), f"the record of a training: {remedy}")
    if (
        not isinstance(record, dict)
        or not isinstance(settings := record.get("settings"), dict)
        or SETTINGS_KEYS - set(settings)
        or RECORD_KEYS - set(record)
    ):
        raise CleansetError(f"{path}: not the record of a training; expected settings, classes, weights: {remedy}")
    validate(Network, settings["network"], f"{path}: settings.network", f"; expected a run's record: {remedy}")
    task = settings["task"]
    if task != wanted:
        raise CleansetError(f"{record['run']}: a run of {task}; expected a run of {wanted}")
    if not weights.is_file() or sha256_of(weights) != record["weights_sha256"]:
        raise CleansetError(f"{weights}: missing, or not the weights of {path}; expected these: {remedy}")
    return record


def network_of_record(record: JsonObject) -> Network:
    """The network of a record of training, whose weights take the place of published ones."""
    return Network.model_validate(record["settings"]["network"] | {"pretrained": False})


def as_yaml(role: str, entry: JsonObject) -> str:
    """The entry as the lines of a params.yaml below `further_models`."""
    text = yaml.safe_dump({role: entry}, sort_keys=False, default_flow_style=None, width=110)
    return "".join(f"  {line}\n" for line in text.splitlines())
