"""The manifest of a finished set, one line per image: its entries, and checks of a manifest from anyone.

The manifest has everything that is needed to check or rebuild the set. Each line is checked by the model of an entry,
then the lines together.
"""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic_core import ErrorDetails

from cleanset.classes import ClassTable, context_classes
from cleanset.csv_files import csv_text, unescaped
from cleanset.dataset.duplicates import equal_pairs
from cleanset.dataset.folder import CROPPED, GROUP, ImageId, example_id, exported_name
from cleanset.errors import CleansetError, cut, one_line
from cleanset.images.boxes import Box, has_area
from cleanset.json_files import JsonObject
from cleanset.validation import ROLE_FORM, SHA256_FORM, Sha256, checked
from cleanset.vocabulary import SourceCheck, Tier

MANIFEST = "manifest.csv"
MANIFEST_COLUMNS = (
    "model", "wnid", "class_index", "class_name", "rank", "image_id", "tier", "confidence", "source_confidence",
    "ilsvrc_class", "real_classes", "reviewers", "left", "top", "right", "bottom",
    "file", "source_sha256", "source_check", "file_sha256", "pixels_sha256", "encoder",
)  # fmt: skip
"""The columns of a set of ImageNet's images, as published; `columns` has those of any set."""


DENIED_BY = "denied_by"
"""The column that a set has whose images were compared with label sources, after MANIFEST_COLUMNS."""

OF_A_MODEL = ("tier", "confidence", "source_confidence")
"""The columns that a set without a model lacks."""


def fields(classes: ClassTable, *, has_tiers: bool = True, has_studies: bool = False) -> tuple[str, ...]:
    """The columns of a manifest by the names that they have in ImageNet's; for your own images one more, the group.

    `has_tiers`: whether the set has a model, which orders the candidates. `has_studies`: whether the images were
    compared with label sources.
    """
    every = (*MANIFEST_COLUMNS, *([DENIED_BY] if has_studies else []), *([] if classes.is_imagenet else [GROUP]))
    return every if has_tiers else tuple(name for name in every if name not in OF_A_MODEL)


def columns(classes: ClassTable, *, has_tiers: bool = True, has_studies: bool = False) -> tuple[str, ...]:
    """The columns of a manifest of images of these classes, in order; see `fields`."""
    names = fields(classes, has_tiers=has_tiers, has_studies=has_studies)
    return names if classes.is_imagenet else tuple(map(classes.column, names))


MAX_RANK = 50_000
MAX_EDGE = 65_535
"""Pixels: the longest side that a JPEG can have."""

BOX = ("left", "top", "right", "bottom")
"""The columns of a crop box, as a Box has them."""

_VERSION = "[0-9][0-9A-Za-z.+-]{0,30}"


def _expected(description: str, classes: ClassTable) -> str:
    """The expected value of a field in words, from the field's description."""
    by_imagenet = {
        "a class": "one of the 1,000 of ILSVRC2012",
        "an image id": "ILSVRC2012_val_ and eight digits, 00000001 to 00050000",
    }
    by_others = {"a class": "a class of classes.tsv", "an image id": f"a path such as {example_id(classes)}"}
    of_classes = {"a class index": f"0 to {len(classes) - 1}", **(by_imagenet if classes.is_imagenet else by_others)}
    return of_classes.get(description, description)


def _known_index(index: int, info: ValidationInfo) -> int:
    if index >= len(context_classes(info)):
        raise ValueError("expected the index of a class")
    return index


def _known_key(key: str, info: ValidationInfo) -> str:
    context_classes(info).index_of(key)
    return key


# the descriptions are what messages give as expected
_ClassIndex = Annotated[int, Field(ge=0, description="a class index"), AfterValidator(_known_index)]
_Probability = Annotated[
    float, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(lambda number: number + 0.0)
]  # no -0
_SourceName = Annotated[str, Field(pattern=f"^{ROLE_FORM.pattern}$")]
_Edge = Annotated[int, Field(ge=0, le=MAX_EDGE)]
_Sha256 = Annotated[Sha256, Field(description="64 hexadecimal digits")]


