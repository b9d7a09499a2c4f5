"""Findings of studies on images, shown on the page. They never count as verdicts, and change nothing in a set.

Second opinions on labels, from the files in `review.opinions`; and images to look at again, from the look_again.csv
that `cleanset study analyse --plan` writes for a realness study.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cleanset.dataset.folder import CROPPED, example_id, exported_name, is_image_id
from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.parsing import parse_csv
from cleanset.validation import shown
from cleanset.vocabulary import class_column, class_indices, classes_in_use

COLUMNS = ("image_id", "flag", "source")
"""Columns of a file of opinions: an image, a finding in a few words, and the study that found it."""

# letters of a flag or a source, which stand in one line below an image
MAX_LETTERS = 60

_ID = re.compile(r"ILSVRC2012_val_[0-9]{8}")


@dataclass(frozen=True, slots=True)
class Opinion:
    """A finding of a study on an image, such as `several objects`, and the study's name."""

    flag: str
    source: str


Opinions = Mapping[str, tuple[Opinion, ...]]
"""The opinions on images, by image id."""


def read_opinions(paths: Iterable[Path]) -> Opinions:
    """Read files of opinions, in their order; an opinion that is there twice counts once.

    Images that are not candidates are allowed. Raises CleansetError, naming file and line, for a missing file, another
    format, an invalid image id, and a flag or source that is empty or too long.
    """
    found: dict[str, dict[Opinion, None]] = {}
    for path in paths:
        for number, row in parse_csv(read_text(path, _EXPECTED), COLUMNS, str(path)):
            where = f"{path}, line {number}"
            if not is_image_id(row["image_id"]):
                raise CleansetError(f"{where}: {shown(row['image_id'])}; expected an image id such as {example_id()}")
            opinion = Opinion(*(_words(row[column], f"{where}, {column}") for column in COLUMNS[1:]))
            found.setdefault(row["image_id"], {})[opinion] = None
    return {image_id: tuple(opinions) for image_id, opinions in found.items()}


_EXPECTED = f"expected a CSV file with the columns {','.join(COLUMNS)} (review.opinions in params.yaml)"


def _words(text: str, where: str) -> str:
    words = text.replace("_", " ").strip()
    if not words or len(words) > MAX_LETTERS or not words.isprintable():
        raise CleansetError(f"{where}: {shown(text)}; expected 1 to {MAX_LETTERS} letters in one line")
    return words


def look_again_columns(class_column: str) -> tuple[str, ...]:
    """The columns of look_again.csv, one row for each rated image; `class_column`: wnid of ImageNet's, else class."""
    return ("image_type", "image_id", class_column, "ratings", "negative", "share", "low", "high", "mean")


LookAgain = Mapping[int, Mapping[str, str]]
"""By class index and image id, a line on how people rated the image."""


def read_look_again(path: Path, known: Mapping[int, Collection[str]]) -> LookAgain:
    """Read look_again.csv. `known`: the edition's candidates by class index.

    Raises CleansetError for a file in another format, and for an image that is not a candidate of its class.
    """
    found: dict[int, dict[str, str]] = {}
    column = class_column()
    columns = look_again_columns(column)
    for number, row in parse_csv(read_text(path, "expected look_again.csv"), columns, str(path)):
        class_index = class_indices().get(row[column])
        ids = () if class_index is None else known.get(class_index, ())
        image_id = _rated_image(row["image_id"], row[column], ids)
        if class_index is None or image_id not in ids:
            raise CleansetError(
                f"{path}, line {number}: {shown(row['image_id'])} of class {shown(row[column])}; expected a candidate "
                "of this edition: analyse the ratings with --plan of a plan of its sets"
            )
        share = f"{row['negative']} of {row['ratings']}"
        found.setdefault(class_index, {})[image_id] = f"{share} people took it for modified"
    return found


def _rated_image(file: str, key: str, ids: Collection[str]) -> str:
    """The image id of a file of a finished set, of the class with this key; "" for none."""
    if classes_in_use().is_imagenet:
        return str((_ID.findall(file) or [""])[-1])
    files = {exported_name(key, each): each for each in ids}
    return files.get(file) or files.get(file.removesuffix(CROPPED), "")
