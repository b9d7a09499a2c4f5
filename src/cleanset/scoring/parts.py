"""Finished parts of a long computation: what they have, and a short start that ends once there are some."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import ParamSpec

Arguments = ParamSpec("Arguments")

START_SECONDS = 20.0
"""A start ends with the first part that is kept after that long; shorter ones would measure how processes begin."""
_IS_START: ContextVar[bool] = ContextVar("a start alone", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedPart:
    """What finished shards, groups or epochs of a computation have."""

    images: int = 0
    """Number of images in them."""
    seconds: float = 0.0
    """Seconds by the clock that they took, without those between interrupted runs; 0: not known."""


NOTHING = FinishedPart()


class StartEndedError(Exception):
    """A start has lasted long enough; caught by `only_start`."""


@contextmanager
def only_start() -> Iterator[None]:
    """Within the block a computation ends early: it raises StartEndedError, with which the block ends."""
    token = _IS_START.set(True)
    try:
        with suppress(StartEndedError):
            yield
    finally:
        _IS_START.reset(token)


def ending_start(keep: Callable[Arguments, None], *, parts: int, workers: int = 1) -> Callable[Arguments, None]:
    """The function that keeps a part; within `only_start` it ends the computation in time, else it is `keep` itself.

    A start ends once START_SECONDS are over and each of the workers can have finished a part, or with the last of all
    `parts`: the computation itself then finds all of them, and finishes them.
    """
    if not _IS_START.get():
        return keep
    begin = monotonic()
    count = 0

    def keep_in_start(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        nonlocal count
        keep(*args, **kwargs)
        count += 1
        if count >= parts or (count >= workers and monotonic() - begin >= START_SECONDS):
            raise StartEndedError

    return keep_in_start
