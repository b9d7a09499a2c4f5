"""The files and folders of a study, the sets' images with their masks, and changed images by name.

A changed image is a function of image, change, severity or frame, and seed alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.classes import ClassTable
from cleanset.dataset.folder import GROUP
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import ImageFile
from cleanset.images.preprocessing import Pixels, base_image, through_jpeg, wide_image
from cleanset.plumbing.files import PathBelow, partial_shards, remove_abandoned, sha256
from cleanset.sets.manifest import Entry
from cleanset.statistics.basics import Flags
from cleanset.statistics.groups import Units
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.sections import CLEAN, UNCHANGED
from cleanset.tables import BOX, CLASS, FILE, IMAGE_ID, INDEX, NAME, NAMES, SHA256, Table, nullable, read_table


class ChangeName(NamedTuple):
    """The name of a changed image: its id for the engine that runs models.

    Shards have a column for each part.
    """

    file: str
    """The file that it is made of."""
    change: str
    """The change."""
    step: int
    """A severity or a frame; 0 for neither."""

    def __str__(self) -> str:
        return f"{self.file} {self.change} {self.step:02d}"

    @classmethod
    def of_rows(cls, rows: pd.DataFrame) -> list[Self]:
        """The changed image of each row, in their order."""
        return list(map(cls, *(rows[name].tolist() for name in cls._fields)))


Change = Callable[[ImageFile, str, int, int], Pixels]
"""Function from file, change, step and the image's seed to pixels, uint8 of shape (224, 224, 3)."""


@dataclass(frozen=True, slots=True)
class ChangedImages:
    """Changed images of 224 x 224 pixels, and the images as exported, under CLEAN; a callable that can be pickled."""

    files: Mapping[str, ImageFile]
    """The path of each image, by file."""
    change: Change
    """The change that makes or reads them."""
    jpeg: int | None
    """The quality at which each is stored as JPEG and read again; None: not at all."""
    seed: int
    """The study's seed."""
    is_published: bool = False
    """Whether changed images are read; only the unchanged ones are then stored as JPEG."""

    def __call__(self, name: ChangeName) -> Image.Image:
        """The changed image. Raises CleansetError if the file's bytes are not those of the manifest."""
        file, change, step = name
        source = self.files[file]
        if change == CLEAN:
            return source.decoded()
        if change == UNCHANGED:
            return Image.fromarray(through_jpeg(base_pixels(source), self.jpeg))
        pixels = self.change(source, change, step, image_seed(self.seed, source.image_id))
        return Image.fromarray(pixels if self.is_published else through_jpeg(pixels, self.jpeg))


# the changes of an image follow each other
@lru_cache(maxsize=4)
def base_pixels(file: ImageFile) -> Pixels:
    """The base image of a file, read-only. Raises CleansetError if it differs from the manifest."""
    return _read_only(base_image(file.decoded()))


@lru_cache(maxsize=1)
def whole_pixels(file: ImageFile) -> Pixels:
    """The image at its own size, RGB, read-only; errors as `base_pixels`."""
    return _read_only(np.asarray(file.decoded().convert("RGB")))


@lru_cache(maxsize=4)
def wide_pixels(file: ImageFile) -> Pixels:
    """The image before the base image is cut out of it, read-only; errors as `base_pixels`."""
    return _read_only(wide_image(file.decoded()))


def _read_only(pixels: Pixels) -> Pixels:
    pixels.setflags(write=False)
    return pixels


@dataclass(frozen=True, slots=True)
class AnswerFiles:
    """The files with the answers of models."""

    folder: Path
    """The folder of the answers, with one for each family."""
    cache: Path | None = None
    """The folder of finished shards, also of models whose own run is still to come; None: next to the answers."""

    def predictions(self, family: str, name: str) -> Path:
        """The answers of a model to a family."""
        return self.folder / family / f"{name}.parquet"

    def record(self, family: str, name: str) -> Path:
        """The record of the answers: weights, seed, precision, versions."""
        return self.folder / family / f"{name}.json"

    def partial(self, family: str, name: str) -> Path:
        """Finished shards of answers that are being computed."""
        return partial_shards((self.cache or self.folder) / family / name)


