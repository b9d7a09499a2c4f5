"""A cache of review files for the review page, which asks for the votes on a class at each step."""

from pathlib import Path

from cleanset.review.store import read_file, review_file, reviewer_folders
from cleanset.review.verdicts import Vote

_Stamp = tuple[int, int, int]
"""Nanoseconds of the last change, bytes, inode."""


class ReviewCache:
    """The current content of `reviews/`; a file is read again only when it has changed, by whomever."""

    def __init__(self, reviews: Path) -> None:
        self._reviews = reviews
        self._read: dict[Path, tuple[_Stamp, list[Vote]]] = {}

    def votes_on_class(self, wnid: str) -> dict[str, dict[str, Vote]]:
        """By image id: the vote of each reviewer, by name. Raises CleansetError for a file that is not valid."""
        votes: dict[str, dict[str, Vote]] = {}
        for folder in reviewer_folders(self._reviews):
            for vote in self._votes(review_file(self._reviews, folder.name, wnid)):
                votes.setdefault(vote.image_id, {})[folder.name] = vote
        return votes

    def _votes(self, path: Path) -> list[Vote]:
        try:
            state = path.stat()  # before reading: a change in between is seen the next time
            stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
            if path not in self._read or self._read[path][0] != stamp:
                self._read[path] = stamp, read_file(path)
        except FileNotFoundError:
            self._read.pop(path, None)
            return []
        return self._read[path][1]
