"""A short start of a training, which a plan takes its speed from; the training continues after its epochs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic
from typing import TypeVar

State = TypeVar("State")

START_SECONDS = 20.0
"""A start ends with the first epoch that is kept after that long."""
START_SHARE = 0.1
"""A start ends with that share of the epochs, but not before the first one."""
_IS_START: ContextVar[bool] = ContextVar("a start alone", default=False)


class StartEndedError(Exception):
    """A start has lasted long enough; caught by `only_start`."""


@contextmanager
def only_start() -> Iterator[None]:
    """Within the block a training ends early: it raises StartEndedError, with which the block ends."""
    token = _IS_START.set(True)
    try:
        with suppress(StartEndedError):
            yield
    finally:
        _IS_START.reset(token)


def ending_start(save: Callable[[State], None], epochs: int) -> Callable[[State], None]:
    """The function that saves an epoch, of `epochs` left; within `only_start` it ends the training in time."""
    if not _IS_START.get():
        return save
    begin = monotonic()
    saved = 0

    def save_in_start(state: State) -> None:
        nonlocal saved
        save(state)
        saved += 1
        if saved >= START_SHARE * epochs or monotonic() - begin >= START_SECONDS:
            raise StartEndedError

    return save_in_start
