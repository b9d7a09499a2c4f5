"""A trained segmentation network, read from a finished run, and the masks that it makes for a robustness study."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError
from torch import nn

from cleanset.dataset.ilsvrc import class_indices
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, read_text, sha256
from cleanset.images.boxes import box_of
from cleanset.parsing import parse_json
from cleanset.progress import tracked
from cleanset.scoring.weight_files import read_tensors
from cleanset.studies.robustness.changed_images import SetImages, files_of
from cleanset.studies.robustness.common_params import MaskFolder
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.training.params import Run, read_training_params
from cleanset.studies.training.segmentation.label_maps import Pixels
from cleanset.studies.training.segmentation.model_masks import (
    ORIGIN,
    MaskCounts,
    UnmaskedImage,
    object_of_logits,
    write_model_masks,
)
from cleanset.studies.training.segmentation.task import build_network, image_logits
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import INDEX, read_table
from cleanset.validation import check_known, first_problem, shown

NO_MASK = "no_mask"
"""The reason in the robustness study's table of masks for which an image gets one here."""


@dataclass(frozen=True, eq=False)
class FinishedNetwork:
    """The network of a finished run's fold, its class indices, and the SHA-256 of its weights."""

    network: nn.Module
    classes: tuple[int, ...]
    weights_sha256: str

    @classmethod
    def read(cls, study: TrainingStudy, run: str, fold: str) -> Self:
        """The network with its weights. Raises CleansetError for a run that does not segment or is not finished."""
        files = study.fold(run, fold)
        remedy = f"run cleanset training train --run {run}"
        record = parse_json(read_text(files.record, remedy), str(files.record), f"a run's record: {remedy}")
        settings = _settings(record, files.record, remedy)
        if settings.task != "segmentation":
            raise CleansetError(f"run {run}: {settings.task}; expected a run of segmentation")
        weights = files.weights
        if not weights.is_file() or sha256(read_bytes(weights)) != record["weights_sha256"]:
            raise CleansetError(f"{weights}: not the weights of {files.record.name}; expected them: {remedy}")
        # the weights of the file replace published ones, too
        wanted = settings.network.model_copy(update={"pretrained": False})
        network = build_network(wanted, len(record["classes"]), study.edition.folder, settings.seed)
        network.inner.load_state_dict(read_tensors(weights))
        classes = tuple(class_indices()[wnid] for wnid in record["classes"])
        return cls(network.eval(), classes, record["weights_sha256"])

    def object_of(self, image: Pixels, label: int) -> Mask:
        """The pixels of an image where a label is more probable than background."""
        logits = image_logits(self.network, image)
        return object_of_logits(logits[0].float().cpu().numpy(), label)


def _settings(record: Any, path: Path, remedy: str) -> Run:
    try:
        return TypeAdapter(Run).validate_python(record["settings"])
    except ValidationError as error:
        raise CleansetError(f"{path}: settings.{first_problem(error)}; expected a run's record: {remedy}") from None
    except (KeyError, TypeError):
        raise CleansetError(f"{path}: no settings; expected a run's record: {remedy}") from None


def unmasked_images(study: TrainingStudy) -> list[UnmaskedImage]:
    """The images of the robustness study that have no mask. Raises CleansetError if it has not listed its images."""
    robustness = study.robustness
    if not robustness.masks_table.is_file():
        raise CleansetError(
            f"{robustness.masks_table}: missing; expected what cleanset robustness images writes: run it in "
            f"{robustness.folder.name}"
        )
    images, masks = read_table(robustness.images, STUDY_IMAGES), read_table(robustness.masks_table, MASKS)
    without = set(masks.loc[masks["left_out"] == NO_MASK, "file"])
    files = files_of(study.edition, images)
    read, sizes, found = SetImages(files), _sizes(study.edition), []
    for row in images[images["file"].isin(without)].to_dict("records"):
        # bound here: a closure would read the last file only
        def pixels(file: str = str(row["file"])) -> Pixels:
            return np.asarray(read(file).convert("RGB"))

        image_id = str(row["image_id"])
        crop, size = box_of(row["crop"]), sizes.get(image_id)
        found.append(UnmaskedImage(image_id, int(row["class_index"]), pixels, crop, size))
    return found


def _sizes(edition: Edition) -> dict[str, tuple[int, int]]:
    """Width and height of every image of the edition's index by image id; empty without the index."""
    if not edition.index.is_file():
        return {}
    index = read_table(edition.index, INDEX, ["image_id", "width", "height"])
    return dict(zip(index["image_id"], zip(index["width"], index["height"], strict=True), strict=True))


def make_masks(study: TrainingStudy, run: str, fold: str | None, folder: str) -> MaskCounts:
    """Write masks of the robustness study's images that have none to the folder of that name in its masks.

    `fold`: of the run, None for its first. Raises CleansetError for an unknown run or fold, a folder that is there, and
    as `FinishedNetwork.read` does.
    """
    _check_folder(folder)
    params = read_training_params(study.params_yaml)
    names = params.run(run).fold_names()
    fold = fold or names[0]
    check_known("fold", fold, names)
    images = unmasked_images(study)
    finished = FinishedNetwork.read(study, run, fold)
    torch.set_num_threads(params.threads)
    made_with = {"run": run, "fold": fold, "weights_sha256": finished.weights_sha256}
    done: Iterator[UnmaskedImage] = tracked(iter(images), len(images), "masks")
    return write_model_masks(study.robustness.masks / folder, done, finished.object_of, finished.classes, made_with)


def _check_folder(folder: str) -> None:
    """Raise CleansetError for a name that params.yaml of the robustness study would not take."""
    try:
        MaskFolder(folder=folder, origin=ORIGIN)
    except ValidationError:
        raise CleansetError(
            f"folder {shown(folder)}; expected the name of a folder, of letters, digits, '.', '_' and '-'"
        ) from None
