"""The published lists: by model and class the five surest images, and how many images one model gets right."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.lists import CORRECT, LIST_COLUMNS
from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.parsing import parse_csv
from cleanset.validation import shown

POOL_COLUMNS = ("class_index", "correct", "listed")
MOST = 5
_MODEL = re.compile(r"[a-z][a-z0-9_]*")
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?(e-?[0-9]{1,3})?")
_EXPECTED = f"expected a list as it is published in this repository: {CORRECT}"


def read_top5(path: Path, labels: Mapping[str, Sequence[int]]) -> pd.DataFrame:
    """Read Top-5 lists: columns model, class_index, rank, image_id, confidence (float32), in the order of the file.

    `labels`: the reassessed labels of every image of the index, by image id. Raises CleansetError, naming the line,
    for an image that is not in the index, that is listed twice for a model, or whose one label is not the class; and
    for a list that is out of order: ranks run from 1, confidences fall, equal ones are in the order of the image ids.
    """
    found: dict[str, list[object]] = {name: [] for name in LIST_COLUMNS}
    listed: set[tuple[str, str]] = set()
    order = _Order()
    for where, cells in _rows(path, LIST_COLUMNS):
        model, image_id = cells["model"], cells["image_id"]
        if not _MODEL.fullmatch(model):
            raise CleansetError(f"{where}, model: {shown(model)}; expected a role, such as standard: {_EXPECTED}")
        class_index, rank = _number(where, cells, "class_index", 0, CLASSES - 1), _number(where, cells, "rank", 1, MOST)
        confidence = _confidence(where, cells["confidence"])
        check_label(where, image_id, class_index, labels)
        if (model, image_id) in listed:
            raise CleansetError(f"{where}: {image_id} a second time for {shown(model)}; expected it once: {_EXPECTED}")
        order.check(where, (model, class_index), rank, (-confidence, image_id))
        listed.add((model, image_id))
        for name, value in zip(LIST_COLUMNS, (model, class_index, rank, image_id, confidence), strict=True):
            found[name].append(value)
    table = pd.DataFrame(found)
    return table.astype({"class_index": "int16", "rank": "int16", "confidence": "float32"})


def read_pool(path: Path) -> pd.DataFrame:
    """Read how many images one model gets right: columns class_index, correct, listed; a row for each class.

    Raises CleansetError, naming the line, unless the classes are all there in their order and no list is longer than
    five or than what the model gets right.
    """
    rows = []
    for place, (where, cells) in enumerate(_rows(path, POOL_COLUMNS)):
        row = (
            _number(where, cells, "class_index", place, place),
            _number(where, cells, "correct", 0, CLASSES * MOST),
            _number(where, cells, "listed", 0, MOST),
        )
        if row[2] > row[1]:
            raise CleansetError(f"{where}: {row[2]} images listed of {row[1]} correct ones; {_EXPECTED}")
        rows.append(row)
    if len(rows) != CLASSES:
        raise CleansetError(f"{path}: {len(rows)} classes; expected {CLASSES}: {_EXPECTED}")
    return pd.DataFrame(rows, columns=list(POOL_COLUMNS))


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    for line, cells in parse_csv(read_text(path, _EXPECTED), columns, str(path)):
        yield f"{path}, line {line}", cells


def _number(where: str, cells: dict[str, str], name: str, least: int, most: int) -> int:
    text = cells[name]
    # int takes digits of any script, and raises ValueError for more than 4,300
    if text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most:
        return int(text)
    wanted = str(least) if least == most else f"a number from {least} to {most}"
    raise CleansetError(f"{where}, {name}: {shown(text)}; expected {wanted}: {_EXPECTED}")


def _confidence(where: str, text: str) -> float:
    # of itself, float takes digits of any script, underscores and blanks
    # rounded as the table stores it: what is equal there has to be in the order of the image ids
    value = float(np.float32(text)) if _DECIMAL.fullmatch(text) else math.nan
    if not 0 <= value <= 1:
        raise CleansetError(f"{where}, confidence: {shown(text)}; expected a probability from 0 to 1: {_EXPECTED}")
    return value


def check_label(where: str, image_id: str, class_index: int, labels: Mapping[str, Sequence[int]]) -> None:
    """Raise CleansetError, naming `where`, unless the image is in the index and the class is its only label."""
    if image_id not in labels:
        raise CleansetError(f"{where}: {shown(image_id)} is not in the index; expected an image of it: {_EXPECTED}")
    if list(labels[image_id]) != [class_index]:
        found = ", ".join(map(str, labels[image_id])) or "none"
        raise CleansetError(
            f"{where}: {image_id} in the list of class {class_index}, its labels: {found}; "
            f"expected this class as its only label: {_EXPECTED}"
        )


class _Order:
    """Checks that each list is in one piece, its ranks run from 1, and its rows do not fall behind each other."""

    def __init__(self) -> None:
        self._begun: set[tuple[str, int]] = set()
        self._rank, self._key = 0, (0.0, "")
        self._list: tuple[str, int] | None = None

    def check(self, where: str, of_list: tuple[str, int], rank: int, key: tuple[float, str]) -> None:
        """`key`: falling confidence, then image id. Raises CleansetError for a row that is out of order."""
        begins = of_list != self._list
        if rank != (1 if begins else self._rank + 1) or (begins and of_list in self._begun):
            raise CleansetError(
                f"{where}: rank {rank} out of order; expected ranks from 1, a list at a time: {_EXPECTED}"
            )
        if not begins and key < self._key:
            raise CleansetError(
                f"{where}: {key[1]} out of order; expected falling confidence, equal ones by image id: {_EXPECTED}"
            )
        self._begun.add(of_list)
        self._list, self._rank, self._key = of_list, rank, key


def check_pool(pool: pd.DataFrame, listed: pd.DataFrame, extras: dict[int, list[str]]) -> None:
    """Raise CleansetError for the first class that has other listed images, or more images than the model gets right.

    `listed`: the model's lists; `extras`: the images taken from beyond them, by class.
    """
    counts = listed["class_index"].value_counts()
    for class_index, correct, number in pool.itertuples(index=False, name=None):
        found = int(counts.get(class_index, 0))
        if found != number:
            raise CleansetError(
                f"pool.csv, class {class_index}: {number} images listed, top5.csv has {found}; {_EXPECTED}"
            )
        if found + len(extras.get(class_index, [])) > correct:
            raise CleansetError(
                f"class {class_index}: {found + len(extras[class_index])} images are listed or reviewed beyond the "
                f"list, but the model classifies {correct} correctly; expected no more: correct the reviews"
            )
