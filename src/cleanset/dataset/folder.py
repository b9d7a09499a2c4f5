"""Your own images: a folder for each class, or a table of files and classes.

An image id is the path of the image in the folder of all images, with its suffix: `melanoma/ISIC_0001.jpg`.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from cleanset.classes import ClassTable, class_table, folded_name
from cleanset.dataset.archives import LEFT_BY_SYSTEMS, Location, check_size, visible_entries
from cleanset.dataset.splits import split_names
from cleanset.errors import CleansetError
from cleanset.image_ids import CROPPED, IMAGE_SUFFIXES, check_image_names
from cleanset.plumbing.csv_files import csv_text, parse_rows, read_rows
from cleanset.plumbing.files import check_regular, check_unpacked, is_there
from cleanset.plumbing.progress import print_notice
from cleanset.plumbing.validation import hidden_character, join_names, normal_text, shown

MAX_NESTING = 20
"""Folders in folders; more are a link to a folder above it."""
GROUP = "group"
LABEL_COLUMNS = ("file", "class", GROUP)
_GROUP_COLUMNS = ("image_id", GROUP)
_DASH = re.compile("[\u00ad\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
_APOSTROPHE = re.compile("[`\u00b4\u02b9\u02bb\u02bc\u2018\u2019\u201b\u2032\uff07]")
_NUMBER = re.compile("[0-9]+")
NAME_COLUMNS = ("class", "name")


@dataclass(frozen=True, slots=True)
class LabelledImages:
    """Your own images with their classes."""

    classes: ClassTable
    locations: Mapping[str, Location]
    """By image id, sorted."""

    class_of: Mapping[str, int]
    """Class index by image id."""

    group_of: Mapping[str, str] = field(default_factory=dict)
    """Group by image id; empty without groups, and an image may have none."""

    classes_are_folders: bool = False
    """Whether folders were taken for classes even where their names mean splits."""

    @property
    def labels(self) -> dict[str, list[int]]:
        """The class indices of the labels by image id: one each."""
        return {name: [label] for name, label in self.class_of.items()}

    @property
    def texts(self) -> dict[str, str]:
        """The texts that go with the table of the images: the class table, and the groups as CSV."""
        return {"classes": self.classes.text} | groups_texts(self.group_of)


def groups_texts(group_of: Mapping[str, str]) -> dict[str, str]:
    """The text of groups that goes with a table of images, as `groups_of` reads it; empty without groups."""
    return {"groups": csv_text(_GROUP_COLUMNS, sorted(group_of.items()))} if group_of else {}


def groups_of(table: Path) -> dict[str, str]:
    """The group of each image id in the text that goes with a table of images; empty without one."""
    from cleanset.tables import text_of_table  # needs pyarrow, which a set's users may lack

    text = text_of_table(table, "groups")
    if not text:
        return {}
    rows = parse_rows(text, _GROUP_COLUMNS, dict[str, str], str(table), remedy="run dvc repro", is_own=True)
    return {cells["image_id"]: cells[GROUP] for _, cells in rows}


def read_images(
    images: Path,
    labels: Path | None,
    names: Path | None,
    *,
    classes_are_folders: bool = False,
    moved: Mapping[str, str] | None = None,
) -> LabelledImages:
    """The images in the folder `images`, sorted by id; without `labels`, each class has a folder in it.

    `labels`: a CSV of the columns file and class, perhaps group, where file is an image id; only these files are read.
    `names`: a CSV of class and name; without it a class is called by its key.
    `classes_are_folders`: whether folders are classes even where their names mean splits.
    `moved`: the image ids that images in `labels` have today, by those in the table.
    Prints notices of groups that are nearly the same, of images that `labels` leaves out, and of those in a folder of
    another class. Raises CleansetError for the first thing that is wrong.
    """
    check_unpacked(images, "the folder of the images")
    if not images.is_dir():
        raise CleansetError(f"{images}: missing, or not a folder; expected the folder of the images (dataset.images)")
    if labels is None:
        if not classes_are_folders:
            _check_no_splits(images)
        class_by_id = _in_class_folders(images)
        groups: dict[str, str] = {}
    else:
        class_by_id, groups = read_labels(labels)
        on_disk = {**(moved or {}), **_names_on_disk(images, class_by_id.keys() - (moved or {}).keys(), str(labels))}
        class_by_id = {on_disk.get(name, name): key for name, key in class_by_id.items()}
        groups = {on_disk.get(name, name): group for name, group in groups.items()}
    if not class_by_id:
        raise CleansetError(f"{labels or images}: no image; expected a folder of images for each class")
    where = str(labels or images)
    check_ids(class_by_id, where)
    keys = set(class_by_id.values())
    classes = class_table(_names(names, keys) if names else ((key, key) for key in keys), where)
    ids = sorted(class_by_id)
    locations = image_locations(images, ids, where)
    of_table = (*_not_listed(images, class_by_id, where), *_in_other_folders(class_by_id, where)) if labels else ()
    for notice in (*_alike(groups.values(), where), *of_table):
        print_notice(notice)
    return LabelledImages(
        classes=classes,
        locations=locations,
        class_of={name: classes.indices[class_by_id[name]] for name in ids},
        group_of=groups,
        classes_are_folders=classes_are_folders,
    )


def _alike(groups: Iterable[str], where: str) -> Iterator[str]:
    """Notices of groups whose names differ by case alone, or by it, dashes, apostrophes and leading zeros."""
    names = sorted(set(groups))
    firsts, pairs = _pairs(names, folded_name)
    if pairs:
        yield f"{where}: groups that differ by case alone, and count as different: {join_names(pairs)}"
    # one of each form by case: pairs of those are reported already
    _, pairs = _pairs(firsts, _without_signs)
    if pairs:
        yield (
            f"{where}: groups that differ by the kind of dash, the apostrophe or leading zeros alone, and count as "
            f"different: {join_names(pairs)}"
        )


def _pairs(names: Sequence[str], form: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """The first of each form among sorted names, sorted, and every other next to the first of its form."""
    first_of = {form(name): name for name in reversed(names)}
    pairs = [f"{one} and {name}" for name in names if (one := first_of[form(name)]) != name]
    return sorted(first_of.values()), pairs


def _without_signs(group: str) -> str:
    """The folded name of a group with one kind of dash and apostrophe, and without leading zeros."""
    plain = _APOSTROPHE.sub("'", _DASH.sub("-", folded_name(group)))
    return _NUMBER.sub(lambda digits: digits[0].lstrip("0") or "0", plain)


def _names_on_disk(images: Path, listed: Collection[str], where: str) -> dict[str, str]:
    """The image ids as the file system has them, of those that a table has in another Unicode form.

    Raises CleansetError, naming `where`, for two that are one file.
    """
    # a name in ASCII has one form
    missing = [name for name in listed if not name.isascii() and not os.path.lexists(images / name)]
    if not missing:
        return {}
    forms: dict[str, list[str]] = {}
    for name in images_below(images):
        forms.setdefault(unicodedata.normalize("NFC", name), []).append(name)
    found = {}
    for name in missing:
        # of several, which differ by their form, none is meant more than another
        if len(alike := forms.get(unicodedata.normalize("NFC", name), [])) == 1:
            found[name] = alike[0]
    if twice := sorted(set(listed).intersection(found.values())) or _repeated(found.values()):
        raise CleansetError(
            f"{where}: {shown(twice[0])} a second time, in another Unicode form; expected each image once: remove a "
            "line"
        )
    return found


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def images_below(folder: Path) -> set[str]:
    """The images in a folder and in its folders, by path below it. Links to folders are not followed."""
    inside = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in IMAGE_SUFFIXES)
    return {path.as_posix() for path in inside if not any(map(LEFT_BY_SYSTEMS.fullmatch, path.parts))}


def _in_other_folders(class_by_id: Mapping[str, str], where: str) -> Iterator[str]:
    """A notice of images that a table gives another class than the folder that they are in is called by."""
    keys = set(class_by_id.values())
    by_folder = {}
    for image_id in class_by_id:
        of_classes = [key for part in image_id.split("/")[:-1] if (key := normal_text(part)) in keys]
        if of_classes:
            by_folder[image_id] = of_classes[-1]
    others = [f"{name} ({class_by_id[name]})" for name, key in by_folder.items() if class_by_id[name] != key]
    if others:
        yield (
            f"{where}: gives {len(others):,} of {len(by_folder):,} images in folders of classes another class than the "
            f"folder's: {join_names(others)}; the table is used: check whether its rows are shifted"
        )


def _not_listed(images: Path, listed: Collection[str], where: str) -> Iterator[str]:
    """A notice of images in the folder that the table does not name. Links to folders are not followed."""
    found = images_below(images)
    if others := sorted(found.difference(listed)):
        count = len(found.union(listed))
        yield f"{where}: names {len(listed):,} of the {count:,} images in {images}; left out: {join_names(others)}"


def image_locations(images: Path, ids: Iterable[str], where: str) -> dict[str, Location]:
    """The location of each image id. Raises CleansetError, naming `where`, for missing images and too large ones."""
    found: dict[str, Location] = {}
    missing: list[str] = []
    for image_id in ids:
        path = images / image_id
        try:
            size = check_regular(path).st_size
        except FileNotFoundError:
            missing.append(f"{image_id} (broken symlink)" if path.is_symlink() else image_id)
            continue
        check_size(str(path), size, "save the image smaller, or remove it")
        found[image_id] = Location(str(path), 0, size)
    if missing:
        remedy = "" if where == str(images) else ", or correct the table"
        raise CleansetError(f"{where}: not in {images}: {join_names(missing)}; put them there{remedy}")
    return found


def _in_class_folders(images: Path) -> dict[str, str]:
    """The class of each image id in folders of classes. Raises CleansetError for a class without images."""
    class_by_id: dict[str, str] = {}
    seen: dict[str, str] = {}
    entries = visible_entries(images)
    if stray := [entry.name for entry in entries if not entry.is_dir() and is_there(Path(entry.path))]:
        raise CleansetError(
            f"{images}: {join_names(stray)}: next to the folders of the classes; expected a folder for each class, or "
            "a table of files and classes (dataset.labels): move it"
        )
    files = {entry.name: list(files_below(Path(entry.path), entry.name, 1)) for entry in entries}
    if empty := [name for name, found in files.items() if not found]:
        raise CleansetError(
            f"{images}: {join_names(empty)}: a class without images; put some there, or remove the folder"
        )
    for name, found in files.items():
        key = normal_text(name)
        if seen.setdefault(key, name) != name:
            raise CleansetError(
                f"{images}: folders {shown(seen[key])} and {shown(name)}, which differ only by blanks or Unicode "
                "form; expected one class, or names that differ: rename one"
            )
        class_by_id |= dict.fromkeys(found, key)
    return class_by_id


def _check_no_splits(images: Path) -> None:
    """Raise CleansetError if folders in a folder are splits of a dataset by their names."""
    folders = [entry.name for entry in visible_entries(images) if entry.is_dir()]
    if not (splits := split_names(folders)):
        return
    inside = [name for name in splits if any(entry.is_dir() for entry in visible_entries(images / name))]
    better = f"name {images / inside[0]}" if inside else "move the images into such folders"
    raise CleansetError(
        f"{images}: {join_names(splits)}: the splits of a dataset by their names, not classes; expected a folder for "
        f"each class: {better}, give a table of labels, or, if these are classes, say --classes-are-folders "
        "(dataset.classes_are_folders: true in params.yaml)"
    )


def files_below(folder: Path, name: str, depth: int) -> Iterator[str]:
    """The files in a folder that is called `name`, at this depth, and in folders in it, sorted."""
    if depth > MAX_NESTING:
        raise CleansetError(f"{folder}: more than {MAX_NESTING} folders deep; expected no link to a folder above it")
    for entry in visible_entries(folder):
        if entry.is_dir():
            yield from files_below(Path(entry.path), f"{name}/{entry.name}", depth + 1)
        else:
            yield f"{name}/{entry.name}"


def check_ids(class_by_id: Mapping[str, str], where: str) -> None:
    """Raise CleansetError, naming `where`, for an invalid image id, and for ids too alike.

    Two ids are too alike if some file system takes them, or their files in the finished set, for one.
    """
    check_image_names(class_by_id, where)
    seen: dict[str, str] = {}
    for image_id, key in class_by_id.items():
        exported = exported_name(key, image_id)
        # the whole image or its crop is in a set, and another model's set may have the other
        for name in (image_id, exported, f"{exported}{CROPPED}"):
            other = seen.setdefault(folded_name(name), image_id)
            if other != image_id:
                raise CleansetError(
                    f"{where}: {shown(other)} and {shown(image_id)} differ only by case, Unicode form or folders in "
                    "the class; expected names that every file system tells apart: rename one"
                )


def exported_name(key: str, image_id: str) -> str:
    """The path of a whole image in a finished set: in the folder of its class."""
    folder, _, rest = image_id.partition("/")
    name = rest if rest and key in (folder, normal_text(folder)) else image_id
    return f"{key}/{name.replace('/', '__')}"


def labels_text(found: LabelledImages) -> str:
    """The text of a table of labels of these images, under their ids of today."""
    has_groups = bool(found.group_of)
    rows = [
        (name, found.classes.keys[label], *([found.group_of[name]] if has_groups else []))
        for name, label in found.class_of.items()
    ]
    return csv_text(LABEL_COLUMNS if has_groups else LABEL_COLUMNS[:-1], rows)


_Key = Annotated[str, AfterValidator(normal_text)]


@dataclass(frozen=True, slots=True)
class _Label:
    file: str
    key: _Key
    group: _Key | None = None


def read_labels(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The class of each image id, and its group where the table has groups.

    Raises CleansetError for an image that is listed twice, and for an empty or unprintable class or group.
    """
    class_by_id: dict[str, str] = {}
    group_of: dict[str, str] = {}
    for where, row in read_rows(path, LABEL_COLUMNS, _Label, "correct the table, and save it as CSV in UTF-8"):
        image_id = row.file
        key = row.key
        group = row.group
        if image_id in class_by_id:
            raise CleansetError(
                f"{where}: {shown(image_id)} a second time, in class {shown(class_by_id[image_id])} before and "
                f"{shown(key)} now; expected each image once: remove a line"
            )
        if not key or group == "":
            raise CleansetError(f"{where}: {shown(image_id)} without a {GROUP if key else 'class'}; fill it in")
        if group and (hidden := hidden_character(group)):
            raise CleansetError(f"{where}: group {shown(group)}{hidden}; expected printable characters: remove that")
        class_by_id[image_id] = key
        if group is not None:
            group_of[image_id] = group
    return class_by_id, group_of


def _names(path: Path, keys: set[str]) -> Iterator[tuple[str, str]]:
    """Key and name of each class. Raises CleansetError unless the table has exactly the classes of the images."""
    named: dict[str, str] = {}
    # normalised before two are compared
    for at, cells in read_rows(path, NAME_COLUMNS, dict[str, str], "remove or correct the line"):
        key, name = map(normal_text, cells.values())
        if key in named:
            raise CleansetError(f"{at}: class {shown(key)} a second time; remove a line")
        named[key] = name
    for key in sorted(keys ^ set(named)):
        what = "has no name" if key in keys else "has no image"
        raise CleansetError(f"{path}: class {shown(key)} {what}; expected a line for each class with images")
    yield from named.items()
