"""The images of an edition that may not be trained on, and the training images among them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.duplicates import SHOWN_PAIRS
from cleanset.dataset.folder import GROUP, groups_of
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import write_csv
from cleanset.plumbing.validation import first_names
from cleanset.sets.folder import read_entries
from cleanset.tables import INDEX, read_table, text_of_table


class HeldOut(NamedTuple):
    """The images of an edition that may not be trained on, in words for messages."""

    files: Mapping[str, str]
    """By the SHA-256 of bytes."""
    pixels: Mapping[str, str]
    """By the SHA-256 of pixels."""
    groups: Mapping[str, str]
    """By group."""

    def kinds(self, images: pd.DataFrame) -> dict[str, "pd.Series[str]"]:
        """For each kind of duplicate, the held-out image that each row has it in common with, or NaN."""
        found = {
            "bytes are those": images["sha256"].map(self.files),
            "pixels are those": images["pixels_sha256"].map(self.pixels),
        }
        return found | ({"group is that": images[GROUP].map(self.groups)} if GROUP in images else {})

    def check(self, images: pd.DataFrame, table: Path) -> None:
        """Raise CleansetError if rows of TRAINING_IMAGES are held out; all are in `table` if there are many."""
        found: dict[str, tuple[str, str]] = {}
        for what, others in self.kinds(images).items():
            for file, other in zip(images["file"], others, strict=True):
                if isinstance(other, str):
                    found.setdefault(file, (what, other))
        if len(found) <= SHOWN_PAIRS:
            table.unlink(missing_ok=True)
        else:
            write_csv(table, ("file", "why", "of"), ((file, *why) for file, why in found.items()))
        if found:
            named = [f"{file}: its {what} of {other}" for file, (what, other) in found.items()]
            count = f"{len(found):,} images: " if len(found) > 1 else ""
            where = f"; all are in {table}" if len(found) > SHOWN_PAIRS else ""
            raise CleansetError(
                f"{count}{first_names(named, SHOWN_PAIRS)} of the edition, which may not be trained on; expected other "
                f"images: remove {'them' if len(found) > 1 else 'it'}{where}"
            )

    def without(self, images: pd.DataFrame, classes: ClassTable) -> pd.DataFrame:
        """The rows that are not held out, nor of the group of one that is. Raises CleansetError for a class of none."""
        is_held = pd.concat(self.kinds(images), axis=1).notna().any(axis=1)
        if GROUP in images:
            is_held |= images[GROUP].isin(images.loc[is_held, GROUP])
        kept = images[~is_held].reset_index(drop=True)
        if lost := sorted(set(images["class_index"]) - set(kept["class_index"])):
            raise CleansetError(
                f"{classes.keys[lost[0]]}: every training image is in a finished set, or its group is; expected some "
                "to train on: add images, or lower export.images_per_class of the edition"
            )
        why = "as finished sets have them, their groups or near-duplicates"
        print(f"{is_held.sum():,} of {len(images):,} images are held out, {why}")
        return kept


def held_out_images(edition: Edition, classes: ClassTable, *, only_sets: bool = False) -> HeldOut:
    """The images of the edition's index and of its finished sets; `only_sets`: of the index those that a set has.

    Raises CleansetError for a missing table or set.
    """
    index = read_table(edition.index, INDEX, classes, columns=["image_id", "sha256", "pixels_sha256"])
    group_of = groups_of(text_of_table(edition.index, "groups"), str(edition.index))
    delivered = [
        (role, each) for role in read_params(edition.folder).models for each in read_entries(edition.export(role))
    ]
    if only_sets:
        index = index[index["image_id"].isin({entry.image_id for _, entry in delivered})]
    files = dict(zip(index["sha256"], index["image_id"], strict=True))
    pixels = dict(zip(index["pixels_sha256"], index["image_id"], strict=True))
    for role, entry in delivered:
        # a crop has other bytes and other pixels than its image
        name = f"{entry.image_id}, in the set of {role},"
        files.setdefault(entry.file_sha256, name)
        pixels.setdefault(entry.pixels_sha256, name)
    return HeldOut(files, pixels, {group_of[name]: name for name in index["image_id"] if name in group_of})
