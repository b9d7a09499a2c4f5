"""Stage preprocess: check the raw files, measure every image, join the labels."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas as pd

from cleanset.classes import ClassTable, imagenet
from cleanset.dataset.archives import Location, check_archive, locate, read_md5_list, to_table
from cleanset.dataset.duplicates import REFUSED_DUPLICATES, equal_pairs, refuse_in_two_classes
from cleanset.dataset.folder import read_images
from cleanset.dataset.ilsvrc import timm_info
from cleanset.dataset.labels import kaggle_labels_beside, read_original_labels, read_reassessed
from cleanset.dataset.pinned import check_pinned, read_pinned
from cleanset.dataset.unreadable import UNREADABLE_IMAGES, by_kind, refuse_unreadable
from cleanset.edition.lists import check_lists
from cleanset.edition.params import Dataset, read_params
from cleanset.edition.paths import Edition
from cleanset.edition.pipeline import check_params_named, check_roles, check_tables_named
from cleanset.edition.versions import check_versions
from cleanset.errors import CleansetError, install_command
from cleanset.image_ids import image_id, image_number
from cleanset.images.codec import can_check_jpegs, inspect
from cleanset.images.shown_otherwise import chunk_problem
from cleanset.plumbing.files import read_bytes, sha256, write_text
from cleanset.plumbing.machine import keep_freed_memory
from cleanset.plumbing.progress import found_in_threads, print_notice
from cleanset.tables import INDEX, LOCATIONS, write_table


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFiles:
    """The images of a dataset with their labels, as the raw files have them."""

    classes: ClassTable
    locations: Mapping[str, Location]
    """By image id, sorted."""

    original: Mapping[str, int]
    """Class index of the original label, by image id."""

    reassessed: Mapping[str, list[int]]
    """Class indices of the reassessed labels, by image id."""

    formats: tuple[str, ...] = ("JPEG",)
    """The formats that the images may have, as Pillow calls them."""

    pinned: Mapping[str, str] | None = None
    """The SHA-256 that each image must have, by image id; None if an archive is checked as a whole."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts by name that go with the index."""


def read_inputs(edition: Edition) -> tuple[Dataset, LabelledFiles]:
    """Check params, pipeline, versions and raw files; read labels, and where each image is.

    Raises CleansetError if images or labels are missing or contradict each other.
    """
    params = read_params(edition.folder)
    dataset = params.dataset
    check_roles(edition, params.models)
    check_params_named(edition)
    tables = {"dataset.labels": dataset.labels, "dataset.names": dataset.names}
    check_tables_named(
        edition, "preprocess", tables, "run cleanset edition --accept --{} FILE, which enters it, or add it"
    )
    check_versions(edition, params.root, "preprocess")
    # now, since stage score comes minutes later
    check_lists(edition.folder, params)
    return dataset, (own_images if dataset.is_own else imagenet_images)(edition, dataset)


def imagenet_images(edition: Edition, dataset: Dataset) -> LabelledFiles:
    """ImageNet's validation images, or a part of them."""
    images = edition.path(dataset.images)
    check_raw_files(edition, dataset)
    locations = locate(images)
    devkit = edition.path(dataset.devkit) if dataset.devkit else kaggle_labels_beside(images)
    listed = None if devkit is None else read_original_labels(devkit)
    is_timms = dataset.reassessed == "timm"
    path = timm_info("imagenet_real_labels.json") if is_timms else edition.path(dataset.reassessed)
    where = "timm's reassessed labels" if is_timms else str(path)
    lists = read_reassessed(read_bytes(path), where)
    image_ids = list(locations)
    check_complete(image_ids, dataset)
    return LabelledFiles(
        classes=imagenet(),
        locations=locations,
        original=named_labels(locations, dataset.images) if listed is None else listed_labels(locations, *listed),
        reassessed=reassessed_labels(lists, where, None if listed is None else len(listed[0]), image_ids),
    )


def own_images(edition: Edition, dataset: Dataset) -> LabelledFiles:
    """Your own images, which have one label each."""
    labels, names = (edition.path(name) if name else None for name in (dataset.labels, dataset.names))
    found = read_images(edition.path(dataset.images), labels, names, classes_are_folders=dataset.classes_are_folders)
    pinned = read_pinned(edition.images_sha256)
    check_complete(list(found.locations), dataset)
    return LabelledFiles(
        classes=found.classes,
        locations=found.locations,
        original=found.class_of,
        reassessed=found.labels,
        formats=("JPEG", "PNG"),
        pinned=pinned,
        texts=found.texts,
    )


def run(edition: Edition) -> None:
    """Read the archives that params.yaml names, write data/index.parquet and data/locations.parquet."""
    dataset, found = read_inputs(edition)
    images = edition.path(dataset.images)
    facts = measure(
        found.locations,
        found.formats,
        found.pinned,
        str(images),
        listed=edition.folder / "data" / UNREADABLE_IMAGES,
    )
    if dataset.is_own:
        pairs = equal_pairs(zip(facts["image_id"], facts["sha256"], facts["pixels_sha256"], strict=True))
        refuse_in_two_classes(pairs, found.original, edition.folder / "data" / REFUSED_DUPLICATES)
    index = join(facts, found.original, found.reassessed)
    if dataset.is_own:
        write_text(edition.classes, found.classes.text)
    write_table(edition.index, index, INDEX, found.classes, texts=found.texts)
    write_table(edition.locations, to_table(found.locations, images), LOCATIONS, found.classes)


