"""Images to look at again: the look_again.csv that `cleanset study analyse --plan` writes for a realness study."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from cleanset.dataset.ilsvrc import class_indices
from cleanset.errors import CleansetError
from cleanset.files import read_text
from cleanset.parsing import parse_csv
from cleanset.validation import shown

COLUMNS = ("image_type", "image_id", "wnid", "ratings", "negative", "share", "low", "high", "mean")
"""Columns of look_again.csv, one row for each rated image."""

LookAgain = Mapping[int, Mapping[str, str]]
"""By class index and image id, a line on how people rated the image."""

_ID = re.compile(r"ILSVRC2012_val_[0-9]{8}")


def read_look_again(path: Path, known: Mapping[int, Collection[str]]) -> LookAgain:
    """Read look_again.csv. `known`: the edition's candidates by class index.

    Raises CleansetError for a file in another format, and for an image that is not a candidate of its class.
    """
    found: dict[int, dict[str, str]] = {}
    for number, row in parse_csv(read_text(path, "expected look_again.csv"), COLUMNS, str(path)):
        names = _ID.findall(row["image_id"])
        class_index = class_indices().get(row["wnid"])
        if class_index is None or not names or names[-1] not in known.get(class_index, ()):
            raise CleansetError(
                f"{path}, line {number}: {shown(row['image_id'])} of class {shown(row['wnid'])}; expected a candidate "
                "of this edition: analyse the ratings with --plan of a plan of its sets"
            )
        share = f"{row['negative']} of {row['ratings']}"
        found.setdefault(class_index, {})[names[-1]] = f"{share} people took it for modified"
    return found
