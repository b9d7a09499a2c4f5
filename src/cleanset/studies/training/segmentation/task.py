"""Segmentation as a training task: cross-entropy of every pixel on random crops, and the test by scenario.

The test counts pixels by scenario and class, and draws sheets of the images with the largest and the smallest IoU.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.plumbing.csv_files import write_frame
from cleanset.scoring.devices import to_device
from cleanset.scoring.models import weights_at_hand
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.scenarios.params import GENERATED
from cleanset.studies.robustness.scenarios.photographs import decode_photograph
from cleanset.studies.training.fold_data import FoldData
from cleanset.studies.training.images import TRAINING_IMAGES
from cleanset.studies.training.loop import LOSS, Outcome, epoch_seed, loaded
from cleanset.studies.training.pixels import generated_file, photographs_for
from cleanset.studies.training.run_params import Network, Run
from cleanset.studies.training.segmentation.examples import (
    IGNORED_LABEL,
    Example,
    ExampleReader,
    Labels,
    Scenes,
    SegmentedFile,
    label_of,
    random_crop,
)
from cleanset.studies.training.segmentation.measures import (
    BACKGROUND_CLASS,
    COUNTS,
    intersection_over_unions,
    label_counts,
)
from cleanset.studies.training.segmentation.networks import (
    STRIDE,
    SegmentationNetwork,
    decoder_and_encoder,
    segmentation_network,
)
from cleanset.studies.training.segmentation.sheets import IMAGE_COLUMNS, JPEG_QUALITY, draw_tile, shown_images
from cleanset.studies.training.study import StudyInputs
from cleanset.tables import read_table

SEGMENTATION_TEST_COLUMNS: Final = ("scenario", "class_index", "images", *COUNTS)
"""The columns of test.csv. `images`: the images of the class; all of them for the background."""


class SegmentationBatch(NamedTuple):
    """A batch of crops in memory."""

    images: Tensor
    """The images, float32 of shape (N, 3, size, size), values 0 to 1."""
    labels: Tensor
    """The label maps, int64 of shape (N, size, size)."""


def crop_batch(
    files: Sequence[SegmentedFile], read: ExampleReader, run: Run, places: Sequence[int], *, epoch: int
) -> SegmentationBatch:
    """Random crops of the files at some places, the same for the same seed and epoch in any order and process.

    With shift_and_mirror half of them are mirrored.
    """
    images: list[Tensor] = []
    labels: list[Tensor] = []
    for file in (files[place] for place in places):
        drawn = np.random.RandomState(change_seed(image_seed(run.seed, file.file), "segmentation", "crop", epoch))
        crop = random_crop(read(file), run.size, drawn)
        if run.augmentation == "shift_and_mirror" and drawn.randint(2):
            crop = Example(crop.image[:, ::-1], crop.labels[:, ::-1])
        images.append(image_tensor(crop.image))
        labels.append(torch.from_numpy(crop.labels.astype(np.int64)))
    return SegmentationBatch(torch.stack(images), torch.stack(labels))


def image_tensor(image: Pixels) -> Tensor:
    """An image as float32 of shape (3, height, width), values 0 to 1."""
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).float() / 255


class Segmentation:
    """A network that learns label maps of a fold's images; a TrainingTask of the loop.

    It trains on crops, whose side is a multiple of 32, and is validated and tested on images at their own size. Raises
    CleansetError for its network, a size or batch that does not fit, and generated images that are missing.
    """

    chosen_by: ClassVar = LOSS
    """The validation measure that chooses an epoch."""
    inner_name: ClassVar = "inner"
    """The name of the library's network in its weights, behind the normalisation."""

    def __init__(self, data: FoldData) -> None:
        run = data.run
        study = data.study
        params = data.params
        self.data = data
        self.name = data.name
        if run.size % STRIDE:
            raise CleansetError(f"{self.name}: size {run.size}; expected a multiple of {STRIDE} for segmentation")
        self.training, self.validated, self.left_out = (
            segmented_files(data.inputs, each) for each in (data.training, data.validation, data.left_out)
        )
        if len(self.training) < run.batch:
            raise CleansetError(
                f"{self.name}: {len(self.training)} training images for batches of {run.batch}; expected at least "
                "one batch: add images, or set a smaller batch"
            )
        self.scenarios = run.tests if self.left_out else []
        generated = study.folder / params.data.generated
        for file in self.left_out if GENERATED in self.scenarios else []:
            # not only after the training
            generated_file(generated, file.file)
        photographs = [decode_photograph(file) for file in photographs_for(study, self.scenarios)]
        self.scenes = Scenes(params.seed, photographs, generated)
        labels = read_table(study.images, TRAINING_IMAGES, data.inputs.classes, columns=["class_index"])
        all_classes = sorted(set(labels["class_index"].tolist()))
        self.read = ExampleReader(params.data.mask_format, tuple(data.class_indices), tuple(all_classes))
        network = build_network(run.network, len(data.class_indices), study.edition.folder, run.seed)
        self.network: nn.Module = network.to(data.device)

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in an epoch; an incomplete batch is left out, since batch norm needs several images."""
        return len(self.training) // self.data.run.batch

    def batches(self, epoch: int) -> Iterable[SegmentationBatch]:
        """The batches of an epoch, counted from 1."""
        run = self.data.run
        share = self.data.share
        order = np.random.RandomState(epoch_seed(run.seed, epoch)).permutation(len(self.training)).tolist()
        starts = range(0, self.steps_per_epoch * run.batch, run.batch)
        groups = [order[start : start + run.batch][share.rank :: share.processes] for start in starts]
        crops = partial(crop_batch, self.training, self.read, run, epoch=epoch)
        return loaded(crops, groups, self.data.params.workers)

    def loss(self, network: nn.Module, batch: SegmentationBatch, epoch: int) -> Outcome:
        """The mean cross-entropy of all pixels that are not ignored, and the share predicted correctly."""
        labels = to_device(batch.labels, self.data.device)
        logits = network(to_device(batch.images, self.data.device))
        return Outcome(cross_entropy(logits, labels), len(labels), {"accuracy": pixel_accuracy(logits, labels)})

    def validate(self, epoch: int) -> Mapping[str, float]:
        """Loss, pixel accuracy and mean IoU on the images to validate on; empty without any."""
        if not self.validated:
            return {}
        counts = np.zeros((self.read.labels, len(COUNTS)), np.int64)
        loss = 0.0
        for file in self.validated:
            image, truth = self.read(file)
            logits = image_logits(self.network, image)
            loss += float(cross_entropy(logits, torch.from_numpy(truth.astype(np.int64))[None].to(logits.device)))
            counts += label_counts(truth, predicted_labels(logits), self.read.labels, with_boundaries=False)
        pixels = counts[:, 0].sum()
        intersection = counts[:, 1].sum()
        return {
            LOSS: loss / len(self.validated),
            "accuracy": float(intersection / pixels),
            "mean_iou": float(np.nanmean(intersection_over_unions(counts))),
        }

    def test_table(self, sheets: Path) -> pd.DataFrame:
        """Rows of SEGMENTATION_TEST_COLUMNS, empty without images left out; writes sheets of the best and worst images.

        `sheets`: their folder. Raises CleansetError for an image or mask that has changed, and as `Scenes` does.
        """
        indices = [BACKGROUND_CLASS, *self.read.classes]
        totals = {name: np.zeros((self.read.labels, len(COUNTS)), np.int64) for name in self.scenarios}
        rows = []
        for file in self.left_out:
            original = self.read(file)
            for scenario in self.scenarios:
                example = self.scenes(original, file.file, scenario)
                counts = label_counts(example.labels, self.predicted(example.image), self.read.labels)
                totals[scenario] += counts
                own = intersection_over_unions(counts)[label_of(file.class_index, self.read.classes)]
                rows.append((scenario, file.file, file.class_index, float(own)))
        if not rows:
            return pd.DataFrame(columns=list(SEGMENTATION_TEST_COLUMNS))
        self._write_sheets(sheets, shown_images(pd.DataFrame(rows, columns=list(IMAGE_COLUMNS))))
        of_class = Counter(file.class_index for file in self.left_out)
        images = [len(self.left_out), *(of_class[each] for each in self.read.classes)]
        parts = [
            pd.DataFrame(counts, columns=list(COUNTS)).assign(scenario=name, class_index=indices, images=images)
            for name, counts in totals.items()
        ]
        return pd.concat(parts, ignore_index=True)[list(SEGMENTATION_TEST_COLUMNS)]

    def _write_sheets(self, folder: Path, chosen: pd.DataFrame) -> None:
        """Write tiles as JPEG and sheets.csv for rows of SHEET_COLUMNS; the images are predicted again."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {each.file: each for each in self.left_out}
        for row in chosen.to_dict("records"):
            example = self.scenes(self.read(files[row["file"]]), row["file"], row["scenario"])
            label = label_of(row["class_index"], self.read.classes)
            tile = draw_tile(example, self.predicted(example.image), label)
            tile.save(folder / row["tile"], "JPEG", quality=JPEG_QUALITY)
        write_frame(folder / "sheets.csv", chosen)

    def predicted(self, image: Pixels) -> Labels:
        """The label map that the network predicts for an image of any size."""
        return predicted_labels(image_logits(self.network, image))


