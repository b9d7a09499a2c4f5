"""Stage `data`: the training images and their masks by digest, and the folds. Images of the edition are refused."""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.duplicates import REFUSED_DUPLICATES, SHOWN_PAIRS, equal_pairs, refuse_pairs
from cleanset.dataset.folder import GROUP, groups_of
from cleanset.dataset.near_duplicates import Groups, near_pairs
from cleanset.dataset.pinned import check_pinned, read_pinned
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.codec import pixels_sha256
from cleanset.images.fingerprints import PackedFingerprint, packed_fingerprint
from cleanset.plumbing.csv_files import write_csv, write_frame
from cleanset.plumbing.files import sha256
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import tracked
from cleanset.plumbing.validation import check_known, first_names, join_names
from cleanset.sets.folder import read_entries, read_regular_file
from cleanset.studies.robustness.scenarios.imagenet_s import check_format_suits
from cleanset.studies.robustness.scenarios.mask_files import MaskFile, MaskSource, why_left_out
from cleanset.studies.training.division import folds_table, images_to_divide
from cleanset.studies.training.images import TRAINING_IMAGES, decoded, find_images
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.segmentation.examples import (
    CLASS_IDS,
    LABEL_FORMATS,
    LABEL_SUFFIXES,
    check_size,
    read_class_ids,
)
from cleanset.studies.training.study import CLASS_TABLE_NAME, StudyInputs, TrainingStudy
from cleanset.tables import INDEX, read_table, write_table

CHUNK = 32
"""Images that a process is given at a time."""
Facts = tuple[str, str, str, PackedFingerprint | None, str | None, str | None, str | None]
"""File, SHA-256 of bytes and pixels, fingerprint, mask, SHA-256 of the mask, reason why the image is in no scenario.

A tuple, since there is one for each image, and it goes between processes.
"""
MIN_LARGE = 5
LARGE_SHARE = 0.01
"""More images that are alike than both, a number and a share of all, are a kind of photograph, such as one background:
they are not kept together."""


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of images and masks, and what their reader needs to know."""

    images: Path
    """The folder of images."""
    masks: Path
    """The folder of masks."""
    mask_format: str
    """The format of the masks, one of LABEL_FORMATS."""
    classes: int
    """Number of classes of the images."""
    are_compared: bool = False
    """Whether near-duplicates are looked for."""


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
    """The images of the edition's index and of its finished sets; `only_sets`: only those of the index that a set has.

    Raises CleansetError for a missing table or set.
    """
    index = read_table(edition.index, INDEX, classes, columns=["image_id", "sha256", "pixels_sha256"])
    group_of = groups_of(edition.index)
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


def run(study: TrainingStudy) -> None:
    """Read every training image and its mask; write data/images.parquet and data/folds.csv.

    With `held_out: sets`, images in a finished set and their groups are left out. Near-duplicates among your own
    images are kept together. Raises CleansetError for an image of the edition, one that cannot be read, one that is
    there twice, a mask that does not fit, a mask that is missing if a run segments, and a class with fewer images
    than folds.
    """
    # not those of an earlier run, which may have been of other images
    classes = study.edition.read_classes()
    params = StudyInputs.read(study, classes).params
    check_known("mask format", params.data.mask_format, LABEL_FORMATS)
    only_sets = params.data.held_out == "sets"
    held_out = held_out_images(study.edition, classes, only_sets=only_sets)
    labels = study.folder / params.data.labels if params.data.labels else None
    found, groups = find_images(study.folder / params.data.images, labels, classes)
    folders = Folders(
        images=study.folder / params.data.images,
        masks=study.folder / params.data.masks,
        mask_format=params.data.mask_format,
        classes=len({key for _, key in found}),
        are_compared=not classes.is_imagenet,
    )
    check_format_suits(folders.mask_format, classes, str(folders.masks))
    images = training_images(found, folders, classes)
    check_own(study.edition, folders.images, dict(zip(images["file"], images["sha256"], strict=True)))
    if groups:
        images[GROUP] = images["file"].map(groups)
    if not only_sets:
        held_out.check(images, study.images.parent / REFUSED_DUPLICATES)
    if folders.are_compared:
        images = with_near_duplicates(images)
    if only_sets:
        images = held_out.without(images, classes)
    check_duplicates(images, study.images.parent / REFUSED_DUPLICATES)
    check_masks(images, params, folders)
    folds = folds_table(images["file"].tolist(), images_to_divide(images, classes), params.folds, params.seed)
    # the stages after this one may find no edition next to them, as after dvc pull
    texts = {} if classes.is_imagenet else {CLASS_TABLE_NAME: classes.text}
    write_table(study.images, images, TRAINING_IMAGES, classes, texts=texts)
    write_frame(study.folds, folds)


def check_own(edition: Edition, folder: Path, digests: Mapping[str, str]) -> None:
    """Raise CleansetError if `folder` has an edition's own images, and they are not those that it pins."""
    dataset = read_params(edition.folder).dataset
    if not dataset.is_own or folder.resolve() != edition.path(dataset.images).resolve():
        return
    check_pinned(str(folder), read_pinned(edition.images_sha256), digests)


