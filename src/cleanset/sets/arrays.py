"""`cleanset arrays`: preprocessed images of an edition or of a finished set, as NumPy files for other programs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.images.codec import Source, decode
from cleanset.images.preprocessing import NAMED, PixelPlanes, Preprocessing
from cleanset.plumbing.files import new_folder, write_text
from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.progress import tracked
from cleanset.plumbing.validation import shown
from cleanset.scoring.decoding import pixels_of
from cleanset.sets.folder import read_entries, read_image
from cleanset.statistics.basics import Flags
from cleanset.tables import INDEX, read_table

MAX_IMAGES_IN_MEMORY = 64


@dataclass(frozen=True, slots=True)
class NetworkInputs:
    """The input of a network: a preprocessing, and by channel the mean and deviation that normalise pixels / 255.

    Both are None for a named preprocessing without a model.
    """

    preprocessing: Preprocessing
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


def run(edition: Edition, out: Path, preprocessing: str | None, role: str | None) -> None:
    """Write the folder `out`, with all images of an edition, or with `role` the finished set of this model.

    `preprocessing` is one of NAMED or the role of a model, whose own it then is; for a set it may be left out.
    """
    params = read_params(edition.folder)
    classes = edition.read_classes()
    if role is not None:
        params.model(role)
    # the images of a set are by default prepared for the model that the set was made for
    by = preprocessing or role
    if by is None:
        raise CleansetError(
            f"arrays: no --preprocessing; expected {' or '.join(NAMED)}, or the role of a model "
            "(or --model, for a finished set)"
        )
    inputs = NetworkInputs(NAMED[by]) if by in NAMED else inputs_of(_known_model(params, by))
    with new_folder(out) as folder:
        if role is None:
            rows, read = _of_edition(edition, params, classes)
        else:
            rows, read = _of_set(edition.export(role), role)
        write_arrays(folder, rows, read, inputs, role=role, classes=len(classes))


def inputs_of(model: Model) -> NetworkInputs:
    """The input of a model."""
    from cleanset.scoring.models import normalisation_of, preprocessing_of  # takes seconds, for it imports timm

    mean, std = normalisation_of(model)
    return NetworkInputs(preprocessing=preprocessing_of(model), mean=mean, std=std)


def _known_model(params: Params, by: str) -> Model:
    """The network of a role. Raises CleansetError for what is neither a role nor in NAMED, and for a published list."""
    if by not in params.models:
        raise CleansetError(
            f"arrays: no preprocessing {shown(by)}; expected {', '.join(NAMED)}, or a role in params.yaml: "
            f"{', '.join(params.models)}"
        )
    return params.network(by)


def _of_edition(edition: Edition, params: Params, classes: ClassTable) -> tuple[pd.DataFrame, Source]:
    """All images with their original labels, in the order of their ids."""
    index = read_table(edition.index, INDEX, classes).sort_values("image_id")
    rows = index[["image_id", "real_classes"]].assign(label=index["ilsvrc_class"])
    return rows, verified_images(edition, params.dataset.images, index, classes).read


def _of_set(export: Path, role: str) -> tuple[pd.DataFrame, Source]:
    """The images of a finished set as delivered, each labelled with its class, in the order of the manifest."""
    if not export.is_dir():
        raise CleansetError(f"{export}: not there; run dvc pull export@{role}, or dvc repro")
    entries = {entry.image_id: entry for entry in read_entries(export)}
    rows = pd.DataFrame(
        {
            "image_id": list(entries),
            "label": [entry.class_index for entry in entries.values()],
            "real_classes": pd.Series([list(entry.real_classes) for entry in entries.values()], dtype=object),
        }
    )
    return rows, lambda image_id: decode(read_image(export, entries[image_id]))


def write_arrays(
    folder: Path, rows: pd.DataFrame, read: Source, inputs: NetworkInputs, *, role: str | None, classes: int
) -> None:
    """Write five files into a new folder, of the images in `rows` (image_id, label, real_classes), in their order.

    `classes`: the number of classes.

    - images.npy: uint8 (n, size, size, 3), red first, rounded and not normalised
    - labels.npy: int64 (n,), class index: the original label, or in a finished set the class
    - real_labels.npy: bool (n, classes), true at each reassessed label; a row without any is left out of ReaL accuracy
    - ids.npy: the image ids
    - arrays.json: preprocessing, number of images, the role of the set or null, and mean and std of each channel for a
      network that expects (images / 255 - mean) / std, or null
    """
    ids: list[str] = rows["image_id"].tolist()
    preprocessing = inputs.preprocessing
    folder.mkdir()
    for name, array in (("labels.npy", rows["label"].to_numpy(np.int64)), ("ids.npy", np.array(ids, dtype=np.str_))):
        # not np.save, whose error does not name a full disk
        _write_rows(folder / name, array.dtype.str, array.shape, [array])
    hot = (_multi_hot(each, classes) for each in rows["real_classes"])
    _write_rows(folder / "real_labels.npy", "|b1", (len(ids), classes), hot)
    shape = (len(ids), preprocessing.size, preprocessing.size, 3)
    images = tracked(_preprocessed(ids, read, preprocessing), len(ids), "arrays")
    _write_rows(folder / "images.npy", "|u1", shape, (pixels.transpose(1, 2, 0) for pixels in images))
    about = {
        "preprocessing": preprocessing.name, "images": len(ids), "set": role, "mean": inputs.mean, "std": inputs.std,
    }  # fmt: skip
    write_text(folder / "arrays.json", json.dumps(about) + "\n")


def _write_rows(path: Path, dtype: str, shape: tuple[int, ...], rows: Iterable[NDArray[np.generic]]) -> None:
    """Write an array of that shape row by row: the pages of a memory map would count as memory of this process."""
    with path.open("wb") as file:
        write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
        for row in rows:
            file.write(np.ascontiguousarray(row).data)


def _multi_hot(labels: Sequence[int], classes: int) -> Flags:
    row = np.zeros(classes, dtype=np.bool)
    row[list(labels)] = True
    return row


def _preprocessed(ids: Sequence[str], read: Source, preprocessing: Preprocessing) -> Iterator[PixelPlanes]:
    """The pixels of each image in order, a few at a time. Raises CleansetError for one that cannot be read."""

    # threads suffice: Pillow and numpy release the lock
    with ThreadPoolExecutor(available_cores()) as pool:
        # in batches, because pool.map works through all that it is given, whether or not the results are taken
        for start in range(0, len(ids), MAX_IMAGES_IN_MEMORY):
            yield from pool.map(
                lambda image_id: pixels_of(image_id, read, preprocessing), ids[start : start + MAX_IMAGES_IN_MEMORY]
            )