class Entry(BaseModel):
    """One exported image; the same check wherever a manifest is read or written, by `Entry.checked`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[str, Field(pattern=f"^{ROLE_FORM.pattern}$", description="small letters, digits and _")]
    """The model's role."""

    wnid: Annotated[str, AfterValidator(_known_key), Field(description="a class")]
    """The key of the class."""

    class_index: _ClassIndex
    class_name: str
    """The class's label in the class table."""

    rank: Annotated[int, Field(ge=1, le=MAX_RANK, description="at least 1")]
    """In the class, from 1."""

    image_id: Annotated[ImageId, Field(description="an image id")]
    tier: Annotated[Tier | None, Field(description="top5, reserve or relaxed")]
    """None in a set without a model, which has no confidences either."""

    confidence: Annotated[_Probability | None, Field(description="0 to 1")]
    """The model's softmax probability of the class on the delivered pixels, a float32.

    None of a crop that nobody has scored or whose five most probable classes lack the class, and where
    `source_confidence` is None.
    """

    source_confidence: Annotated[_Probability | None, Field(description="0 to 1")]
    """The same on the whole image; equal for a whole image. None of one taken from beyond a published list."""

    ilsvrc_class: _ClassIndex
    """Class index of the original label."""

    real_classes: Annotated[
        tuple[_ClassIndex, ...],
        checked(lambda classes: classes and list(classes) == sorted(set(classes))),
        Field(description="class indices, each once, sorted"),
    ]
    """Class indices of all reassessed labels."""

    reviewers: Annotated[int, Field(ge=0, le=1_000_000, description="at least 0")]
    """Number of reviewers who judged the image in this class, without the board."""

    crop: Annotated[
        tuple[_Edge, _Edge, _Edge, _Edge] | None,
        Field(description=f"four edges from 0 to {MAX_EDGE:,}, or empty for a whole image"),
    ]
    """The box of a cropped image; None for a whole one."""

    file: str
    """Relative to the folder of the manifest."""

    source_sha256: _Sha256
    """Of the bytes of the whole image."""

    source_check: Annotated[SourceCheck, Field(description="archive_md5, image_sha256 or empty")]
    """How the bytes of the whole image were checked."""

    file_sha256: _Sha256
    pixels_sha256: _Sha256
    """Of the decoded RGB bytes of `file`, row by row."""

    encoder: Annotated[
        str,
        Field(
            pattern=f"^(Pillow {_VERSION} with zlib(-ng)? {_VERSION})?$",
            description="Pillow <version> with zlib or zlib-ng <version>",
        ),
    ] = ""
    """What wrote the PNG of a cropped image; other versions may write the same pixels in other bytes."""

    denied_by: Annotated[
        tuple[_SourceName, ...] | None,
        checked(lambda names: names is None or len(set(names)) == len(names)),
        Field(description="names of label sources, each once"),
    ] = None
    """The label sources that have the image and do not name the class; None in a set that was not compared with any."""

    group: str = ""
    """Images of one group, such as one patient's, must not be split; only your own images may have groups."""

    @classmethod
    def checked(cls, values: Mapping[str, object], classes: ClassTable) -> Self:
        """The entry with these values. Raises pydantic's ValidationError for values that contradict each other."""
        return cls.model_validate(values, context=classes)

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        """Raise ValueError, as "found; expected ...", for the first pair of values that contradict each other."""
        classes = context_classes(info)
        index = classes.indices[self.wnid]
        labels = len(self.real_classes)
        if self.class_index != index:
            raise ValueError(f"class_index {self.class_index}; expected {index} of {self.wnid}")
        label = classes.labels[index]
        if self.class_name != label:
            raise ValueError(f"class_name {self.class_name}; expected {label} of {self.wnid}")
        if index not in self.real_classes:
            name = classes.column("real_classes")
            raise ValueError(f"{name} {_words(self.real_classes)}; expected the class {index} among them")
        if (self.tier == "relaxed") != (labels > 1):
            raise ValueError(
                f"tier {self.tier or 'none'} with labels: {labels}; expected relaxed with several, else another"
            )
        if self.tier is None and self.source_confidence is not None:
            raise ValueError(f"source_confidence {_digits(self.source_confidence)} without a tier; expected neither")
        if self.file != (name := file_name(self.wnid, self.image_id, self.crop, classes)):
            raise ValueError(f"file {self.file}; expected {name}")
        if self.crop is None:
            self._check_whole()
        else:
            self._check_cropped(*self.crop)
        return self

    def _check_whole(self) -> None:
        if self.file_sha256 != self.source_sha256:
            found = self.file_sha256[:12]
            expected = self.source_sha256[:12]
            raise ValueError(f"file {found}... of a whole image; expected its source {expected}...")
        if self.confidence != self.source_confidence:
            found, expected = (_digits(each) or "empty" for each in (self.confidence, self.source_confidence))
            raise ValueError(f"confidence {found} of a whole image; expected {expected}")
        if self.encoder:
            raise ValueError(f"encoder {self.encoder} of a whole image; expected an empty encoder")

    def _check_cropped(self, left: int, top: int, right: int, bottom: int) -> None:
        if not has_area((left, top, right, bottom)):
            raise ValueError(f"crop box {left} {top} {right} {bottom}; expected left < right and top < bottom")
        if not self.encoder:
            raise ValueError("no encoder of a cropped image; expected Pillow <version> with zlib <version>")
        if self.source_confidence is None and self.confidence is not None:
            found = _digits(self.confidence)
            raise ValueError(
                f"confidence {found} without source_confidence; expected both, source_confidence or neither"
            )

    def row(self, classes: ClassTable) -> tuple[str, ...]:
        """The values of the columns; a confidence has the digits that tell one float32 from the next."""
        values = self.model_dump() | {
            "confidence": _digits(self.confidence),
            "source_confidence": _digits(self.source_confidence),
            "real_classes": _words(self.real_classes),
            **dict(zip(BOX, self.crop or ("",) * len(BOX), strict=True)),
            DENIED_BY: " ".join(self.denied_by or ()),
        }
        return tuple(str(values[name]) for name in self._fields(classes))

    def record(self, classes: ClassTable) -> JsonObject:
        """The values by the names of the columns, with the box as `crop`."""
        names = (*self._fields(classes), "crop")
        return {classes.column(name): value for name, value in self.model_dump().items() if name in names}

    def _fields(self, classes: ClassTable) -> tuple[str, ...]:
        return fields(classes, has_tiers=self.tier is not None, has_studies=self.denied_by is not None)


