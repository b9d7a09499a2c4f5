"""A preprocessed validation set as NumPy files, for evaluations outside this project."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.images import verified_images
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import new_folder, write_text
from cleanset.images.codec import Read
from cleanset.images.keras256 import KERAS256
from cleanset.images.preprocessing import RES256CROP224, Preprocessing
from cleanset.machine import available_cores
from cleanset.progress import tracked
from cleanset.scoring.decoding import pixels_of
from cleanset.tables import INDEX, read_table

MAX_IMAGES_IN_MEMORY = 64

NAMED: dict[str, Preprocessing] = {each.name: each for each in (KERAS256, RES256CROP224)}


def run(edition: Edition, out: Path, name: str | None, role: str | None) -> None:
    """Read the index and the images, write the folder `out`; by the named preprocessing, or that of a model."""
    params = read_params(edition.folder)
    if (name is None) == (role is None):
        raise CleansetError("arrays: expected either --preprocessing or --model")
    if role is not None:
        from cleanset.scoring.models import preprocessing_of  # takes seconds, for it imports timm

        preprocessing: Preprocessing = preprocessing_of(params.model(role))
    else:
        preprocessing = named(str(name))
    with new_folder(out) as folder:
        index = read_table(edition.index, INDEX)
        read = verified_images(edition, params.dataset.images, index).read
        write_arrays(folder, index, read, preprocessing)


def named(name: str) -> Preprocessing:
    """The preprocessing of a name. Raises CleansetError for an unknown name."""
    if name not in NAMED:
        raise CleansetError(f"arrays: no preprocessing {name!r}; expected {' or '.join(NAMED)}, or --model")
    return NAMED[name]


def write_arrays(folder: Path, index: pd.DataFrame, read: Read, preprocessing: Preprocessing) -> None:
    """Write the five files of a set into a new folder, images in the order of their ids.

    images.npy       uint8 (n, size, size, 3), red first, rounded and not normalised
    labels.npy       int64 (n,), class index of the original label
    real_labels.npy  bool (n, 1000), true at each reassessed label; a row without any is left out of ReaL accuracy
    ids.npy          the image ids
    arrays.json      the name of the preprocessing, and the number of images
    """
    index = index.sort_values("image_id")
    ids: list[str] = index["image_id"].tolist()
    folder.mkdir()
    for name, array in (
        ("labels.npy", index["ilsvrc_class"].to_numpy(np.int64)),
        ("ids.npy", np.array(ids, dtype=np.str_)),
    ):
        # not np.save, whose error does not tell a full disk
        _write_rows(folder / name, array.dtype.str, array.shape, [array])
    _write_rows(folder / "real_labels.npy", "|b1", (len(ids), CLASSES), map(_multi_hot, index["real_classes"]))
    shape = (len(ids), preprocessing.size, preprocessing.size, 3)
    images = tracked(_preprocessed(ids, read, preprocessing), len(ids), "arrays")
    _write_rows(folder / "images.npy", "|u1", shape, (pixels.transpose(1, 2, 0) for pixels in images))
    about = {"preprocessing": preprocessing.name, "images": len(ids)}
    write_text(folder / "arrays.json", json.dumps(about) + "\n")


def _write_rows(path: Path, dtype: str, shape: tuple[int, ...], rows: Iterable[NDArray[Any]]) -> None:
    """Write an array of that shape row by row: the pages of a memory map would count as memory of this process."""
    with path.open("wb") as file:
        write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
        for row in rows:
            file.write(np.ascontiguousarray(row).data)


def _multi_hot(classes: NDArray[np.int16]) -> NDArray[np.bool]:
    row = np.zeros(CLASSES, dtype=np.bool)
    row[classes] = True
    return row


def _preprocessed(ids: Sequence[str], read: Read, preprocessing: Preprocessing) -> Iterator[NDArray[np.uint8]]:
    """The pixels of each image in order, a few at a time. Raises CleansetError for one that cannot be read."""

    # threads suffice: Pillow and numpy release the lock
    with ThreadPoolExecutor(available_cores()) as pool:
        for start in range(0, len(ids), MAX_IMAGES_IN_MEMORY):
            yield from pool.map(
                lambda image_id: pixels_of(image_id, read, preprocessing), ids[start : start + MAX_IMAGES_IN_MEMORY]
            )
