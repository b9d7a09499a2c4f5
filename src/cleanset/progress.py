"""A progress bar on standard error, shown only to a person at a terminal."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")


def tracked(items: Iterable[Item], total: int, text: str, step: int = 1) -> Iterator[Item]:
    """Yield `items`, moving a bar named `text` on by `step` of `total` after each."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(text, total=total)
        for item in items:
            yield item
            progress.update(task, completed=min(total, progress.tasks[task].completed + step))
