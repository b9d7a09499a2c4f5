"""Published lists in place of models, and the images that people took from beyond them.

A published list has the images of each class on which a model is most confident; imagenet/published/top5.csv has three
lists. A second file names images that people took from beyond a list: the model classifies them correctly, with an
unpublished confidence below those in the list.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.params import Model, Params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.image_ids import ListedId
from cleanset.plumbing.csv_files import read_rows
from cleanset.plumbing.files import is_there, sha256_of
from cleanset.plumbing.validation import ROLE_FORM, join_names, matching, numeric, shown

LIST_COLUMNS = ("model", "class_index", "rank", "image_id", "confidence")
BEYOND_COLUMNS = ("model", "class_index", "image_id")
MEND = "correct it, or git checkout it"

_ClassIndex = Annotated[int, numeric(int, 0, CLASSES - 1)]


@dataclass(frozen=True, slots=True)
class ListedImage:
    """A row of Top-5 lists."""

    model: Annotated[str, matching(ROLE_FORM.pattern, "a role, such as standard")]
    class_index: _ClassIndex
    rank: Annotated[int, numeric(int, 1, 5)]
    image_id: ListedId
    confidence: Annotated[float, numeric(float, 0, 1, "a probability from 0 to 1")]


@dataclass(frozen=True, slots=True)
class BeyondImage:
    """An image from beyond a list of `model`; `where`: file and line."""

    model: str
    class_index: _ClassIndex
    image_id: ListedId
    where: str = ""


def list_files(folder: Path, model: Model) -> dict[str, Path]:
    """The files of a list, by the key of params.yaml that has the SHA-256; `folder` is the edition's."""
    files = {"sha256": model.file, "beyond_sha256": model.beyond}
    return {key: folder / name for key, name in files.items() if name is not None}


def check_lists(folder: Path, params: Params) -> None:
    """Check every published list of an edition, as `check_list` does."""
    for role, model in params.models.items():
        if model.is_list:
            check_list(folder, role, model)


def check_list(folder: Path, role: str, model: Model) -> dict[str, str]:
    """The SHA-256 of the files of a list, by key of params.yaml.

    Raises CleansetError for a file that is missing or has another SHA-256, and if it has no list of the model.
    """
    digests = {key: _check_file(folder, role, model, key) for key in list_files(folder, model)}
    if model.source != "lists":  # a table of scores is checked when it is read, a random order has no file
        return digests
    path = folder / str(model.file)
    names = list(dict.fromkeys(cells["model"] for _, cells in read_rows(path, LIST_COLUMNS, dict[str, str], MEND)))
    if model.name not in names:
        raise CleansetError(
            f"{path}: no list of model {shown(model.name)} (models.{role}.name of params.yaml); expected one of "
            f"{join_names(names) or 'a file with rows'}"
        )
    return digests


def _check_file(folder: Path, role: str, model: Model, key: str) -> str:
    """The SHA-256 of a file of a list. Raises CleansetError if it is missing, or not as `key` of params.yaml says."""
    path = list_files(folder, model)[key]
    expected = model.sha256 if key == "sha256" else model.beyond_sha256
    if not is_there(path):
        named = "file" if key == "sha256" else "beyond"
        raise CleansetError(f"{path}: missing; expected the list that models.{role}.{named} of params.yaml names")
    found = sha256_of(path)
    if expected not in (None, found):
        raise CleansetError(
            f"{path}: SHA-256 {found}, expected {expected} as in params.yaml (models.{role}.{key}): git checkout the "
            "list, or correct params.yaml if this one is meant"
        )
    return found


def images_beyond(folder: Path, model: Model) -> Iterator[BeyondImage]:
    """The images from beyond a model's list by class and image id; empty without a file of them.

    Raises CleansetError, naming the line, for a row that is not sorted by model, class and image id, or comes twice.
    """
    if model.beyond is None:
        return
    path = folder / model.beyond
    before = ("", -1, "")
    for where, row in read_rows(path, BEYOND_COLUMNS, BeyondImage, MEND, context=imagenet()):
        key = row.model, row.class_index, row.image_id
        if key <= before:
            raise CleansetError(
                f"{where}: {row.image_id} out of order or a second time; expected rows sorted by "
                f"{', '.join(BEYOND_COLUMNS)}, each once: {MEND}"
            )
        before = key
        if row.model == model.name:
            yield replace(row, where=where)


def unknown_confidences(folder: Path, params: Params) -> Mapping[str, frozenset[str]]:
    """By role, the images from beyond each model's list: their confidence is not known, and in tables only orders them.

    Empty for a network, all of a random order. Raises CleansetError as `images_beyond` does, and for a file with
    another SHA-256.
    """
    found: dict[str, frozenset[str]] = {}
    for role, model in params.models.items():
        if model.beyond is not None:
            _check_file(folder, role, model, "beyond_sha256")
        if model.is_random:
            from cleanset.tables import INDEX, read_table  # needs pyarrow, which a set's users may lack

            edition = Edition(folder)
            index = read_table(edition.index, INDEX, edition.read_classes(), columns=["image_id"])
            found[role] = frozenset(index["image_id"])
            continue
        found[role] = frozenset(each.image_id for each in images_beyond(folder, model))
    return found
