"""Folds: the division of images into parts of equal classes, seeded.

The check that no image of an edition is trained on: neither its bytes nor its pixels.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.sets.folder import read_entries
from cleanset.statistics.seeds import change_seed, image_seed
from cleanset.tables import INDEX, read_table

TRAIN, TEST = "train", "test"
TEST_SHARE = 0.2
"""Share of each class that the single split tests on, rounded to whole images."""


def fold_numbers(classes: Sequence[int], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image, 1 to `folds`: of each class the same number but for one, and of all images, too.

    Raises CleansetError for a class with fewer images than folds.
    """
    found, first = np.zeros(len(classes), np.int64), 0
    for class_index, rows in _shuffled(classes, seed, "folds"):
        if len(rows) < folds:
            raise CleansetError(
                f"{wnids()[class_index]}: {len(rows)} training images; expected at least {folds}, one for each fold: "
                "add images, or set fewer folds"
            )
        # dealt on from where the class before ended, so that no fold gets more of all classes
        found[rows] = (first + np.arange(len(rows))) % folds + 1
        first += len(rows)
    return found


def split_names(classes: Sequence[int], seed: int) -> list[str]:
    """TRAIN or TEST for each image: of each class TEST_SHARE are TEST, at least one.

    Raises CleansetError for a class with fewer than two images.
    """
    found = np.full(len(classes), TRAIN, dtype=object)
    for class_index, rows in _shuffled(classes, seed, "split"):
        if len(rows) < 2:
            raise CleansetError(f"{wnids()[class_index]}: one training image; expected at least two: add images")
        found[rows[: max(1, round(TEST_SHARE * len(rows)))]] = TEST
    return [str(name) for name in found]


def _shuffled(classes: Sequence[int], seed: int, kind: str) -> list[tuple[int, NDArray[np.int64]]]:
    """The places of the images of each class, in an order that depends on seed and class alone."""
    array = np.asarray(classes)
    found = []
    for class_index in np.unique(array):
        generator = np.random.default_rng(change_seed(image_seed(seed, "training"), kind, "class", int(class_index)))
        found.append((int(class_index), generator.permutation(np.flatnonzero(array == class_index))))
    return found


def folds_table(files: Sequence[str], classes: Sequence[int], folds: int, seed: int) -> pd.DataFrame:
    """The columns file, class_index, split and fold, sorted by file."""
    table = pd.DataFrame({"file": list(files), "class_index": list(classes)}).sort_values("file", kind="stable")
    table["split"] = split_names(table["class_index"].tolist(), seed)
    table["fold"] = fold_numbers(table["class_index"].tolist(), folds, seed)
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


class HeldOut(NamedTuple):
    """The images of an edition: where each is, by the SHA-256 of its bytes and by that of its pixels."""

    files: Mapping[str, str]
    pixels: Mapping[str, str]

    def check(self, images: Iterable[tuple[str, str, str]]) -> None:
        """Raise CleansetError if one of the images, as file, SHA-256 of its bytes and of its pixels, is held out."""
        for file, digest, pixels in images:
            found = self.files.get(digest) or self.pixels.get(pixels)
            if found is not None:
                what = "bytes" if digest in self.files else "pixels"
                raise CleansetError(
                    f"{file}: its {what} are those of {found} of the edition, which may not be trained on; expected "
                    "other images: remove it"
                )


def held_out_images(edition: Edition) -> HeldOut:
    """All images of the edition's index and of its finished sets. Raises CleansetError for a missing table or set."""
    index = read_table(edition.index, INDEX, ["image_id", "sha256", "pixels_sha256"])
    files = dict(zip(index["sha256"], index["image_id"], strict=True))
    pixels = dict(zip(index["pixels_sha256"], index["image_id"], strict=True))
    for role in read_params(edition.folder).models:
        for entry in read_entries(edition.export(role)):
            # a crop has other bytes and other pixels than its image
            name = f"{entry.image_id}, in the set of {role},"
            files.setdefault(entry.file_sha256, name)
            pixels.setdefault(entry.pixels_sha256, name)
    return HeldOut(files, pixels)
