"""Second opinions on images, from `review.opinions` and realness studies; shown, never counted as verdicts.

A realness study's images to look at again come from the look_again.csv of `cleanset study analyse --plan`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from cleanset.classes import ClassTable
from cleanset.dataset.folder import exported_name
from cleanset.errors import CleansetError
from cleanset.image_ids import ImageNames, ListedId
from cleanset.plumbing.csv_files import read_rows
from cleanset.plumbing.validation import checked, shown

OPINION_COLUMNS = ("image_id", "flag", "source")
"""Columns of a file of opinions: an image, a finding in a few words, and the study that found it."""

# letters of a flag or a source, which are in one line below an image
MAX_LETTERS = 60


_Words = Annotated[
    str,
    AfterValidator(lambda text: text.replace("_", " ").strip()),
    checked(
        lambda words: 0 < len(words) <= MAX_LETTERS and words.isprintable(), f"1 to {MAX_LETTERS} letters in one line"
    ),
]


@dataclass(frozen=True, slots=True)
class Opinion:
    """A finding of a study on an image, such as `several objects`, and the study's name."""

    image_id: ListedId
    flag: _Words
    source: _Words


Opinions = Mapping[str, tuple[Opinion, ...]]
"""The opinions on images, by image id."""


def read_opinions(paths: Iterable[Path], classes: ClassTable) -> Opinions:
    """Read files of opinions, in their order; an opinion that is there twice counts once.

    Images that are not candidates are allowed. Raises CleansetError, naming file and line, for a missing file, another
    format, an invalid image id, and a flag or source that is empty or too long.
    """
    found: dict[str, dict[Opinion, None]] = {}
    for path in paths:
        for _, opinion in read_rows(path, OPINION_COLUMNS, Opinion, _REMEDY, context=classes):
            found.setdefault(opinion.image_id, {})[opinion] = None
    return {image_id: tuple(opinions) for image_id, opinions in found.items()}


_REMEDY = "correct the file, or take it out of review.opinions in params.yaml"


def look_again_columns(class_column: str) -> tuple[str, ...]:
    """The columns of look_again.csv, one row for each rated image; `class_column`: wnid of ImageNet's, else class."""
    return ("image_type", "image_id", class_column, "ratings", "negative", "share", "low", "high", "mean")


_ANALYSE = "analyse the ratings with --plan of a plan of the edition's sets"


LookAgain = Mapping[int, Mapping[str, str]]
"""By class index and image id, a line on how people rated the image."""


def read_look_again(path: Path, known: Mapping[int, Collection[str]], classes: ClassTable) -> LookAgain:
    """Read look_again.csv. `known`: the edition's candidates by class index.

    Raises CleansetError for a file in another format, and for an image that is not a candidate of its class.
    """
    found: dict[int, dict[str, str]] = {}
    for where, row in read_rows(path, look_again_columns(classes.key_column), dict[str, str], _ANALYSE, is_own=True):
        file = row["image_id"]
        key = row[classes.key_column]
        class_index = classes.indices.get(key, -1)
        ids = known.get(class_index, ())
        files = {exported_name(key, each): each for each in ids}
        image_id = ImageNames((), classes, files).find(file)
        if image_id is None or image_id not in ids:
            raise CleansetError(
                f"{where}: {shown(file)} of class {shown(key)}; expected a candidate of the edition: {_ANALYSE}"
            )
        share = f"{row['negative']} of {row['ratings']}"
        found.setdefault(class_index, {})[image_id] = f"{share} people took it for modified"
    return found
