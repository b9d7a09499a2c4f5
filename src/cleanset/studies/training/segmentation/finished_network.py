"""`cleanset training masks`: masks by a trained segmentation network, for images without a mask.

The class of each image is known, so its object is where the network finds that class more probable than background,
whatever it makes of the other classes. In params.yaml of the robustness study the folder's `origin` is `model`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image
from pydantic import ValidationError

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import SetImages
from cleanset.images.boxes import Box, box_of
from cleanset.plumbing.files import new_folder, write_bytes, write_text
from cleanset.plumbing.progress import tracked
from cleanset.plumbing.validation import check_known, shown
from cleanset.scoring.checkpoints import read_tensors
from cleanset.scoring.devices import computing_threads
from cleanset.studies.robustness.images import MASKS, STUDY_IMAGES, files_of
from cleanset.studies.robustness.params import MaskFolder
from cleanset.studies.robustness.scenarios.masks import Mask, mask_png
from cleanset.studies.training.finished import network_of_record, record_of_weights
from cleanset.studies.training.segmentation.examples import BACKGROUND, label_of
from cleanset.studies.training.segmentation.networks import SegmentationNetwork
from cleanset.studies.training.segmentation.task import build_network, image_logits
from cleanset.studies.training.study import StudyInputs, TrainingStudy
from cleanset.tables import INDEX, read_table

ORIGIN: Final = "model"
MASKS_MADE_WITH: Final = "made_with.json"
"""File next to the masks with the network that made them."""
NO_MASK_REASONS: Final = (
    "of a class that the network was not trained on",
    "in which it finds no object",
    "in which it finds no background",
)
"""Why an image gets no mask."""


@dataclass(frozen=True, slots=True)
class UnmaskedImage:
    """An image without a mask."""

    image_id: str
    """Its image id."""
    class_index: int
    """Index of its class."""
    file: str
    """Its file in the set."""
    crop: Box | None
    """The crop of the original that the file holds; None: the whole image."""
    size: tuple[int, int] | None = None
    """Width and height of the original in pixels; None if they are not known."""


def write_model_masks(
    folder: Path,
    images: Iterable[UnmaskedImage],
    object_of: Callable[[str, int], Mask],
    *,
    classes: tuple[int, ...],
    made_with: Mapping[str, object],
) -> list[str]:
    """Write a PNG of one bit a pixel for each image, named by its id, and MASKS_MADE_WITH; all or nothing.

    `object_of` gives the pixels of a file where a label is more probable than background. Returns the numbers of masks,
    and of images without one by reason, in words. Raises CleansetError unless `folder` is new or empty, and without any
    image or any object found.
    """
    written = 0
    without = Counter[str]()
    with new_folder(folder) as partial:
        partial.mkdir(exist_ok=True)
        for image in images:
            if image.class_index not in classes:
                without[NO_MASK_REASONS[0]] += 1
                continue
            mask = object_of(image.file, label_of(image.class_index, classes))
            if mask.any() and not mask.all():
                whole = Image.fromarray(in_original(mask, image.crop, image.size))
                write_bytes(partial / f"{image.image_id}.png", mask_png(whole))
                written += 1
            else:
                without[NO_MASK_REASONS[1 + mask.any()]] += 1
        lines = [
            f"{without[why]:,} image{'s' * (without[why] > 1)} without one, {why}"
            for why in NO_MASK_REASONS
            if without[why]
        ]
        if not written:
            reasons = ", ".join(lines) or "every image has a mask"
            raise CleansetError(f"{folder}: no mask to write: {reasons}; expected images that get one")
        write_text(partial / MASKS_MADE_WITH, json.dumps(dict(made_with), indent=2, sort_keys=True) + "\n")
    return [f"{written:,} mask{'s' * (written != 1)}", *lines]


def in_original(mask: Mask, crop: Box | None, size: tuple[int, int] | None = None) -> Mask:
    """The mask of a crop in the original image of that size; without a size, as far as the crop reaches."""
    if crop is None:
        return mask
    left, top, right, bottom = crop
    width, height = (right, bottom) if size is None else size
    whole = np.zeros((height, width), np.bool_)
    whole[top:bottom, left:right] = mask
    return whole


NO_MASK = "no_mask"
"""The reason in the robustness study's table of masks for which an image gets one here."""


def unmasked_images(study: TrainingStudy, classes: ClassTable) -> tuple[list[UnmaskedImage], SetImages]:
    """The images of the robustness study that have no mask, and the function that reads the files of all.

    Raises CleansetError if it has not listed its images.
    """
    robustness = study.robustness
    index = study.edition.index
    if not robustness.masks_table.is_file():
        raise CleansetError(
            f"{robustness.masks_table}: missing; expected the output of cleanset robustness stage images: run it in "
            f"{robustness.folder.name}"
        )
    images = read_table(robustness.images, STUDY_IMAGES, classes)
    masks = read_table(robustness.masks_table, MASKS, classes)
    without = set(masks.loc[masks["left_out"] == NO_MASK, "file"])
    sizes = dict[str, tuple[int, int]]()
    if index.is_file():
        columns = read_table(index, INDEX, classes, columns=["image_id", "width", "height"])
        sizes = {name: (width, height) for name, width, height in columns.itertuples(index=False)}
    found = [
        UnmaskedImage(
            image_id=row["image_id"],
            class_index=row["class_index"],
            file=row["file"],
            crop=box_of(row["crop"]),
            size=sizes.get(row["image_id"]),
        )
        for row in images[images["file"].isin(without)].to_dict("records")
    ]
    return found, SetImages(files_of(study.edition, images))


def make_masks(study: TrainingStudy, run: str, fold: str | None, folder: str) -> list[str]:
    """Write masks for the robustness study's images without one to the folder of that name in its masks.

    `fold`: the run's fold, None for its first. Returns the numbers in words. Raises CleansetError for an unknown run or
    fold, one that does not segment or is not finished, and a folder that is there or that params.yaml would not take.
    """
    try:
        MaskFolder(folder=folder, origin=ORIGIN)
    except ValidationError:
        raise CleansetError(
            f"folder {shown(folder)}; expected the name of a folder, of letters, digits, '.', '_' and '-'"
        ) from None
    inputs = StudyInputs.read(study)
    names = inputs.params.run(run).fold_names()
    fold = fold or names[0]
    check_known("fold", fold, names)
    images, read = unmasked_images(study, inputs.classes)
    network, classes, digest = finished_network(inputs, run, fold)

    def object_of(file: str, label: int) -> Mask:
        logits = image_logits(network, np.asarray(read(file).convert("RGB")))[0]
        return (logits[label] > logits[BACKGROUND]).cpu().numpy()

    done = tracked(images, len(images), "masks")
    made_with = {"run": run, "fold": fold, "weights_sha256": digest}
    with computing_threads(inputs.params.threads):
        return write_model_masks(study.robustness.masks / folder, done, object_of, classes=classes, made_with=made_with)


def finished_network(inputs: StudyInputs, run: str, fold: str) -> tuple[SegmentationNetwork, tuple[int, ...], str]:
    """The network of a run's fold, its class indices, and the SHA-256 of its weights.

    Raises CleansetError for a run that does not segment or is not finished.
    """
    files = inputs.study.fold(run, fold)
    record = record_of_weights(files.record, files.weights, "segmentation", f"run cleanset training train --run {run}")
    network = build_network(network_of_record(record), len(record["classes"]), inputs.study.edition.folder, 0)
    network.inner.load_state_dict(read_tensors(files.weights))
    return network.eval(), tuple(inputs.classes.indices[wnid] for wnid in record["classes"]), record["weights_sha256"]
