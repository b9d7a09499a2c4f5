"""Examples of segmentation: images with label maps from masks of any format; random crops and scenarios of them.

Label 0 is the background, 1 to n are a run's classes in the order of their indices, 255 is ignored. As in
XIMAGENET-12, an image has the object of one class, its folder's; in a mask of the format `class_ids` every pixel
has a class of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels
from cleanset.sets.folder import read_regular_file
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.scenarios.mask_formats import FORMATS, MASK_SUFFIXES, read_regions
from cleanset.studies.robustness.scenarios.masks import EMPTY_MASK, Regions, read_png
from cleanset.studies.robustness.scenarios.params import GENERATED, ORIGINAL, RANDOM
from cleanset.studies.robustness.scenarios.scenes import scenario_image
from cleanset.studies.training.images import decoded, read_unchanged
from cleanset.studies.training.pixels import generated_file

Labels = NDArray[np.uint8]
"""A label map, uint8 of shape (height, width)."""

BACKGROUND = 0
"""Label of the background."""
IGNORED_LABEL = 255
"""Label of pixels that count nowhere."""
MAX_LABELS = IGNORED_LABEL - 1
"""The most classes of a run."""

CLASS_IDS = "class_ids"
LABEL_FORMATS: tuple[str, ...] = (*FORMATS, CLASS_IDS)
"""The formats of masks in the robustness study, and `class_ids`: a PNG of one channel whose values are 0 for
background, 1 to n for the classes of the data in the order of their indices, and 255 for ignored pixels."""

LABEL_SUFFIXES: Mapping[str, str] = {**MASK_SUFFIXES, CLASS_IDS: ".png"}
"""The suffix of the mask files of each format."""


class Example(NamedTuple):
    """An image and its label map."""

    image: Pixels
    """The image, uint8 of shape (height, width, 3)."""
    labels: Labels
    """The label map, uint8 of shape (height, width)."""


def label_of(class_index: int, classes: Sequence[int]) -> int:
    """The label of a class among a run's classes, from 1. Raises CleansetError for another class, and for too many."""
    if len(classes) > MAX_LABELS:
        raise CleansetError(f"classes: {len(classes):,}; expected at most {MAX_LABELS} for segmentation: name fewer")
    ordered = sorted(classes)
    if class_index not in ordered:
        known = ", ".join(map(str, ordered))
        raise CleansetError(f"class {class_index}: not one of the run's classes; expected one of {known}")
    return ordered.index(class_index) + 1


def read_label_map(data: bytes, mask_format: str, label: int, *, class_key: str, where: str) -> Labels:
    """The label map in a mask file; `label` and `class_key` are those of its image's class.

    Raises CleansetError, naming `where`, for an unknown format, a mask that cannot be read, and one without object or
    background.
    """
    regions = read_regions(data, mask_format, class_key, where)
    labels = np.full(regions.object.shape, IGNORED_LABEL, np.uint8)
    labels[regions.background] = BACKGROUND
    labels[regions.object] = label
    return labels


def read_class_ids(data: bytes, classes: int, where: str) -> Labels:
    """The label map in a mask of the format `class_ids`, for the number of classes of the data.

    Raises CleansetError, naming `where`, for a mask that cannot be read, one without objects, and a class id above
    `classes` other than 255.
    """
    image = read_png(data, where)
    if image.mode not in ("L", "P"):
        raise CleansetError(f"{where}: PNG of mode {image.mode}; expected one byte a pixel, the id of its class")
    labels = np.asarray(image)
    found = np.unique(labels)
    unknown = found[(found > classes) & (found != IGNORED_LABEL)]
    if unknown.size:
        raise CleansetError(
            f"{where}: class id {unknown[0]}; expected 0 for background, 1 to {classes} for the classes in order, or "
            f"{IGNORED_LABEL} for ignored pixels: draw it again, or remove the file"
        )
    if not ((found != BACKGROUND) & (found != IGNORED_LABEL)).any():
        raise CleansetError(f"{where}: {EMPTY_MASK}")
    return labels


def with_classes(labels: Labels, known: Sequence[int], wanted: Sequence[int]) -> Labels:
    """The labels of `known` classes mapped to some of them, `wanted`; all others become background."""
    table = np.full(IGNORED_LABEL + 1, BACKGROUND, np.uint8)
    table[IGNORED_LABEL] = IGNORED_LABEL
    for class_index in wanted:
        table[label_of(class_index, known)] = label_of(class_index, wanted)
    return table[labels]


