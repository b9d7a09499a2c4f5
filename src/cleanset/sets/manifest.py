"""The manifest of a finished set, one line per image: its entries, their columns, and its formats.

The manifest has everything that is needed to check or rebuild the set. Each line is checked by the model of an entry;
`manifest_checks` reads a manifest, and checks the lines together.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from cleanset.classes import ClassTable, context_classes
from cleanset.dataset.folder import exported_name
from cleanset.errors import CleansetError
from cleanset.image_ids import CROPPED, ImageId
from cleanset.images.boxes import Box, has_area
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.validation import ROLE_FORM, Sha256, checked
from cleanset.vocabulary import SourceCheck, Tier

MANIFEST = "manifest.csv"

MAX_RANK = 50_000
MAX_EDGE = 65_535
"""Pixels: the longest side that a JPEG can have."""

DENIED_BY = "denied_by"
"""The column that a set has whose images were compared with label sources."""

BOX = ("left", "top", "right", "bottom")
"""The columns of a crop box, as a Box has them."""

FURTHER = "x_"
"""How the columns from a table of the publishers begin, after all others; no other column begins so."""

_MAX_FURTHER = 200
EXPECTED_FURTHER = f"printable text of at most {_MAX_FURTHER} characters"

_VERSION = "[0-9][0-9A-Za-z.+-]{0,30}"


def is_further(text: str) -> bool:
    """Whether a text may be the value of a column from a table of the publishers."""
    return text.isprintable() and len(text) <= _MAX_FURTHER


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
_FurtherValue = Annotated[str, checked(is_further, EXPECTED_FURTHER)]
_Sha256 = Annotated[Sha256, Field(description="64 hexadecimal digits")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestColumn:
    """A column of the manifest, from a field of Entry or a part of one."""

    kind: Literal["text", "words", "whole number", "number"] = field(kw_only=False)
    """words: several texts or whole numbers, with spaces between them."""

    description: str = field(kw_only=False)
    own: str = ""
    """The description in a set of your own images, where it differs."""

    name: str = ""
    """The column, of ImageNet's; empty for the name of the field."""

    only: Literal["", "model", "studies", "own"] = ""
    """The sets that have it: those of a model, those that were compared with label sources, those of your own images;
    empty for all."""

    is_optional: bool = False
    """Whether it may be empty though it is a number."""

    since: int = 1
    """The first format of the manifest that has it."""

    def described(self, classes: ClassTable) -> str:
        """The description in a set of images of these classes."""
        return self.description if classes.is_imagenet else self.own or self.description


