"""Segmentation as a task of the training loop: cross-entropy of every pixel, on random crops; and its test.

The test counts pixels by scenario and class, and the IoU of every image. A sheet has the images of a scenario with the
largest and the smallest IoU. In a tile, pixels that are predicted as the image's class are blue, as another class
orange; the object's outline, as its mask has it, is white. So blue within the outline is correct, and everything else
is not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Self

import cv2
import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.scoring.models import weights_at_hand
from cleanset.scoring.scorer import to_device
from cleanset.studies.robustness.scenarios.changes import decode_photograph
from cleanset.studies.robustness.scenarios.params import GENERATED
from cleanset.studies.training.images import ALONE, TRAINING_IMAGES, FoldData, Share, generated_file, photographs_for
from cleanset.studies.training.loop import LOSS, Outcome, epoch_seed
from cleanset.studies.training.params import Data, Network
from cleanset.studies.training.segmentation.examples import (
    Batch,
    Crops,
    ExampleReader,
    SegmentedFile,
    crop_batches,
    image_tensor,
)
from cleanset.studies.training.segmentation.label_maps import (
    BACKGROUND,
    IGNORED,
    Example,
    Labels,
    Pixels,
    Scenes,
    label_of,
)
from cleanset.studies.training.segmentation.measures import (
    BACKGROUND_CLASS,
    COUNTS,
    SHEET_COLUMNS,
    Counts,
    intersection_over_unions,
    label_counts,
)
from cleanset.studies.training.segmentation.networks import (
    STRIDE,
    SegmentationNetwork,
    decoder_and_encoder,
    segmentation_network,
)
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import read_table
from cleanset.vocabulary import class_keys

TEST_COLUMNS: Final = ("scenario", "class_index", "images", *COUNTS)
"""The columns of test.csv. `images`: those of the class; all of them for the background."""

IMAGE_COLUMNS: Final = ("scenario", "file", "class_index", "iou")
"""The columns of the table of images; `iou` is that of the image's own class, NaN where it is nowhere."""

Predict = Callable[[Pixels], Labels]
Changed = Callable[[Example, str, str], Example]
"""The example, its file and the name of a scenario to the example in it: `Scenes`."""


class Tested(NamedTuple):
    """The rows of test.csv, sorted by scenario as tested and class index, and those of the images."""

    counts: pd.DataFrame
    images: pd.DataFrame


def run_test(
    predict: Predict,
    files: Sequence[SegmentedFile],
    read: ExampleReader,
    scenarios: Sequence[str],
    changed: Changed,
) -> Tested:
    """Predict every image at its own size in every scenario.

    Raises CleansetError for an image or mask that has changed, and as `changed` does.
    """
    totals = {name: np.zeros((read.labels, len(COUNTS)), np.int64) for name in scenarios}
    rows = list[tuple[str, str, int, float]]()
    for file in files:
        original = read(file)
        for scenario in scenarios:
            example = changed(original, file.file, scenario)
            counts = label_counts(example.labels, predict(example.image), read.labels)
            totals[scenario] += counts
            own = intersection_over_unions(counts)[label_of(file.class_index, read.classes)]
            rows.append((scenario, file.file, file.class_index, float(own)))
    return Tested(counts_table(totals, files, read.classes), pd.DataFrame(rows, columns=list(IMAGE_COLUMNS)))


def counts_table(totals: dict[str, Counts], files: Sequence[SegmentedFile], classes: Sequence[int]) -> pd.DataFrame:
    """The rows of test.csv from counts by scenario and label."""
    own = [file.class_index for file in files]
    indices = [BACKGROUND_CLASS, *sorted(classes)]
    images = [len(own), *(own.count(each) for each in indices[1:])]
    parts = [pd.DataFrame(columns=list(TEST_COLUMNS))]
    for scenario, counts in totals.items():
        table = pd.DataFrame(counts, columns=list(COUNTS))
        table.insert(0, "images", images)
        table.insert(0, "class_index", indices)
        table.insert(0, "scenario", scenario)
        parts.append(table)
    return pd.concat(parts[1:] or parts, ignore_index=True)


BEST, WORST = "best", "worst"
SHOWN_IMAGES: Final = 3
"""Number of images on each side of a scenario's sheet."""
TILE_SIDE: Final = 256
"""Longer side of a tile in pixels."""
JPEG_QUALITY: Final = 88

# two of the colours by Okabe and Ito, which people with any colour vision tell apart
OWN_CLASS: Final = (0, 114, 178)
OTHER_CLASS: Final = (230, 120, 0)
OUTLINE: Final = (255, 255, 255)
TINT: Final = 0.55
"""Weight of a tile's colours against the image."""


