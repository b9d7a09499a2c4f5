"""Save the verdicts of one key in `reviews/<reviewer>/<class>.yaml`, keeping everything else in the file."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from cleanset.classes import ClassTable, imagenet
from cleanset.edition.yaml_edit import LayoutError, edited_text, flow_text
from cleanset.errors import CleansetError
from cleanset.image_ids import example_id, is_image_id, parse_image_id
from cleanset.plumbing.file_locks import ChangedMeanwhileError, locked
from cleanset.plumbing.files import read_text, replace_file, sync_folder
from cleanset.plumbing.yaml_files import parse_remembered
from cleanset.review.file_format import fields_to_write, parse_reviews, review_fields
from cleanset.review.guidelines import check_reviews_folder
from cleanset.review.store import check_note, refuse_link, review_file
from cleanset.review.verdicts import Review, Vote

_Entry = tuple[str, object]
"""An image id and the fields of its verdict in a review file."""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A new verdict on an image (None: it is removed), to replace the one that the caller last read (None: no verdict).

    Nothing is written to a file that has another verdict than the expected one.
    """

    review: Review | None
    expected: Review | None

    @property
    def undone(self) -> "VerdictChange":
        """The change back."""
        return VerdictChange(self.expected, self.review)

    def is_made(self, current: Review | None) -> bool:
        """Whether the current verdict is the new one, however the image was seen."""
        return current == self.review or bool(current and self.review and current.is_same_verdict(self.review))


def save_all(
    reviews: Path, reviewer: str, wnid: str, changes: Mapping[str, VerdictChange], *, classes: ClassTable
) -> None:
    """Write this reviewer's verdicts on images of a class, by image id, atomically.

    Processes and threads may save at once. After a kill the file is the old or the new one, and once this returns the
    new one survives a power cut, unless the file system cannot sync folders. A file without entries and comments is
    removed.

    Raises ChangedMeanwhileError if the file has another verdict than expected (unless it is the new one);
    CleansetError for an invalid name, a verdict of the board without a note, and an invalid file, which stays
    unchanged; OSError where the disk fails: then the file is unchanged, or the new one if only its folder could not be
    synced.
    """
    path = review_file(reviews, reviewer, wnid, classes)
    for image_id, change in changes.items():
        if not is_image_id(image_id, classes):
            raise CleansetError(f"image {image_id!r}: expected an image id such as {example_id(classes)}")
        if change.review is not None:
            check_note(reviewer, change.review, f"{path}, {image_id}")
    check_reviews_folder(reviews)
    if not path.parent.is_dir():
        path.parent.mkdir(exist_ok=True)
        sync_folder(reviews)  # else a power cut could take the new folder, with the verdict in it
    refuse_link(path)
    with locked(path.parent):
        is_new = not path.exists()
        before = "" if is_new else read_text(path, "save it as UTF-8")
        votes = [] if is_new else parse_reviews(before, wnid, str(path), classes)
        found = {vote.image_id: vote for vote in votes}
        new = {
            image_id: change.review
            for image_id, change in changes.items()
            if _is_new(change, found.get(image_id), f"{path}, {image_id}")
        }
        if new:
            replace_file(path, with_reviews(before, wnid, new, str(path)).encode())


def _is_new(change: VerdictChange, vote: Vote | None, place: str) -> bool:
    """Whether the file lacks this change. Raises ChangedMeanwhileError if the entry is not the expected one."""
    current = vote.review if vote else None
    # before `expected` is compared: the same verdict from two places is not a conflict
    if current == change.review:
        return False
    if current != change.expected:
        if change.is_made(current):
            return False
        raise ChangedMeanwhileError(
            f"{vote.where if vote else place}: found {_shown(current)}, expected {_shown(change.expected)}: it was "
            "changed meanwhile; look at it and decide again"
        )
    return True


def _shown(review: Review | None) -> str:
    if review is None:
        return "no verdict"
    fields = review_fields(review)
    return ", ".join(f"{name} {value}" for name, value in fields.items() if value and name != "sha256")


