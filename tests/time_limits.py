"""A time limit for code that would wait for ever where it is wrong."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlow(BaseException):
    """Not an Exception, so that nothing takes it for an ordinary failure."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail in a block that takes longer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