class Entry(BaseModel):
    """One exported image; the same check wherever a manifest is read or written, by `Entry.checked`.

    Each field says which columns of the manifest it has; a field that came later than format 1 is None in a manifest of
    an earlier one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[
        str,
        Field(pattern=f"^{ROLE_FORM.pattern}$", description="small letters, digits and _"),
        ManifestColumn("text", "The model whose set this is, by its role."),
    ]
    wnid: Annotated[
        str,
        AfterValidator(_known_key),
        Field(description="a class"),
        ManifestColumn("text", "The class, by its WordNet id.", own="The key of the class, as in classes.tsv."),
    ]
    class_index: Annotated[
        _ClassIndex,
        ManifestColumn(
            "whole number",
            "The class, by the position of its wnid among ILSVRC2012's sorted 1,000, from 0.",
            own="The class, by the position of its key among the sorted keys, from 0.",
        ),
    ]
    class_name: Annotated[
        str,
        ManifestColumn(
            "text",
            "The usual English name of the class; with its wnid where two classes share it.",
            own="The name of the class.",
        ),
    ]
    """The class's label in the class table."""

    rank: Annotated[
        int,
        Field(ge=1, le=MAX_RANK, description="at least 1"),
        ManifestColumn("whole number", "The image's rank in its class, from 1."),
    ]
    image_id: Annotated[
        ImageId,
        Field(description="an image id"),
        ManifestColumn(
            "text",
            "The validation image that the file is, or is cropped from: a member of the archive.",
            own="The image that the file is, or is cropped from: its path in the folder of all images.",
        ),
    ]
    tier: Annotated[
        Tier | None,
        Field(description="top5, reserve or relaxed"),
        ManifestColumn(
            "text",
            "top5: among the easiest that all models classify correctly; reserve: this model classifies it correctly; "
            "relaxed: it has several labels, the class among them.",
            own="top5: among the easiest candidates of its class; reserve: one after them.",
            only="model",
        ),
    ]
    """None in a set without a model, which has no confidences either."""

    confidence: Annotated[
        _Probability | None,
        Field(description="0 to 1"),
        ManifestColumn(
            "number",
            "The model's softmax probability of the class on the file's pixels; empty where it is not known, or a "
            "crop's five most probable classes lack it.",
            only="model",
            is_optional=True,
        ),
    ]
    """A float32; None of a crop that nobody has scored or whose five most probable classes lack the class, and where
    `source_confidence` is None.
    """

    source_confidence: Annotated[
        _Probability | None,
        Field(description="0 to 1"),
        ManifestColumn(
            "number",
            "The same on the whole validation image; differs where it was cropped; empty where it is not known.",
            own="The same on the whole image; differs where it was cropped; empty where it is not known.",
            only="model",
            is_optional=True,
        ),
    ]
    """Equal to `confidence` for a whole image. None of one taken from beyond a published list."""

    ilsvrc_class: Annotated[
        _ClassIndex,
        ManifestColumn(
            "whole number",
            "The original label, as a class index.",
            own="The class that the image came with, as a class index.",
        ),
    ]
    real_classes: Annotated[
        tuple[_ClassIndex, ...],
        checked(lambda classes: classes and list(classes) == sorted(set(classes))),
        Field(description="class indices, each once, sorted"),
        ManifestColumn(
            "words",
            "All reassessed (ReaL) labels, as class indices with spaces between them.",
            own="All classes that the image came with, as class indices with spaces between them.",
        ),
    ]
    reviewers: Annotated[
        int,
        Field(ge=0, le=1_000_000, description="at least 0"),
        ManifestColumn(
            "whole number", "How many reviewers judged the image in its class; the policy is with the files."
        ),
    ]
    """Without the board."""

    crop: Annotated[
        tuple[_Edge, _Edge, _Edge, _Edge] | None,
        Field(description=f"four edges from 0 to {MAX_EDGE:,}, or empty for a whole image"),
        ManifestColumn(
            "whole number",
            "Left edge of the crop box in pixels of the source; empty for a whole image.",
            name="left",
            is_optional=True,
        ),
        ManifestColumn("whole number", "Top edge of the crop box.", name="top", is_optional=True),
        ManifestColumn("whole number", "Right edge of the crop box, excluded.", name="right", is_optional=True),
        ManifestColumn("whole number", "Bottom edge of the crop box, excluded.", name="bottom", is_optional=True),
    ]
    """The box of a cropped image; None for a whole one."""

    file: Annotated[str, ManifestColumn("text", "The path beside the manifest.")]
    source_sha256: Annotated[
        _Sha256,
        ManifestColumn("text", "SHA-256 of the validation image's bytes.", own="SHA-256 of the whole image's bytes."),
    ]
    source_check: Annotated[
        SourceCheck,
        Field(description="archive_md5, image_sha256 or empty"),
        ManifestColumn(
            "text",
            "How these bytes were checked: archive_md5, by the MD5 of their archive; image_sha256, by a published "
            "table of digests; none, by nothing from outside.",
            own="How these bytes were checked: none, by nothing from outside.",
        ),
    ]
    file_sha256: Annotated[_Sha256, ManifestColumn("text", "SHA-256 of the file's bytes.")]
    pixels_sha256: Annotated[_Sha256, ManifestColumn("text", "SHA-256 of the file's decoded RGB bytes, row by row.")]
    encoder: Annotated[
        str,
        Field(
            pattern=f"^(Pillow {_VERSION} with zlib(-ng)? {_VERSION})?$",
            description="Pillow <version> with zlib or zlib-ng <version>",
        ),
        ManifestColumn("text", "What encoded a cropped image; empty for a whole one."),
    ] = ""
    """Other versions may write the same pixels in other bytes."""

    denied_by: Annotated[
        tuple[_SourceName, ...] | None,
        checked(lambda names: names is None or len(set(names)) == len(names)),
        Field(description="names of label sources, each once"),
        ManifestColumn(
            "words",
            "The label sources that have the image and do not name the class, with spaces between them.",
            only="studies",
        ),
    ] = None
    """None in a set that was not compared with any."""

    group: Annotated[
        str,
        ManifestColumn("text", "What the image must not be split from; empty where there are no groups.", only="own"),
    ] = ""
    """Images of one group, such as one patient's, must not be split; only your own images may have groups."""

    further: tuple[tuple[str, _FurtherValue], ...] = ()
    """The columns from a table of the publishers, each with its value; the same ones of all images of a set."""

    @classmethod
    def checked(cls, values: Mapping[str, object], classes: ClassTable) -> Self:
        """The entry with these values. Raises pydantic's ValidationError for values that contradict each other."""
        entry = cls.model_validate(values, context=classes)
        # nobody asks which fields were given: a set of names for each entry would take twice the memory of its values
        object.__setattr__(entry, "__pydantic_fields_set__", _ALL_FIELDS)
        return entry

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

    def row(self, columns: Iterable[str]) -> list[str]:
        """The values of columns; a confidence has the digits that distinguish neighbouring float32."""
        values = vars(self) | dict(zip(BOX, self.crop or (None,) * len(BOX), strict=True))
        values |= dict(self.further)
        return [_cell(values[name]) for name in columns]

    def record(self, classes: ClassTable) -> JsonObject:
        """The values by the names of the columns, with the box as `crop`."""
        names = (*form_of([self]).fields(classes), "crop")
        values = self.model_dump() | dict(self.further)
        return {classes.column(name): value for name, value in values.items() if name in names}


