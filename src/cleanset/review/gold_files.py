"""The file `reviews/gold.csv`, which lists the gold items with their verdicts, and the items' images."""

from collections.abc import Iterable
from pathlib import Path

from cleanset.classes import ClassTable
from cleanset.plumbing.csv_files import csv_text, parse_rows
from cleanset.plumbing.files import is_there, read_text
from cleanset.review.gold import GoldItem
from cleanset.review.verdicts import ImageKey

GOLD_KEY = "gold.csv"
"""The file in `reviews/` that lists the gold items with their verdicts."""

GOLD_COLUMNS = ("image_id", "sha256", "reason", "source")

_REMEDY = "correct the line, or make the items with cleanset review gold"


def read_gold_key(reviews: Path, classes: ClassTable) -> dict[ImageKey, GoldItem]:
    """The gold items that `reviews/gold.csv` lists; empty without the file. Raises CleansetError for a bad line."""
    path = reviews / GOLD_KEY
    if not is_there(path):
        return {}
    return parse_gold_key(read_text(path, "save it as UTF-8"), str(path), classes)


def parse_gold_key(text: str, where: str, classes: ClassTable) -> dict[ImageKey, GoldItem]:
    """The gold items in the text of a gold.csv. Raises CleansetError, naming `where` and the line."""
    columns = (classes.key_column, *GOLD_COLUMNS)
    rows = parse_rows(text, columns, GoldItem, where, remedy=_REMEDY, key=("image_id",), is_own=True, context=classes)
    return {item.key: item for _, item in rows}


def gold_key_text(items: Iterable[GoldItem], classes: ClassTable) -> str:
    """The text of a gold.csv, sorted by class and image id."""
    rows = [
        (classes.keys[item.class_index], item.image_id, item.sha256, item.reason, item.source)
        for item in sorted(items, key=lambda item: item.key)
    ]
    return csv_text((classes.key_column, *GOLD_COLUMNS), rows)


def gold_file(folder: Path, image_id: str) -> Path:
    """The image of a gold item."""
    return folder / f"{image_id}.JPEG"
