"""The manifest of a finished set: one line per picture, everything that is needed to check or rebuild it."""

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

from cleanset.boxes import Box
from cleanset.errors import CleansetError

MANIFEST = "manifest.csv"
COLUMNS = (
    "model", "wnid", "class_index", "rank", "image_id", "tier", "confidence",
    "left", "top", "right", "bottom", "file", "source_sha256", "file_sha256", "pixels_sha256", "encoder",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One exported picture.

    `rank` counts from 1 within the class; `confidence` is a float32; `crop` is None for a whole
    picture; `file` is relative to the folder of the manifest; `pixels_sha256` is of the decoded RGB
    bytes of that file, row by row; `encoder` wrote the PNG of a cropped one: other versions may
    write the same pixels in other bytes.
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
    encoder: str = ""

    def row(self) -> tuple[object, ...]:
        """The values of COLUMNS; a confidence has the digits that tell one float32 from the next."""
        return (
            self.model, self.wnid, self.class_index, self.rank, self.image_id, self.tier, f"{self.confidence:.9g}",
            *(self.crop or ("", "", "", "")),
            self.file, self.source_sha256, self.file_sha256, self.pixels_sha256, self.encoder,
        )  # fmt: skip


def file_name(wnid: str, image_id: str, crop: Box | None) -> str:
    """Where a picture lies in the folder of its set: a whole one is a JPEG, a cropped one a PNG."""
    return f"{wnid}/{image_id}{'.JPEG' if crop is None else '.png'}"


def manifest_csv(entries: Iterable[Entry]) -> str:
    """The manifest as CSV with a header, sorted by class index and rank."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(entry.row() for entry in sorted(entries, key=lambda entry: (entry.class_index, entry.rank)))
    return out.getvalue()


def read_manifest(text: str, where: str) -> list[Entry]:
    """The entries of a manifest. Raises CleansetError, naming `where` and the line, if it is none."""
    entries: dict[tuple[str, str], Entry] = {}
    for number, entry in enumerate(parse_manifest(text, where), start=2):
        if (entry.wnid, entry.image_id) in entries:
            raise CleansetError(
                f"{where}, line {number}: {entry.image_id} occurs twice in {entry.wnid}: export it again"
            )
        entries[entry.wnid, entry.image_id] = entry
    return list(entries.values())


def parse_manifest(text: str, where: str) -> list[Entry]:
    """The entries line by line, whether or not they go together; raises as `read_manifest` does."""
    try:
        header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except csv.Error as error:
        raise CleansetError(f"{where}: not CSV ({error}); expected a manifest: export it again") from None
    if tuple(header) != COLUMNS:
        raise CleansetError(f"{where}, line 1: {','.join(header)!r}; expected {','.join(COLUMNS)}: export it again")
    return [_parsed(row, where, number) for number, row in enumerate(rows, start=2)]


def _parsed(row: list[str], where: str, number: int) -> Entry:
    try:
        if len(row) != len(COLUMNS):
            raise ValueError(f"{len(row)} values, expected {len(COLUMNS)}")
        model, wnid, class_index, rank, image_id, tier, confidence, *box, file, source, of_file, pixels, encoder = row
        left, top, right, bottom = (int(edge) for edge in box) if any(box) else (0, 0, 0, 0)
        crop = (left, top, right, bottom) if any(box) else None
        return Entry(
            model, wnid, int(class_index), int(rank), image_id, tier, float(confidence),
            crop, file, source, of_file, pixels, encoder,
        )  # fmt: skip
    except ValueError as error:
        raise CleansetError(f"{where}, line {number}: not an entry of a manifest ({error}): export it again") from None