class Shown(NamedTuple):
    """An image on a sheet; `number` counts from 1."""

    scenario: str
    place: str
    number: int
    file: str
    class_index: int
    iou: float

    @property
    def tile(self) -> str:
        """The name of its file."""
        return f"{self.scenario}_{self.place}_{self.number}.jpg"


def shown_images(images: pd.DataFrame, number: int = SHOWN_IMAGES) -> list[Shown]:
    """The best and worst images of each scenario, from rows of IMAGE_COLUMNS: by IoU, equal ones by file.

    Of few images none is on both sides: the better half is among the best.
    """
    found = []
    for scenario, rows in images.dropna(subset="iou").groupby("scenario", sort=False):
        ordered = rows.sort_values(["iou", "file"], ascending=[False, True])
        best = min(number, (len(ordered) + 1) // 2)
        worst = min(number, len(ordered) - best)
        for place, part in ((BEST, ordered.iloc[:best]), (WORST, ordered.iloc[::-1].iloc[:worst])):
            for position, row in enumerate(part.itertuples(), 1):
                found.append(
                    Shown(str(scenario), place, position, str(row.file), int(str(row.class_index)), float(str(row.iou)))
                )
    return found


def draw_tile(example: Example, predicted: Labels, label: int) -> Image.Image:
    """The image with the prediction over it and the object's outline; `label` is that of its class."""
    longer = max(example.image.shape[:2])
    factor = min(1.0, TILE_SIDE / longer)
    # labels are scaled without mixing them; the outline is drawn after that, so that its width is always the same
    size = (max(1, round(example.image.shape[1] * factor)), max(1, round(example.image.shape[0] * factor)))
    image = np.asarray(Image.fromarray(example.image).resize(size, Image.Resampling.BILINEAR), np.float64)
    shown, truth = (_scaled(each, size) for each in (predicted, example.labels))
    for color, where in ((OWN_CLASS, shown == label), (OTHER_CLASS, (shown != label) & (shown != BACKGROUND))):
        image = np.where(where[..., np.newaxis], TINT * np.array(color) + (1 - TINT) * image, image)
    pixels: Pixels = np.rint(image).astype(np.uint8)
    inside = ((truth != BACKGROUND) & (truth != IGNORED)).astype(np.uint8)
    contours, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    # black below white, so that the line shows on any background
    drawn = cv2.drawContours(np.ascontiguousarray(pixels), contours, -1, (0, 0, 0), 3)
    return Image.fromarray(np.asarray(cv2.drawContours(drawn, contours, -1, OUTLINE, 1), np.uint8))


def _scaled(labels: Labels, size: tuple[int, int]) -> Labels:
    return np.asarray(Image.fromarray(labels).resize(size, Image.Resampling.NEAREST))


def write_sheets(
    folder: Path,
    images: pd.DataFrame,
    predict: Predict,
    files: Sequence[SegmentedFile],
    read: ExampleReader,
    changed: Changed,
) -> None:
    """Write tiles as JPEG and sheets.csv for rows of IMAGE_COLUMNS; the images are predicted again."""
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {each.file: each for each in files}
    chosen = shown_images(images)
    for each in chosen:
        example = changed(read(by_name[each.file]), each.file, each.scenario)
        tile = draw_tile(example, predict(example.image), label_of(each.class_index, read.classes))
        tile.save(folder / each.tile, "JPEG", quality=JPEG_QUALITY)
    table = pd.DataFrame([(*each, each.tile) for each in chosen], columns=list(SHEET_COLUMNS))
    table.to_csv(folder / "sheets.csv", index=False, lineterminator="\n")


@dataclass(eq=False)
class Segmentation:
    """A network that learns label maps; a Task of the loop.

    `size`: the side of crops, a multiple of 32. `mirrored`: half of the crops are mirrored. `validated` are validated
    on at their own size, and `left_out` tested in the `scenarios`. `share`: of each batch, where several processes
    train.
    """

    name: str
    network: nn.Module
    reader: ExampleReader
    training: Sequence[SegmentedFile]
    validated: Sequence[SegmentedFile]
    left_out: Sequence[SegmentedFile]
    size: int
    batch: int
    seed: int
    mirrored: bool = False
    workers: int = 0
    share: Share = ALONE
    scenarios: Sequence[str] = ()
    scenes: Scenes = field(default_factory=Scenes)

    @classmethod
    def of_fold(cls, data: FoldData) -> Self:
        """The task of a fold.

        Raises CleansetError for its network, a size or batch that does not fit, and generated images that are missing.
        """
        run, study, params = data.run, data.study, data.params
        everything = read_table(study.images, TRAINING_IMAGES, ["file", "class_index"])
        all_classes = tuple(sorted(set(everything["class_index"].tolist())))
        scenarios = run.tests if len(data.left_out) else []
        left_out = segmented_files(study, params.data, data.left_out)
        generated = study.folder / params.data.generated
        photographs = [decode_photograph(file) for file in photographs_for(study, scenarios)]
        for file in left_out if GENERATED in scenarios else []:
            # not only after the training
            generated_file(generated, file.file)
        return cls(
            data.name,
            build_network(run.network, len(data.classes), study.edition.folder, run.seed).to(data.device),
            ExampleReader(params.data.mask_format, tuple(data.classes), all_classes),
            segmented_files(study, params.data, data.training),
            segmented_files(study, params.data, data.validation),
            left_out,
            run.size,
            run.batch,
            run.seed,
            run.augmentation == "shift_and_mirror",
            params.workers,
            data.share,
            scenarios,
            Scenes(params.seed, photographs=photographs, generated=generated),
        )

    def __post_init__(self) -> None:
        if self.size % STRIDE:
            raise CleansetError(f"{self.name}: size {self.size}; expected a multiple of {STRIDE} for segmentation")
        if len(self.training) < self.batch:
            raise CleansetError(
                f"{self.name}: {len(self.training)} training images for batches of {self.batch}; expected at least "
                "one batch: add images, or set a smaller batch"
            )

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in an epoch; what fills no batch is left out, since batch norm needs several images."""
        return len(self.training) // self.batch

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, counted from 1."""
        crops = Crops(self.training, self.reader, self.size, self.seed, epoch, self.mirrored)
        order = np.random.RandomState(epoch_seed(self.seed, epoch)).permutation(len(self.training)).tolist()
        starts = range(0, self.steps_per_epoch * self.batch, self.batch)
        groups = [order[start : start + self.batch][self.share.rank :: self.share.processes] for start in starts]
        return crop_batches(crops, groups, self.workers)

    def loss(self, network: nn.Module, batch: Batch, epoch: int) -> Outcome:
        """The mean cross-entropy of all pixels that are not ignored, and the share predicted correctly."""
        labels = to_device(batch.labels, self.device)
        logits = network(to_device(batch.images, self.device))
        return Outcome(cross_entropy(logits, labels), len(labels), {"accuracy": pixel_accuracy(logits, labels)})

    chosen_by: ClassVar = LOSS
    """The measure of validation by which an epoch is chosen."""

    def validate(self, epoch: int) -> Mapping[str, float]:
        """Loss, pixel accuracy and mean IoU on the images to validate on; empty if there are none."""
        if not self.validated:
            return {}
        counts, loss = np.zeros((self.reader.labels, len(COUNTS)), np.int64), 0.0
        for file in self.validated:
            image, truth = self.reader(file)
            logits = image_logits(self.network, image)
            loss += float(cross_entropy(logits, torch.from_numpy(truth.astype(np.int64))[None].to(logits.device)))
            counts += label_counts(truth, predicted_labels(logits), self.reader.labels, with_boundaries=False)
        pixels, intersection = counts[:, 0].sum(), counts[:, 1].sum()
        return {
            LOSS: loss / len(self.validated),
            "accuracy": float(intersection / pixels),
            "mean_iou": float(np.nanmean(intersection_over_unions(counts))),
        }

    inner_name: ClassVar = "inner"
    """The name of the library's network in its weights, behind the normalisation."""

    def test_table(self, sheets: Path) -> pd.DataFrame:
        """The rows of test.csv, none without images left out; of the best and worst images sheets are written."""
        found = run_test(self.predicted, self.left_out, self.reader, self.scenarios, self.scenes)
        if len(found.images):
            write_sheets(sheets, found.images, self.predicted, self.left_out, self.reader, self.scenes)
        return found.counts

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


def segmented_files(study: TrainingStudy, data: Data, images: pd.DataFrame) -> list[SegmentedFile]:
    """The images of rows of TRAINING_IMAGES, with their masks; without those whose mask is of other classes.

    Raises CleansetError for an image without a mask.
    """
    found, names = [], class_keys()
    for row in images[images["left_out"] != "other_class"].to_dict("records"):
        if row["mask"] is None:
            raise CleansetError(
                f"{row['file']}: no mask; expected a mask of each image in data.masks: add it, or remove the image"
            )
        class_index, mask = int(row["class_index"]), study.folder / data.masks / row["mask"]
        image = study.folder / data.images, str(row["file"]), str(row["sha256"])
        found.append(SegmentedFile(*image, class_index, names[class_index], mask, str(row["mask_sha256"])))
    return found


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean over pixels that are not ignored; logits (N, labels, height, width), labels (N, height, width)."""
    # flat, since the loss of images is not deterministic on a GPU
    flat = logits.float().permute(0, 2, 3, 1).flatten(0, 2)
    return functional.cross_entropy(flat, labels.flatten(), ignore_index=IGNORED)


def pixel_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """The share of pixels that are not ignored whose label has the largest logit."""
    seen = labels != IGNORED
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
