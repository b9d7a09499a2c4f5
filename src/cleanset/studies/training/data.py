"""Stage data: the training images and their masks by digest, and the folds. No image of the edition may be there."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import sha256, write_text
from cleanset.images.codec import pixels_sha256
from cleanset.progress import available_cores, tracked
from cleanset.sets.folder import read_entries, read_regular_file
from cleanset.studies.robustness.scenarios.image_masks import MaskedImage, MaskFile, MaskSource, mask_table
from cleanset.studies.training.images import TRAINING_IMAGES, decoded, find_images, folds_table
from cleanset.studies.training.params import TrainingParams, read_training_params
from cleanset.studies.training.segmentation.label_maps import (
    CLASS_IDS,
    LABEL_FORMATS,
    LABEL_SUFFIXES,
    check_size,
    read_class_ids,
)
from cleanset.studies.training.study import TrainingStudy
from cleanset.tables import INDEX, read_table, write_table
from cleanset.validation import check_known
from cleanset.vocabulary import class_indices

CHUNK = 32
Facts = tuple[str, str, str, str | None, str | None, str | None]
"""File, SHA-256 of bytes and pixels, mask, SHA-256 of the mask, reason why the image is in no scenario."""


@dataclass(frozen=True)
class Folders:
    """The folders of images and masks, the format of the masks, and the number of classes of the images."""

    images: Path
    masks: Path
    mask_format: str
    classes: int


def run(study: TrainingStudy) -> None:
    """Read every training image and its mask; write data/images.parquet and data/folds.csv.

    Raises CleansetError for an image of the edition, one that cannot be read, one that is there twice, a mask that does
    not fit, a mask that is missing where a run segments, and a class with fewer images than folds.
    """
    params = read_training_params(study.params_yaml)
    check_known("mask format", params.data.mask_format, LABEL_FORMATS)
    held_out = held_out_images(study.edition)
    found = find_images(study.folder / params.data.images)
    places = study.folder / params.data.images, study.folder / params.data.masks
    folders = Folders(*places, params.data.mask_format, len({wnid for _, wnid in found}))
    images = training_images(found, folders)
    held_out.check(zip(images["file"], images["sha256"], images["pixels_sha256"], strict=True))
    check_duplicates(images)
    check_masks(images, params, folders)
    folds = folds_table(images["file"].tolist(), images["class_index"].tolist(), params.folds, params.seed)
    write_table(study.images, images, TRAINING_IMAGES)
    write_text(study.folds, folds.to_csv(index=False, lineterminator="\n"))


def training_images(found: list[tuple[str, str]], folders: Folders) -> pd.DataFrame:
    """The rows of TRAINING_IMAGES of files and their wnids."""

    with ProcessPoolExecutor(available_cores()) as pool:
        measured = pool.map(partial(facts, folders), found, chunksize=CHUNK)
        rows = list(tracked(_stopping(measured, pool), len(found), "training images"))
    indices = class_indices()
    classes = [indices[wnid] for _, wnid in found]
    columns = ["file", "sha256", "pixels_sha256", "mask", "mask_sha256", "left_out"]
    table = pd.DataFrame(rows, columns=columns)
    table.insert(1, "class_index", classes)
    return table


def _stopping(measured: Iterator[Facts], pool: ProcessPoolExecutor) -> Iterator[Facts]:
    try:
        yield from measured
    except BaseException:
        # hours of reading would follow the first damaged image otherwise
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def facts(folders: Folders, image: tuple[str, str]) -> Facts:
    """The facts of an image, given by file and wnid. Raises CleansetError as `run` does."""
    file, wnid = image
    path = folders.images / file
    data = read_regular_file(path)
    pixels = decoded(data, path)
    digests = sha256(data), pixels_sha256(pixels)
    name = Path(file).with_suffix(LABEL_SUFFIXES[folders.mask_format]).as_posix()
    if not (folders.masks / name).is_file():
        return (file, *digests, None, None, "no_mask")
    if folders.mask_format == CLASS_IDS:
        mask = read_regular_file(folders.masks / name)
        labels = read_class_ids(mask, folders.classes, str(folders.masks / name))
        check_size(labels, np.asarray(pixels.convert("RGB")), str(folders.masks / name))
        # scenarios of classification ask for one object and its background
        return (file, *digests, name, sha256(mask), CLASS_IDS)
    source = MaskSource("", folders.mask_format, "generator")
    masked = MaskedImage(file, file, wnid, pixels.size, None)
    row = mask_table([masked], {file: MaskFile(folders.masks / name, name, source)}, is_placed=False).iloc[0]
    return (file, *digests, name, row["mask_sha256"], row["left_out"])


def check_duplicates(images: pd.DataFrame) -> None:
    """Raise CleansetError for images of the same pixels: of two folds or of two classes, whatever their bytes."""
    twice = images[images.duplicated("pixels_sha256", keep=False)]
    if twice.empty:
        return
    one, other = twice[twice["pixels_sha256"] == twice["pixels_sha256"].iloc[0]].iloc[:2].to_dict("records")
    is_of_one_class = one["class_index"] == other["class_index"]
    why = "what is trained on would be tested on" if is_of_one_class else "an image has one class"
    count = len(twice) - twice["pixels_sha256"].nunique()
    raise CleansetError(
        f"{other['file']}: its pixels are those of {one['file']}; expected each image once, since {why}: remove one of "
        f"them ({count:,} image{'s' * (count > 1)} in all are there again)"
    )


def check_masks(images: pd.DataFrame, params: TrainingParams, folders: Folders) -> None:
    """Raise CleansetError for an image without a mask, where a run segments."""
    needing = [name for name, each in params.runs.items() if each.needs_masks]
    without = images[images["mask"].isna()]
    if needing and len(without):
        name = Path(without["file"].iloc[0]).with_suffix(LABEL_SUFFIXES[folders.mask_format])
        others = f", and {len(without) - 1:,} others" if len(without) > 1 else ""
        raise CleansetError(
            f"{folders.masks / name}: missing{others}; expected a mask of each training "
            f"image, since run {needing[0]} segments"
        )


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
