"""How fast the reviews go, and how long the rest will take."""

MAX_GAP_SECONDS = 90.0
"""A longer time between two verdicts is a pause, and does not count."""

MIN_CLASSES = 3
"""Settled classes before the time left is estimated."""


class Pace:
    """The time that verdicts took, pauses left out, and the classes settled in it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.settled = 0
        self._last: float | None = None

    def count_verdict(self, now: float, settled: bool) -> None:
        """Count one verdict, at `now` in seconds, and whether it settled its class."""
        if self._last is not None and now - self._last <= MAX_GAP_SECONDS:
            self.seconds += now - self._last
        self._last = now
        self.settled += settled

    def seconds_left(self, classes: int) -> float | None:
        """Seconds that so many classes will take; None as long as too few are settled."""
        return classes * self.seconds / self.settled if self.settled >= MIN_CLASSES else None


def in_words(seconds: float) -> str:
    """Return a duration in words: 40 s, 5 min, 2 h 10 min."""
    if seconds < 60:
        return f"{max(10, round(seconds / 10) * 10)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