def with_reviews(text: str, wnid: str, reviews: Mapping[str, Review | None], where: str) -> str:
    """The text of a valid review file of class `wnid` with these verdicts by image id, or without one (None).

    A new entry goes before the first one of a higher image id; comments stay as `edited_text` says. The text of a file
    without entries and comments is empty.

    Raises CleansetError, naming `where`, if the text is written in such a way that this entry cannot
    be changed without touching another, or a comment.
    """
    content: Any = parse_remembered(text, where)[0]
    before = content[wnid] if content else {}
    # an entry keeps the form in which it names its image
    name_of = {parse_image_id(name, imagenet()) or name: name for name in before} | {name: name for name in before}
    reviews = {name_of.get(image_id, image_id): review for image_id, review in reviews.items()}
    wanted = {
        image_id: fields_to_write(review, before.get(image_id, {}))
        for image_id, review in reviews.items()
        if review is not None
    }
    entries = _merged(
        [(other, wanted.get(other, fields)) for other, fields in before.items() if reviews.get(other, ...) is not None],
        sorted((image_id, fields) for image_id, fields in wanted.items() if image_id not in before),
    )
    try:
        changed = edited_text(text, {wnid: dict(entries)}, where, parse_remembered)
    except LayoutError:  # a table in {…}, an explicit key: written again, unless comments would be lost
        names = ", ".join(reviews)
        if "#" in text:
            raise CleansetError(
                f"{where}: written in a way in which {names} cannot be changed alone; "
                "write it as cleanset docs reference/review shows, or change it by hand"
            ) from None
        try:
            changed = edited_text("", {wnid: dict(sorted(entries))}, where)
        except LayoutError:
            raise CleansetError(
                f"{where}: this verdict on {names} cannot be written as YAML; write its note again"
            ) from None
    return "" if re.fullmatch(rf"\s*(['\"]?){re.escape(wnid)}\1:(\s*\{{\}})?\s*", changed) else changed


def with_key(text: str, key: str, new: str, where: str) -> str:
    """The text of a valid review file of class `key` as one of class `new`; comments stay.

    Raises CleansetError, naming `where`, if the class is written in another way than a key at the start of a line.
    """
    quoted = ("", "'", '"')
    pattern = "|".join(
        f"{quote}{re.escape(key.replace(quote, 2 * quote) if quote else key)}{quote}" for quote in quoted
    )
    changed, count = re.subn(rf"(?m)^(?:{pattern})(?=[ ]*:)", lambda _: flow_text(new), text, count=1)
    content: Any = parse_remembered(text, where)[0]
    if not count or parse_remembered(changed, where)[0] != {new: content[key]}:
        raise CleansetError(
            f"{where}: its first key, {key}, is written in a way in which it cannot be changed; expected {key}: at the "
            f"start of a line: change it to {new} by hand, and rename the file"
        )
    return changed


def _merged(entries: Sequence[_Entry], added: Iterable[_Entry]) -> list[_Entry]:
    """The entries in their order, each of the sorted `added` before the first one of a higher image id."""
    highest = list(accumulate((image_id for image_id, _ in entries), max))
    before: dict[int, list[_Entry]] = defaultdict(list)
    for entry in added:
        before[bisect_right(highest, entry[0])].append(entry)
    merged = [each for at, entry in enumerate(entries) for each in (*before[at], entry)]
    return [*merged, *before[len(entries)]]


@dataclass(frozen=True, slots=True)
class Step:
    """The verdicts on images of a class that one key changed, by image id; `expected` is the one before."""

    class_index: int
    changes: Mapping[str, VerdictChange]

    @property
    def image_id(self) -> str:
        """The first image changed."""
        return next(iter(self.changes))

    @property
    def in_words(self) -> str:
        """The step in words, such as: clean, 3 images."""
        after = self.changes[self.image_id].review
        what = after.verdict.kind if after else "taking it back"
        return what if len(self.changes) == 1 else f"{what}, {len(self.changes)} images"

    def notes_taken_away(self) -> dict[str, str]:
        """By image id, the notes that were saved with a first verdict, and go with it when the step is undone."""
        return {
            image_id: change.review.note
            for image_id, change in self.changes.items()
            if change.expected is None and change.review is not None and change.review.note
        }
