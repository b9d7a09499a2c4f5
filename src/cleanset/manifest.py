"""The manifest of a finished set: one line per picture, everything that is needed to check or rebuild it."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

from cleanset.images import Box

COLUMNS = (
    "model", "wnid", "class_index", "rank", "image_id", "tier", "confidence",
    "left", "top", "right", "bottom", "file", "source_sha256", "file_sha256", "pixels_sha256",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One exported picture.

    `rank` counts from 1 within the class; `confidence` is a float32; `crop` is None for a whole
    picture; `file` is relative to the folder of the manifest; `pixels_sha256` is of the decoded RGB
    bytes of that file, row by row.
    """

    model: str
    wnid: str
    class_index: int
    rank: int
    image_id: str
    tier: str
    confidence: float
    crop: Box | None
    file: str
    source_sha256: str
    file_sha256: str
    pixels_sha256: str

    def row(self) -> tuple[object, ...]:
        """The values of COLUMNS; a confidence has the digits that tell one float32 from the next."""
        return (
            self.model, self.wnid, self.class_index, self.rank, self.image_id, self.tier, f"{self.confidence:.9g}",
            *(self.crop or ("", "", "", "")),
            self.file, self.source_sha256, self.file_sha256, self.pixels_sha256,
        )  # fmt: skip


def manifest_csv(entries: Iterable[Entry]) -> str:
    """The manifest as CSV with a header, sorted by class index and rank."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(entry.row() for entry in sorted(entries, key=lambda entry: (entry.class_index, entry.rank)))
    return out.getvalue()
