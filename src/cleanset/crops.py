"""The list of every crop that a reviewer has drawn: one line of CSV for each picture and box."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from cleanset.boxes import Crop
from cleanset.errors import CleansetError

COLUMNS = ("image_id", "left", "top", "right", "bottom")


def crops_csv(crops: Iterable[Crop]) -> str:
    """The crops as CSV with a header, each once, sorted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((crop.image_id, *crop.box) for crop in sorted(set(crops)))
    return out.getvalue()


def parse_crops(text: str, where: str) -> list[Crop]:
    """The crops in such a text. Raises CleansetError, naming `where` and the line, if it is none."""
    header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    if tuple(header) != COLUMNS:
        raise CleansetError(f"{where}, line 1: {','.join(header)!r}; expected {','.join(COLUMNS)}: run dvc repro")
    crops: dict[Crop, None] = {}
    for number, row in enumerate(rows, start=2):
        crop = _parsed(row, f"{where}, line {number}")
        if crop in crops:
            raise CleansetError(f"{where}, line {number}: {crop} occurs twice: run dvc repro")
        crops[crop] = None
    return list(crops)


def read_crops(path: Path) -> list[Crop]:
    """The crops in a file. Raises CleansetError if it is missing or no such list."""
    try:
        return parse_crops(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; run dvc repro, or dvc pull to fetch it") from None
    except UnicodeDecodeError as error:
        raise CleansetError(f"{path}: not a text file ({error}); run dvc repro") from None


def _parsed(row: list[str], where: str) -> Crop:
    try:
        image_id, *edges = row
        left, top, right, bottom = map(int, edges)
    except ValueError:
        raise CleansetError(
            f"{where}: {','.join(row)!r}; expected an image id and four whole numbers: run dvc repro"
        ) from None
    if not (0 <= left < right and 0 <= top < bottom):
        raise CleansetError(f"{where}: a box without area; expected left < right and top < bottom: run dvc repro")
    return Crop(image_id, (left, top, right, bottom))
