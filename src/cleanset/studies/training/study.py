"""The files and folders of a training study, and the entry of a trained network for `further_models`.

The entry for the params of the robustness study is derived from the record of the training.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from cleanset.classes import ClassTable, parse_class_table, use_classes
from cleanset.errors import CleansetError
from cleanset.files import PathBelow, PathOfName, read_text, sha256
from cleanset.json_files import parse_json
from cleanset.studies.robustness.images import StudyBesideRobustness
from cleanset.studies.robustness.params import TrainedModel
from cleanset.studies.training.params import TrainingParams, read_training_params
from cleanset.studies.training.run_params import Network
from cleanset.tables import text_of_table
from cleanset.validation import validate

CLASS_TABLE_NAME = "classes"
"""The name of the class table that goes with the table of the training images, unless it is ImageNet's."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files that the training of a run's fold leaves."""

    folder: Path

    weights = PathBelow("weights.safetensors")
    history = PathBelow("history.csv")
    """Loss and measures by epoch."""

    record = PathBelow("record.json")
    """Settings, network, digests and versions; nothing that differs from run to run on one machine."""

    test = PathBelow("test.csv")
    """The answers of the weights on each scenario that is tested, by class."""

    sheets = PathBelow("sheets")
    """Predicted masks over the best and worst images, of segmentation only."""


class TrainingStudy(StudyBesideRobustness):
    """The paths of the study in `folder`, `studies/training` of its edition, whose images may not be trained on."""

    images = PathBelow("data/images.parquet")
    """The training images and their masks, by digest."""

    folds = PathBelow("data/folds.csv")
    """The part of each image in every division of them."""

    runs = PathBelow("data/runs")
    measures = PathBelow("data/measures")
    metrics = PathBelow("metrics")
    costs = PathBelow("costs")
    """Seconds, images a second and peak memory: they differ from run to run, and DVC does not hold them."""

    run = PathOfName("data/runs/{}")
    """The folder of a finished run, with one for each fold."""

    partial = PathOfName("data/runs/{}.partial")
    """The folder of an unfinished run, with one for each fold."""

    def fold(self, run: str, fold: str) -> RunFiles:
        """The files that the training of a run's fold leaves."""
        return RunFiles(self.run(run) / fold)

    def cost(self, run: str, fold: str) -> Path:
        return self.costs / run / f"{fold}.json"

    def read_classes(self) -> ClassTable:
        """The class table of the training images; before stage data the edition's."""
        text = text_of_table(self.images, CLASS_TABLE_NAME) if self.images.is_file() else None
        if text is None:
            return self.edition.read_classes()
        return parse_class_table(text, str(self.images))

    def use_classes(self) -> None:
        """Bring the class table of the training images into use, for the study of robustness."""
        # TRANSITION: goes with StudyPaths.use_classes
        use_classes(self.read_classes())


@dataclass(frozen=True, slots=True)
class StudyInputs:
    """A training study with its class table and its params, each read once."""

    study: TrainingStudy
    """The paths of the study."""
    classes: ClassTable
    """The class table of the training images."""
    params: TrainingParams
    """The study's params.yaml."""

    @classmethod
    def read(cls, study: TrainingStudy, classes: ClassTable | None = None) -> Self:
        """The inputs of a stage; `classes`: None for the training images' own. Raises CleansetError naming the key."""
        known = study.read_classes() if classes is None else classes
        return cls(study, known, read_training_params(study.params_yaml, known))


RUN_REMEDY = "train the run, or run dvc checkout"


def model_entry(study: TrainingStudy, files: RunFiles, weights: Path | None = None) -> dict[str, Any]:
    """The keys of a fold's network; `weights`: a copy of its weights, None: the fold's.

    Raises CleansetError for a fold that is not trained, a network that does not classify, and other weights.
    """
    path = weights or files.weights
    record = record_of_weights(files.record, path)
    known = study.read_classes()
    settings = record["settings"]
    network = settings["network"]
    classes = record["classes"]
    if network["source"] == "module" or not network.get("normalised", True):
        found = "is a module's" if network["source"] == "module" else "sees pixels without normalisation"
        raise CleansetError(
            f"{record['run']}: {network['name']} {found}; expected a normalised network of timm or torchvision: see "
            f"cleanset evaluate --model {path}"
        )
    entry = {
        "source": network["source"],
        "name": network["name"],
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
) -> dict[str, Any]:
    """The record of the training of these weights.

    Raises CleansetError, which ends in `remedy`, for a record that is missing or not one, for other weights, and for
    another task than the wanted one.
    """
    record = parse_json(read_text(path, remedy), str(path), f"the record of a training: {remedy}")
    if (
        not isinstance(record, dict)
        or not isinstance(settings := record.get("settings"), dict)
        or {"task", "network"} - set(settings)
        or {"classes", "weights_sha256"} - set(record)
    ):
        raise CleansetError(f"{path}: not the record of a training; expected settings, classes, weights: {remedy}")
    validate(Network, settings["network"], f"{path}: settings.network", f"; expected a run's record: {remedy}")
    task = settings["task"]
    if task != wanted:
        raise CleansetError(f"{record['run']}: a run of {task}; expected a run of {wanted}")
    if not weights.is_file() or sha256(weights.read_bytes()) != record["weights_sha256"]:
        raise CleansetError(f"{weights}: missing, or not the weights of {path}; expected these: {remedy}")
    return record


def network_of_record(record: Mapping[str, Any]) -> Network:
    """The network of a record of training, whose weights take the place of published ones."""
    return Network.model_validate(record["settings"]["network"] | {"pretrained": False})


def as_yaml(role: str, entry: dict[str, Any]) -> str:
    """The entry as the lines of a params.yaml below `further_models`."""
    text = yaml.safe_dump({role: entry}, sort_keys=False, default_flow_style=None, width=110)
    return "".join(f"  {line}\n" for line in text.splitlines())
