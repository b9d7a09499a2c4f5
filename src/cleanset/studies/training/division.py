"""Divide training images into folds, into images to train on and to test on, and set some aside for validation.

Every division is seeded, takes the same share of each class, and leaves the images of a group, such as a patient, in
one part.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.folder import GROUP
from cleanset.errors import CleansetError
from cleanset.statistics.basics import Flags, Ints
from cleanset.statistics.seeds import change_seed, image_seed

TRAIN = "train"
TEST = "test"
"""The two values of the column `split`."""
TEST_SHARE = 0.2
"""Share of each class that the single split tests on, rounded to whole images."""
VALIDATION_SHARE = 0.1
"""Share of each class of a fold's other images that it is validated on, rounded to whole images."""
SPLIT_SEED = 1337
"""The seed that XIMAGENET-12's script names for splitfolders."""

Rows = Ints
"""Rows of a table, from 0."""


@dataclass(frozen=True, slots=True, eq=False)
class ImagesToDivide:
    """The classes and groups of images that are divided; a row of each field belongs to one image."""

    class_indices: Ints
    """Class index of each image."""
    classes: ClassTable
    """The class table that the indices refer to."""
    groups: Sequence[str] | None = None
    """Group of each image; None: every image may be divided from every other."""

    def units(self, seed: int, kind: str, least: int, why: str) -> Iterator[tuple[int, list[Rows]]]:
        """Each class index with the rows that stay together, of other classes, too; shuffled by seed and class.

        `kind`: the kind of division, from which its seeds are derived. Raises CleansetError, which ends in `why`, for a
        class with fewer than `least` such units.
        """
        keys: Sequence[object] = range(len(self.class_indices)) if self.groups is None else self.groups
        together: dict[object, list[int]] = {}
        for row, key in enumerate(keys):
            together.setdefault(key, []).append(row)
        for class_index in np.unique(self.class_indices).tolist():
            generator = np.random.default_rng(change_seed(image_seed(seed, "training"), kind, "class", class_index))
            rows = generator.permutation(np.flatnonzero(self.class_indices == class_index))
            found = dict.fromkeys(keys[row] for row in rows.tolist())
            if len(found) < least:
                count = f"{len(found)} {'image' if self.groups is None else 'group'}{'s' * (len(found) != 1)}"
                raise CleansetError(
                    f"{self.classes.keys[class_index]}: {count} to train on; expected at least {least}, {why}"
                )
            yield class_index, [np.array(together[key]) for key in found]

    def check_each_class(self, is_divided: Flags, problem: str) -> None:
        """Raise CleansetError, which ends in `problem`, for a class that is in one part alone, because of its groups.

        `is_divided`: flags by class index.
        """
        for class_index in np.unique(self.class_indices[~is_divided[self.class_indices]])[:1]:
            raise CleansetError(f"{self.classes.keys[class_index]}: no image {problem}: add images, or set fewer folds")


def images_to_divide(images: pd.DataFrame, classes: ClassTable) -> ImagesToDivide:
    """The images of a table with the column class_index, and a column group if they have groups."""
    groups = images[GROUP].tolist() if GROUP in images else None
    return ImagesToDivide(images["class_index"].to_numpy(np.int64), classes, groups)


def fold_numbers(images: ImagesToDivide, folds: int, seed: int) -> Rows:
    """The fold of each image, 1 to `folds`: their sizes differ by at most one, in each class and over all images.

    Groups are dealt whole, the largest first, so that their folds are as equal as their sizes allow: one of several
    classes to the fold with the smallest shares of these. Raises CleansetError for a class with fewer images, or
    groups, than folds, and for one that some fold has no image of.
    """
    labels = images.class_indices
    found = np.zeros(len(labels), np.int64)
    totals = np.bincount(labels)
    sizes = np.zeros((len(totals), folds), np.int64)
    first = 0
    why = "one for each fold: add images, or set fewer folds"
    for class_index, units in images.units(seed, "folds", folds, why):
        # dealt on from where the class before ended, so that no fold gets more of all classes
        order = (first + np.arange(folds)) % folds
        for unit in sorted((unit for unit in units if not found[unit[0]]), key=len, reverse=True):
            of, counts = np.unique(labels[unit], return_counts=True)
            place = order[np.argmin((sizes[of] / totals[of, None]).sum(axis=0)[order])]
            found[unit] = place + 1
            sizes[of, place] += counts
        first += int(totals[class_index])
    problem = "in some fold, of groups that have other classes, too; expected one in each"
    images.check_each_class(np.all(sizes > 0, axis=1), problem)
    return found


