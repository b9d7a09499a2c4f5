"""The time that a reviewer's verdicts take: for each, and for the remaining classes."""

from collections.abc import Iterable
from dataclasses import dataclass

from cleanset.review.verdicts import ImageKey


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
        visit.end = now
        visit.verdicts += 1

    def forget(self, key: ImageKey) -> None:
        """Leave out a verdict that was taken back."""
        self._of_verdict.pop(key, None)

    def newest_first(self, keys: Iterable[ImageKey]) -> list[ImageKey]:
        """The keys with a verdict in this session, the newest first, then the others in the order given."""
        wanted = dict.fromkeys(keys)
        given = [key for key in reversed(self._of_verdict) if key in wanted]
        return [*given, *(key for key in wanted if key not in self._of_verdict)]

    def seconds(self, key: ImageKey) -> float | None:
        """Mean seconds of a verdict in this one's visit; None if it is older than the session."""
        visit = self._of_verdict.get(key)
        return (visit.end - visit.start) / visit.verdicts if visit else None


# longest time between two verdicts that counts; a longer one is a pause
MAX_GAP_SECONDS = 90.0

MIN_SETTLED_CLASSES = 3
"""Settled classes needed to estimate the time left."""


class Pace:
    """The time spent on verdicts, without pauses, and the number of classes settled in it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.settled = 0
        self._last: float | None = None

    def count_verdict(self, now: float, *, settled: bool) -> None:
        """Count one verdict, at `now` in seconds, and whether it settled its class."""
        if self._last is not None and now - self._last <= MAX_GAP_SECONDS:
            self.seconds += now - self._last
        self._last = now
        self.settled += settled

    def seconds_left(self, classes: int) -> float | None:
        """Estimated seconds for a number of classes; None while too few are settled."""
        return classes * self.seconds / self.settled if self.settled >= MIN_SETTLED_CLASSES else None


def in_words(seconds: float) -> str:
    """A duration in words, such as 40 s, 5 min, 2 h 10 min."""
    if seconds < 60:
        return f"{max(10, round(seconds / 10) * 10)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
