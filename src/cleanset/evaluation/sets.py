"""The one record of images that models are measured on, from one or several exports, a folder per class, or a list.

`image_lists` opens lists of an edition's images, `studies.robustness.opened_images` the sets of a whole edition.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from PIL import Image

from cleanset.classes import ClassTable
from cleanset.dataset.archives import visible_entries
from cleanset.dataset.folder import GROUP
from cleanset.dataset.label_sources import ImageLabels
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, InputError
from cleanset.evaluation.factors import ImageFactors
from cleanset.evaluation.multilabel import REASSESSED, SetLabels, labels_from
from cleanset.evaluation.notes import UNCHECKED, MeasuredSet
from cleanset.evaluation.pairs import image_key
from cleanset.image_ids import IMAGE_SUFFIXES, image_id_in
from cleanset.images.boxes import Box
from cleanset.images.codec import decode_file
from cleanset.loading import missing_export
from cleanset.plumbing.files import check_unpacked, sha256
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.validation import shown
from cleanset.sets.description import UNPUBLISHED, in_random_order, notices_of
from cleanset.sets.fetching.releases import opened
from cleanset.sets.folder import one_set, read_image, read_regular_file, read_release, read_set
from cleanset.sets.manifest import MANIFEST, Entry
from cleanset.statistics.formats import counted
from cleanset.statistics.groups import Units

_INDEX = re.compile(r"[0-9]{1,4}", re.ASCII)
NUMBERED = "Its folders are numbers, taken for class indices, as ImageNet-V2's are."
"""The limit of a folder whose classes are known by number alone."""

SetKind = Literal["export", "exports", "folder", "list"]


class ImageFile(NamedTuple):
    """An image by its file; a small tuple, as caches of decoded images are looked up by it."""

    path: Path
    """Where it is."""
    sha256: str
    """The SHA-256 of its bytes."""
    image_id: str
    """The id of the image in it, or the file's name where it has none."""

    def decoded(self) -> Image.Image:
        """The image. Raises CleansetError if its bytes have changed, or are not a whole JPEG or PNG."""
        data = read_regular_file(self.path)
        if (found := sha256(data)) != self.sha256:
            raise CleansetError(
                f"{self.path}: SHA-256 {found}, expected {self.sha256} as in the manifest, or when it was checked; "
                "see cleanset verify"
            )
        return decode_file(data, self.path)


@dataclass(frozen=True, slots=True)
class SetImages:
    """The images as stored, by file; a callable that can be pickled, for worker processes."""

    files: Mapping[str, ImageFile]

    def __call__(self, file: str) -> Image.Image:
        """The decoded image. Raises CleansetError as `ImageFile.decoded`."""
        return self.files[file].decoded()