def _digits(confidence: float | None) -> str:
    return "" if confidence is None else f"{confidence:.9g}"


def _words(classes: Iterable[int]) -> str:
    return " ".join(map(str, classes))


def file_name(wnid: str, image_id: str, crop: Box | None, classes: ClassTable) -> str:
    """The path of an image in the folder of its set: a whole one of ImageNet is a JPEG, a cropped one a PNG."""
    if not classes.is_imagenet:
        return exported_name(wnid, image_id) + (CROPPED if crop else "")
    return f"{wnid}/{image_id}{'.JPEG' if crop is None else '.png'}"


def check_not_empty(entries: Collection[Entry], where: object) -> None:
    """Raise CleansetError for a set without images."""
    if not entries:
        raise CleansetError(f"{where}: no images; expected at least one: review some, and run dvc repro")


def have_tiers(entries: Iterable[Entry]) -> bool:
    """Whether a set with these entries has a model, which orders its candidates; taken for granted of an empty one."""
    return all(entry.tier is not None for entry in entries)


def have_studies(entries: Collection[Entry]) -> bool:
    """Whether the images of a set with these entries were compared with label sources."""
    return bool(entries) and all(entry.denied_by is not None for entry in entries)


def manifest_csv(entries: Iterable[Entry], classes: ClassTable) -> str:
    """The manifest as CSV with a header, sorted by class index and rank."""
    in_order = sorted(entries, key=lambda entry: (entry.class_index, entry.rank))
    names = columns(classes, has_tiers=have_tiers(in_order), has_studies=have_studies(in_order))
    return csv_text(names, (entry.row(classes) for entry in in_order))


