"""Label sources: what further studies say about ImageNet's validation images, each read from its published file.

The files are downloaded by hand and checked by their SHA-256; label_sources.yaml has the studies, with origin and
licence. Whatever a file's form, a source is a table of images and their classes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from cleanset.classes import imagenet
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.errors import CleansetError, InputError
from cleanset.image_ids import image_id_in, listed_id
from cleanset.plumbing.csv_files import parse_rows
from cleanset.plumbing.files import is_there, read_known
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.validation import check_known, first_problem, shown
from cleanset.plumbing.yaml_files import data_beside

SourceForm = Literal["proposed", "human_accuracy", "imagenet_m"]
"""The form of a source's file.

proposed: the CSV files of Kisel et al., with id, proposed_labels and perhaps unclear_multi_labels and is_problematic.
human_accuracy, imagenet_m: the JSON file of Shankar et al. and Vasudevan et al., all of it or its ImageNet-M alone.
"""
PLACE = "data/raw/labels"
"""The folder of an edition that the files are put into."""

_REMEDY = "download it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSource:
    """A study with labels of ImageNet's validation images, and its file."""

    name: str
    study: str
    """Authors, year and title."""

    meaning: str
    """What its classes are, in a phrase."""

    file: str
    """The published name of the file."""

    address: str
    sha256: str
    licence: str
    form: SourceForm

    @property
    def remedy(self) -> str:
        """What to download, and the SHA-256 that it must have, for messages."""
        return f"download {self.file} from {self.address} (SHA-256 {self.sha256})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLabels:
    """What a source says about an image: class indices, sorted."""

    classes: tuple[int, ...]
    """The classes that it names; none if it finds none, or its raters do not agree."""

    unclear: tuple[int, ...] = ()
    """Classes on which its experts did not agree."""

    problematic: bool = False
    """Whether its authors leave the image out of accuracies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLabels:
    """A source, and what it says about each image that it has, by image id, sorted."""

    source: LabelSource
    labels: Mapping[str, ImageLabels]


@cache
def known_sources() -> Mapping[str, LabelSource]:
    """The studies whose published files are read, by name."""
    described = data_beside(__file__, "label_sources.yaml")
    return {name: LabelSource(name=name, **fields) for name, fields in described.items()}


def sources_named(names: Iterable[str]) -> list[LabelSource]:
    """The studies of these names, in their order. Raises InputError for an unknown name."""
    known = known_sources()
    found = []
    for name in names:
        check_known("label source", name, known)
        found.append(known[name])
    return found


def sources_in(folder: Path) -> list[LabelSource]:
    """The studies whose file is in a folder. Raises InputError if there is none."""
    known = known_sources().values()
    found = [source for source in known if is_there(folder / source.file)]
    if not found:
        files = ", ".join(dict.fromkeys(each.file for each in known))
        raise InputError(
            f"{folder}: no file of a label source; expected one of {files}: download it by hand and put it there "
            "(cleanset labels --list prints where each is, and its SHA-256)"
        )
    return found


def read_sources(folder: Path, names: Iterable[str] = ()) -> list[SourceLabels]:
    """The sources of these names from a folder, or all that it holds. Raises CleansetError as `read_source` does."""
    chosen = sources_named(names) or sources_in(folder)
    return [read_source(folder / source.file, source) for source in chosen]


def read_source(path: Path, source: LabelSource) -> SourceLabels:
    """The labels of a source from its file.

    Raises CleansetError if the file is missing, which says what to download and where to put it; if it is not the
    published one; and for a row that cannot be read.
    """
    if not is_there(path):
        raise CleansetError(f"{path}: missing; expected the labels of {source.name}: {source.remedy}, and put it there")
    content = read_known(path, source.sha256, source.remedy)
    labels = dict(_READERS[source.form](str(path), content))
    return SourceLabels(source=source, labels=dict(sorted(labels.items())))


_Found = Iterator[tuple[str, ImageLabels]]


def _proposed(where: str, content: bytes) -> _Found:
    for at, row in _rows(where, content, ("id", "proposed_labels")):
        yield (
            listed_id(row["id"], imagenet(), at, _REMEDY),
            ImageLabels(
                classes=_indices(row["proposed_labels"].split(","), at),
                unclear=_indices(row.get("unclear_multi_labels", "").split(","), at),
                problematic=row.get("is_problematic") == "True",
            ),
        )


def _rows(where: str, content: bytes, columns: tuple[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file by their place in messages; more columns may be there, and each image is there once."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CleansetError(f"{where}: not UTF-8 ({error.reason}); expected a CSV table: {_REMEDY}") from None
    return parse_rows(text, columns, dict[str, str], where, remedy=_REMEDY, key=columns[:1], others=True)


def _human_accuracy(where: str, content: bytes) -> _Found:
    found = _annotations(where, content)
    problematic = set(found["problematic_images"])
    for name, of_image in found["initial_annots"].items():
        # the file has the images of ImageNet-V2, too
        if (image_id := image_id_in(name)) is not None:
            at = f"{where}, {name}"
            yield (
                image_id,
                ImageLabels(
                    classes=_of_keys(of_image.get("correct", ()), at),
                    unclear=_of_keys(of_image.get("unclear", ()), at),
                    problematic=name in problematic,
                ),
            )


def _imagenet_m(where: str, content: bytes) -> _Found:
    labels = dict(_human_accuracy(where, content))
    for name in _annotations(where, content)["imagenet_m"]:
        image_id = listed_id(name, imagenet(), where, _REMEDY)
        if image_id not in labels:
            raise CleansetError(f"{where}: {image_id} of imagenet_m without annotations; expected some: {_REMEDY}")
        yield image_id, labels[image_id]


_READERS: Mapping[SourceForm, Callable[[str, bytes], _Found]] = {
    "proposed": _proposed,
    "human_accuracy": _human_accuracy,
    "imagenet_m": _imagenet_m,
}
_ANNOTATIONS = TypeAdapter(dict[str, dict[str, list[str]]])


def _annotations(where: str, content: bytes) -> dict[str, Any]:
    """The parts of the JSON file that are read; its records of single people are left out."""
    what = f"annotations of images by wnid: {_REMEDY}"
    found = parse_json(content, where, what)
    for key, kind in (("initial_annots", dict), ("problematic_images", dict), ("imagenet_m", list)):
        if not isinstance(found, dict) or not isinstance(found.get(key), kind):
            raise CleansetError(f"{where}: no {key}; expected {what}")
    of_images = {name: each for name, each in found["initial_annots"].items() if image_id_in(name)}
    try:
        return {**found, "initial_annots": _ANNOTATIONS.validate_python(of_images)}
    except ValidationError as error:
        raise CleansetError(f"{where}: {first_problem(error)}; expected {what}") from None


def _indices(texts: Iterable[str], where: str) -> tuple[int, ...]:
    found = set()
    for text in map(str.strip, texts):
        if text:
            if not (text.isascii() and text.isdigit() and int(text) < CLASSES):
                raise CleansetError(f"{where}: {shown(text)}; expected class indices 0 to {CLASSES - 1}: {_REMEDY}")
            found.add(int(text))
    # one row of the published table names a class twice
    return tuple(sorted(found))


def _of_keys(keys: Iterable[str], where: str) -> tuple[int, ...]:
    indices = imagenet().indices
    for key in keys:
        if key not in indices:
            raise CleansetError(f"{where}: {shown(key)}; expected a wnid of ILSVRC2012: {_REMEDY}")
    return tuple(sorted({indices[key] for key in keys}))
