"""The images of a fold of a run: to train on, to validate on, and to test on."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from cleanset.dataset.folder import GROUP
from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import read_frame
from cleanset.plumbing.files import sha256, sha256_of
from cleanset.plumbing.validation import check_known
from cleanset.studies.robustness.scenarios.params import GENERATED, ORIGINAL
from cleanset.studies.training.division import rows_of_fold, set_aside, split_as_coded
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.pixels import TrainingPixels, generated_file, photographs_for, scenes_of
from cleanset.studies.training.run_params import Run
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.tables import read_table

if TYPE_CHECKING:
    import torch


class ProcessShare(NamedTuple):
    """The part of each batch that this process gets."""

    rank: int = 0
    """Number of this process, from 0."""
    processes: int = 1
    """Number of processes that share each batch."""


ALONE = ProcessShare()
"""The whole of each batch."""


def shown_in(images: pd.DataFrame, scenario: str) -> pd.DataFrame:
    """The rows of TRAINING_IMAGES that a scenario has; all of them for originals."""
    return images if scenario == ORIGINAL else with_masks(images)


def with_masks(images: pd.DataFrame) -> pd.DataFrame:
    """The rows of TRAINING_IMAGES whose mask shows an object of their class."""
    return images[images["mask"].notna() & images["left_out"].isna()]


def steps_per_epoch(images: int, run: Run, processes: int) -> int:
    """Batches of an epoch; at least one, which may be smaller: each process gets an image of a smaller one."""
    full, rest = divmod(images, run.batch)
    return max(1, full + (run.incomplete_batch and rest >= processes))


@dataclass(frozen=True, eq=False, kw_only=True)
class FoldData:
    """A fold of a run: its settings and its images, as rows of TRAINING_IMAGES."""

    inputs: StudyInputs
    """The study with its class table and params."""
    run_name: str
    """Name of the run in params.yaml."""
    fold: str
    """Name of the fold: fold_01 and so on, or all."""
    training: pd.DataFrame
    """The images to train on."""
    validation: pd.DataFrame
    """The images to validate on; perhaps none."""
    left_out: pd.DataFrame
    """The images to test on; perhaps none."""
    class_indices: list[int]
    """Class index of each class of the network: its logit k belongs to `class_indices[k]`."""
    device: "torch.device"
    """The device that this process trains on."""
    share: ProcessShare = ALONE
    """The part of each batch that this process gets."""

    @property
    def study(self) -> TrainingStudy:
        """The paths of the study."""
        return self.inputs.study

    @property
    def params(self) -> TrainingParams:
        """The study's params."""
        return self.inputs.params

    @property
    def run(self) -> Run:
        """The run's settings."""
        return self.params.run(self.run_name)

    @property
    def name(self) -> str:
        """Run and fold, for messages."""
        return f"{self.run_name}, {self.fold}"

    def pixels(self, images: pd.DataFrame, scenario: str, *, whole: bool = False) -> TrainingPixels:
        """The pixels and labels of the rows that a scenario has, or of all rows for originals.

        `whole`: whether images stay uncropped. Raises CleansetError without any row.
        """
        found = shown_in(images, scenario)
        if found.empty:
            raise CleansetError(
                f"{scenario}: no training image has a mask that shows an object; expected some in data.masks"
            )
        data = self.params.data
        scenes = None if scenario == ORIGINAL else scenes_of(self.inputs, found, scenario)
        return TrainingPixels(
            folder=self.study.folder / data.images,
            files=found["file"].tolist(),
            digests=found["sha256"].tolist(),
            labels=np.searchsorted(self.class_indices, found["class_index"]).astype(np.int64),
            size=self.run.size,
            scenario=scenario,
            scenes=scenes,
            seed=self.params.seed,
            whole=whole or self.run.resizing != "cropped",
            generated=self.study.folder / data.generated,
            is_nearest=self.run.resizing == "nearest",
        )

    def settings(self) -> dict[str, object]:
        """Everything but code and versions that the weights follow from, of JSON's types."""
        keys = self.inputs.classes.keys
        return {
            "run": self.run_name,
            "fold": self.fold,
            "settings": self.run.model_dump(mode="json"),
            "seed": self.params.seed,
            "threads": self.params.threads,
            "classes": [keys[class_index] for class_index in self.class_indices],
            "training_images": len(self.training),
            "validation_images": len(self.validation),
            "data_sha256": sha256(self.study.images.read_bytes()),
            "folds_sha256": sha256(self.study.folds.read_bytes()),
            **({"split_by": GROUP} if GROUP in self.training else {}),
        }

    def beside(self) -> dict[str, object]:
        """Digests of the other files that the training images are made of in the run's scenario, of JSON's types."""
        scenario = self.run.scenario
        photographs = {
            each.path.relative_to(self.study.robustness.backgrounds).as_posix(): each.sha256
            for each in photographs_for(self.study, [scenario])
        }
        generated = {}
        if scenario == GENERATED:
            folder = self.study.folder / self.params.data.generated
            for file in [*self.training["file"], *self.validation["file"]]:
                # of an image without a mask none is needed
                with suppress(CleansetError):
                    generated[file] = sha256_of(generated_file(folder, file))
        return {
            "mask_format": self.params.data.mask_format,
            "photographs": photographs,
            "generated": generated,
        }