def check_raw_files(edition: Edition, dataset: Dataset) -> None:
    """Compare each raw file that is read with raw.md5; images in folders are checked one by one."""
    names = [name for name in (dataset.images, dataset.devkit, dataset.reassessed) if name and name != "timm"]
    kaggle = None if dataset.devkit else kaggle_labels_beside(edition.path(dataset.images))
    if kaggle:
        inside = kaggle.is_relative_to(edition.folder)
        names.append((kaggle.relative_to(edition.folder) if inside else kaggle).as_posix())
    files = [name for name in names if not edition.path(name).is_dir()]
    digests = read_md5_list(edition.raw_md5)
    for name in files:
        check_archive(edition.path(name), name, digests, edition.raw_md5)


def check_complete(image_ids: list[str], dataset: Dataset) -> None:
    """Raise CleansetError unless the number of images is the one in params.yaml."""
    expected = dataset.expect_images
    if expected is None or len(image_ids) == expected:
        return
    known = () if dataset.is_own else map(image_id, range(1, expected + 1))
    found = set(image_ids)
    missing = next((name for name in known if name not in found), None)
    which = f"; the first that is missing is {missing}" if missing else ""
    raise CleansetError(
        f"{dataset.images}: {len(image_ids)} images, expected {expected} (dataset.expect_images){which}: "
        "complete the set or correct params.yaml"
    )


def named_labels(locations: Mapping[str, Location], images: str) -> dict[str, int]:
    """Class index of each image by the wnid in its folder or name.

    Raises CleansetError, naming `images`, for one without.
    """
    by_name = _by_name(locations)
    without = sorted(set(locations) - set(by_name))
    if without:
        raise CleansetError(
            f"{images}: {without[0]} has no label; expected dataset.devkit, a folder per wnid, "
            "or names that end in a wnid"
        )
    return by_name


def _by_name(locations: Mapping[str, Location]) -> dict[str, int]:
    return {name: imagenet().indices[at.wnid] for name, at in locations.items() if at.wnid}


def listed_labels(locations: Mapping[str, Location], class_of: Mapping[str, int], where: str) -> dict[str, int]:
    """Class index of each image in the devkit's or Kaggle's list of the whole set; `where`: the file.

    Raises CleansetError for an image that is not listed, and where list and wnid differ.
    """
    by_name = _by_name(locations)
    keys = imagenet().keys
    for name in locations:
        if name not in class_of:
            raise CleansetError(
                f"{where}: no label for {name}; it lists {len(class_of)} images: remove that image, "
                "or take the labels that belong to it (dataset.devkit)"
            )
        if name in by_name and by_name[name] != class_of[name]:
            raise CleansetError(
                f"{locations[name].path}: {name} is under {keys[by_name[name]]}, but {where} "
                f"has {keys[class_of[name]]}; move it"
            )
    return {name: class_of[name] for name in locations}


def reassessed_labels(
    lists: Sequence[list[int]], where: str, count: int | None, image_ids: list[str]
) -> dict[str, list[int]]:
    """The reassessed labels of each image; the list must have an entry for every image of the whole set.

    `count`: the size of the whole set; None if it is not known. `where`: the file, for messages.
    """
    last = image_number(image_ids[-1])
    if len(lists) != (count or len(lists)) or last > len(lists):
        expected = count if count else f"at least {last}"
        raise CleansetError(
            f"{where}: {len(lists)} lists, expected {expected}, one for each image: "
            "take the list that belongs to these images (dataset.reassessed)"
        )
    return {name: lists[image_number(name) - 1] for name in image_ids}


def measure(
    locations: Mapping[str, Location],
    formats: tuple[str, ...] = ("JPEG",),
    pinned: Mapping[str, str] | None = None,
    where: str = "",
    *,
    listed: Path | None = None,
) -> pd.DataFrame:
    """Size, SHA-256, width, height, mode and pixels' SHA-256 of every image; every pixel is decoded.

    Raises CleansetError, naming `where`, if the images are not those that are `pinned` by their SHA-256, and one that
    names the images which cannot be read: the first of each kind of problem, and all in the CSV file `listed`.
    """
    keep_freed_memory()
    rows = found_in_threads(lambda each: measure_image(*each, formats), locations.items(), "preprocess")
    if pinned is not None:
        check_pinned(where, pinned, {str(row["image_id"]): str(row["sha256"]) for row in rows})
    shown = {str(row["image_id"]): str(text) for row in rows if (text := row.pop("shown_otherwise", None))}
    if shown:
        print_notice(
            f"{where}: {len(shown):,} displayed differently by viewers: {by_kind(shown)}; models see the stored pixels"
        )
    if not can_check_jpegs() and "PNG" in formats:
        print_notice(f"JPEGs are not checked for damage inside: {install_command('build')}")
    unread = {str(row["image_id"]): str(row["problem"]) for row in rows if "problem" in row}
    refuse_unreadable(unread, where, formats, listed)
    return pd.DataFrame(rows)


def measure_image(name: str, location: Location, formats: tuple[str, ...]) -> dict[str, object]:
    """The facts of an image, or its problem."""
    data = location.read()
    found: dict[str, object] = {"image_id": name, "size": len(data), "sha256": sha256(data)}
    try:
        return found | asdict(inspect(data, formats)) | {"shown_otherwise": chunk_problem(data)}
    except ValueError as error:
        return found | {"problem": str(error)}


def join(facts: pd.DataFrame, original: Mapping[str, int], reassessed: Mapping[str, list[int]]) -> pd.DataFrame:
    """The index: facts and labels of every image."""
    real_classes = [reassessed[name] for name in facts["image_id"]]
    return facts.assign(
        ilsvrc_class=[original[name] for name in facts["image_id"]],
        real_classes=pd.Series(real_classes, index=facts.index, dtype=object),
        single=[len(labels) == 1 for labels in real_classes],
    )
