"""Notices and progress bars on standard error, and work in threads behind a bar."""

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from cleanset.plumbing.machine import available_cores
from cleanset.plumbing.waiting import repeated_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

Item = TypeVar("Item")
Found = TypeVar("Found")

MAX_HANDED_OVER = 64
"""Largest number of items that a thread gets at a time, and the least number of times that each of them gets some."""


def print_notice(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr)


def tracked(items: Iterable[Item], total: int, text: str, step: int = 1, *, workers: int = 1) -> Iterator[Item]:
    """Yield `items`, moving a bar named `text` on by `step` of `total` after each; `workers`: their number."""
    with _bar(_rate_column()) as progress:
        task = progress.add_task(text, total=total, workers=workers)
        for item in items:
            yield item
            # the last batch may be smaller than a step
            progress.update(task, completed=min(total, progress.tasks[task].completed + step))


def found_in_threads(
    function: Callable[[Item], Found],
    items: Iterable[Item],
    text: str,
    known: Callable[[Item], Found | None] = lambda _: None,
) -> list[Found]:
    """The results of a function for each item, in order: computed by a thread on each core, with a bar named `text`.

    Threads suffice where reading, hashing, decoding and encoding release the lock, as they mostly do. To hand over a
    small file takes longer than reading it, so that of many items a thread gets several. `known`: the result of an item
    that is found at once, without a thread; None for others.
    """
    workers = available_cores()
    every = [(item, known(item)) for item in items]
    left = [item for item, found in every if found is None]
    size = max(1, min(MAX_HANDED_OVER, len(left) // (workers * MAX_HANDED_OVER)))
    batches = [left[start : start + size] for start in range(0, len(left), size)]
    with ThreadPoolExecutor(workers) as pool:
        made = pool.map(lambda batch: [function(item) for item in batch], batches)
        others = [each for batch in tracked(made, len(left), text, size, workers=workers) for each in batch]
    in_order = iter(others)
    return [next(in_order) if found is None else found for _, found in every]


@contextmanager
def rate_bar(
    total: int, text: str, *, finished: int = 0, workers: int = 1
) -> Iterator[Callable[[int, float | None], None]]:
    """A bar named `text`, and the function that moves it on, which any thread may call.

    `finished`: the number of images, of `total`, that an earlier run has done; neither rate nor time left counts them.
    `workers`: their number, which the bar shows if there are several. The arguments of the function are the number of
    further images that are done, and the share of the time so far that was spent waiting for data, None if it is not
    known; the bar shows that share, and images per second.
    """
    from rich.progress import TextColumn

    start = perf_counter()
    with _bar(TextColumn("{task.fields[rate]}")) as progress:
        task = progress.add_task(text, total=total, completed=finished, rate="")

        def move(images: int, waiting: float | None) -> None:
            done = progress.tasks[task].completed + images - finished
            progress.update(task, advance=images, rate=_rate(done / (perf_counter() - start), workers, waiting))

        yield move


def _rate(images_per_second: float, workers: int, waiting: float | None) -> str:
    # an attack may take minutes for an image
    rate = f"{images_per_second:,.{0 if images_per_second >= 10 else 2}f} images/s{workers_text(workers)}"
    return rate if waiting is None else f"{rate}, {waiting:.0%} of the time waiting for data"


@contextmanager
def image_bar(total: int, text: str) -> Iterator[Callable[[int], None]]:
    """A bar named `text` with the rate, and the function that moves it on by a number of images, from any thread."""
    with _bar(_rate_column()) as progress:
        task = progress.add_task(text, total=total)
        yield lambda images: progress.advance(task, images)


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A finished step of a training."""

    number: int
    """Its number, from 1."""
    total: int
    """Number of steps of the whole training."""
    epoch: int
    """Its epoch, from 1."""
    loss: float
    """The loss of its batch."""
    images_per_second: float
    """Images per second since the training began."""


@contextmanager
def training_bar(text: str, *, is_shown: bool = True) -> Iterator[Callable[[TrainingStep], None]]:
    """A bar named `text` for a training, and the function that moves it on after a step.

    It shows epoch, loss and images per second next to the time left. Nothing is shown unless `is_shown`.
    """
    from rich.progress import TextColumn

    # one refresh a second: two trainings that share a terminal take turns in its last line, and both can be read
    with _bar(TextColumn("{task.fields[last]}"), is_shown=is_shown, refresh_per_second=1) as progress:
        task = progress.add_task(text, total=None, last="")

        def move(step: TrainingStep) -> None:
            last = f"epoch {step.epoch}, loss {step.loss:.4f}, {step.images_per_second:,.0f} images/s"
            progress.update(task, completed=step.number, total=step.total, last=last)

        yield move


def workers_text(workers: int) -> str:
    """The words of a bar for several workers; empty for one."""
    return f" by {workers} workers" if workers > 1 else ""


def rate_text(speed: float | None, workers: int) -> str:
    """The rate of a bar: 12/s by 4 workers, or 1.4 s each; empty while it is not known."""
    if not speed:
        return ""
    rate = f"{speed:,.1f}/s" if speed >= 1 else f"{1 / speed:,.1f} s each"
    return rate + workers_text(workers)


def _rate_column() -> "ProgressColumn":
    """The rate of a task, and the number of its workers."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(rate_text(task.finished_speed or task.speed, int(task.fields.get("workers", 1))))

    return RateColumn()


@contextmanager
def _bar(*more: "ProgressColumn", is_shown: bool = True, refresh_per_second: float = 10) -> "Iterator[Progress]":
    """A bar with further columns; without a terminal a line at times, since no bar can be drawn there."""
    # most commands draw no bar, and need not wait for this import
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more, TimeRemainingColumn())
    disable = not (is_shown and (console.is_terminal or _draws_widgets(console)))
    with Progress(*columns, console=console, disable=disable, refresh_per_second=refresh_per_second) as progress:
        if disable and is_shown:
            with repeated_lines(lambda: _line(progress)):
                yield progress
        else:
            yield progress


def _draws_widgets(console: "Console") -> bool:
    """Whether a notebook shows bars, as widgets."""
    return console.is_jupyter and find_spec("ipywidgets") is not None


def _line(progress: "Progress") -> str:
    """How far the work of a bar is."""
    (task,) = progress.tasks
    of = "" if task.total is None else f" of {task.total:,.0f}"
    return f"{task.description}: {task.completed:,.0f}{of}"
