"""`MeasureResults`: what a function measured, as text, table, LaTeX and a picture, and where its files are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType

from cleanset.evaluation.table import Cell, MeasureTable
from cleanset.plumbing.json_files import JsonObject

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 80
"""Columns of the printed results."""
_LEFT = 170
"""Pixels for the names of models in a picture."""
_RIGHT = 300
"""Pixels of its axis."""
_ROW = 18


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasureResults:
    """Measures with their intervals; printed as the command of that name prints them, in a notebook as a picture.

    `str()` and `table()` give the printed text, `to_pandas()` a row for each measure, `latex()` and `markdown()` tables
    for a paper, `as_dict()` the content of the JSON file that `cleanset compare` takes.
    """

    name: str
    """The function, and what it was asked, in a phrase."""
    text: RenderableType
    """What the command prints."""
    tables: Sequence[MeasureTable]
    """The tables for a paper."""
    rows: "pd.DataFrame"
    """A row for each measure: value and ends of its interval."""
    content: JsonObject
    """The content of the JSON."""
    folder: Path | None = None
    """The folder with all files; without `out`, it lasts as long as the results."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """By model, and attack, why something could not be measured."""
    _kept: TemporaryDirectory[str] | None = None

    def __repr__(self) -> str:
        return f"MeasureResults({self.name})"

    def __str__(self) -> str:
        return printed(self.text)

    def table(self) -> str:
        """The text that the command prints."""
        return str(self)

    def to_pandas(self) -> "pd.DataFrame":
        """A row for each measure."""
        return self.rows.copy()

    def latex(self) -> str:
        """The tables for a paper, for the package booktabs."""
        return "\n".join(each.in_form("latex") for each in self.tables)

    def markdown(self) -> str:
        """The tables as Markdown."""
        return "\n".join(each.in_form("markdown") for each in self.tables)

    def as_dict(self) -> JsonObject:
        """The content of the JSON file of results."""
        return self.content

    def _repr_html_(self) -> str:
        """The tables with their notes, and a picture of the first measure of each."""
        return "\n".join(f"{html_table(each)}{picture(each)}" for each in self.tables)


def printed(text: RenderableType) -> str:
    """What a terminal of 80 columns would show, without colors."""
    console = Console(width=WIDTH, color_system=None)
    with console.capture() as found:
        console.print(text, highlight=False)
    return found.get()


def html_table(table: MeasureTable) -> str:
    """A table for a notebook, with its caption above and its notes below."""
    head = "".join(f"<th>{escape(title)}</th>" for title in [*table.labels, *table.titles])
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in [*texts, *(each.in_terminal() for each in cells)])}</tr>"
        for texts, cells in table.numbered_rows()
    )
    notes = "".join(f"<li>{escape(note.name)}: {escape(note.text)}</li>" for note in table.all_notes)
    below = f"<details><summary>Notes</summary><ul>{notes}</ul></details>" if notes else ""
    return f"<table><caption>{escape(table.caption)}</caption><tr>{head}</tr>{rows}</table>{below}"


def picture(table: MeasureTable) -> str:
    """The first measure of each row with its interval as SVG; empty without any."""
    found = [(texts[-1], _numbers(cells[0])) for texts, cells in table.rows if cells]
    shown = [(name, numbers) for name, numbers in found if numbers]
    if not shown:
        return ""
    end = max(100.0, *(max(numbers) for _, numbers in shown))
    height = _ROW * len(shown) + 24
    lines = []
    for place, (name, (value, *ends)) in enumerate(shown):
        y = _ROW * place + 12
        at = [_LEFT + _RIGHT * max(each, 0.0) / end for each in (value, *ends)]
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(name.split(chr(10))[0])}</text>')
        if len(at) == 3:
            lines.append(f'<line x1="{at[1]:.1f}" x2="{at[2]:.1f}" y1="{y}" y2="{y}" stroke="currentColor"/>')
        lines.append(f'<circle cx="{at[0]:.1f}" cy="{y}" r="4" fill="currentColor"/>')
    for tick in (0, end / 2, end):
        x = _LEFT + _RIGHT * tick / end
        lines.append(f'<text x="{x:.1f}" y="{height - 4}" text-anchor="middle">{tick:g}</text>')
    label = escape(table.titles[0])
    return (
        f'<svg width="{_LEFT + _RIGHT + 30}" height="{height}" font-size="12" fill="currentColor" role="img" '
        f'aria-label="{label}">{"".join(lines)}</svg><p>{label}</p>'
    )


def _numbers(cell: Cell) -> list[float]:
    """A value and the ends of its interval; empty for a cell without a number."""
    try:
        return [float(text.replace(",", "")) for text in cell.texts if text]
    except ValueError:  # a range, of a measure that signs make uncertain
        return []


def as_content(found: Any) -> JsonObject:
    """A JSON object from what a command writes."""
    content: JsonObject = dict(found)
    return content
