"""Everything that the training of one fold of a run is given."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import class_indices, wnids
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.studies.training.batches import ALONE, Share
from cleanset.studies.training.folds import rows_of_fold
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.params import Run, TrainingParams
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import read_table
from cleanset.validation import check_known


@dataclass(frozen=True, eq=False)
class FoldData:
    """A fold of a run: rows of TRAINING_IMAGES to train on, and those left out; `classes` are their class indices.

    The network's class k is `classes[k]`. `share`: of each batch, where several processes train.
    """

    study: TrainingStudy
    params: TrainingParams
    run_name: str
    fold: str
    training: pd.DataFrame
    left_out: pd.DataFrame
    classes: list[int]
    device: torch.device
    share: Share = ALONE

    @property
    def run(self) -> Run:
        """The run's settings."""
        return self.params.run(self.run_name)

    @property
    def name(self) -> str:
        """Run and fold, for messages."""
        return f"{self.run_name}, {self.fold}"

    def labels(self, images: pd.DataFrame) -> NDArray[np.int64]:
        """The network's class of each of some rows."""
        places = {class_index: place for place, class_index in enumerate(self.classes)}
        return np.array([places[class_index] for class_index in images["class_index"]], np.int64)

    def settings(self) -> dict[str, Any]:
        """Everything but code and versions that the weights follow from, of JSON's types."""
        return {
            "run": self.run_name,
            "fold": self.fold,
            "settings": self.run.model_dump(mode="json"),
            "seed": self.params.seed,
            "threads": self.params.threads,
            "classes": [wnids()[class_index] for class_index in self.classes],
            "training_images": len(self.training),
            "data_sha256": sha256(self.study.images.read_bytes()),
            "folds_sha256": sha256(self.study.folds.read_bytes()),
        }


def read_fold(
    study: TrainingStudy, params: TrainingParams, name: str, fold: str, device: torch.device, share: Share = ALONE
) -> FoldData:
    """The data of a run's fold. Raises CleansetError for an unknown run or fold, and for classes without images."""
    run = params.run(name)
    check_known("fold", fold, run.fold_names())
    images, folds = read_table(study.images, TRAINING_IMAGES), read_folds(study)
    if images["file"].tolist() != folds["file"].tolist():
        raise CleansetError(
            f"{study.folds}: of other images than {study.images.name}; expected the same: run dvc repro"
        )
    training, left_out = (_of_classes(images.iloc[rows], run) for rows in rows_of_fold(folds, run.folds, fold))
    if run.max_tested is not None:
        left_out = left_out.groupby("class_index").head(run.max_tested).reset_index(drop=True)
    classes = sorted(set(training["class_index"].tolist()))
    wanted = {class_indices()[wnid] for wnid in run.classes or []} - set(classes)
    if wanted:
        missing = ", ".join(wnids()[class_index] for class_index in sorted(wanted))
        raise CleansetError(f"runs.{name}.classes: no training images of {missing}; expected classes that have some")
    return FoldData(study, params, name, fold, training, left_out, classes, device, share)


def read_folds(study: TrainingStudy) -> pd.DataFrame:
    """The table of folds. Raises CleansetError if it is missing."""
    if not study.folds.is_file():
        raise CleansetError(f"{study.folds}: missing; expected what stage data writes: run dvc repro")
    return pd.read_csv(study.folds)


def _of_classes(images: pd.DataFrame, run: Run) -> pd.DataFrame:
    if run.classes is None:
        return images.reset_index(drop=True)
    wanted = [class_indices()[wnid] for wnid in run.classes]
    return images[images["class_index"].isin(wanted)].reset_index(drop=True)
