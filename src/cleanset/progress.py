"""Notices and progress bars on standard error; the processor cores, cache folder and memory of this process."""

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from cleanset.errors import CleansetError

Item = TypeVar("Item")
Found = TypeVar("Found")


def print_notice(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr)


def tracked(items: Iterable[Item], total: int, text: str, step: int = 1) -> Iterator[Item]:
    """Yield `items`, moving a bar named `text` on by `step` of `total` after each."""
    with _bar() as progress:
        task = progress.add_task(text, total=total)
        for item in items:
            yield item
            # the last batch may be smaller than a step
            progress.update(task, completed=min(total, progress.tasks[task].completed + step))


def found_in_threads(function: Callable[[Item], Found], items: Collection[Item], text: str) -> list[Found]:
    """The results of a function for each item, in order: computed by a thread on each core, with a bar named `text`.

    Threads suffice where reading, hashing, decoding and encoding release the lock, as they mostly do.
    """
    with ThreadPoolExecutor(available_cores()) as pool:
        return list(tracked(pool.map(function, items), len(items), text))


@contextmanager
def rate_bar(total: int, text: str) -> Iterator[Callable[[int, float], None]]:
    """A bar named `text`, and the function that moves it on, which any thread may call.

    Its arguments are the number of further images that are done, and the share of the time so far that
    was spent waiting for data; the bar shows that share, and images per second.
    """
    rate = TextColumn("{task.fields[rate]:,.0f} images/s, {task.fields[waiting]:.0%} of the time waiting for data")
    start = perf_counter()
    with _bar(rate) as progress:
        task = progress.add_task(text, total=total, rate=0.0, waiting=0.0)

        def move(images: int, waiting: float) -> None:
            done = progress.tasks[0].completed + images
            progress.update(task, advance=images, rate=done / (perf_counter() - start), waiting=waiting)

        yield move


@contextmanager
def training_bar(text: str, is_shown: bool = True) -> Iterator[Callable[[int, int, int, float, float], None]]:
    """A bar named `text` for a training, and the function that moves it on.

    Its arguments are the number of finished steps and of all, epoch, loss, and images per second, which the bar shows
    beside the time left. Nothing is shown unless `is_shown`.
    """
    # one refresh a second: two trainings that share a terminal take turns in its last line, and both can be read
    with _bar(TextColumn("{task.fields[last]}"), is_shown=is_shown, refresh_per_second=1) as progress:
        task = progress.add_task(text, total=None, last="")

        def move(step: int, steps: int, epoch: int, loss: float, rate: float) -> None:
            last = f"epoch {epoch}, loss {loss:.4f}, {rate:,.0f} images/s"
            progress.update(task, completed=step, total=steps, last=last)

        yield move


def _bar(*more: ProgressColumn, is_shown: bool = True, refresh_per_second: float = 10) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more, TimeRemainingColumn())
    disable = not (is_shown and console.is_terminal)
    return Progress(*columns, console=console, disable=disable, refresh_per_second=refresh_per_second)


def available_cores() -> int:
    """The number of cores that this process may run on, as far as the system reports it; else of all cores."""
    # only Linux has it; os.cpu_count() would ignore taskset and the cpusets of containers
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_folder() -> Path:
    """The absolute folder of downloads and read text, for all editions: CLEANSET_CACHE, else ~/.cache/cleanset."""
    return Path(os.environ.get("CLEANSET_CACHE") or Path.home() / ".cache" / "cleanset").absolute()


@contextmanager
def writing_cache() -> Iterator[None]:
    """Name the cache and the remedy if a system error in the block comes from it: no room, no permission."""
    try:
        yield
    except OSError as error:
        cache = cache_folder()
        # a write names no file
        at = Path(error.filename).absolute() if isinstance(error.filename, str) else cache
        if error.strerror is None or not (at.is_relative_to(cache) or cache.is_relative_to(at)):
            raise
        raise CleansetError(
            f"{cache}: {error.strerror}; expected a folder for sets, with room, that can be written: free "
            "some, or set CLEANSET_CACHE to another folder"
        ) from None


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause garbage collection, which takes a quarter of the time while millions of lasting objects are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
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


_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8
"""Parameters of mallopt, from glibc's malloc.h."""