@dataclass(frozen=True, slots=True)
class StudyPaths:
    """The paths that every study has, in `folder`, which is in the folder `studies` of its edition."""

    folder: Path

    @property
    def edition(self) -> Edition:
        """The edition whose models and finished sets are studied."""
        return Edition(self.folder / ".." / "..")

    params_yaml = PathBelow("params.yaml")
    report = PathBelow("report")

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The study, without leftovers of killed stages in its folders."""
        study = cls(folder)
        # names that begin with a dot are those of what is left, or being written
        for each in (folder, *folder.glob("data"), *folder.glob("data/[!.]*/"), *folder.glob("data/[!.]*/[!.]*/")):
            remove_abandoned(each)
        return study


class Study(StudyPaths):
    """The paths of the study of robustness in `folder`."""

    images = PathBelow("data/images.parquet")
    masks_table = PathBelow("data/masks.parquet")

    @property
    def answers(self) -> AnswerFiles:
        """The answers of all models."""
        # DVC's folder of what may be lost: a stage writes into data what dvc.yaml names, and nothing else
        return AnswerFiles(self.folder / "data", self.cached_answers)

    cached_answers = PathBelow(".dvc/tmp/answers")

    def partial_digests(self, family: str) -> Path:
        """Finished shards of the digests of a family, before stage digests has run."""
        return partial_shards(self.cached_answers / f"{family}.digests")

    digests = PathBelow("data/digests")
    """The SHA-256 of every changed image, a table for each family, and the versions that made them."""

    measures = PathBelow("data/measures")
    """The measures by severity and class, as CSV."""

    metrics = PathBelow("metrics")
    masks = PathBelow("masks")
    """Folders of masks."""

    backgrounds = PathBelow("backgrounds")
    """Photographs that objects are placed on."""

    generated = PathBelow("generated/images")
    """Finished images with generated backgrounds, named by image id."""


class StudyBesideRobustness(StudyPaths):
    """The paths of a study that reads the outputs of the study of robustness next to it."""

    @property
    def robustness(self) -> Study:
        """The study of robustness, whose images, predictions, scenarios and photographs are read."""
        return Study(self.folder / ".." / "robustness")


STUDY_IMAGES = Table(
    key=("file",),
    file=FILE,  # in the folder of each set that holds it
    image_id=IMAGE_ID,
    class_index=CLASS,
    crop=nullable(BOX),  # null: the whole image
    file_sha256=SHA256,
    sets=NAMES,  # the roles in whose sets it is, in the order of params.yaml
)

MASKS = Table(
    key=("file",),
    file=FILE,  # of STUDY_IMAGES
    mask=nullable(FILE),  # in the folder `masks` of the study
    mask_sha256=nullable(SHA256),
    mask_format=nullable(NAME),
    origin=nullable(NAME),  # person, generator or model
    left_out=nullable(NAME),  # one of scenarios.masks.LeftOut; null: the image is in the scenarios
)


def join_sets(sets: Mapping[str, Sequence[Entry]]) -> pd.DataFrame:
    """The columns of STUDY_IMAGES, and the group of each image, from the manifests by role.

    Raises CleansetError if one file is another image in two sets, and without images.
    """
    found: dict[str, tuple[Entry, list[str]]] = {}
    for role, entries in sets.items():
        for entry in entries:
            first, roles = found.setdefault(entry.file, (entry, []))
            # one name stands for one image in all sets, so that answers to it are stored once
            if (first.file_sha256, first.class_index) != (entry.file_sha256, entry.class_index):
                raise CleansetError(
                    f"{entry.file}: another image in the set of {role} than in the set of {roles[0]}; expected one "
                    "image under one name: run dvc repro in the edition"
                )
            roles.append(role)
    if not found:
        raise CleansetError(f"the sets of {', '.join(sets)} have no images; expected at least one")
    rows = [
        (file, entry.image_id, entry.class_index, entry.crop, entry.file_sha256, roles, entry.group)
        for file, (entry, roles) in sorted(found.items())
    ]
    return pd.DataFrame(rows, columns=[*STUDY_IMAGES.names, GROUP])


def units_of(images: pd.DataFrame) -> Units | None:
    """The groups of some rows of STUDY_IMAGES, if they have any."""
    return Units.of(images[GROUP].tolist()) if GROUP in images else None


def is_seen(
    images: pd.DataFrame, which: Literal["union", "own"], role: str, classes: Collection[int] | None = None
) -> Flags:
    """Flags of the rows of STUDY_IMAGES that a model gets: all (union), or its own set's (own).

    `classes`: the classes of a model that has only some; None: all.
    """
    seen = np.array([which == "union" or role in sets for sets in images["sets"]], np.bool_)
    return seen if classes is None else seen & images["class_index"].isin(list(classes)).to_numpy(np.bool_)


def images_for(
    images: pd.DataFrame, which: Literal["union", "own"], role: str, classes: Collection[int] | None = None
) -> pd.DataFrame:
    """The rows of STUDY_IMAGES that a model gets. Raises CleansetError if no image is of its classes."""
    found = images[is_seen(images, which, role, classes)].reset_index(drop=True)
    if found.empty and classes is not None:
        raise CleansetError(
            f"further_models.{role}.classes: none of the study's {len(images):,} images is of one of them; expected "
            "classes of the edition"
        )
    return found


def first_images(images: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """At most `count` rows of STUDY_IMAGES: the first image of each class by name, then the second, and so on."""
    if count is None:
        return images
    rounds = images.groupby("class_index").cumcount().to_numpy()
    # lexsort sorts by its last key first
    order = np.lexsort((images["file"], images["class_index"], rounds))
    return images.iloc[np.sort(order[:count])].reset_index(drop=True)


def files_of(edition: Edition, images: pd.DataFrame) -> dict[str, ImageFile]:
    """The path of each image, in the set of the first model that has it."""
    rows = zip(images["file"], images["file_sha256"], images["image_id"], images["sets"], strict=True)
    return {
        file: ImageFile(edition.export(sets[0]).resolve() / file, digest, image_id)
        for file, digest, image_id, sets in rows
    }


def images_sha256(images: pd.DataFrame) -> str:
    """A digest of the files of some rows of STUDY_IMAGES and of their bytes, in their order."""
    return sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode())


def rows_sha256(images: pd.DataFrame) -> str:
    """A digest of what results on some rows of STUDY_IMAGES depend on: files, bytes, classes and ids, in their order.

    Draws follow from the ids.
    """
    columns = images[["file", "file_sha256", "class_index", "image_id"]].astype(str)
    return sha256("\n".join(map("\t".join, columns.itertuples(index=False))).encode())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sources:
    """The sources of changed images."""

    images: pd.DataFrame
    """Rows of STUDY_IMAGES."""
    masks: pd.DataFrame
    """Rows of MASKS, of the same images."""
    files: Mapping[str, ImageFile]
    """The path of each image, by file."""
    classes: ClassTable
    """The class table of the images."""
    study: Study
    """The study whose folders hold masks, backgrounds and generated images."""
    edition: Edition | None = None
    """The images' edition: photographs are compared with all images of its index, where that is there."""

    def files_in(self, images: pd.DataFrame) -> dict[str, ImageFile]:
        """The paths of the images in some rows, by file."""
        return {file: self.files[file] for file in images["file"]}

    def indexed_images(self) -> dict[str, str]:
        """The ids of all images of the edition by the SHA-256 of their pixels; empty without its index."""
        if self.edition is None or not self.edition.index.is_file():
            return {}
        index = read_table(self.edition.index, INDEX, self.classes)
        return dict(zip(index["pixels_sha256"], index["image_id"], strict=True))