MAX_SHOWN_CHARACTERS = 100
"""Limit of a value in a message; a damaged file may hold one of any length."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of kind `what` in `file`; `found` and `expected` are SHA-256 or a few words.

    Kinds: manifest (a line is invalid, or contradicts another), twice (the bytes or pixels of one image in two
    places), missing, surplus, misplaced (in another folder), changed (other bytes, other pixels), reencoded (other
    bytes, the same pixels), undecodable, unreadable (by a fault of the disk), pixels (the bytes of the manifest, but
    other pixels), unlike (a file that is made from the manifest has other content), source (another original),
    signature (missing, or not valid), release (another model or version than was asked for, or than the name says),
    outdated (its edition has changed since).
    `line` is the line of the manifest.
    """

    what: str
    file: str
    found: str
    expected: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.what:<11}  {printable(self.file)}: {_short(self.found)}; expected {_short(self.expected)}"


def printable(text: str) -> str:
    """The text on one line, cut in the middle where it is long."""
    return cut(one_line(text), MAX_SHOWN_CHARACTERS)


def _short(text: str) -> str:
    """A SHA-256 by its first digits, anything else as it prints."""
    return f"{text[:12]}..." if SHA256_FORM.fullmatch(text) else printable(text)


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """The lines of a manifest, valid ones as entries, and the problems of the others and between them."""

    text: str
    classes: ClassTable
    entries: Mapping[int, Entry]
    """By number of the line; the header is line 1."""

    problems: Sequence[Problem]
    invalid_files: Collection[str]
    """The names in the column `file` of the other lines; they may lead anywhere."""

    @property
    def lines(self) -> int:
        """The number of all lines but the header."""
        return len(self.entries) + len(self.invalid_files)


def read_manifest(text: str, where: str, classes: ClassTable) -> list[Entry]:
    """The entries of a manifest. Raises CleansetError, naming `where`, for the first problem."""
    checked = check_manifest(text, where, classes)
    if checked.problems:
        first = checked.problems[0]
        line = f", line {first.line}" if first.line else ""
        found = printable(first.found)
        expected = printable(first.expected)
        raise CleansetError(f"{where}{line}: {found}; expected {expected}: export or fetch the set again")
    return list(checked.entries.values())


def check_manifest(text: str, where: str, classes: ClassTable) -> CheckedManifest:
    """Check every line of a manifest. Raises CleansetError, naming `where`, if it is not CSV or has other columns."""
    entries: dict[int, Entry] = {}
    problems: list[Problem] = []
    invalid_files: list[str] = []
    header = text.partition("\n")[0]
    has_studies = DENIED_BY in header.split(",")
    has_tiers = header != ",".join(columns(classes, has_tiers=False, has_studies=has_studies))
    names = fields(classes, has_tiers=has_tiers, has_studies=has_studies)
    wanted = columns(classes, has_tiers=has_tiers, has_studies=has_studies)
    for number, row in enumerate(_rows(text, where, wanted), start=2):
        found = _entry(row, names, classes)
        if isinstance(found, Entry):
            entries[number] = found
        else:
            problems += [_of_line(number, *each) for each in found]
            invalid_files.append(row[names.index("file")] if len(row) == len(names) else "")
    if not problems:
        # only if every line is valid: a missing one would make its neighbors look wrong, too
        problems += _between(entries)
    # last, because each problem above makes the text differ, too
    if not problems and manifest_csv(entries.values(), classes) != text:
        problems.append(
            Problem("manifest", MANIFEST, "other line ends, quotes or digits", "the file as it was written")
        )
    return CheckedManifest(text=text, classes=classes, entries=entries, problems=problems, invalid_files=invalid_files)


def check_set(entries: Mapping[int, Entry], classes: ClassTable) -> list[Problem]:
    """The problems of a set as a whole that need no file of an image: no images at all, and duplicates.

    `entries`: by line of the manifest, each valid.
    """
    if not entries:
        return [Problem("manifest", MANIFEST, "no images", "at least one")]
    return duplicates(entries, classes)


def duplicates(entries: Mapping[int, Entry], classes: ClassTable) -> list[Problem]:
    """A problem for each image with another id but the source bytes or pixels of an earlier one, by line.

    None for ImageNet's images; ImageNet has some twice: `twins_notice` names them.
    """
    if classes.is_imagenet:
        return []
    line_of = {entry.file: number for number, entry in entries.items()}
    return [
        Problem("twice", entry.file, f"the same image as {first.file}", "one place for each", line=line_of[entry.file])
        for entry, first in twins(entries.values())
    ]


