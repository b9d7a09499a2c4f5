"""A finished set as a sequence, without torch."""

import io
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from cleanset.dataset.ilsvrc import wnids
from cleanset.exports.folder import read_image
from cleanset.exports.manifest import Entry


class ImageSet:
    """The images of an export in the order of its manifest: by class, then rank; torch's DataLoader takes it too.

    An item is the image (PIL, RGB, pixels as stored, or what `transform` makes of it), the class index (0 to 999)
    and the record: the line of the manifest. So that a DataLoader can put records together, `crop` is four numbers,
    which for a whole image are 0, 0, width, height; `real_classes` is text, as in "804 805"; and a `confidence` that
    is not known is NaN. The bytes are checked whenever an image is read.
    """

    def __init__(self, folder: Path, entries: Sequence[Entry], transform: Callable[[Any], Any] | None = None) -> None:
        self.folder = folder
        self.entries = list(entries)
        self.transform = transform
        self.classes = list(wnids())

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[Any, int, dict[str, Any]]]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> tuple[Any, int, dict[str, Any]]:
        entry = self.entries[place]
        with Image.open(io.BytesIO(read_image(self.folder, entry)), formats=("JPEG", "PNG")) as opened:
            image = opened.convert("RGB")
        record = _record(entry, image.width, image.height)
        return (self.transform(image) if self.transform else image), entry.class_index, record


def _record(entry: Entry, width: int, height: int) -> dict[str, Any]:
    return entry.model_dump() | {
        "confidence": math.nan if entry.confidence is None else entry.confidence,
        "real_classes": " ".join(map(str, entry.real_classes)),
        "crop": entry.crop or (0, 0, width, height),
    }
