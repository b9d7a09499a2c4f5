"""The training images: their table, their pixels with or without a scenario, and their division into folds.

Folds are parts of equal classes, seeded; a fold of a run is given images to train on, to validate on and to test on.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from cleanset.classes import classes_in_use
from cleanset.csv_files import read_frame
from cleanset.dataset.archives import visible_entries
from cleanset.dataset.folder import GROUP, files_below, read_images
from cleanset.errors import CleansetError
from cleanset.files import sha256
from cleanset.images.codec import decode_file
from cleanset.images.preprocessing import Resized, base_image
from cleanset.sets.folder import read_regular_file
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.studies.robustness.images import StudyFile, base_pixels
from cleanset.studies.robustness.scenarios.params import GENERATED, ORIGINAL, RANDOM
from cleanset.studies.training.params import Data, Run, TrainingParams
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import CLASS, FILE, NAME, SHA256, Table, nullable, read_table
from cleanset.validation import check_known, shown
from cleanset.vocabulary import class_indices, class_keys

# OpenCV and SciPy are loaded for scenarios only
if TYPE_CHECKING:
    import torch

    from cleanset.studies.robustness.scenarios.changes import SceneImage, SceneMask, StoredFile


SUFFIXES = (".jpg", ".jpeg", ".png")
TRAINING_IMAGES = Table(
    key=("file",),
    file=FILE,  # relative to the folder of images
    class_index=CLASS,
    sha256=SHA256,  # of the bytes
    pixels_sha256=SHA256,
    mask=nullable(FILE),  # relative to the folder of masks
    mask_sha256=nullable(SHA256),
    left_out=nullable(NAME),  # why it is in no scenario, as in the study of robustness; null: it is
)


def find_images(folder: Path, labels: Path | None = None) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """File and class key of every image, sorted, and the group of each, where the table `labels` has groups.

    Raises CleansetError for a missing folder, a class that is not one of those in use, and no images.
    """
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; expected a folder of training images for each class (data.images)")
    if labels is None and classes_in_use().is_imagenet:
        return _in_folders_of_wnids(folder), {}
    listed = read_images(folder, labels, None)
    if unknown := sorted(set(listed.classes.keys) - set(class_keys())):
        raise CleansetError(
            f"{labels or folder}: class {shown(unknown[0])}, which the edition does not have; expected one of its "
            "classes: rename or remove it, or add images of it to the edition"
        )
    return [(file, listed.classes.keys[index]) for file, index in listed.class_of.items()], dict(listed.group_of)


def _in_folders_of_wnids(folder: Path) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for each in (Path(entry.path) for entry in visible_entries(folder) if entry.is_dir()):
        if each.name not in class_indices():
            raise CleansetError(f"{each}: expected folders named by the wnids of ILSVRC2012: rename or remove it")
        found += [(file, each.name) for file in files_below(each, each.name, 1) if file.lower().endswith(SUFFIXES)]
    if not found:
        raise CleansetError(f"{folder}: no images; expected JPEG or PNG files in a folder for each wnid")
    return found


def read_unchanged(path: Path, digest: str) -> bytes:
    """The bytes of a file. Raises CleansetError for another SHA-256 than `digest`, which stage data found."""
    data = read_regular_file(path)
    if sha256(data) != digest:
        raise CleansetError(f"{path}: changed since stage data; expected SHA-256 {digest}: run dvc repro")
    return data


def decoded(data: bytes, path: Path) -> Image.Image:
    """The image in the bytes of a file. Raises CleansetError for bytes that cannot be read."""
    return decode_file(data, path, "a whole JPEG or PNG: remove it")


@dataclass(frozen=True, eq=False)
class TrainingPixels:
    """The pixels of training images in one scenario; a callable that can be pickled, for worker processes.

    All are the base images of the study of robustness, 224 x 224, resized to `size`: so an image as it is differs from
    one in a scenario by the scenario alone. `whole` leaves an image uncropped, unless its background has the size of a
    base image. `is_nearest`: resized to `size` without a filter. `files`, `digests` and `labels` (the network's class)
    have a value for each image. `generated`: the folder of images with generated backgrounds.
    """

    folder: Path
    files: Sequence[str]
    digests: Sequence[str]
    labels: NDArray[np.int64]
    size: int
    scenario: str = ORIGINAL
    scenes: "SceneImage | None" = None
    seed: int = 0
    whole: bool = False
    generated: Path | None = None
    is_nearest: bool = False

    def __len__(self) -> int:
        return len(self.files)

    def image(self, place: int) -> Image.Image:
        """The image before it is resized. Raises CleansetError for a file that has changed."""
        path = self.folder / self.files[place]
        if self.scenario == ORIGINAL and self.whole:
            return decoded(read_unchanged(path, self.digests[place]), path)
        file = StudyFile(path, self.digests[place], self.files[place])
        if self.scenario == ORIGINAL:
            return Image.fromarray(base_pixels(file))
        assert self.scenes is not None
        if self.scenario == GENERATED:
            return Image.fromarray(self._generated(file, self.scenes.masks[path]))
        seed = image_seed(self.seed, file.image_id)
        if self.whole and self.scenario != RANDOM:
            return Image.fromarray(self.scenes.before_resizing(file, self.scenario, seed))
        return Image.fromarray(self.scenes(file, self.scenario, 0, seed))

    def _generated(self, file: StudyFile, mask: "SceneMask") -> NDArray[np.uint8]:
        """The object of the base image on a generated image, of which the base image is taken, too."""
        from cleanset.studies.robustness.scenarios.changes import object_put_back, regions_of_mask

        assert self.generated is not None
        path = generated_file(self.generated, file.image_id)
        generated = base_image(decoded(read_regular_file(path), path))
        return object_put_back(base_pixels(file), regions_of_mask(mask), generated)

    def __call__(self, place: int) -> NDArray[np.uint8]:
        """The pixels of an image, uint8 of shape (3, size, size), red first."""
        return Resized(self.size, self.is_nearest)(self.image(place))


def _scenes(study: TrainingStudy, data: Data, images: pd.DataFrame, scenario: str) -> "SceneImage":
    from cleanset.studies.robustness.scenarios.changes import SceneImage, SceneMask, StoredFile

    folder, names, masks = study.folder / data.images, class_keys(), {}
    columns = (images[name] for name in ("file", "class_index", "mask", "mask_sha256"))
    for file, class_index, mask, digest in zip(*columns, strict=True):
        stored = StoredFile(study.folder / data.masks / mask, digest)
        masks[folder / file] = SceneMask(stored, data.mask_format, names[class_index], None)
    return SceneImage(masks, photographs_for(study, [scenario]))


def photographs_for(study: TrainingStudy, scenarios: Sequence[str]) -> "tuple[StoredFile, ...]":
    """The photographs of the robustness study, where random_background is among the scenarios."""
    from cleanset.studies.robustness.scenarios.changes import photograph_files

    if RANDOM not in scenarios:
        return ()
    # that study has compared them with the edition's images, so none is decoded here for its digest
    images: dict[str, Image.Image] = {}
    return photograph_files(study.robustness.backgrounds, images.__getitem__, {}, {})


def generated_file(folder: Path, file: str) -> Path:
    """The image with a generated background in a folder, named as a training image, of any suffix. Raises CleansetError
    if it is missing.
    """
    for suffix in SUFFIXES:
        path = folder / Path(file).with_suffix(suffix)
        if path.is_file():
            return path
    raise CleansetError(
        f"{folder / Path(file).with_suffix(SUFFIXES[-1])}: missing; expected an image with a generated background for "
        f"each image that is used: make it, or leave {GENERATED} out"
    )


TRAIN, TEST = "train", "test"
TEST_SHARE = 0.2
"""Share of each class that the single split tests on, rounded to whole images."""
VALIDATION_SHARE = 0.1
"""Share of each class of a fold's other images that it is validated on, rounded to whole images."""


ImageGroups = Sequence[str] | None
"""The group of each image, which no division splits; None: every image may be divided from every other."""
Rows = NDArray[np.int64]


def fold_numbers(classes: Sequence[int], folds: int, seed: int, groups: ImageGroups = None) -> Rows:
    """The fold of each image, 1 to `folds`: of each class the same number but for one, and of all images, too.

    Groups are dealt whole, the largest first, so that their folds are as equal as their sizes allow: one of several
    classes to the fold with the smallest shares of these. Raises CleansetError for a class with fewer images, or
    groups, than folds, and for one that some fold has no image of.
    """
    array, found, first = np.asarray(classes), np.zeros(len(classes), np.int64), 0
    totals = np.bincount(array)
    sizes = np.zeros((len(totals), folds), np.int64)
    why = "one for each fold: add images, or set fewer folds"
    for class_index, units in _units(array, seed, "folds", groups, folds, why):
        # dealt on from where the class before ended, so that no fold gets more of all classes
        order = (first + np.arange(folds)) % folds
        for unit in sorted((unit for unit in units if not found[unit[0]]), key=len, reverse=True):
            of, counts = np.unique(array[unit], return_counts=True)
            place = order[np.argmin((sizes[of] / totals[of, None]).sum(axis=0)[order])]
            found[unit] = place + 1
            sizes[of, place] += counts
        first += int(totals[class_index])
    _check_each(array, sizes.all(axis=1), "in some fold, of groups that have other classes, too; expected one in each")
    return found


def _check_each(classes: Rows, is_divided: Any, problem: str) -> None:
    """Raise CleansetError that ends in `problem` for a class in one part alone, by groups of several classes."""
    for class_index in np.unique(classes[~is_divided[classes]])[:1]:
        raise CleansetError(f"{class_keys()[class_index]}: no image {problem}: add images, or set fewer folds")


def split_names(classes: Sequence[int], seed: int, groups: ImageGroups = None) -> list[str]:
    """TRAIN or TEST for each image: of each class TEST_SHARE are TEST, at least one; a group is one or the other.

    Raises CleansetError for a class with fewer than two images, or groups.
    """
    is_test = _some_of_each(classes, seed, groups, "split", TEST_SHARE, "test on")
    return [TEST if each else TRAIN for each in is_test]


SPLIT_SEED = 1337
"""The seed that source 002's script names for splitfolders."""


def split_as_coded(files: Sequence[str], classes: Sequence[int]) -> list[str]:
    """TRAIN or TEST for each image, as splitfolders divides the files of each class by 80 and 20."""
    found = [TEST] * len(files)
    for class_index in set(classes):
        rows = sorted((row for row, each in enumerate(classes) if each == class_index), key=lambda row: files[row])
        random.Random(SPLIT_SEED).shuffle(rows)
        for row in rows[: int((1 - TEST_SHARE) * len(rows))]:
            found[row] = TRAIN
    return found


def _some_of_each(
    classes: Sequence[int], seed: int, groups: ImageGroups, kind: str, share: float, purpose: str
) -> NDArray[np.bool_]:
    """Whether each image is in a share of its class, which is at least one image and not all; groups are whole."""
    array, found = np.asarray(classes), np.zeros(len(classes), np.bool_)
    totals = np.bincount(array)
    wanted = np.array([max(1, round(share * count)) for count in totals.tolist()])
    for class_index, units in _units(array, seed, kind, groups, 2, f"one of them to {purpose}: add images"):
        for unit in units:
            of, counts = np.unique(array[unit], return_counts=True)
            if not found[unit[0]] and (counts <= wanted[of]).all():
                found[unit] = True
                wanted[of] -= counts
        if not found[array == class_index].any():
            found[min(units, key=len)] = True
    is_divided = np.bincount(array[found], minlength=len(totals)) < totals
    _check_each(array, is_divided, f"that is not one to {purpose}, by groups that have other classes, too")
    return found


def _units(
    classes: Rows, seed: int, kind: str, groups: ImageGroups, least: int, why: str
) -> Iterator[tuple[int, list[Rows]]]:
    """Each class with the rows that a division leaves together, of other classes, too; shuffled by seed and class.

    Raises CleansetError, which ends in `why`, for fewer than `least` such units of a class.
    """
    keys: Sequence[object] = range(len(classes)) if groups is None else groups
    together: dict[object, list[int]] = {}
    for row, key in enumerate(keys):
        together.setdefault(key, []).append(row)
    for class_index in np.unique(classes).tolist():
        generator = np.random.default_rng(change_seed(image_seed(seed, "training"), kind, "class", class_index))
        rows = generator.permutation(np.flatnonzero(classes == class_index))
        found = dict.fromkeys(keys[row] for row in rows.tolist())
        if len(found) < least:
            count = f"{len(found)} {'image' if groups is None else 'group'}{'s' * (len(found) != 1)}"
            raise CleansetError(f"{class_keys()[class_index]}: {count} to train on; expected at least {least}, {why}")
        yield class_index, [np.array(together[key]) for key in found]


def folds_table(
    files: Sequence[str], classes: Sequence[int], folds: int, seed: int, groups: ImageGroups = None
) -> pd.DataFrame:
    """The columns file, class_index, split, fold, and group (if any), sorted by file."""
    table = pd.DataFrame({"file": list(files), "class_index": list(classes)}).sort_values("file", kind="stable")
    by_row = groups and [groups[row] for row in table.index]
    table["split"] = split_names(table["class_index"].tolist(), seed, by_row)
    table["fold"] = fold_numbers(table["class_index"].tolist(), folds, seed, by_row)
    if by_row:
        table[GROUP] = by_row
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
    """The rows to train on, and those to validate on: of each class VALIDATION_SHARE, at least one; a group is whole.

    Raises CleansetError for a class with fewer than two images, or groups.
    """
    classes, groups = images["class_index"].tolist(), images[GROUP].tolist() if GROUP in images else None
    purpose = f"validate on in {fold}"
    aside = _some_of_each(classes, seed, groups, f"validation of {fold}", VALIDATION_SHARE, purpose)
    return images[~aside].reset_index(drop=True), images[aside].reset_index(drop=True)


class ProcessShare(NamedTuple):
    """The part of each batch that this process gets, of `processes` in all: `rank` from 0."""

    rank: int = 0
    processes: int = 1


ALONE = ProcessShare()
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
    share: ProcessShare = ALONE

    @property
    def run(self) -> Run:
        """The run's settings."""
        return self.params.run(self.run_name)

    @property
    def name(self) -> str:
        """Run and fold, for messages."""
        return f"{self.run_name}, {self.fold}"

    def pixels(self, images: pd.DataFrame, scenario: str, *, whole: bool = False) -> TrainingPixels:
        """The pixels and labels of the rows that a scenario has; of all rows for originals. Raises CleansetError
        without any.
        """
        found = images if scenario == ORIGINAL else images[images["mask"].notna() & images["left_out"].isna()]
        if found.empty:
            raise CleansetError(
                f"{scenario}: no training image has a mask that shows an object; expected some in data.masks"
            )
        study, data, size = self.study, self.params.data, self.run.size
        scenes = None if scenario == ORIGINAL else _scenes(study, data, found, scenario)
        labels = np.searchsorted(self.classes, found["class_index"])
        columns = found["file"].tolist(), found["sha256"].tolist(), labels.astype(np.int64), size
        generated = study.folder / data.generated
        resizing, where = self.run.resizing, (study.folder / data.images, *columns, scenario, scenes, self.params.seed)
        return TrainingPixels(*where, whole or resizing != "cropped", generated, resizing == "nearest")

    def settings(self) -> dict[str, Any]:
        """Everything but code and versions that the weights follow from, of JSON's types."""
        return {
            "run": self.run_name,
            "fold": self.fold,
            "settings": self.run.model_dump(mode="json"),
            "seed": self.params.seed,
            "threads": self.params.threads,
            "classes": [class_keys()[class_index] for class_index in self.classes],
            "training_images": len(self.training),
            "validation_images": len(self.validation),
            "data_sha256": sha256(self.study.images.read_bytes()),
            "folds_sha256": sha256(self.study.folds.read_bytes()),
            # of images without groups, the record says as little of them as it always did
            **({"split_by": GROUP} if GROUP in self.training else {}),
        }


def read_fold(
    study: TrainingStudy,
    params: TrainingParams,
    name: str,
    fold: str,
    device: "torch.device",
    share: ProcessShare = ALONE,
) -> FoldData:
    """The data of a run's fold. Raises CleansetError for an unknown run or fold, and for classes without images."""
    run = params.run(name)
    check_known("fold", fold, run.fold_names())
    columns, kinds = ("file", "split", "fold"), {GROUP: str, "fold": int}
    folds = read_frame(study.folds, columns, "run dvc repro", dtype=kinds, na_values=[])
    images = read_table(study.images, TRAINING_IMAGES)
    if images["file"].tolist() != folds["file"].tolist():
        raise CleansetError(
            f"{study.folds}: of other images than {study.images.name}; expected the same: run dvc repro"
        )
    if GROUP in folds:
        images[GROUP] = folds[GROUP]
    if run.split == "as_coded":
        if GROUP in folds:
            raise CleansetError(f"runs.{name}.split: as_coded, but images have groups; expected own: set split")
        folds["split"] = split_as_coded(folds["file"].tolist(), images["class_index"].tolist())
    wanted = {class_indices()[key] for key in run.classes or class_keys()}
    parts = (images.iloc[rows] for rows in rows_of_fold(folds, run.folds, fold))
    training, left_out = (part[part["class_index"].isin(wanted)].reset_index(drop=True) for part in parts)
    validation = left_out
    if run.folds and run.validation == "set_aside":
        training, validation = set_aside(training, params.seed, fold)
    validation, left_out = (_at_most(rows, run.max_tested) for rows in (validation, left_out))
    classes = sorted(set(training["class_index"].tolist()))
    if run.classes and (lost := sorted(wanted.difference(classes))):
        missing = ", ".join(class_keys()[class_index] for class_index in lost)
        raise CleansetError(f"runs.{name}.classes: no training images of {missing}; expected classes that have some")
    if len(classes) < 2:
        raise CleansetError(
            f"runs.{name}: training images of {len(classes)} class; expected at least two classes to tell apart"
        )
    return FoldData(study, params, name, fold, training, validation, left_out, classes, device, share)


def _at_most(images: pd.DataFrame, count: int | None) -> pd.DataFrame:
    """The first images of each class."""
    return images if count is None else images.groupby("class_index").head(count).reset_index(drop=True)