def build_network(wanted: Network, classes: int, folder: Path, seed: int) -> SegmentationNetwork:
    """The network for the classes and the background; new weights are drawn from `seed`.

    Published weights of the encoder are downloaded to the edition in `folder`. Raises CleansetError as
    `segmentation_network` does, and for weights that are missing.
    """
    weights = None
    if wanted.pretrained:
        _, encoder = decoder_and_encoder(wanted.name, wanted.encoder)
        weights = weights_at_hand(Model(source="timm", name=encoder), folder)
    # new weights are the same whatever was drawn before
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return segmentation_network(wanted.name, wanted.encoder, classes + 1, weights=weights)


def segmented_files(inputs: StudyInputs, images: pd.DataFrame) -> list[SegmentedFile]:
    """The images of rows of TRAINING_IMAGES, with their masks; without those whose mask is of other classes.

    Raises CleansetError for an image without a mask.
    """
    folder = inputs.study.folder
    data = inputs.params.data
    found = []
    for row in images[images["left_out"] != "other_class"].to_dict("records"):
        # a missing value of a table, NaN
        if pd.isna(row["mask"]):
            raise CleansetError(
                f"{row['file']}: no mask; expected a mask of each image in data.masks: add it, or remove the image"
            )
        class_index = int(row["class_index"])
        found.append(
            SegmentedFile(
                folder=folder / data.images,
                file=str(row["file"]),
                sha256=str(row["sha256"]),
                class_index=class_index,
                class_key=inputs.classes.keys[class_index],
                mask=folder / data.masks / row["mask"],
                mask_sha256=str(row["mask_sha256"]),
            )
        )
    return found


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over pixels that are not ignored; logits (N, labels, height, width), labels (N, height, width)."""
    # flat, since the loss of images is not deterministic on a GPU
    flat = logits.float().permute(0, 2, 3, 1).flatten(0, 2)
    return functional.cross_entropy(flat, labels.flatten(), ignore_index=IGNORED_LABEL)


def pixel_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """The share of pixels that are not ignored whose label has the largest logit."""
    seen = labels != IGNORED_LABEL
    return ((logits.detach().argmax(dim=1) == labels) & seen).sum() / seen.sum()


def image_logits(network: nn.Module, image: Pixels) -> Tensor:
    """The logits of one image at its own size, float of shape (1, labels, height, width), in evaluation mode."""
    device = next(network.parameters()).device
    with torch.inference_mode():
        logits: Tensor = network.eval()(to_device(image_tensor(image)[None], device))
    return logits


def predicted_labels(logits: Tensor) -> Labels:
    """The label with the largest logit of each pixel of one image."""
    return logits[0].argmax(dim=0).to(torch.uint8).cpu().numpy()