def columns_of(entry: type[BaseModel]) -> dict[str, tuple[str, ManifestColumn]]:
    """The field and the column by the column's name. Raises TypeError for a field that says too little."""
    found = dict[str, tuple[str, ManifestColumn]]()
    for name, known in entry.model_fields.items():
        columns = [each for each in known.metadata if isinstance(each, ManifestColumn)]
        if name == "further":  # whose columns each set names
            continue
        if not columns or any(each.since > 1 and known.default is not None for each in columns):
            raise TypeError(f"Entry.{name}: expected a ManifestColumn, and None by default if it came after format 1")
        found |= {each.name or name: (name, each) for each in columns}
    return found


_ALL_FIELDS = set(Entry.model_fields)
_COLUMNS = columns_of(Entry)
COLUMNS: Mapping[str, ManifestColumn] = MappingProxyType({name: column for name, (_, column) in _COLUMNS.items()})
"""The columns of a manifest in their order, by the names that they have for ImageNet's images."""


def column_of(name: str) -> ManifestColumn:
    """The column of a name that it has for ImageNet's images, or of one that begins with FURTHER."""
    return COLUMNS.get(name, _FURTHER_COLUMN)


_FURTHER_COLUMN = ManifestColumn("text", "From a table of the publishers.")

FORMAT = max(column.since for column in COLUMNS.values())
"""The number of today's format, which the columns of a manifest identify: each format has more than the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestForm:
    """Which columns a manifest has."""

    has_tiers: bool = True
    """Whether the set has a model, which orders the candidates."""

    has_studies: bool = False
    """Whether its images were compared with label sources."""

    further: tuple[str, ...] = ()
    """The columns from a table of the publishers."""

    format: int = FORMAT

    def fields(self, classes: ClassTable) -> tuple[str, ...]:
        """The columns by the names that they have in ImageNet's."""
        has = {"": True, "model": self.has_tiers, "studies": self.has_studies, "own": not classes.is_imagenet}
        known = (name for name, each in COLUMNS.items() if has[each.only] and each.since <= self.format)
        return (*known, *self.further)

    def columns(self, classes: ClassTable) -> tuple[str, ...]:
        """The columns of a manifest of images of these classes, in order."""
        return tuple(map(classes.column, self.fields(classes)))


def form_of(entries: Collection[Entry]) -> ManifestForm:
    """The form of the manifest that has these entries; without entries today's, with a model."""
    return ManifestForm(
        has_tiers=have_tiers(entries),
        has_studies=have_studies(entries),
        further=next((tuple(dict(entry.further)) for entry in entries), ()),
        format=_format_of(entries),
    )


def _format_of(entries: Collection[Entry]) -> int:
    """The last format whose columns all entries have a value for."""
    later = ((field, each.since) for field, each in _COLUMNS.values() if each.since > 1 and not each.is_optional)
    missing = (since for field, since in later if any(getattr(entry, field) is None for entry in entries))
    return min(missing, default=FORMAT + 1) - 1


def _cell(value: object) -> str:
    """A value as a cell; a confidence has the digits that distinguish neighbouring float32."""
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else _digits(value) if isinstance(value, float) else str(value)


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


def manifest_csv(entries: Iterable[Entry], classes: ClassTable, form: ManifestForm | None = None) -> str:
    """The manifest as CSV with a header, sorted by class index and rank; by default in the form that the entries have.

    The form of no entries is today's.
    """
    in_order = sorted(entries, key=lambda entry: (entry.class_index, entry.rank))
    columns = (form or form_of(in_order)).fields(classes)
    return csv_text(map(classes.column, columns), (entry.row(columns) for entry in in_order))
