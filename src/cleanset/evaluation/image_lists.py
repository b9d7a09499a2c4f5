"""Lists as sets to measure models on: a CSV file of images of an edition, or of files or folders next to it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
from PIL import Image

from cleanset.classes import ClassTable
from cleanset.dataset.archives import VerifiedImages, visible_entries
from cleanset.dataset.folder import GROUP, files_below
from cleanset.dataset.ilsvrc import CLASSES, class_of_ilsvrc_id
from cleanset.dataset.label_sources import ImageLabels
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.evaluation.multilabel import REASSESSED, SetLabels
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet, class_index_of, open_set, set_name, unchecked_set
from cleanset.image_ids import IMAGE_SUFFIXES, check_image_names, check_matched, listed_ids
from cleanset.images.codec import decode_file
from cleanset.plumbing.csv_files import csv_rows, read_rows
from cleanset.plumbing.files import read_text
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import normal_text, shown
from cleanset.sets.manifest import BOX, MANIFEST, file_name
from cleanset.sets.published.lists import ilsvrc_class
from cleanset.vocabulary import TIERS

LIST_SUFFIX = ".csv"
ILSVRC_ID = "ILSVRC2012_ID"
"""The column of the devkit's numbers of classes, 1 to 1000, in its order; class_index is the place of a sorted wnid."""


def open_set_or_list(name: str, edition: Edition, roles: Sequence[str], role: str | None = None) -> EvaluationSet:
    """The set that `open_set` opens, or the images of a list, a file that ends in .csv; `role` picks rows of a list.

    Raises CleansetError as `open_set` and `open_list` do, and for a role with a set.
    """
    path = Path(name)
    if name not in roles and path.suffix == LIST_SUFFIX and path.name != MANIFEST:
        return open_list(path, edition, role)
    if role is not None:
        raise CleansetError(f"--role {role}: goes with a list ({LIST_SUFFIX}); {name} is a set")
    return open_set(name, edition, roles)


def naming_column(path: Path) -> str | None:
    """The column by which a list names its images; None for a file without such a header, such as one of ids alone."""
    header = read_text(path, "save the list as UTF-8").partition("\n")[0]
    _, cells = next(csv_rows(header, str(path), "expected a header"), (1, []))
    return next((name for name in ("image_id", "file", "folder") if name in cells), None)


def open_list(path: Path, edition: Edition, role: str | None) -> EvaluationSet:
    """The images that a list names, with the classes that it gives them, from the images of an edition.

    `role` picks the rows of a list with a column `model`. Images are checked against the edition's index. Those that
    the list has as cropped are measured whole, which a note says, since the list has no boxes. Raises CleansetError
    for a row that is not valid, or an image that is not in the index.
    """
    # Parquet, which the other kinds of sets do without
    from cleanset.tables import INDEX, read_table

    classes = edition.read_classes()
    rows = _rows(path, role, classes)
    name = f"{set_name(path)} ({role})" if role else set_name(path)
    if "image_id" not in next(iter(rows.values())):
        return _open_files(name, path, rows, classes)
    params = read_params(edition.folder)
    index = read_table(edition.index, INDEX, classes)
    digests = dict(zip(index["image_id"], index["sha256"], strict=True))
    listed = _listed(path, rows, classes, digests, str(edition.index))
    images = verified_images(edition, params.dataset.images, index, classes)
    id_of: dict[str, str] = {}
    found: list[EvaluationImage] = []
    for each in listed:
        tier = each.cells.get("tier") or None
        file = file_name(classes.keys[each.class_indices[0]], each.image_id, None, classes)
        if tier not in (None, *TIERS):
            raise CleansetError(f"{each.where}: tier {shown(tier)}; expected {', '.join(TIERS)} or none")
        id_of[file] = each.image_id
        found.append(
            EvaluationImage(
                file=file,
                class_index=each.class_indices[0],
                tier=tier,
                sha256=digests[each.image_id],
                image_id=each.image_id,
                others=each.class_indices[1:],
                group=normal_text(each.cells.get(GROUP, "")),
            )
        )

    def check(image: EvaluationImage) -> EvaluationImage:
        images.read(id_of[image.file])
        return image

    items = found_in_threads(check, sorted(found, key=lambda image: image.file), "check")
    cropped = sum(each.cells.get("cropped") == "yes" for each in listed)
    them = f"{cropped:,} of them {'is' if cropped == 1 else 'are'}"
    return EvaluationSet(
        name=name,
        kind="list",
        items=items,
        read=partial(_read_listed, images, id_of),
        checked=str(edition.index),
        classes=classes,
        limits=[f"{them} cropped in the list, and measured whole: it has no boxes"] if cropped else [],
        order=[item.file for item in items],
        labels=_labels(index, id_of),
    )


