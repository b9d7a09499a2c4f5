"""What this process uses of the machine: processor cores, freed memory, garbage collection, names of files."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

from cleanset.errors import CleansetError


def available_cores() -> int:
    """The number of cores that this process may run on, as far as the system reports it; else of all cores."""
    # only Linux has it; os.cpu_count() would ignore taskset and the cpusets of containers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def max_workers() -> int | None:
    """The number in CLEANSET_WORKERS, the most workers of a computation on this machine; None if it is not set.

    Raises CleansetError for anything but a positive number.
    """
    text = os.environ.get("CLEANSET_WORKERS", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise CleansetError(
            f"CLEANSET_WORKERS: {text[:40]!r}; expected a number of workers, such as 4: correct or unset it"
        )
    return int(text)


def check_file_names(names: Iterable[str]) -> None:
    """Raise CleansetError if this Python would look for files of these names, which are UTF-8, under other bytes."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8" and (name := next((each for each in names if not each.isascii()), None)):
        raise CleansetError(
            f"{name}: a file's name in UTF-8, and this Python takes names for {encoding}; expected PYTHONUTF8=1 in its "
            "environment"
        )


MANY_OBJECTS = 100_000
"""Objects made in a pause that make the collector skip them for good."""


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause garbage collection, which takes a quarter of the time while millions of lasting objects are made.

    Nor do later collections look through as many: the first of them would take half a second for a million.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY_OBJECTS:
            gc.freeze()
        if was_enabled:
            gc.enable()


@cache
def keep_freed_memory() -> None:
    """Let this process keep the memory that it has freed, where the C library is glibc; elsewhere nothing happens.

    A network on the CPU takes and frees tens of megabytes at each layer, and decoding an image takes and frees a few.
    glibc gives much of it back to the system at once, which then has to clear every page again: up to half of the time
    of a small float64 network, and a quarter of decoding time. Call it before the threads are started that compute.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)  # no allocation has pages of its own
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)  # bytes
        mallopt(_M_ARENA_MAX, available_cores())  # beyond the first, which alone keeps everything


# parameters of mallopt, from glibc's malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4
_M_ARENA_MAX = -8
