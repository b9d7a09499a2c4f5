"""`ImageSet`, a finished set as a sequence, without torch."""

import base64
import io
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from cleanset.classes import ClassTable
from cleanset.errors import DamagedError
from cleanset.images.codec import decode
from cleanset.plumbing.json_files import JsonObject
from cleanset.sets.folder import read_image
from cleanset.sets.manifest import COLUMNS, Entry
from cleanset.statistics.formats import counted

CONTACT_SHEET_COLUMNS = 10
CONTACT_SHEET_ROWS = 8
CONTACT_IMAGE_PIXELS = 72


class ImageSet:
    """The images of an export in the order of its manifest: by class, then rank; torch's DataLoader takes it too.

    An item is the image (PIL, RGB, pixels as stored, or the result of `transform`), the class index (of ImageNet
    0 to 999) and the record: the line of the manifest. So that a DataLoader can put records together, `crop` is four
    numbers, which for a whole image are 0, 0, width, height; `real_classes` is text, as in "804 805", `denied_by`
    likewise; and a confidence that is not known is NaN. The bytes are checked whenever an image is read.

    As with torchvision's `ImageFolder`, `classes` are the keys of all classes, of ImageNet the 1,000 wnids, in order,
    `class_to_idx` is the class index by key, and `targets` are the class indices of the images. `class_names` are the
    names of the classes, in the same order; `class_table` has all of these. `notices` describes the limits of the set
    in sentences, such as that nobody has reviewed its images; the set prints with them. A notebook shows a set as its
    counts and a contact sheet.
    """

    def __init__(
        self,
        folder: Path,
        entries: Sequence[Entry],
        class_table: ClassTable,
        transform: Callable[[Any], Any] | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.notices = tuple(notices)
        self.entries = list(entries)
        self.transform = transform
        self.class_table = class_table
        self.classes = list(class_table.keys)
        self.class_names = list(class_table.labels)
        self.class_to_idx = dict(class_table.indices)
        self.targets = [entry.class_index for entry in self.entries]

    def __repr__(self) -> str:
        transform = "" if self.transform is None else f", transform={self.transform!r}"
        return " ".join([f"ImageSet({self._counts}, {str(self.folder)!r}{transform})", *self.notices])

    @property
    def _counts(self) -> str:
        model = self.entries[0].model if self.entries else "no model"
        return f"{model}: {counted(len(self), 'image')} of {counted(len(set(self.targets)), 'class')}"

    def _repr_html_(self) -> str:
        """Counts, notices and a contact sheet of at most 80 images, evenly spaced over the set, for a notebook."""
        step = math.ceil(len(self) / (CONTACT_SHEET_COLUMNS * CONTACT_SHEET_ROWS)) or 1
        shown = self.entries[::step]
        side = CONTACT_IMAGE_PIXELS
        sheet = Image.new(
            "RGB", (CONTACT_SHEET_COLUMNS * side, math.ceil(len(shown) / CONTACT_SHEET_COLUMNS) * side or 1), "white"
        )
        for place, entry in enumerate(shown):
            row, column = divmod(place, CONTACT_SHEET_COLUMNS)
            sheet.paste(ImageOps.pad(self._image(entry), (side, side), color="white"), (column * side, row * side))
        jpeg = io.BytesIO()
        sheet.save(jpeg, "JPEG", quality=85)
        of = "" if step == 1 else f", {len(shown)} of them shown"
        text = " ".join(
            [f"{self._counts}, {sum(entry.crop is not None for entry in self.entries):,} cropped{of}.", *self.notices]
        )
        data = base64.b64encode(jpeg.getvalue()).decode()
        return f'<p>{escape(text)}</p><img alt="A contact sheet of the set" src="data:image/jpeg;base64,{data}">'

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[Any, int, JsonObject]]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> tuple[Any, int, JsonObject]:
        entry = self.entries[self._position(place)]
        image = self._image(entry)
        record = _record(entry, self.class_table, image.width, image.height)
        return (self.transform(image) if self.transform else image), entry.class_index, record

    def _image(self, entry: Entry) -> Image.Image:
        """The image of an entry: RGB, pixels as stored, its bytes checked."""
        data = read_image(self.folder, entry)
        try:
            return decode(data).convert("RGB")
        except ValueError as error:
            raise DamagedError(
                f"{self.folder / entry.file}: cannot be decoded ({error}), though it has the SHA-256 of the "
                "manifest; expected a whole JPEG or PNG: tell the publisher of the set"
            ) from None

    def _position(self, place: object) -> int:
        """A position from 0, or from the end below 0. Raises TypeError or IndexError for anything else."""
        if isinstance(place, slice):
            raise TypeError(
                "ImageSet, a slice; expected one position: for a part of the images take "
                "torch.utils.data.Subset(images, range(...)), for the manifest's entry images.entries[...]"
            )
        try:
            # takes the integers of NumPy and torch, but no float
            position = operator.index(place)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"ImageSet, position {place!r}; expected a whole number") from None
        if not -len(self) <= position < len(self):
            raise IndexError(f"ImageSet, position {position}; expected one of its {len(self):,} images")
        return position


def _record(entry: Entry, classes: ClassTable, width: int, height: int) -> JsonObject:
    record = entry.record(classes)
    for name, column in COLUMNS.items():
        key = classes.column(name)
        if key in record and column.kind == "words":
            record[key] = " ".join(map(str, record[key]))
        # torch's default_collate refuses None
        elif key in record and column.is_optional and record[key] is None:
            record[key] = math.nan
    return record | {"crop": entry.crop or (0, 0, width, height)}
