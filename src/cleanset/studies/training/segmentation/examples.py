"""Training examples of segmentation: images with their masks as label maps, and crops of them in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.training.images import decoded, read_unchanged
from cleanset.studies.training.segmentation.label_maps import (
    CLASS_IDS,
    Example,
    Pixels,
    check_size,
    label_of,
    random_crop,
    read_class_ids,
    read_label_map,
    with_classes,
)

KIND = "segmentation"
"""The kind of change, from which seeds of crops are derived."""


class SegmentedFile(NamedTuple):
    """A training image and its mask: `file` is its path below `folder`, with forward slashes."""

    folder: Path
    file: str
    sha256: str
    class_index: int
    wnid: str
    mask: Path
    mask_sha256: str


class Batch(NamedTuple):
    """Images, float32 of shape (N, 3, size, size), values 0 to 1, and label maps, int64 of shape (N, size, size)."""

    images: Tensor
    labels: Tensor


@dataclass(frozen=True, slots=True)
class ExampleReader:
    """Reads examples; can be pickled.

    `classes`: the class indices of the run; `data_classes`: those of all training images, in whose order masks of the
    format `class_ids` number them.
    """

    mask_format: str
    classes: tuple[int, ...]
    data_classes: tuple[int, ...]

    @property
    def labels(self) -> int:
        """The number of labels, background included."""
        return len(self.classes) + 1

    def __call__(self, file: SegmentedFile) -> Example:
        """The image and its label map.

        Raises CleansetError for bytes other than those that the study's stage data found, and as the readers of label
        maps and `check_size` do.
        """
        path = file.folder / file.file
        image: Pixels = np.asarray(decoded(read_unchanged(path, file.sha256), path).convert("RGB"))
        mask = read_unchanged(file.mask, file.mask_sha256)
        where = str(file.mask)
        if self.mask_format == CLASS_IDS:
            labels = with_classes(read_class_ids(mask, len(self.data_classes), where), self.data_classes, self.classes)
        else:
            labels = read_label_map(mask, self.mask_format, label_of(file.class_index, self.classes), file.wnid, where)
        check_size(labels, image, where)
        return Example(image, labels)


@dataclass(frozen=True, slots=True)
class Crops(Dataset[tuple[Tensor, Tensor]]):
    """Crops of some examples in one epoch, the same for the same seed in any order and process.

    `mirrored`: half of them, drawn, are mirrored.
    """

    files: Sequence[SegmentedFile]
    reader: ExampleReader
    size: int
    seed: int
    epoch: int
    mirrored: bool

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        """The crop and its labels, as in a Batch."""
        file = self.files[place]
        drawn = np.random.RandomState(change_seed(image_seed(self.seed, file.file), KIND, "crop", self.epoch))
        crop = random_crop(self.reader(file), self.size, drawn)
        if self.mirrored and drawn.randint(2):
            crop = Example(crop.image[:, ::-1], crop.labels[:, ::-1])
        return image_tensor(crop.image), torch.from_numpy(crop.labels.astype(np.int64))


def image_tensor(image: Pixels) -> Tensor:
    """An image as float32 of shape (3, height, width), values 0 to 1."""
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))).float() / 255


def crop_batches(crops: Crops, groups: Sequence[list[int]], workers: int) -> Iterator[Batch]:
    """A batch of crops for each group of places; `workers` processes decode, none for 0."""
    # groups are given, so that nothing is drawn from torch's own generator
    for images, labels in DataLoader(crops, batch_sampler=groups, num_workers=workers):
        yield Batch(images, labels)