def training_images(found: list[tuple[str, str]], folders: Folders, classes: ClassTable) -> pd.DataFrame:
    """The rows of TRAINING_IMAGES of files and their classes."""
    with ProcessPoolExecutor(available_cores()) as pool:
        measured = pool.map(partial(facts, folders), found, chunksize=CHUNK)
        try:
            rows = list(tracked(measured, len(found), "training images"))
        except BaseException:
            # hours of reading would follow the first damaged image otherwise
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    table = pd.DataFrame(
        rows, columns=["file", "sha256", "pixels_sha256", "fingerprint", "mask", "mask_sha256", "left_out"]
    )
    return table.assign(class_index=[classes.indices[key] for _, key in found])


def with_near_duplicates(images: pd.DataFrame) -> pd.DataFrame:
    """The rows, with images that are alike, and all of their groups, in one group named by its first.

    Alike by their hashes, in any orientation; in a class also cropped ones, as the review's hints find them.

    Prints how many are alike, and the images with too many duplicates.
    """
    groups = Groups(len(images))
    for row, other in near_pairs(images["fingerprint"].tolist(), images["class_index"].tolist()):
        groups.join(row, other)
    first = [groups.head(row) for row in range(len(images))]
    sizes = np.bincount(first)[first]
    is_large = sizes > max(MIN_LARGE, LARGE_SHARE * len(images))
    if is_large.any():
        named = join_names(images.loc[is_large, "file"])
        print(f"too many images are alike to be kept on one side of a fold: {is_large.sum():,}: {named}")
    if not (kept := int(((sizes > 1) & ~is_large).sum())):
        return images
    print(f"{kept:,} near-duplicates are kept on one side of each fold")
    together = Groups(len(images))
    for row, (each, alone) in enumerate(zip(first, is_large, strict=True)):
        if not alone:
            together.join(each, row)
    names = images[GROUP if GROUP in images else "file"].tolist()
    heads: dict[str, int] = {}
    for row, name in enumerate(names):
        together.join(heads.setdefault(name, row), row)
    return images.assign(**{GROUP: [names[together.head(row)] for row in range(len(images))]})


def facts(folders: Folders, image: tuple[str, str]) -> Facts:
    """The facts of an image, given by file and wnid. Raises CleansetError as `run` does."""
    file, wnid = image
    path = folders.images / file
    data = read_regular_file(path)
    pixels = decoded(data, path)
    digests = sha256(data), pixels_sha256(pixels), packed_fingerprint(pixels) if folders.are_compared else None
    name = Path(file).with_suffix(LABEL_SUFFIXES[folders.mask_format]).as_posix()
    if not (folders.masks / name).is_file():
        return (file, *digests, None, None, "no_mask")
    mask = read_regular_file(folders.masks / name)
    if folders.mask_format == CLASS_IDS:
        labels = read_class_ids(mask, folders.classes, str(folders.masks / name))
        check_size(labels, np.asarray(pixels.convert("RGB")), str(folders.masks / name))
        # scenarios of classification ask for one object and its background
        return (file, *digests, name, sha256(mask), CLASS_IDS)
    mask_file = MaskFile(folders.masks / name, name, MaskSource(folders.masks, folders.mask_format))
    return (file, *digests, name, sha256(mask), why_left_out(mask, mask_file, wnid, pixels.size))


def check_duplicates(images: pd.DataFrame, table: Path) -> None:
    """Raise CleansetError for images with the same pixels in two folds or two classes, whatever their bytes.

    If there are more than the message lists, all are written to `table`.
    """
    refuse_pairs(
        equal_pairs(zip(images["file"], images["sha256"], images["pixels_sha256"], strict=True)),
        "the same image twice",
        "each image once, since training images would be test images, and an image has one class: remove one of each "
        "pair",
        table,
    )


def check_masks(images: pd.DataFrame, params: TrainingParams, folders: Folders) -> None:
    """Raise CleansetError for an image without a mask, where a run segments."""
    needing = [name for name, each in params.runs.items() if each.task == "segmentation"]
    without = images[images["mask"].isna()]
    if needing and len(without):
        name = Path(without["file"].iloc[0]).with_suffix(LABEL_SUFFIXES[folders.mask_format])
        others = f", and {len(without) - 1:,} others" if len(without) > 1 else ""
        raise CleansetError(
            f"{folders.masks / name}: missing{others}; expected a mask of each training "
            f"image, since run {needing[0]} segments"
        )
