"""Duplicates among images: pairs with the same bytes or pixels, and refusing them. `near_duplicates` compares hashes.

Own images are searched when an edition is made (`duplicate_search`); stage preprocess and export refuse by bytes and
pixels, the folds of a training keep near-duplicates together, and the review shows them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cleanset.errors import CleansetError
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.files import write_text
from cleanset.plumbing.validation import first_names

DUPLICATES = "data/duplicates.csv"
"""In an edition of your own images: all that was found when they were pinned."""
REFUSED_DUPLICATES = "refused_duplicates.csv"
"""The table of those that a command has refused, next to its output."""
DUPLICATE_COLUMNS = ("image_id", "duplicate_of", "same")
SHOWN_PAIRS = 3
"""Pairs that a message names."""


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two images that are the same, or nearly."""

    image_id: str
    duplicate_of: str
    """The first of the images that it is the same as."""

    same: Literal["bytes", "pixels", "nearly"]
    """What is the same: the bytes, the pixels alone, or the image as people see it."""

    def __str__(self) -> str:
        return f"{self.duplicate_of} and {self.image_id}"


def equal_pairs(digests: Iterable[tuple[str, str, str]]) -> list[DuplicatePair]:
    """The images with the bytes or pixels of an earlier one; `digests`: image id, SHA-256 of bytes, and of pixels.

    Each image has one pair at most, by its bytes if it has those of another.
    """
    by_bytes: dict[str, str] = {}
    by_pixels: dict[str, str] = {}
    found = []
    for image_id, of_bytes, of_pixels in digests:
        first = by_bytes.setdefault(of_bytes, image_id)
        like = by_pixels.setdefault(of_pixels, image_id)
        if first != image_id:
            found.append(DuplicatePair(image_id, first, "bytes"))
        elif like != image_id:
            found.append(DuplicatePair(image_id, like, "pixels"))
    return found


def duplicates_text(pairs: Iterable[DuplicatePair]) -> str:
    """The text of a table of duplicates."""
    return csv_text(DUPLICATE_COLUMNS, ((each.image_id, each.duplicate_of, each.same) for each in pairs))


def named_pairs(pairs: Sequence[DuplicatePair]) -> str:
    """The number of pairs, unless it is one, and the first of them."""
    count = f"{len(pairs):,} pairs: " if len(pairs) > 1 else ""
    return f"{count}{first_names(list(map(str, pairs)), SHOWN_PAIRS)}"


def refuse_pairs(pairs: Sequence[DuplicatePair], what: str, expected: str, table: Path) -> None:
    """Raise CleansetError if there are pairs: `what` they are, how many, the first, and what is `expected`.

    If the message cannot list them all, they are written to the file `table`; an earlier one is removed.
    """
    if len(pairs) <= SHOWN_PAIRS:
        table.unlink(missing_ok=True)
    else:
        write_text(table, duplicates_text(pairs))
    if pairs:
        where = f"; all are in {table}" if len(pairs) > SHOWN_PAIRS else ""
        raise CleansetError(f"{what}: {named_pairs(pairs)}; expected {expected}{where}")


def in_two_classes(pairs: Iterable[DuplicatePair], class_of: Mapping[str, int]) -> list[DuplicatePair]:
    """The pairs of the same image, by bytes or pixels, in two classes."""
    equal = (each for each in pairs if each.same != "nearly")
    return [each for each in equal if class_of[each.image_id] != class_of[each.duplicate_of]]


def refuse_in_two_classes(pairs: Iterable[DuplicatePair], class_of: Mapping[str, int], table: Path) -> None:
    """Raise CleansetError, as `refuse_pairs` does, for the same image in two classes."""
    found = in_two_classes(pairs, class_of)
    what = "bytes" if all(each.same == "bytes" for each in found) else "pixels"
    refuse_pairs(found, f"the same {what} in two classes", "each image in one: remove one of the two", table)
