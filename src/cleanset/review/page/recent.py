"""The verdicts given since the server started: their order, and the time they took. None of it is written to disk."""

from collections.abc import Iterable
from dataclasses import dataclass

ImageKey = tuple[int, str]
"""Class index and image id."""


@dataclass
class Visit:
    """The time from opening a class until the last verdict there, in seconds, and the number of verdicts."""

    start: float
    end: float
    verdicts: int = 0


class RecentVerdicts:
    """The verdicts of a session, newest last, with the mean time of a verdict in the same visit to the class.

    The mean, because a reviewer may look at all images of a class before giving several verdicts at once: the time
    between two verdicts then says nothing about either.
    """

    def __init__(self) -> None:
        self._visits: dict[int, Visit] = {}
        self._of_verdict: dict[ImageKey, Visit] = {}

    def open_class(self, class_index: int, now: float) -> None:
        """Begin a visit to a class, at `now` in seconds."""
        self._visits[class_index] = Visit(now, now)

    def count_verdict(self, key: ImageKey, now: float) -> None:
        """Count a verdict, given at `now`."""
        visit = self._visits.setdefault(key[0], Visit(now, now))
        # last, although it may have had a verdict before
        self._of_verdict.pop(key, None)
        self._of_verdict[key] = visit
        visit.end, visit.verdicts = now, visit.verdicts + 1

    def forget(self, key: ImageKey) -> None:
        """Leave out a verdict that was taken back."""
        self._of_verdict.pop(key, None)

    def newest_first(self, keys: Iterable[ImageKey]) -> list[ImageKey]:
        """The keys with a verdict in this session, the newest first, then the others in the order given."""
        wanted = dict.fromkeys(keys)
        given = [key for key in reversed(self._of_verdict) if key in wanted]
        return [*given, *(key for key in wanted if key not in self._of_verdict)]

    def seconds(self, key: ImageKey) -> float | None:
        """Mean seconds of a verdict in the visit in which this one was given; None if it is older than the session."""
        visit = self._of_verdict.get(key)
        return (visit.end - visit.start) / visit.verdicts if visit else None
