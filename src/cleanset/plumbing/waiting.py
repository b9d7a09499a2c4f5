"""Lines on standard error for people who wait: that work continues, if no progress bar reports it."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from threading import Event, Thread

QUIET_SECONDS = 2.0
"""Time after which a command says what it is doing."""

LINE_SECONDS = 30.0
"""Time between two lines of one computation if no bar can be drawn, as in a file or the log of a job."""


@contextmanager
def announced(text: str, quiet_seconds: float = QUIET_SECONDS) -> Iterator[None]:
    """Print `text` on standard error once the block has taken `quiet_seconds`; nothing for a faster one."""
    with _after(lambda: f"{text} …", [quiet_seconds]):
        yield


@contextmanager
def repeated_lines(line: Callable[[], str], line_seconds: float | None = None) -> Iterator[None]:
    """Print `line()` on standard error every `line_seconds`, by default LINE_SECONDS, as long as the block takes."""
    with _after(line, repeat(line_seconds or LINE_SECONDS)):
        yield


@contextmanager
def _after(line: Callable[[], str], waits: Iterable[float]) -> Iterator[None]:
    """Print a line after each of the waits, in seconds, until the block ends."""
    ended = Event()

    def tell() -> None:
        for seconds in waits:
            if ended.wait(seconds):
                return
            print(line(), file=sys.stderr, flush=True)

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