def _labels(index: pd.DataFrame, id_of: Mapping[str, str]) -> SetLabels:
    """The original and the reassessed labels of the images of a list, which has their ids by file."""
    original = dict(zip(index["image_id"], index["ilsvrc_class"].tolist(), strict=True))
    real = dict(zip(index["image_id"], index["real_classes"], strict=True))
    reassessed = {file: ImageLabels(classes=tuple(map(int, real[image_id]))) for file, image_id in id_of.items()}
    return SetLabels(
        original={file: original[image_id] for file, image_id in id_of.items()}, sources={REASSESSED: reassessed}
    )


def _read_listed(images: VerifiedImages, id_of: Mapping[str, str], file: str) -> Image.Image:
    """An image of a list. Raises CleansetError unless it has the bytes of the edition's index."""
    return decode_file(images.read(id_of[file]), file)


def _open_files(name: str, path: Path, rows: Mapping[str, Mapping[str, str]], classes: ClassTable) -> EvaluationSet:
    """The images in files, or in whole folders, that are next to a list, with the classes that it gives them."""
    labels_of = dict[str, tuple[int, ...]]()
    group_of = dict[str, str]()
    for where, row in rows.items():
        files = [row["file"]] if "file" in row else _images_in(path.parent, row.get("folder"), where)
        check_image_names(files, where)
        labels = _class_indices_of(row, where, classes)
        for file in files:
            if file in labels_of:
                raise CleansetError(f"{where}: {file} a second time; expected each image once")
            labels_of[file] = labels
            group_of[file] = normal_text(row.get(GROUP, ""))
    folders = [each for each in visible_entries(path.parent) if each.is_dir()]
    if "folder" in next(iter(rows.values())):
        check_matched(len(rows), max(len(rows), len(folders)), f"folders next to {path} are in it", "some")
    several = sum(len(labels) > 1 for labels in labels_of.values())
    note = f"{several:,} of {len(labels_of):,} images have several classes; any of them is correct"
    return unchecked_set(name, "list", path.parent, labels_of, classes, [note] if several else [], group_of)