def split_names(images: ImagesToDivide, seed: int) -> list[str]:
    """TRAIN or TEST for each image: TEST_SHARE of each class is TEST, at least one image; a group is one or the other.

    Raises CleansetError for a class with fewer than two images, or groups.
    """
    is_test = _share_of_each_class(images, seed, kind="split", share=TEST_SHARE, purpose="test on")
    return [TEST if each else TRAIN for each in is_test]


def split_as_coded(files: Sequence[str], class_indices: Sequence[int]) -> list[str]:
    """TRAIN or TEST for each image, as splitfolders divides the files of each class by 80 and 20."""
    found = [TEST] * len(files)
    for class_index in set(class_indices):
        of_class = (row for row, each in enumerate(class_indices) if each == class_index)
        rows = sorted(of_class, key=lambda row: files[row])
        random.Random(SPLIT_SEED).shuffle(rows)
        for row in rows[: int((1 - TEST_SHARE) * len(rows))]:
            found[row] = TRAIN
    return found


def _share_of_each_class(images: ImagesToDivide, seed: int, *, kind: str, share: float, purpose: str) -> Flags:
    """Flags of a share of each class, which is at least one image and not all; groups are whole."""
    labels = images.class_indices
    found = np.zeros(len(labels), np.bool_)
    totals = np.bincount(labels)
    wanted = np.array([max(1, round(share * count)) for count in totals.tolist()])
    for class_index, units in images.units(seed, kind, 2, f"one of them to {purpose}: add images"):
        for unit in units:
            of, counts = np.unique(labels[unit], return_counts=True)
            if not found[unit[0]] and (counts <= wanted[of]).all():
                found[unit] = True
                wanted[of] -= counts
        if not found[labels == class_index].any():
            found[min(units, key=len)] = True
    is_divided = np.bincount(labels[found], minlength=len(totals)) < totals
    images.check_each_class(is_divided, f"that is not one to {purpose}, by groups that have other classes, too")
    return found


def folds_table(files: Sequence[str], images: ImagesToDivide, folds: int, seed: int) -> pd.DataFrame:
    """The columns file, class_index, split, fold, and group (if any), sorted by file."""
    table = pd.DataFrame({"file": list(files), "class_index": images.class_indices})
    if images.groups is not None:
        table[GROUP] = images.groups
    table = table.sort_values("file", kind="stable", ignore_index=True)
    ordered = images_to_divide(table, images.classes)
    table["split"] = split_names(ordered, seed)
    table["fold"] = fold_numbers(ordered, folds, seed)
    return table[["file", "class_index", "split", "fold", *([GROUP] if images.groups is not None else [])]]


def rows_of_fold(table: pd.DataFrame, count: int, name: str) -> tuple[Rows, Rows]:
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


def set_aside(images: pd.DataFrame, classes: ClassTable, seed: int, fold: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows to train on, and those to validate on: VALIDATION_SHARE of each class, at least one; a group is whole.

    Raises CleansetError for a class with fewer than two images, or groups.
    """
    aside = _share_of_each_class(
        images_to_divide(images, classes),
        seed,
        kind=f"validation of {fold}",
        share=VALIDATION_SHARE,
        purpose=f"validate on in {fold}",
    )
    return images[~aside].reset_index(drop=True), images[aside].reset_index(drop=True)
