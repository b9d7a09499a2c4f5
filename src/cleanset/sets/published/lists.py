"""The published lists: by model and class the five surest images, and how many images one model gets right.

The score table of a model that is a published list: no more than the list says.

- A listed image is classified correctly with the listed confidence.
- An image from beyond the list is, too. Its confidence is not known; in the table it has the next lower float32 after
  the last image of its class, which orders it and means nothing else.
- Every other image counts as misclassified, with probability 0.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.edition.models import CORRECT, LIST_COLUMNS, images_beyond
from cleanset.edition.params import Model
from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.parsing import parse_csv
from cleanset.scoring.logits import TOP, log_odds_of
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


WITHOUT_A_LIST = np.float32(0.5)
"""The confidence below which the images of a class without a list begin."""

Labels = Mapping[str, Sequence[int]]
"""The reassessed labels of every image of an index, by image id."""


@dataclass(frozen=True, slots=True)
class ListScores:
    """The scores that a list gives: a row of table SCORES for each image of the index.

    `listed`: how many images are in the list; `beyond`: the ids of those from beyond it, sorted.
    """

    table: pd.DataFrame
    listed: int
    beyond: Sequence[str]


def list_scores(folder: Path, model: Model, labels: Labels) -> ListScores:
    """The scores that a list gives the images of `labels`; `folder` is the edition's.

    Raises CleansetError as `read_top5` and `images_beyond` do, and for an image from beyond the list that is in it, or
    that the index lacks.
    """
    top5 = read_top5(folder / str(model.file), labels)
    listed = top5[top5["model"] == model.name]
    extras = read_extras(folder, model, listed, labels)
    beyond = sorted(name for names in extras.values() for name in names)
    return ListScores(scores_of(with_extras(listed, extras), labels), len(listed), beyond)


def read_extras(folder: Path, model: Model, listed: pd.DataFrame, labels: Labels) -> dict[int, list[str]]:
    """By class, the images from beyond a model's list, `listed`. Raises CleansetError as `list_scores` does."""
    known = set(listed["image_id"])
    extras: dict[int, list[str]] = {}
    for each in images_beyond(folder, model):
        check_label(each.where, each.image_id, each.class_index, labels)
        if each.image_id in known:
            raise CleansetError(f"{each.where}: {each.image_id} is in the list; expected images from beyond it")
        extras.setdefault(each.class_index, []).append(each.image_id)
    return extras


def extras_of(listed: pd.DataFrame, reviewed: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """By class, the reviewed images that are not in a model's list: they were taken from beyond it.

    `listed`: class_index and image_id of one model's lists.
    """
    in_list = listed.groupby("class_index")["image_id"].agg(set).to_dict()
    extras = {
        index: [name for name in names if name not in in_list.get(index, ())] for index, names in reviewed.items()
    }
    return {index: names for index, names in sorted(extras.items()) if names}


def with_extras(listed: pd.DataFrame, extras: Mapping[int, Sequence[str]]) -> pd.DataFrame:
    """The rows of one model's lists and, each next in float32 below the one before, the extras of each class.

    Columns class_index, image_id, confidence. In a class without a list they begin next below one half.
    """
    last = listed.groupby("class_index")["confidence"].min()
    rows = []
    for class_index, names in extras.items():
        confidence = np.float32(last.get(class_index, WITHOUT_A_LIST))
        for name in names:
            # the next float32 below: behind every listed image, and above every image that is not listed
            confidence = np.nextafter(confidence, np.float32(0))
            rows.append((class_index, name, confidence))
    columns = ["class_index", "image_id", "confidence"]
    return pd.concat([listed[columns], pd.DataFrame(rows, columns=columns)], ignore_index=True).astype(
        {"class_index": "int16", "confidence": "float32"}
    )


def scores_of(correct: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """A score table in which a model gets right the images of `correct`, with their confidence, and no other.

    `correct` has columns class_index, image_id, confidence. Every other image has probability 0 for a class
    other than its labels: the lists say nothing else about it.
    """
    rows = zip(correct["image_id"], correct["class_index"], correct["confidence"], strict=True)
    known = {name: (top1, confidence) for name, top1, confidence in rows}
    top1 = [known[name][0] if name in known else _no_label(each) for name, each in labels.items()]
    confidences = np.array([known[name][1] if name in known else 0 for name in labels], dtype=np.float32)
    probabilities = np.zeros((len(labels), TOP), dtype=np.float32)
    probabilities[:, 0] = confidences
    classes = (np.array(top1)[:, None] + np.arange(TOP)) % CLASSES
    return pd.DataFrame(
        {
            "image_id": list(labels),
            "top5_class": list(classes.astype(np.int16)),
            "top5_probability": list(probabilities),
            "log_odds": log_odds_of(confidences),
        }
    )


def _no_label(labels: Sequence[int]) -> int:
    """The lowest class that is not among the labels."""
    return next(index for index in range(CLASSES) if index not in labels)