def _images_in(beside: Path, folder: str | None, where: str) -> list[str]:
    """The images in a folder that a list names."""
    if folder is None:
        raise CleansetError(f"{where}: no image; expected a column image_id, file or folder: add one")
    if not (beside / folder).is_dir():
        raise CleansetError(f"{where}: {shown(folder)}; expected a folder in {beside}")
    found = [each for each in files_below(beside / folder, folder, 1) if each.lower().endswith(IMAGE_SUFFIXES)]
    if not found:
        raise CleansetError(f"{where}: {shown(folder)} has no image; expected {', '.join(IMAGE_SUFFIXES)}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedImage:
    """An image of a list."""

    image_id: str
    class_indices: tuple[int, ...]
    """Its class; with several, any is correct."""

    where: str
    """Its place in messages."""

    cells: Mapping[str, str]
    """All that the list has of it, by column."""


def read_list(path: Path, role: str | None, classes: ClassTable) -> list[ListedImage]:
    """The images of a list, or those of a role, whose id may be in any form.

    Raises CleansetError for a row that is not valid, an image that is there twice, and classes that are numbered
    otherwise.
    """
    return _listed(path, _rows(path, role, classes), classes, None, "")


def _listed(
    path: Path,
    rows: Mapping[str, Mapping[str, str]],
    classes: ClassTable,
    known: Collection[str] | None,
    place: str,
) -> list[ListedImage]:
    """As `read_list`; `known`: the images of `place`, if it may have no others."""
    if "image_id" not in next(iter(rows.values())):
        raise CleansetError(f"{path}: no column image_id; expected one: images are known by their ids here")
    ids = listed_ids(((where, row["image_id"]) for where, row in rows.items()), classes, known, place)
    found = [
        ListedImage(
            image_id=image_id,
            class_indices=_class_indices_of(rows[where], where, classes),
            where=where,
            cells=rows[where],
        )
        for image_id, where in ids.items()
    ]
    if classes.is_imagenet and ILSVRC_ID not in found[0].cells:
        _check_numbering(path, {each.image_id: each.class_indices[0] for each in found})
    return found


def _class_indices_of(row: Mapping[str, str], where: str, classes: ClassTable) -> tuple[int, ...]:
    """The classes of a row, with blanks between several indices, wnids or numbers."""
    columns = ("class_index", ILSVRC_ID, *([classes.key_column] if classes.is_imagenet else []))
    texts = {name: row[name].split() or [""] for name in columns if name in row}
    if not classes.is_imagenet and classes.key_column in row:
        texts[classes.key_column] = [row[classes.key_column]]
    count = max(map(len, texts.values()), default=1)
    if any(len(each) != count for each in texts.values()):
        raise CleansetError(f"{where}: other numbers of classes in {', '.join(texts)}; expected as many in each")
    found = ({name: each[place] for name, each in texts.items()} for place in range(count))
    return tuple(dict.fromkeys(_class_index_of(each, where, classes) for each in found))


def _rows(path: Path, role: str | None, classes: ClassTable) -> dict[str, dict[str, str]]:
    """The rows of a list, or those of a role, by their place in messages."""
    remedy = f"name a CSV file with a column image_id, file or folder, and class_index or {classes.key_column}"
    rows = dict(read_rows(path, (), dict[str, str], remedy, others=True))
    for where, row in rows.items():
        if any(row.get(edge) for edge in BOX):
            raise CleansetError(
                f"{where}: a crop box; expected whole images: run cleanset rebuild, and evaluate its folder"
            )
    models = sorted({row["model"] for row in rows.values() if "model" in row})
    if role is None and len(models) > 1:
        raise CleansetError(
            f"{path}: images of {', '.join(map(shown, models))}; expected --role, in Python role=, with one of them"
        )
    if role is not None and role not in models:
        named = ", ".join(map(shown, models)) or "no column model"
        raise CleansetError(f"{path}: no images of {shown(role)}; it has {named}")
    rows = {where: row for where, row in rows.items() if role in (None, row.get("model"))}
    if not rows:
        raise CleansetError(f"{path}: no images; expected at least one row")
    return rows


def _class_index_of(row: Mapping[str, str], where: str, classes: ClassTable) -> int:
    """The class of a row, by its index, its key or, of ImageNet's, the devkit's number."""
    if ILSVRC_ID not in row or not classes.is_imagenet:
        return class_index_of(row, where, classes)
    number = row[ILSVRC_ID]
    index = {str(each): index for each, index in class_of_ilsvrc_id().items()}.get(number)
    if index is None:
        raise CleansetError(f"{where}, column {ILSVRC_ID}: {shown(number)}; expected a number from 1 to {CLASSES}")
    others = {name: row[name] for name in ("class_index", classes.key_column) if name in row}
    if others and class_index_of(others, where, classes) != index:
        raise CleansetError(
            f"{where}: {ILSVRC_ID} {number} is {classes.keys[index]}; expected one class in all columns"
        )
    return index


def _check_numbering(path: Path, class_of: Mapping[str, int]) -> None:
    """Raise CleansetError if the original labels of most images say that the classes have other numbers."""
    known = {each: ilsvrc_class(each) for each in class_of}
    devkit = class_of_ilsvrc_id()
    agreeing = {
        "places of the sorted wnids, 0 to 999": sum(class_of[each] == known[each] for each in known),
        f"the devkit's, 1 to 1000: call the column {ILSVRC_ID}": sum(
            devkit.get(class_of[each]) == known[each] for each in known
        ),
        "places of the sorted wnids from 1: subtract 1": sum(class_of[each] - 1 == known[each] for each in known),
    }
    usual, *others = agreeing
    other = max(others, key=agreeing.__getitem__)
    if agreeing[other] > max(agreeing[usual], len(known) / 2):
        raise CleansetError(
            f"{path}: class_index is the original label of {agreeing[usual]:,} of {len(known):,} images, and of "
            f"{agreeing[other]:,} if the numbers are {other}; expected {usual}"
        )
