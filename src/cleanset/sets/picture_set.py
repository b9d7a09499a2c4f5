"""A finished set as a torch Dataset."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from PIL import Image
from torch.utils.data import Dataset

from cleanset.ilsvrc import wnids
from cleanset.sets.folder import read_picture
from cleanset.sets.manifest import Entry


class PictureSet(Dataset[tuple[Any, int, dict[str, Any]]]):
    """The pictures of an export in the order of its manifest: by class, then rank.

    An item is the picture (PIL, RGB, pixels as stored, or what `transform` makes of it), the class index (0 to 999)
    and the record: the line of the manifest, with `crop` as four numbers that for a whole picture are 0, 0, width,
    height, so that a DataLoader can put records together. The bytes are checked whenever a picture is read.
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
        with Image.open(io.BytesIO(read_picture(self.folder, entry)), formats=("JPEG", "PNG")) as opened:
            image = opened.convert("RGB")
        record = asdict(entry) | {"crop": entry.crop or (0, 0, image.width, image.height)}
        return (self.transform(image) if self.transform else image), entry.class_index, record
