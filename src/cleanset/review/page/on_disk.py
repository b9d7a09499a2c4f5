"""The files that others may change during a review: review files, and the scores of crops."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.files import is_there
from cleanset.images.boxes import Crop
from cleanset.review.gold import GoldKey, without_golds
from cleanset.review.save import VerdictChange, save_all
from cleanset.review.store import Votes, check_reviews, read_file, refuse_link, review_file, reviewer_folders
from cleanset.review.verdicts import Vote
from cleanset.selection.crop_check import Prediction, predictions_of_crops
from cleanset.tables import CROP_SCORES, read_table

_Stamp = tuple[int, int, int]
"""Modification time in nanoseconds, bytes, inode."""


class ReviewCache:
    """The current content of `reviews/`. The page asks at every step, so a file is read only when it changed."""

    def __init__(self, reviews: Path) -> None:
        self._reviews = reviews
        self._read: dict[Path, tuple[_Stamp, list[Vote]]] = {}

    def votes_on_class(self, wnid: str) -> dict[str, dict[str, Vote]]:
        """The votes by image id and reviewer. Raises CleansetError for an invalid file."""
        votes: dict[str, dict[str, Vote]] = {}
        for folder in reviewer_folders(self._reviews):
            for vote in self._votes(review_file(self._reviews, folder.name, wnid)):
                votes.setdefault(vote.image_id, {})[folder.name] = vote
        return votes

    def changed_at(self, reviewer: str, wnid: str) -> int:
        """Modification time in nanoseconds of a review file as last read; 0 without one."""
        stamp, _ = self._read.get(review_file(self._reviews, reviewer, wnid), ((0, 0, 0), []))
        return stamp[0]

    def _votes(self, path: Path) -> list[Vote]:
        refuse_link(path)
        try:
            state = path.stat()  # before reading: a change in between is seen the next time
            # the inode too: a file replaced within a tick of the clock may have the same time and size
            stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
            if path not in self._read or self._read[path][0] != stamp:
                self._read[path] = stamp, read_file(path)
        except FileNotFoundError:
            self._read.pop(path, None)
            return []
        return self._read[path][1]


class StoredVotes:
    """The reviews in `folder`, which others may change at any time, and where `reviewer` saves theirs.

    `official_images`: the images are those of the official archive, so that a review may name one by its id alone.
    `golds`: the gold items; answers to them are left out of the votes unless `mixed`.
    """

    def __init__(
        self,
        folder: Path,
        reviewer: str,
        index: pd.DataFrame,
        min_crop_pixels: int,
        official_images: bool = False,
        golds: GoldKey = MappingProxyType({}),
    ) -> None:
        self.folder, self._reviewer, self._min_crop_pixels = folder, reviewer, min_crop_pixels
        self._official_images, self._golds, self.mixed = official_images, golds, False
        self._cache = ReviewCache(folder)
        # by id, for a look-up at every step; the column stays, because check_reviews reads it
        self._index = index.set_index("image_id", drop=False)
        self._checked: dict[int, Votes] = {}

    def check(self, classes: Iterable[int]) -> None:
        """Read and check many classes at once, which is faster. Errors are left for `of_class` to report."""
        found: dict[int, Votes] = {}
        for class_index in classes:
            with suppress(CleansetError, OSError):
                found[class_index] = self._read(class_index)
        with suppress(CleansetError):
            self._check_against_images({key: each for votes in found.values() for key, each in votes.items()})
            self._checked |= found

    def of_class(self, class_index: int) -> Votes:
        """The votes on a class; the same object if nothing changed. Raises CleansetError for an invalid one."""
        votes = self._read(class_index)
        if votes != self._checked.get(class_index):
            self._check_against_images(votes)
            self._checked[class_index] = votes
        return self._checked[class_index]

    def changed_at(self, class_index: int) -> int:
        """Modification time in nanoseconds of this reviewer's file of a class, as last read; 0 without one."""
        return self._cache.changed_at(self._reviewer, wnids()[class_index])

    def save(self, class_index: int, changes: Mapping[str, VerdictChange]) -> None:
        """Write this reviewer's verdicts on images of a class, by image id; they are on disk on return.

        Raises CleansetError or OSError as `save_all` does.
        """
        shown = {image_id: self._over_gold(class_index, image_id, change) for image_id, change in changes.items()}
        save_all(self.folder, self._reviewer, wnids()[class_index], shown)

    def _over_gold(self, class_index: int, image_id: str, change: VerdictChange) -> VerdictChange:
        """The change, in place of the answer to a gold item that the file may have, which the caller does not see."""
        if change.expected is not None or self.mixed or (class_index, image_id) not in self._golds:
            return change
        own = self._read_all(class_index).get((class_index, image_id), {}).get(self._reviewer)
        return replace(change, expected=own.review if own else None)

    def _read(self, class_index: int) -> Votes:
        votes = self._read_all(class_index)
        return votes if self.mixed else without_golds(votes, self._golds)

    def _read_all(self, class_index: int) -> Votes:
        of_class = self._cache.votes_on_class(wnids()[class_index])
        return {(class_index, image_id): by_reviewer for image_id, by_reviewer in of_class.items()}

    def _check_against_images(self, votes: Votes) -> None:
        votes = without_golds(votes, self._golds)
        reviewed = self._index.index.intersection(sorted({image_id for _, image_id in votes}))
        check_reviews(votes, self._index.loc[reviewed], self._min_crop_pixels, self._official_images)


class CropScores:
    """The tables `data/crop_scores/<role>.parquet` of an edition, read again when they change; they may be missing."""

    def __init__(self, edition: Edition, roles: Sequence[str]) -> None:
        self._paths = {role: edition.crop_scores(role) for role in roles}
        self._stamps: dict[str, tuple[int, int] | None] = dict.fromkeys(roles)
        self._predictions: dict[str, dict[Crop, Prediction]] = {role: {} for role in roles}

    def look(self) -> bool:
        """Read changed tables; return whether there was one. Raises CleansetError for a table that cannot be read."""
        changed = False
        for role, path in self._paths.items():
            stamp = (path.stat().st_mtime_ns, path.stat().st_size) if is_there(path) else None
            if stamp != self._stamps[role]:
                self._predictions[role] = predictions_of_crops(read_table(path, CROP_SCORES)) if stamp else {}
                self._stamps[role], changed = stamp, True
        return changed

    def predictions(self, role: str) -> Mapping[Crop, Prediction]:
        """A model's predictions on the crops that are scored."""
        return self._predictions[role]