def check_size(labels: Labels, image: Pixels, where: str) -> None:
    """Raise CleansetError, naming the mask `where`, unless it has the size of its image."""
    if labels.shape != image.shape[:2]:
        raise CleansetError(
            f"{where}: mask of {labels.shape[1]} x {labels.shape[0]} pixels for an image of {image.shape[1]} x "
            f"{image.shape[0]}; expected the image's size: draw it again, or remove the file"
        )


def regions_of_labels(labels: Labels) -> Regions:
    """The objects of all classes as one, and the background; ignored pixels are in neither."""
    background = labels == BACKGROUND
    return Regions(~background & (labels != IGNORED_LABEL), background)


@dataclass(frozen=True, slots=True)
class SegmentedFile:
    """A training image and its mask."""

    folder: Path
    """The folder of the images."""
    file: str
    """The image's path below the folder, with forward slashes."""
    sha256: str
    """SHA-256 of the image's bytes."""
    class_index: int
    """Index of the image's class."""
    class_key: str
    """Key of the image's class; of ImageNet its wnid."""
    mask: Path
    """The mask's file."""
    mask_sha256: str
    """SHA-256 of the mask's bytes."""


class ExampleReader(NamedTuple):
    """Reads examples; can be pickled."""

    mask_format: str
    """The format of the masks, one of LABEL_FORMATS."""
    classes: tuple[int, ...]
    """The class indices of the run."""
    data_classes: tuple[int, ...]
    """The class indices of all training images, in whose order masks of the format `class_ids` number them."""

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
            label = label_of(file.class_index, self.classes)
            labels = read_label_map(mask, self.mask_format, label, class_key=file.class_key, where=where)
        check_size(labels, image, where)
        return Example(image, labels)


def random_crop(example: Example, size: int, generator: np.random.RandomState) -> Example:
    """A random part of `size` x `size` pixels; pixels beyond a smaller image are black and ignored."""
    height, width = example.labels.shape
    top = generator.randint(max(height - size, 0) + 1)
    left = generator.randint(max(width - size, 0) + 1)
    image = example.image[top : top + size, left : left + size]
    labels = example.labels[top : top + size, left : left + size]
    below = size - labels.shape[0]
    right = size - labels.shape[1]
    return Example(
        np.pad(image, ((0, below), (0, right), (0, 0))),
        np.pad(labels, ((0, below), (0, right)), constant_values=IGNORED_LABEL),
    )


class Scenes(NamedTuple):
    """Everything that scenarios need besides an image and its mask."""

    seed: int = 0
    """The study's seed."""
    photographs: Sequence[Pixels] = ()
    """The photographs of random_background."""
    generated: Path = Path()
    """A folder with the generated images, named like the training images, each of its image's size."""

    def __call__(self, example: Example, file: str, name: str) -> Example:
        """The example in a scenario; `file` is the image's path below its folder.

        Raises CleansetError as `scenario_image` does, and for a generated image that is missing or of another size.
        """
        if name == ORIGINAL:
            return example
        generated = self._generated(example, file) if name == GENERATED else None
        image = self._changed(example, file, name, photographs=self.photographs, generated=generated)
        return Example(image, self._moved(example.labels, file) if name == RANDOM else example.labels)

    def _changed(
        self, example: Example, file: str, name: str, *, photographs: Sequence[Pixels], generated: Pixels | None = None
    ) -> Pixels:
        regions = regions_of_labels(example.labels)
        seed = image_seed(self.seed, file)
        return scenario_image(example.image, regions, name, seed, photographs=photographs, generated=generated)

    def _moved(self, labels: Labels, file: str) -> Labels:
        """The label map that goes with random_background: each label painted white, on black photographs."""
        black = [np.zeros_like(each) for each in self.photographs]
        found = np.full_like(labels, BACKGROUND)
        strongest = np.zeros_like(labels)
        for label in np.unique(labels[labels != BACKGROUND]).tolist():
            painted = np.where(labels == label, np.uint8(255), np.uint8(0))[..., np.newaxis].repeat(3, axis=2)
            # the same seed draws the same photograph, place and scale
            shown = self._changed(Example(painted, labels), file, RANDOM, photographs=black)[..., 0]
            found[shown > strongest] = label
            strongest = np.maximum(shown, strongest)
        return found

    def _generated(self, example: Example, file: str) -> Pixels:
        path = generated_file(self.generated, file)
        pixels: Pixels = np.asarray(decoded(read_regular_file(path), path).convert("RGB"))
        if pixels.shape != example.image.shape:
            height, width = example.image.shape[:2]
            raise CleansetError(
                f"{path}: {pixels.shape[1]} x {pixels.shape[0]} pixels for an image of {width} x {height}; expected "
                "the image's size: make it again"
            )
        return pixels
