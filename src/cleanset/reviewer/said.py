"""The votes of a class as they lie on disk now, held against the pictures; and writing one."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from cleanset.errors import CleansetError
from cleanset.ilsvrc import wnids
from cleanset.review.cache import ReviewCache
from cleanset.review.folder import Votes, check_reviews
from cleanset.review.verdicts import Review
from cleanset.review.writing import save


class Said:
    """The reviews in `folder`, which others may change at any time; `reviewer` writes there."""

    def __init__(self, folder: Path, reviewer: str, index: pd.DataFrame) -> None:
        self._folder, self._reviewer = folder, reviewer
        self._cache = ReviewCache(folder)
        self._index = index.set_index("image_id", drop=False)
        self._checked: dict[int, Votes] = {}

    def check(self, classes: Iterable[int]) -> None:
        """Read and check many classes in one go, which is faster; what is wrong there, `of_class` says."""
        found: dict[int, Votes] = {}
        for class_index in classes:
            with suppress(CleansetError, OSError):
                found[class_index] = self._read(class_index)
        with suppress(CleansetError):
            self._hold_against_pictures({key: each for votes in found.values() for key, each in votes.items()})
            self._checked |= found

    def of_class(self, class_index: int) -> Votes:
        """The votes on a class; the same object as before if nothing changed. Raises CleansetError if one is wrong."""
        votes = self._read(class_index)
        if votes != self._checked.get(class_index):
            self._hold_against_pictures(votes)
            self._checked[class_index] = votes
        return self._checked[class_index]

    def say(self, class_index: int, image_id: str, review: Review | None, expected: Review | None) -> None:
        """Write this reviewer's verdict (None: take it back) where `expected` stands; on the disk on return.

        Raises CleansetError or OSError if that could not be; what then holds, `writing.save` says.
        """
        save(self._folder, self._reviewer, wnids()[class_index], image_id, review, expected)

    def _read(self, class_index: int) -> Votes:
        of_class = self._cache.of_class(wnids()[class_index])
        return {(class_index, image_id): by_reviewer for image_id, by_reviewer in of_class.items()}

    def _hold_against_pictures(self, votes: Votes) -> None:
        reviewed = self._index.index.intersection(sorted({image_id for _, image_id in votes}))
        check_reviews(votes, self._index.loc[reviewed])
