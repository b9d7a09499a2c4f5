"""Folds: the division of images into parts of equal classes, seeded, and the data that a fold of a run is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import class_indices, wnids
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.params import Run, TrainingParams
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import read_table
from cleanset.validation import check_known

if TYPE_CHECKING:
    import torch

TRAIN, TEST = "train", "test"
TEST_SHARE = 0.2
"""Share of each class that the single split tests on, rounded to whole images."""
VALIDATION_SHARE = 0.1
"""Share of each class of a fold's other images that it is validated on, rounded to whole images."""


def fold_numbers(classes: Sequence[int], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image, 1 to `folds`: of each class the same number but for one, and of all images, too.

    Raises CleansetError for a class with fewer images than folds.
    """
    found, first = np.zeros(len(classes), np.int64), 0
    for class_index, rows in _shuffled(classes, seed, "folds"):
        if len(rows) < folds:
            raise CleansetError(
                f"{wnids()[class_index]}: {len(rows)} training images; expected at least {folds}, one for each fold: "
                "add images, or set fewer folds"
            )
        # dealt on from where the class before ended, so that no fold gets more of all classes
        found[rows] = (first + np.arange(len(rows))) % folds + 1
        first += len(rows)
    return found


def split_names(classes: Sequence[int], seed: int) -> list[str]:
    """TRAIN or TEST for each image: of each class TEST_SHARE are TEST, at least one.

    Raises CleansetError for a class with fewer than two images.
    """
    found = np.full(len(classes), TRAIN, dtype=object)
    for class_index, rows in _shuffled(classes, seed, "split"):
        if len(rows) < 2:
            raise CleansetError(f"{wnids()[class_index]}: one training image; expected at least two: add images")
        found[rows[: max(1, round(TEST_SHARE * len(rows)))]] = TEST
    return [str(name) for name in found]


def _shuffled(classes: Sequence[int], seed: int, kind: str) -> list[tuple[int, NDArray[np.int64]]]:
    """The places of the images of each class, in an order that depends on seed and class alone."""
    array = np.asarray(classes)
    found = []
    for class_index in np.unique(array):
        generator = np.random.default_rng(change_seed(image_seed(seed, "training"), kind, "class", int(class_index)))
        found.append((int(class_index), generator.permutation(np.flatnonzero(array == class_index))))
    return found


def folds_table(files: Sequence[str], classes: Sequence[int], folds: int, seed: int) -> pd.DataFrame:
    """The columns file, class_index, split and fold, sorted by file."""
    table = pd.DataFrame({"file": list(files), "class_index": list(classes)}).sort_values("file", kind="stable")
    table["split"] = split_names(table["class_index"].tolist(), seed)
    table["fold"] = fold_numbers(table["class_index"].tolist(), folds, seed)
    return table.reset_index(drop=True)


def rows_of_fold(table: pd.DataFrame, count: int, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that a fold of a run with `count` folds trains on, and those that it is tested on.

    `name` is all, or fold_01 and so on.
    """
    if count == 0:
        return np.arange(len(table)), np.arange(0)
    if count == 1:
        left_out = (table["split"] == TEST).to_numpy()
    else:
        left_out = (table["fold"] == int(name.removeprefix("fold_"))).to_numpy()
    return np.flatnonzero(~left_out), np.flatnonzero(left_out)


def set_aside(images: pd.DataFrame, seed: int, fold: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows to train on, and those to validate on: of each class VALIDATION_SHARE, at least one.

    Raises CleansetError for a class with fewer than two images.
    """
    aside = np.zeros(len(images), np.bool_)
    for class_index, rows in _shuffled(images["class_index"].tolist(), seed, f"validation of {fold}"):
        if len(rows) < 2:
            raise CleansetError(
                f"{wnids()[class_index]}: one image to train on in {fold}; expected at least two, one of them to "
                "validate on: add images"
            )
        aside[rows[: max(1, round(VALIDATION_SHARE * len(rows)))]] = True
    return images[~aside].reset_index(drop=True), images[aside].reset_index(drop=True)


@dataclass(frozen=True)
class Share:
    """The part of each batch that this process gets, of `processes` in all: `rank` from 0."""

    rank: int = 0
    processes: int = 1


ALONE = Share()
"""The whole of each batch."""


@dataclass(frozen=True, eq=False)
class FoldData:
    """A fold of a run: rows of TRAINING_IMAGES to train on, to validate on, and those left out, which it is tested on.

    `classes` are their class indices; the network's class k is `classes[k]`. `share`: of each batch, where several
    processes train.
    """

    study: TrainingStudy
    params: TrainingParams
    run_name: str
    fold: str
    training: pd.DataFrame
    validation: pd.DataFrame
    left_out: pd.DataFrame
    classes: list[int]
    device: "torch.device"
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
            "validation_images": len(self.validation),
            "data_sha256": sha256(self.study.images.read_bytes()),
            "folds_sha256": sha256(self.study.folds.read_bytes()),
        }


def read_fold(
    study: TrainingStudy, params: TrainingParams, name: str, fold: str, device: "torch.device", share: Share = ALONE
) -> FoldData:
    """The data of a run's fold. Raises CleansetError for an unknown run or fold, and for classes without images."""
    run = params.run(name)
    check_known("fold", fold, run.fold_names())
    if not study.folds.is_file():
        raise CleansetError(f"{study.folds}: missing; expected the table that stage data writes: run dvc repro")
    images, folds = read_table(study.images, TRAINING_IMAGES), pd.read_csv(study.folds)
    if images["file"].tolist() != folds["file"].tolist():
        raise CleansetError(
            f"{study.folds}: of other images than {study.images.name}; expected the same: run dvc repro"
        )
    training, left_out = (_of_classes(images.iloc[rows], run) for rows in rows_of_fold(folds, run.folds, fold))
    validation = left_out
    if run.folds and run.validation == "set_aside":
        training, validation = set_aside(training, params.seed, fold)
    validation, left_out = (_at_most(rows, run.max_tested) for rows in (validation, left_out))
    classes = sorted(set(training["class_index"].tolist()))
    wanted = {class_indices()[wnid] for wnid in run.classes or []} - set(classes)
    if wanted:
        missing = ", ".join(wnids()[class_index] for class_index in sorted(wanted))
        raise CleansetError(f"runs.{name}.classes: no training images of {missing}; expected classes that have some")
    if len(classes) < 2:
        raise CleansetError(
            f"runs.{name}: training images of {len(classes)} class; expected at least two classes to tell apart"
        )
    return FoldData(study, params, name, fold, training, validation, left_out, classes, device, share)


def _of_classes(images: pd.DataFrame, run: Run) -> pd.DataFrame:
    if run.classes is None:
        return images.reset_index(drop=True)
    wanted = [class_indices()[wnid] for wnid in run.classes]
    return images[images["class_index"].isin(wanted)].reset_index(drop=True)


def _at_most(images: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """The first images of each class."""
    return images if count is None else images.groupby("class_index").head(count).reset_index(drop=True)