def twins(entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """Each entry with another id but the source bytes or pixels of an earlier one, and that one."""
    every = list(entries)
    pairs = equal_pairs((str(place), each.source_sha256, each.pixels_sha256) for place, each in enumerate(every))
    return [(every[int(pair.image_id)], every[int(pair.duplicate_of)]) for pair in pairs]


def _rows(text: str, where: str, wanted: Sequence[str]) -> list[list[str]]:
    try:
        # each line counts, the empty ones too: a manifest is as it was written, or it is refused
        header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except csv.Error as error:
        raise CleansetError(f"{where}: not CSV ({error}); expected a manifest: export or fetch it again") from None
    for number, (found, expected) in enumerate(zip_longest(header, wanted), start=1):
        if found != expected:
            raise CleansetError(
                f"{where}, line 1, column {number}: {_name(found)}; expected {_name(expected)}: "
                "export or fetch the set again, or use the version of cleanset that wrote it"
            )
    return [list(map(unescaped, row)) for row in rows]


def _name(column: str | None) -> str:
    return "nothing" if column is None else printable(column)


def _of_line(number: int, found: str, expected: str) -> Problem:
    return Problem("manifest", f"{MANIFEST}, line {number}", found, expected, line=number)


def _entry(row: Sequence[str], names: Sequence[str], classes: ClassTable) -> Entry | list[tuple[str, str]]:
    """The entry of a line, or what is found and expected of its values; `names`: the fields of the columns."""
    if len(row) != len(names):
        return [(f"values: {len(row)}", str(len(names)))]
    values: JsonObject = dict(zip(names, row, strict=True))
    box = tuple(values.pop(edge) for edge in BOX)
    values["crop"] = box if any(box) else None
    values.setdefault("tier", None)
    for name in ("confidence", "source_confidence"):
        values[name] = values.get(name) or None
    values["real_classes"] = values["real_classes"].split(" ")
    if DENIED_BY in values:
        values[DENIED_BY] = values[DENIED_BY].split(" ") if values[DENIED_BY] else ()
    try:
        return Entry.checked(values, classes)
    except ValidationError as error:
        texts = dict(zip(names, row, strict=True))
        # pydantic reports each edge of a box; in a message the box is one value
        return list(dict.fromkeys(_found_and_expected(each, texts, classes) for each in error.errors()))


def _found_and_expected(error: ErrorDetails, row: Mapping[str, str], classes: ClassTable) -> tuple[str, str]:
    if not error["loc"]:  # from the model: values that contradict each other
        found, _, expected = str(error["ctx"]["error"]).partition("; expected ")
        return found, expected
    field = str(error["loc"][0])
    value = " ".join(row[edge] for edge in BOX) if field == "crop" else row[field]
    description = str(Entry.model_fields[field].description)
    return f"{classes.column(field)} {value}", _expected(description, classes)


def _between(entries: Mapping[int, Entry]) -> Iterator[Problem]:
    """Other models, an image twice, ranks that are missing or doubled, lines that are not sorted."""
    ranks: dict[str, int] = {}
    lines: dict[str, int] = {}
    last_class = -1
    model = next((entry.model for entry in entries.values()), "")
    for number, entry in entries.items():
        if entry.model != model:
            yield _of_line(number, f"model {entry.model}", f"{model} as in line 2")
        if entry.image_id in lines:
            yield _of_line(number, f"{entry.image_id} as in line {lines[entry.image_id]}", "each image once")
        expected = ranks.get(entry.wnid, 0) + 1
        if entry.rank != expected:
            yield _of_line(number, f"rank {entry.rank} in {entry.wnid}", f"rank {expected}")
        if entry.class_index < last_class:
            yield _of_line(number, f"class {entry.class_index} after {last_class}", "lines sorted by class and rank")
        lines.setdefault(entry.image_id, number)
        ranks[entry.wnid] = max(expected, entry.rank)
        last_class = max(last_class, entry.class_index)
