"""The form of the reviews' tables in a terminal: numbers to the right, the first columns to the left."""

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

MAX_SHORT = 14
"""Characters of a cell that is not broken into lines."""


def grid(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    footer: Sequence[object] = (),
    *,
    left: int = 1,
) -> Table:
    """A table for the terminal: its first `left` columns are aligned to the left and folded, numbers to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_footer=bool(footer))
    texts = [[str(each) for each in row] for row in rows]
    for place, heading in enumerate(headings):
        last = str(footer[place]) if footer else ""
        # a number is never cut; a coefficient with its interval may take two lines
        is_short = all(len(row[place]) <= MAX_SHORT for row in texts)
        table.add_column(
            heading,
            last,
            justify="left" if place < left else "right",
            no_wrap=place >= left and is_short,
            overflow="fold",
        )
    for row in texts:
        table.add_row(*row)
    return table
