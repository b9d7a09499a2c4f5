"""The images that a command measures robustness on: all finished sets of an edition, a list, or any set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from cleanset.classes import ClassTable
from cleanset.dataset.folder import GROUP
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.evaluation.image_lists import naming_column, open_list, read_list
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet, ImageFile, SetImages, open_set, set_name
from cleanset.image_ids import listed_ids
from cleanset.images.boxes import box_of
from cleanset.plumbing.files import read_text
from cleanset.sets.folder import read_entries
from cleanset.sets.manifest import MANIFEST
from cleanset.studies.robustness.images import files_of, join_sets
from cleanset.studies.robustness.results import ALL, SELECTIONS


def set_of_rows(
    name: str, rows: pd.DataFrame, files: Mapping[str, ImageFile], edition: Edition, classes: ClassTable
) -> EvaluationSet:
    """The images of an edition in rows of STUDY_IMAGES; `files`: where they are, by file."""
    items = [
        EvaluationImage(
            file=row["file"],
            class_index=row["class_index"],
            tier=None,
            sha256=row["file_sha256"],
            image_id=row["image_id"],
            crop=box_of(row["crop"]),
            sets=tuple(row["sets"]),
            path=files[row["file"]].path,
            group=row[GROUP],
        )
        for row in rows.to_dict("records")
    ]
    return EvaluationSet(
        name=name,
        kind="exports",
        items=items,
        read=SetImages(files),
        checked="the manifests",
        classes=classes,
        order=[item.file for item in items],
        edition=edition,
    )


def open_images(name: str, edition: Edition, roles: Sequence[str]) -> EvaluationSet:
    """The sets of an edition in a folder, the images that a list names, or what `open_set` opens.

    A list has an image id a line, or is a CSV file with a header as `cleanset evaluate` takes it, with images of the
    sets of `edition`, or files and folders there. All bytes are read, and checked against the manifest, if any. Raises
    CleansetError, for an image that is missing or has changed, too, and for an image of several classes.
    """
    path = Path(name)
    if name in roles or path.name == MANIFEST or path.suffix == ".tar":
        return open_set(name, edition, roles)
    if (path / "params.yaml").is_file() and not (path / MANIFEST).is_file():
        return _of_edition(name, Edition(path))
    column = naming_column(path) if path.is_file() else None
    if column in ("file", "folder"):
        found = open_list(path, edition, None)
        if several := [item.file for item in found.items if item.others]:
            raise CleansetError(f"{path}: {several[0]} with several classes; expected one class of each image")
        return found
    if path.is_file() and edition.params_yaml.is_file():
        return _of_list(path, edition, has_classes=column is not None)
    return open_set(name, edition, roles)


def _of_edition(name: str, edition: Edition) -> EvaluationSet:
    roles = list(read_params(edition.folder).models)
    for role in roles:
        # opening a set checks its bytes
        open_set(role, edition, roles)
    rows = join_sets({role: read_entries(edition.export(role)) for role in roles})
    classes = edition.read_classes()
    found = set_of_rows(set_name(name), rows, files_of(edition, rows), edition, classes)
    return replace(found, owners=roles, selections=SELECTIONS, selection="the sets of all models, joined")


def _of_list(path: Path, edition: Edition, *, has_classes: bool) -> EvaluationSet:
    whole = _of_edition(str(path), edition)
    class_of = {item.image_id: item.class_index for item in whole.items}
    place = f"the sets of {edition.folder}"
    if has_classes:
        ids = dict[str, str]()
        for each in read_list(path, None, whole.classes):
            if class_of.get(each.image_id) not in each.class_indices:
                raise CleansetError(
                    f"{each.where}: {each.image_id} with this class; expected one of the {len(class_of):,} images of "
                    f"{place}, with its class there"
                )
            ids[each.image_id] = each.where
    else:
        lines = enumerate(read_text(path, "expected an image id a line").splitlines(), start=1)
        named = ((f"{path}, line {number}", line.strip()) for number, line in lines if line.strip())
        ids = listed_ids(named, whole.classes, class_of, f"{place}, one a line")
    if not ids:
        raise CleansetError(f"{path}: no images; expected an image id a line")
    found = whole.only({item.file for item in whole.items if item.image_id in ids})
    selection = f"of {len(whole.items):,} images of the sets those that {path.name} names"
    return replace(found, owners=(), selections=(ALL,), selection=selection)
