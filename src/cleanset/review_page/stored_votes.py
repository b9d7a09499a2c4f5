"""The votes of a class as they are on disk now, checked against the images; and writing one."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd

from cleanset.dataset.ilsvrc import wnids
from cleanset.errors import CleansetError
from cleanset.review.cache import ReviewCache
from cleanset.review.save import save
from cleanset.review.store import Votes, check_reviews
from cleanset.review.verdicts import Review


class StoredVotes:
    """The reviews in `folder`, which others may change at any time; `reviewer` writes there.

    `official_images`: the images are those of the official archive, so that a review may name one by its id alone.
    """

    def __init__(
        self, folder: Path, reviewer: str, index: pd.DataFrame, min_crop_pixels: int, official_images: bool = False
    ) -> None:
        self._folder, self._reviewer, self._min_crop_pixels = folder, reviewer, min_crop_pixels
        self._official_images = official_images
        self._cache = ReviewCache(folder)
        self._index = index.set_index("image_id", drop=False)
        self._checked: dict[int, Votes] = {}

    def check(self, classes: Iterable[int]) -> None:
        """Read and check many classes in one go, which is faster; `of_class` reports what is wrong in one."""
        found: dict[int, Votes] = {}
        for class_index in classes:
            with suppress(CleansetError, OSError):
                found[class_index] = self._read(class_index)
        with suppress(CleansetError):
            self._check_against_images({key: each for votes in found.values() for key, each in votes.items()})
            self._checked |= found

    def of_class(self, class_index: int) -> Votes:
        """The votes on a class; the same object as before if nothing changed. Raises CleansetError if one is wrong."""
        votes = self._read(class_index)
        if votes != self._checked.get(class_index):
            self._check_against_images(votes)
            self._checked[class_index] = votes
        return self._checked[class_index]

    def save(self, class_index: int, image_id: str, review: Review | None, expected: Review | None) -> None:
        """Write this reviewer's verdict (None: remove it) where `expected` stands; on the disk on return.

        Raises CleansetError or OSError as `review.save.save` does.
        """
        save(self._folder, self._reviewer, wnids()[class_index], image_id, review, expected)

    def _read(self, class_index: int) -> Votes:
        of_class = self._cache.votes_on_class(wnids()[class_index])
        return {(class_index, image_id): by_reviewer for image_id, by_reviewer in of_class.items()}

    def _check_against_images(self, votes: Votes) -> None:
        reviewed = self._index.index.intersection(sorted({image_id for _, image_id in votes}))
        check_reviews(votes, self._index.loc[reviewed], self._min_crop_pixels, self._official_images)
