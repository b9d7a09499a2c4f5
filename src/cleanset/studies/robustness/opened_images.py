"""The images that robustness is measured on: all finished sets of an edition, one of them, a list, or any folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.classes import IMAGE_ID, ClassTable
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.measure.notes import UNCHECKED, MeasuredSet
from cleanset.measure.sets import EvaluationSet, open_set
from cleanset.plumbing.files import read_text
from cleanset.plumbing.validation import shown
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST
from cleanset.studies.robustness.images import STUDY_IMAGES, StudyFile, files_of, join_sets
from cleanset.studies.robustness.results import ALL, SELECTIONS


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OpenedImages:
    """Images that were opened by name for a command, and where each lies."""

    name: str
    """The name that they were opened by."""
    images: pd.DataFrame
    """Rows of STUDY_IMAGES, sorted by file; `image_id` is a file's path where its name is not an image id."""
    files: Mapping[str, StudyFile]
    """The path of each image, by file."""
    classes: ClassTable
    """The class table of the images."""
    edition_classes: Sequence[int]
    """The class indices of the edition, or without one of the images: a prediction may be restricted to them."""
    owners: Sequence[str] = ()
    """The roles in whose sets the images are."""
    selections: Sequence[str] = (ALL,)
    """The selections that are measured."""
    edition: Edition | None = None
    """The edition that the images are of, where its scores are, too; None: not known."""
    version: str | None = None
    """Of their release, MAJOR.MINOR.PATCH; None: images without one."""
    selection: str = ""
    """How they were chosen, in a phrase; empty: not known."""
    selected_by: str | None = None
    """The model among whose correctly classified images all of them were chosen; None: several, none or not known."""
    limits: Sequence[str] = ()
    """Facts that a reader of the measures has to know."""

    @property
    def facts(self) -> MeasuredSet:
        """The facts that every table of measures on them carries."""
        return MeasuredSet(name=self.name, version=self.version, selection=self.selection, limits=self.limits)

    @property
    def notes(self) -> list[str]:
        """The selection, if it is known, and the limits."""
        return self.facts.notes

    def about(self) -> list[str]:
        """The name, the numbers of images and classes, and the notes, in lines."""
        classes = self.images["class_index"].nunique()
        return [f"{self.name}: {len(self.images):,} images of {classes:,} classes", *self.notes]


def open_images(name: str, edition: Edition, roles: Sequence[str]) -> OpenedImages:
    """The sets of an edition in a folder, the set of a role of `edition`, an export, a folder per wnid, or a file.

    The file names images of the sets of `edition`, an image id a line.

    All bytes are read, and checked against the manifest, if any. Raises CleansetError, for an image that is missing or
    has changed, too.
    """
    folder = Path(name)
    if name not in roles and (folder / "params.yaml").is_file() and not (folder / MANIFEST).is_file():
        return _of_edition(name, Edition(folder))
    if name not in roles and folder.is_file() and edition.params_yaml.is_file():
        return _of_list(folder, edition)
    found = open_set(name, edition, roles)
    # without a manifest nothing tells which images these are
    if found.kind == "folder":
        return _of_folder(found, folder)
    export = edition.export(name) if name in roles else folder
    images = join_sets({name: read_entries(export)})
    opened = OpenedImages(
        name=name,
        images=images,
        files=_files(images, export),
        classes=found.classes,
        edition_classes=_class_indices(images),
        version=found.version,
        selection=found.selection,
        selected_by=found.selected_by,
        limits=found.limits,
    )
    if name not in roles:
        return opened
    edition_classes = read_params(edition.folder).dataset.class_list(found.classes)
    return replace(opened, edition_classes=edition_classes, owners=[name], edition=edition)


def _of_edition(name: str, edition: Edition) -> OpenedImages:
    params = read_params(edition.folder)
    roles = list(params.models)
    for role in roles:
        # opening a set checks its bytes
        open_set(role, edition, roles)
    images = join_sets({role: read_entries(edition.export(role)) for role in roles})
    classes = edition.read_classes()
    return OpenedImages(
        name=name,
        images=images,
        files=files_of(edition, images),
        classes=classes,
        edition_classes=params.dataset.class_list(classes),
        owners=roles,
        selections=SELECTIONS,
        edition=edition,
        selection="the sets of all models, joined",
    )


def _of_list(path: Path, edition: Edition) -> OpenedImages:
    whole = _of_edition(str(path), edition)
    known = set(whole.images["image_id"])
    ids = read_text(path, "expected an image id a line").split()
    if not ids:
        raise CleansetError(f"{path}: no images; expected an image id a line")
    for image_id in ids:
        if image_id not in known:
            raise CleansetError(
                f"{path}: {shown(image_id)} is in no set of {edition.folder}; "
                f"expected one of its {len(known):,} images a line: remove it"
            )
    images = whole.images[whole.images["image_id"].isin(ids)].reset_index(drop=True)
    selection = f"of {len(whole.images):,} images of the sets those that {path.name} names"
    return replace(whole, images=images, owners=(), selections=(ALL,), selection=selection)


def _of_folder(found: EvaluationSet, folder: Path) -> OpenedImages:
    rows: list[tuple[str, str, int, None, str, list[str]]] = []
    for item in found.items:
        image_id = IMAGE_ID.match(Path(item.file).name)
        rows.append((item.file, image_id[0] if image_id else item.file, item.class_index, None, item.sha256, []))
    images = pd.DataFrame(rows, columns=STUDY_IMAGES.names)
    limits = [UNCHECKED, *found.limits]
    return OpenedImages(
        name=found.name,
        images=images,
        files=_files(images, folder),
        classes=found.classes,
        edition_classes=_class_indices(images),
        limits=limits,
    )


def _files(images: pd.DataFrame, folder: Path) -> dict[str, StudyFile]:
    rows = zip(images["file"], images["file_sha256"], images["image_id"], strict=True)
    return {file: StudyFile(folder.resolve() / file, digest, image_id) for file, digest, image_id in rows}


def _class_indices(images: pd.DataFrame) -> list[int]:
    return [int(each) for each in np.unique(images["class_index"])]
