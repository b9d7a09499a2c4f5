"""Masks by a trained network for images that have none, as a folder for the robustness study.

The class of each image is known, so its object is where the network finds that class more probable than background,
whatever it makes of the other classes. In params.yaml of the robustness study the folder's `origin` is `model`.

A trained segmentation network, read from a finished run, and the masks that it makes for a robustness study.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import torch
from PIL import Image
from pydantic import ValidationError
from torch import nn

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import new_folder, read_bytes, sha256, write_text
from cleanset.images.boxes import Box, box_of
from cleanset.progress import tracked
from cleanset.scoring.checkpoints import read_tensors
from cleanset.studies.robustness.family import MaskFolder
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES, SetImages, files_of
from cleanset.studies.robustness.scenarios.masks import Mask
from cleanset.studies.training.params import Run, read_training_params
from cleanset.studies.training.segmentation.label_maps import BACKGROUND, Pixels, label_of
from cleanset.studies.training.segmentation.task import build_network, image_logits
from cleanset.studies.training.study import TrainingStudy, read_record
from cleanset.tables import INDEX, read_table
from cleanset.validation import check_known, first_problem, shown
from cleanset.vocabulary import class_indices

ORIGIN: Final = "model"
MADE_WITH: Final = "made_with.json"
"""File beside the masks with the network that made them."""

OwnLogits = Callable[[Pixels, int], Mask]
"""An image and a label to the pixels where that label is more probable than background."""


class UnmaskedImage(NamedTuple):
    """An image without a mask: the pixels of its file, and the crop of the original that the file holds, if any.

    `size`: width and height of the original; None where they are not known.
    """

    image_id: str
    class_index: int
    read: Callable[[], Pixels]
    crop: Box | None
    size: tuple[int, int] | None = None


@dataclass(slots=True)
class MaskCounts:
    """The number of masks that were written, and of images without one, by reason."""

    written: int = 0
    other_class: int = 0
    no_object: int = 0
    no_background: int = 0

    def lines(self) -> list[str]:
        """The numbers in words, those that are 0 left out except the first."""
        found = [f"{self.written:,} masks"]
        reasons = {
            "of a class that the network was not trained on": self.other_class,
            "in which it finds no object": self.no_object,
            "in which it finds no background": self.no_background,
        }
        found += [f"{count:,} image{'s' * (count > 1)} without one, {why}" for why, count in reasons.items() if count]
        return found


def write_model_masks(
    folder: Path,
    images: Iterable[UnmaskedImage],
    object_of: OwnLogits,
    classes: tuple[int, ...],
    made_with: Mapping[str, Any],
) -> MaskCounts:
    """Write a PNG of one bit a pixel for each image, named by its id, and MADE_WITH; all of the folder or nothing.

    Raises CleansetError unless `folder` is new or empty, and for no image, or none in which an object is found.
    """
    counts = MaskCounts()
    with new_folder(folder) as partial:
        partial.mkdir(exist_ok=True)
        for image in images:
            if image.class_index not in classes:
                counts.other_class += 1
                continue
            mask = object_of(image.read(), label_of(image.class_index, classes))
            if not mask.any():
                counts.no_object += 1
            elif mask.all():
                counts.no_background += 1
            else:
                (partial / f"{image.image_id}.png").write_bytes(mask_png(in_original(mask, image.crop, image.size)))
                counts.written += 1
        if not counts.written:
            reasons = ", ".join(counts.lines()[1:]) or "every image has a mask"
            raise CleansetError(f"{folder}: no mask to write: {reasons}; expected images that get one")
        write_text(partial / MADE_WITH, json.dumps(dict(made_with), indent=2, sort_keys=True) + "\n")
    return counts


def in_original(mask: Mask, crop: Box | None, size: tuple[int, int] | None = None) -> Mask:
    """The mask of a crop in the original image of that size; without a size, as far as the crop reaches."""
    if crop is None:
        return mask
    left, top, right, bottom = crop
    width, height = (right, bottom) if size is None else size
    whole = np.zeros((height, width), np.bool_)
    whole[top:bottom, left:right] = mask
    return whole


def mask_png(mask: Mask) -> bytes:
    """A mask as PNG of one bit a pixel, the object white."""
    buffer = io.BytesIO()
    Image.fromarray(mask).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def object_of_logits(logits: np.ndarray[Any, np.dtype[np.floating[Any]]], label: int) -> Mask:
    """The pixels whose logit of a label is above that of the background; logits of shape (labels, height, width)."""
    found: Mask = logits[label] > logits[BACKGROUND]
    return found


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
        record = read_record(files.record, remedy)
        try:
            settings = Run.model_validate(record["settings"])
        except ValidationError as error:
            problem = first_problem(error)
            raise CleansetError(f"{files.record}: settings.{problem}; expected a run's record: {remedy}") from None
        if settings.task != "segmentation":
            raise CleansetError(f"run {run}: {settings.task}; expected a run of segmentation")
        weights = files.weights
        if not weights.is_file() or sha256(read_bytes(weights)) != record["weights_sha256"]:
            raise CleansetError(
                f"{weights}: not the weights of {files.record.name}; expected the SHA-256 named there: {remedy}"
            )
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


def unmasked_images(study: TrainingStudy) -> list[UnmaskedImage]:
    """The images of the robustness study that have no mask. Raises CleansetError if it has not listed its images."""
    robustness = study.robustness
    if not robustness.masks_table.is_file():
        raise CleansetError(
            f"{robustness.masks_table}: missing; expected what cleanset robustness stage images writes: run it in "
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
