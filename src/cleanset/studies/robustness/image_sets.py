"""Sets of images that robustness is measured on outside a study: an edition's, one of its sets, any folder."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.sets import EvaluationSet, open_set
from cleanset.exports.folder import read_entries
from cleanset.exports.manifest import MANIFEST
from cleanset.files import read_text
from cleanset.studies.robustness.changed_images import StudyFile, files_of
from cleanset.studies.robustness.images import STUDY_IMAGES, join_sets
from cleanset.studies.robustness.results import ALL, SELECTIONS
from cleanset.validation import shown

_IMAGE_ID = re.compile(r"ILSVRC2012_val_[0-9]{8}")


@dataclass(frozen=True, slots=True, eq=False)
class ImageSet:
    """Images with the columns of STUDY_IMAGES, sorted by file, and where each lies.

    `image_id` is a file's path where its name is not an image id. `owners`: the roles in whose sets the images are;
    `selections`: what is measured. `edition`: the one that the images are of, where its scores are, too; None: not
    known. `notes`: what a reader of the measures has to know.
    """

    name: str
    images: pd.DataFrame
    files: Mapping[str, StudyFile]
    classes: Sequence[int]
    owners: Sequence[str]
    selections: Sequence[str]
    edition: Edition | None
    notes: Sequence[str]


def open_images(name: str, edition: Edition, roles: Sequence[str]) -> ImageSet:
    """The sets of an edition in a folder, the set of a role of `edition`, an export, a folder per wnid, or a file.

    The file names images of the sets of `edition`, an image id a line.

    All bytes are read, and checked where there is a manifest. Raises CleansetError, for an image that is missing or
    has changed, too.
    """
    folder = Path(name)
    if name not in roles and (folder / "params.yaml").is_file() and not (folder / MANIFEST).is_file():
        return _of_edition(name, Edition(folder))
    if name not in roles and folder.is_file() and edition.params_yaml.is_file():
        return _of_list(folder, edition)
    found = open_set(name, edition, roles)
    if found.kind == "folder":
        return _of_folder(found, folder)
    export = edition.export(name) if name in roles else folder
    images = join_sets({name: read_entries(export)})
    files = _files(images, export)
    if name in roles:
        classes = read_params(edition.folder).dataset.class_list()
        return ImageSet(name, images, files, classes, [name], [ALL], edition, found.notes)
    return ImageSet(name, images, files, _classes(images), [], [ALL], None, found.notes)


def _of_edition(name: str, edition: Edition) -> ImageSet:
    params = read_params(edition.folder)
    roles = list(params.models)
    for role in roles:
        open_set(role, edition, roles)  # checks the bytes
    images = join_sets({role: read_entries(edition.export(role)) for role in roles})
    files, classes = files_of(edition, images), params.dataset.class_list()
    return ImageSet(name, images, files, classes, roles, SELECTIONS, edition, ["the sets of all models, joined"])


def _of_list(path: Path, edition: Edition) -> ImageSet:
    whole = _of_edition(str(path), edition)
    known, ids = set(whole.images["image_id"]), read_text(path, "expected an image id a line").split()
    if not ids:
        raise CleansetError(f"{path}: no images; expected an image id a line")
    for image_id in ids:
        if image_id not in known:
            raise CleansetError(
                f"{path}: {shown(image_id)} is in no set of {edition.folder}; "
                f"expected one of its {len(known):,} images a line: remove it"
            )
    images = whole.images[whole.images["image_id"].isin(ids)].reset_index(drop=True)
    notes = [f"of {len(whole.images):,} images of the sets those that {path.name} names"]
    return replace(whole, images=images, owners=[], selections=[ALL], notes=notes)


def _of_folder(found: EvaluationSet, folder: Path) -> ImageSet:
    rows: list[tuple[str, str, int, None, str, list[str]]] = []
    for item in found.items:
        image_id = _IMAGE_ID.match(Path(item.file).name)
        rows.append((item.file, image_id[0] if image_id else item.file, item.class_index, None, item.sha256, []))
    images = pd.DataFrame(rows, columns=STUDY_IMAGES.names)
    notes = ["no manifest: which images these are was not checked", *found.notes]
    return ImageSet(found.name, images, _files(images, folder), _classes(images), [], [ALL], None, notes)


def _files(images: pd.DataFrame, folder: Path) -> dict[str, StudyFile]:
    columns = (images[name] for name in ("file", "file_sha256", "image_id"))
    return {file: StudyFile(folder.resolve() / file, *rest) for file, *rest in zip(*columns, strict=True)}


def _classes(images: pd.DataFrame) -> list[int]:
    return [int(each) for each in np.unique(images["class_index"])]
