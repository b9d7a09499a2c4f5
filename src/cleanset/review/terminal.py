"""The form of the reviews' tables in a terminal: numbers to the right, the first columns to the left."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table


def grid(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    footer: Sequence[object] = (),
    *,
    left: int = 1,
    no_wrap: bool = False,
) -> Table:
    """A table for the terminal: its first `left` columns are aligned to the left, numbers to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=bool(footer))
    for place, heading in enumerate(headings):
        last = str(footer[place]) if footer else ""
        table.add_column(heading, last, justify="left" if place < left else "right", no_wrap=no_wrap)
    for row in rows:
        table.add_row(*map(str, row))
    return table
