"""The files of models that are published lists: found, compared with their SHA-256, searched for the model.

A list has the images of each class that a model is surest of, with their confidences; imagenet/published/top5.csv has
three. A second file names images that people took from beyond a list: the model classifies them correctly, less surely
than all that it lists, and nobody has published how surely.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.params import Model, Params
from cleanset.errors import CleansetError
from cleanset.files import read_bytes, read_text, sha256
from cleanset.parsing import parse_csv
from cleanset.validation import join_names, shown

LIST_COLUMNS = ("model", "class_index", "rank", "image_id", "confidence")
BEYOND_COLUMNS = ("model", "class_index", "image_id")
CORRECT = "correct it, or git checkout it"
_IMAGE_ID = re.compile(r"ILSVRC2012_val_[0-9]{8}")


@dataclass(frozen=True, slots=True)
class BeyondImage:
    """An image from beyond a list; `where`: file and line."""

    where: str
    class_index: int
    image_id: str


def list_files(folder: Path, model: Model) -> dict[str, Path]:
    """The files of a list, by the key of params.yaml that has the SHA-256; `folder` is the edition's."""
    files = {"sha256": model.file, "beyond_sha256": model.beyond}
    return {key: folder / name for key, name in files.items() if name is not None}


def list_digests(folder: Path, role: str, model: Model) -> dict[str, str]:
    """The SHA-256 of the files of a list, by key of params.yaml. Raises CleansetError as `check_list` does."""
    check_list(folder, role, model)
    return {key: sha256(read_bytes(path)) for key, path in list_files(folder, model).items()}


def check_lists(folder: Path, params: Params) -> None:
    """Check every published list of an edition, as `check_list` does."""
    for role, model in params.models.items():
        if model.is_list:
            check_list(folder, role, model)


def check_list(folder: Path, role: str, model: Model) -> None:
    """Raise CleansetError for a file that is missing or has another SHA-256, and if it has no list of the model."""
    for key in list_files(folder, model):
        _check_file(folder, role, model, key)
    path = folder / str(model.file)
    rows = parse_csv(read_text(path, CORRECT), LIST_COLUMNS, str(path))
    names = list(dict.fromkeys(cells["model"] for _, cells in rows))
    if model.name not in names:
        raise CleansetError(
            f"{path}: no list of model {shown(model.name)} (models.{role}.name of params.yaml); expected one of "
            f"{join_names(names) or 'none, for the file has no rows'}"
        )


def _check_file(folder: Path, role: str, model: Model, key: str) -> None:
    """Raise CleansetError if a file of a list is missing, or has another SHA-256 than `key` of params.yaml says."""
    path, expected = list_files(folder, model)[key], getattr(model, key)
    if not path.is_file():
        named = "file" if key == "sha256" else "beyond"
        raise CleansetError(f"{path}: missing; expected the list that models.{role}.{named} of params.yaml names")
    found = sha256(read_bytes(path))
    if expected not in (None, found):
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {expected} as in params.yaml (models.{role}.{key}): git checkout the "
            "list, or correct params.yaml if this one is meant"
        )


def images_beyond(folder: Path, model: Model) -> Iterator[BeyondImage]:
    """The images from beyond a model's list, in the order of class and image id; none where no file names any.

    Raises CleansetError, naming the line, for a row that is not sorted by model, class and image id, or comes twice.
    """
    if model.beyond is None:
        return
    path = folder / model.beyond
    before = ("", -1, "")
    for line, cells in parse_csv(read_text(path, CORRECT), BEYOND_COLUMNS, str(path)):
        where = f"{path}, line {line}"
        index, image_id = cells["class_index"], cells["image_id"]
        # int takes digits of any script
        if not (re.fullmatch("[0-9]{1,3}", index) and int(index) < CLASSES):
            raise CleansetError(f"{where}, class_index: {shown(index)}; expected 0 to {CLASSES - 1}: {CORRECT}")
        if not _IMAGE_ID.fullmatch(image_id):
            raise CleansetError(f"{where}: {shown(image_id)}; expected an image id: {CORRECT}")
        key = cells["model"], int(index), image_id
        if key <= before:
            raise CleansetError(
                f"{where}: {image_id} out of order or a second time; expected rows sorted by "
                f"{', '.join(BEYOND_COLUMNS)}, each once: {CORRECT}"
            )
        before = key
        if cells["model"] == model.name:
            yield BeyondImage(where, int(index), image_id)


def unknown_confidences(folder: Path, params: Params) -> Mapping[str, frozenset[str]]:
    """By role, the images from beyond each model's list: their confidence is not known, and in tables only orders them.

    Empty for a network. Raises CleansetError as `images_beyond` does, and for a file with another SHA-256.
    """
    found = {}
    for role, model in params.models.items():
        if model.beyond is not None:
            _check_file(folder, role, model, "beyond_sha256")
        found[role] = frozenset(each.image_id for each in images_beyond(folder, model))
    return found