@dataclass(frozen=True, slots=True)
class EvaluationImage:
    """An image of a set that models are measured on."""

    file: str
    """Its path within the set."""

    class_index: int
    """Its class; with several, the first."""

    tier: str | None
    """None if the set has no tiers."""

    sha256: str
    """Digest of the file's bytes."""

    image_id: str = field(default="", compare=False)
    """Its id; the path of its file where it has none."""

    crop: Box | None = field(default=None, compare=False)
    """None: it is whole."""

    sets: Sequence[str] = field(default=(), compare=False)
    """The roles in whose sets it is."""

    path: Path | None = field(default=None, compare=False)
    """Where its file is; None: in an archive."""

    others: tuple[int, ...] = ()
    """Further class indices that are as correct as the first."""

    group: str = field(default="", compare=False)
    """The group that it belongs to, such as a patient; empty: no other image is of its group."""

    @property
    def key(self) -> str:
        """Its class and the beginning of its digest, by which results on the same images are compared."""
        return image_key(self.class_index, self.sha256)

    @property
    def labels(self) -> tuple[int, ...]:
        """The class indices; any of them is correct."""
        return (self.class_index, *self.others)

    def label_of(self, predicted: Sequence[int]) -> int:
        """The first class of the predicted ones that is correct, by which they are counted; without one its class."""
        return next((each for each in predicted if each in self.labels), self.class_index)


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluationSet:
    """A set to measure models on: its images, their classes, and how they are read."""

    name: str
    kind: SetKind
    items: Sequence[EvaluationImage]
    """The images, sorted by file."""

    read: Callable[[str], Image.Image]
    """From the file of an image to the decoded image, whose bytes are checked."""

    checked: str | None
    """The reference that the images' bytes were checked against; None: unchecked."""

    classes: ClassTable
    """The class table of the images."""

    version: str | None = None
    """MAJOR.MINOR.PATCH of its release; None: images without one."""

    selection: str = ""
    """How its images were chosen, in a phrase; empty: not known."""

    selected_by: str | None = None
    """The model among whose correctly classified images they were chosen; None: not known, or no model."""

    confidences: Mapping[str, float] = field(default_factory=dict)
    """The confidence of that model in each image, 0 to 1, by file; empty if it is not known."""

    limits: Sequence[str] = ()
    """Facts that a reader of the accuracies has to know, in sentences."""

    order: Sequence[str] = ()
    """The files in the order of the set: the manifest's, as `cleanset.load` gives them; sorted without a manifest."""

    manifest_sha256: str | None = None
    """Digest of an export's manifest."""

    labels: SetLabels = field(default_factory=SetLabels)
    """The labels that the images came with; with `evaluate --labels` those of further studies, too."""

    is_restricted: bool = False
    """Whether predictions are among the classes of the images alone."""

    measures: Sequence[str] = ()
    """Custom measures of the predictions on its images, by MODULE:NAME."""
    factors: ImageFactors | None = None
    """The factors of its images; None: they are not measured by factor."""

    owners: Sequence[str] = ()
    """The roles whose whole sets these are."""

    selections: Sequence[str] = ("all",)
    """The selections of its images that robustness is measured on."""

    edition: Edition | None = None
    """The edition that the images are of, where its scores are, too; None: not known."""

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Rows of STUDY_IMAGES, by which changes and attacks take the images."""
        return pd.DataFrame(
            {
                "file": [item.file for item in self.items],
                "image_id": [item.image_id or item.file for item in self.items],
                "class_index": np.array([item.class_index for item in self.items], np.int64),
                "crop": pd.Series([item.crop for item in self.items], dtype=object),
                "file_sha256": [item.sha256 for item in self.items],
                "sets": pd.Series([[*item.sets] for item in self.items], dtype=object),
                GROUP: pd.Series([item.group for item in self.items], dtype=object),
            }
        )

    @cached_property
    def units(self) -> Units | None:
        """The groups of its images; None if no two images share one."""
        return Units.of([item.group for item in self.items])

    @property
    def group_of(self) -> dict[str, str]:
        """The group of each image, by file; empty if no two images share one."""
        return {} if self.units is None else {item.file: item.group for item in self.items}

    @cached_property
    def files(self) -> dict[str, ImageFile]:
        """The images that are in files, by file, each by its whole path."""
        return {
            item.file: ImageFile(item.path.resolve(), item.sha256, item.image_id or item.file)
            for item in self.items
            if item.path is not None
        }

    @property
    def edition_classes(self) -> list[int]:
        """The class indices of the edition, or without one of the images: a prediction may be restricted to them."""
        if self.edition is None:
            return sorted({item.class_index for item in self.items})
        return read_params(self.edition.folder).dataset.class_list(self.classes)

    def about(self) -> list[str]:
        """The numbers of images and classes, and the notes, in lines."""
        return [f"{counted(len(self.items), 'image')} of {counted(self.class_count, 'class')}", *self.notes]

    def only(self, files: Container[str]) -> Self:
        """The same with some of the images alone."""
        return replace(self, items=[item for item in self.items if item.file in files])

    @property
    def facts(self) -> MeasuredSet:
        """The facts that every table of measures on it carries."""
        limits = [*self.limits, *([] if self.units is None else [self.units.statement])]
        return MeasuredSet(name=self.name, version=self.version, selection=self.selection, limits=limits)

    @property
    def notes(self) -> list[str]:
        """The selection, if it is known, and the limits."""
        return self.facts.notes

    @property
    def class_count(self) -> int:
        """The number of classes that the images are of."""
        return len({index for item in self.items for index in item.labels})

    @property
    def predicted_classes(self) -> int:
        """The number of classes that a prediction is chosen from."""
        return self.class_count if self.is_restricted else len(self.classes)


def reader_of(items: Sequence[EvaluationImage]) -> SetImages:
    """Reads the images that are in files."""
    return SetImages({item.file: ImageFile(item.path, item.sha256, item.image_id) for item in items if item.path})


def set_name(given: str | Path) -> str:
    """The name of a set in results: the last part of an absolute path, so that no result depends on where it is."""
    return Path(given).name if Path(given).is_absolute() else str(given)


def open_set(name: str, edition: Edition, roles: Sequence[str]) -> EvaluationSet:
    """The set of a role of the edition, the only set in a folder or a release, or a folder with one for each class.

    All bytes are read and checked. Raises CleansetError, for an image that is missing or has changed, too.
    """
    if name in roles:
        folder = edition.export(name)
        if not (folder / MANIFEST).is_file():
            raise missing_export(folder, name, edition.folder)
        return replace(_export(name, folder), owners=[name], edition=edition)
    check_unpacked(Path(name), "a set's folder, or the tar of cleanset publish")
    folder = one_set(opened(name))
    if (folder / MANIFEST).is_file():
        return _export(set_name(name), folder)
    if folder.is_dir():
        return _image_folder(set_name(name), folder, edition.read_classes())
    if folder.suffix == ".csv":
        raise InputError(
            f"{name}: a list of images, which only cleanset evaluate, robustness evaluate and attacks evaluate take; "
            "expected a set, which cleanset published makes of the published lists, or a folder with one for each class"
        )
    known = f"one of the edition's roles ({', '.join(roles)}), or " if roles else ""
    raise InputError(f"{name}: unknown set; expected {known}a folder with {MANIFEST} or one for each class")


def _export(name: str, folder: Path) -> EvaluationSet:
    listed = read_set(folder)
    entries = sorted(listed.entries, key=lambda entry: entry.file)
    if not entries:
        raise CleansetError(f"{folder / MANIFEST}: no images; expected at least one")

    def check(entry: Entry) -> EvaluationImage:
        read_image(folder, entry)
        return EvaluationImage(
            file=entry.file,
            class_index=entry.class_index,
            tier=entry.tier,
            sha256=entry.file_sha256,
            image_id=entry.image_id,
            crop=entry.crop,
            sets=(name,),
            path=folder / entry.file,
            group=entry.group,
        )

    release = read_release(folder)
    is_random = in_random_order(entries)
    selected_by = None if is_random else entries[0].model
    known = {} if is_random else {entry.file: entry.confidence for entry in entries}
    items = found_in_threads(check, entries, "check")
    return EvaluationSet(
        name=name,
        kind="export",
        items=items,
        read=reader_of(items),
        checked="the manifest",
        classes=listed.classes,
        version=None if release.version == UNPUBLISHED else release.version,
        selection=_selection_by(selected_by),
        selected_by=selected_by,
        confidences={file: confidence for file, confidence in known.items() if confidence is not None},
        limits=notices_of(entries, release),
        order=[entry.file for entry in listed.entries],
        manifest_sha256=listed.manifest_sha256,
        labels=SetLabels(
            original={entry.file: entry.ilsvrc_class for entry in entries},
            sources={REASSESSED: {entry.file: ImageLabels(classes=entry.real_classes) for entry in entries}},
        ),
    )


def with_studies(images: EvaluationSet, folder: Path) -> EvaluationSet:
    """The set with the labels of the studies whose files are in a folder.

    Raises CleansetError as `labels_from` does.
    """
    cropped = images.kind == "export" and sum(item.file.endswith(".png") for item in images.items)
    those = "1 image is" if cropped == 1 else f"{cropped:,} images are"
    note = [f"{those} cropped, and the labels of multi-label accuracies are of whole images"] if cropped else []
    labels = labels_from(folder, [item.file for item in images.items], images.labels)
    return replace(images, labels=labels, limits=[*images.limits, *note])


def _selection_by(model: str | None) -> str:
    """How the images of a finished set were chosen: by a model, or without one."""
    if model is None:
        return "chosen in a random order, without a model"
    return f"chosen among the images that {model} classifies correctly"


def _image_folder(name: str, folder: Path, classes: ClassTable) -> EvaluationSet:
    folders = [Path(entry.path) for entry in visible_entries(folder) if entry.is_dir()]
    numbers = _numbers(folders, classes)
    indices = classes.indices if numbers is None else numbers
    files = list(_files(folders, indices, classes))
    if not files:
        raise CleansetError(f"{folder}: no images; expected JPEGs or PNGs in folders like {classes.example_key}")
    labels = {file: (indices[file.partition("/")[0]],) for file in files}
    images = unchecked_set(name, "folder", folder, labels, classes, [] if numbers is None else [NUMBERED])
    # a folder for each class, as ImageNet's validation images are unpacked: the folder is the original label
    original = {item.file: item.class_index for item in images.items}
    return replace(images, order=files, labels=SetLabels(original=original))


def unchecked_set(
    name: str,
    kind: SetKind,
    folder: Path,
    labels: Mapping[str, Sequence[int]],
    classes: ClassTable,
    limits: Sequence[str],
    groups: Mapping[str, str] | None = None,
) -> EvaluationSet:
    """A set of files in a folder, with their class indices and groups by file, whose bytes no reference checks."""

    def measure(file: str) -> EvaluationImage:
        first, *others = labels[file]
        return EvaluationImage(
            file=file,
            class_index=first,
            tier=None,
            sha256=sha256(read_regular_file(folder / file)),
            image_id=image_id_in(file) or file,
            path=folder / file,
            others=tuple(others),
            group=(groups or {}).get(file, ""),
        )

    items = found_in_threads(measure, sorted(labels), "check")
    return EvaluationSet(
        name=name,
        kind=kind,
        items=items,
        read=reader_of(items),
        checked=None,
        classes=classes,
        limits=[UNCHECKED, *limits],
        order=[item.file for item in items],
    )


def _numbers(folders: Sequence[Path], classes: ClassTable) -> dict[str, int] | None:
    """The class index of each folder if all names are indices, as in ImageNet-V2; None for other folders.

    Raises CleansetError for two folders of one class, and for an index that no class has.
    """
    names = [path.name for path in folders]
    if not names or any(name in classes.indices or not _INDEX.fullmatch(name) for name in names):
        return None
    found = {path.name: class_of(path.name, "class_index", str(path.parent), classes) for path in folders}
    twice = [index for index, count in Counter(found.values()).items() if count > 1]
    if twice:
        both = " and ".join(name for name, index in found.items() if index == twice[0])
        raise CleansetError(
            f"{folders[0].parent}: folders {both} are both of class index {twice[0]}; expected one each"
        )
    return found


def _files(folders: Iterable[Path], indices: Container[str], classes: ClassTable) -> Iterator[str]:
    """The images in the folders of the classes, sorted; what is hidden, left by systems or next to them is left out."""
    for path in folders:
        if path.name not in indices:
            own = "; classes of your own need an edition: cleanset docs own_images" if classes.is_imagenet else ""
            raise CleansetError(
                f"{path}: not {classes.expected_key}; expected folders like {classes.example_key}, or all named by "
                f"class index: name the folder that holds them{own}"
            )
        for file in (Path(entry.path) for entry in visible_entries(path)):
            if file.is_dir() or not file.name.lower().endswith(IMAGE_SUFFIXES):
                raise CleansetError(
                    f"{file}: not an image; expected files that end in {', '.join(IMAGE_SUFFIXES)}: remove it"
                )
            if not file.name.isprintable():
                raise CleansetError(f"{file}: a name that cannot be printed; expected another: rename it")
            yield f"{path.name}/{file.name}"


def class_index_of(row: Mapping[str, object], at: str, classes: ClassTable) -> int:
    """The class of a row: a class index, a class key, or both if they agree. Raises CleansetError, beginning `at`."""
    column = classes.key_column
    found = {name: class_of(row[name], name, at, classes) for name in ("class_index", column) if name in row}
    if not found:
        raise CleansetError(f"{at}: no class; expected a column class_index or {column}: add one")
    if len(set(found.values())) > 1:
        raise CleansetError(f"{at}: class index {found['class_index']} of {row[column]}; expected {found[column]}")
    return next(iter(found.values()))


def class_of(value: object, name: str, at: str, classes: ClassTable) -> int:
    """The class index in a column. Digits are an index, but for the column of class keys, which may be digits, too."""
    index = count = len(classes)
    if isinstance(value, str):
        is_index = name != classes.key_column and _INDEX.fullmatch(value)
        index = int(value) if is_index else classes.indices.get(value, count)
    elif isinstance(value, Integral) and not isinstance(value, bool):
        index = int(value)
    if not 0 <= index < count:
        raise CleansetError(f"{at}, column {name}: {shown(value)}; {expected_class(classes)}")
    return index


def expected_class(classes: ClassTable) -> str:
    """The end of a message about an unknown class."""
    return f"expected a class index from 0 to {len(classes) - 1}, or {classes.expected_key}"