def read_fold(
    inputs: StudyInputs, name: str, fold: str, device: "torch.device", share: ProcessShare = ALONE
) -> FoldData:
    """The data of a run's fold. Raises CleansetError for an unknown run or fold, and for classes without images."""
    study = inputs.study
    classes = inputs.classes
    run = inputs.params.run(name)
    check_known("fold", fold, run.fold_names())
    kinds = {GROUP: str, "fold": int}
    folds = read_frame(study.folds, ("file", "split", "fold"), "run dvc repro", dtype=kinds, na_values=[])
    images = read_table(study.images, TRAINING_IMAGES, classes)
    if images["file"].tolist() != folds["file"].tolist():
        raise CleansetError(
            f"{study.folds}: made from other images than {study.images.name}; expected the same: run dvc repro"
        )
    if GROUP in folds:
        images[GROUP] = folds[GROUP]
    if run.split == "as_coded":
        if GROUP in folds:
            raise CleansetError(f"runs.{name}.split: as_coded, but images have groups; expected own: set split")
        folds["split"] = split_as_coded(folds["file"].tolist(), images["class_index"].tolist())
    wanted = {classes.indices[key] for key in run.classes or classes.keys}
    parts = (images.iloc[rows] for rows in rows_of_fold(folds, run.folds, fold))
    training, left_out = (part[part["class_index"].isin(wanted)].reset_index(drop=True) for part in parts)
    validation = left_out
    if run.folds and run.validation == "set_aside":
        training, validation = set_aside(training, classes, inputs.params.seed, fold)
    class_indices = sorted(set(training["class_index"].tolist()))
    if run.classes and (lost := sorted(wanted.difference(class_indices))):
        missing = ", ".join(classes.keys[class_index] for class_index in lost)
        raise CleansetError(f"runs.{name}.classes: no training images of {missing}; expected classes that have some")
    if len(class_indices) < 2:
        raise CleansetError(
            f"runs.{name}: training images of {len(class_indices)} class; expected at least two classes"
        )
    return FoldData(
        inputs=inputs,
        run_name=name,
        fold=fold,
        training=training,
        validation=_at_most(validation, run.max_tested),
        left_out=_at_most(left_out, run.max_tested),
        class_indices=class_indices,
        device=device,
        share=share,
    )


def _at_most(images: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """The first `count` images of each class; None: all."""
    return images if count is None else images.groupby("class_index").head(count).reset_index(drop=True)
