"""The layout of any table of measures, whatever its columns and digits: for a terminal, as LaTeX, Markdown, CSV."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from cleanset.evaluation.measures import Measure
from cleanset.evaluation.notes import Note
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.markup import markdown_text
from cleanset.statistics.formats import NOTHING, decimal, digits_of, p_value

GAP = 2
"""Blanks between columns in a terminal."""
SHORT: dict[str, Any] = {"no_wrap": True}
NUMBER = SHORT | {"justify": "right", "vertical": "top"}
WORDS = SHORT | {"overflow": "ellipsis", "min_width": 16}
# styles of columns: the names of models are never cut
MODEL: dict[str, Any] = {"overflow": "fold", "min_width": 12, "vertical": "top"}
STYLES = {
    **dict.fromkeys(("model", "compared with", "run", "network", "number"), MODEL),
    **dict.fromkeys(("attack", "pair", "wnid", "class"), SHORT),
    "#": NUMBER,
}
"""Styles of columns of text by their titles; others have WORDS."""

NO_VALUE = "no value"
"""The name of the note on missing values."""
ESCAPES = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$",
})  # fmt: skip
"""The characters that mean something to LaTeX, and how they are printed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A measure and the ends of its interval as texts; empty without an interval."""

    value: str = ""
    low: str = ""
    high: str = ""
    unit: str = ""
    problem: str = ""
    """The reason why there is no value; a table has it in a note, whose number is next to a dash."""

    def __post_init__(self) -> None:
        """Raise ValueError for no value without a reason."""
        if self.value in ("", NOTHING) and not self.problem:
            raise ValueError("a cell without a value; expected the reason why there is none")

    @property
    def texts(self) -> tuple[str, str, str]:
        """The value and the ends of its interval."""
        return self.value, self.low, self.high

    def in_terminal(self, between: str = " ") -> str:
        """The value with its unit, and the interval, with a space or the end of the line `between` them.

        Outside of a table the reason for no value is next to a dash.
        """
        if not self.low:
            return f"{self.value}{self.unit}" or f"{NOTHING} ({self.problem})"
        interval = f"{self.low}{' to ' if '-' in self.low else '–'}{self.high}"
        return f"{self.value}{self.unit}{between}({interval})"

    def in_latex(self) -> str:
        """The value, and its interval in small type."""
        value, low, high = (text.translate(ESCAPES).replace("-", "$-$").replace(NOTHING, "--") for text in self.texts)
        return rf"{value} {{\scriptsize [{low}, {high}]}}" if low else value


def cell(
    value: float | None,
    interval: Sequence[float | None] | None = None,
    factor: float = 100,
    digits: int = 2,
    unit: str = "",
    problem: str = "",
) -> Cell:
    """A measure times a factor, with its interval; where it is undefined, the reason for it, `problem`.

    More digits are shown of an interval that would look like a point.
    """
    numbers = [each for each in (value, *(interval or ())) if each is not None and math.isfinite(each)]
    if value is None or not math.isfinite(value):
        return Cell(problem=problem)
    if len(numbers) == 3:
        digits = digits_of(numbers[1:], digits, factor)
    texts = [decimal(each, digits, factor) for each in numbers]
    first, low, high = texts if len(texts) == 3 else (texts[0], "", "")
    return Cell(first, low, high, unit)


def measure_cell(found: Measure, factor: float = 100, digits: int = 2, unit: str = "") -> Cell:
    """A measure times a factor, with its interval."""
    return cell(found.value, found.interval, factor, digits, unit, problem=found.problem)


def p_cell(p: float, problem: str) -> Cell:
    """A p-value; NaN for what was not tested, with the reason."""
    return Cell(p_value(p)) if math.isfinite(p) else Cell(problem=problem)


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """A table of measures: texts, then a cell for each of `titles`."""

    labels: Sequence[str]
    """The titles of the texts."""

    titles: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[Cell]]]
    caption: str = ""
    """What the numbers are, in a phrase."""

    notes: Sequence[Note] = ()
    """What readers of a paper must know; see `table_notes`."""

    @property
    def problems(self) -> list[str]:
        """The reasons for missing values, each once."""
        return list(dict.fromkeys(each.problem for _, cells in self.rows for each in cells if each.problem))

    @property
    def problem_notes(self) -> list[str]:
        """The notes on missing values, numbered."""
        return [f"({number}) {problem}" for number, problem in enumerate(self.problems, start=1)]

    @property
    def all_notes(self) -> list[Note]:
        """The note on missing values, if there are some, and the others."""
        return [*([Note(NO_VALUE, "; ".join(self.problem_notes))] if self.problems else []), *self.notes]

    def numbered_rows(self) -> Iterator[tuple[Sequence[str], list[Cell]]]:
        """Yield the rows with a dash and the number of its note in place of each missing value."""
        numbers = {problem: f"{NOTHING} ({number})" for number, problem in enumerate(self.problems, start=1)}
        for texts, cells in self.rows:
            yield texts, [replace(each, value=numbers[each.problem]) if each.problem else each for each in cells]

    def in_terminal(self, between: str = " ", first: str | None = None) -> "TerminalTable":
        """The table without lines; `between`: between a value and its interval; `first`: in the first cell of a row."""
        return TerminalTable(self, between, between if first is None else first)

    def in_form(self, form: str) -> str:
        """The table for a paper, as latex, markdown or csv."""
        return {"latex": self._as_latex, "markdown": self._as_markdown, "csv": self._as_csv}[form]()

    def _as_latex(self) -> str:
        """A float with the caption, a tabular for the package booktabs, and the notes in small type."""
        head, *rows = (
            rf"{' & '.join([*(text.translate(ESCAPES) for text in texts), *cells])} \\"
            for texts, cells in [
                ([*self.labels, *self.titles], []),
                *((texts, [each.in_latex() for each in cells]) for texts, cells in self.numbered_rows()),
            ]
        )
        begin = rf"\begin{{tabular}}{{{'l' * len(self.labels)}{'r' * len(self.titles)}}}"
        notes = [rf"{text.translate(ESCAPES)}\par" for text in map(_note_text, self.all_notes)]
        below = [r"\par\smallskip{\footnotesize\raggedright", *notes, "}"] if notes else []
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{self.caption.translate(ESCAPES)}}}",
            begin,
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *below,
            r"\end{table}",
            "",
        ]
        return "\n".join(lines)

    def _as_markdown(self) -> str:
        """A table, and below it the caption and the notes."""
        rule = ["---"] * len(self.labels) + ["---:"] * len(self.titles)
        rows = [
            [*texts, *(replace(each, unit="").in_terminal() for each in cells)] for texts, cells in self.numbered_rows()
        ]
        cells = [list(map(markdown_text, row)) for row in ([*self.labels, *self.titles], rule, *rows)]
        notes = [f"- {markdown_text(text)}" for text in map(_note_text, self.all_notes)]
        below = [*([""] if notes else []), *notes]
        return "\n".join([*(f"| {' | '.join(row)} |" for row in cells), "", markdown_text(self.caption), *below, ""])

    def _as_csv(self) -> str:
        """CSV with three columns for each title that has intervals, the value and the ends; then a column for a note.

        If values are missing, a further column gives the reasons.

        A note is in every row, as a comment would break readers, and rows are joined with those of other tables.
        """
        ends = [
            ["", ", low", ", high"] if any(cells[place].low for _, cells in self.rows) else [""]
            for place in range(len(self.titles))
        ]
        header = [f"{title}{end}" for title, of_title in zip(self.titles, ends, strict=True) for end in of_title]
        rows = (
            [
                *texts,
                *chain.from_iterable(each.texts[: len(of)] for each, of in zip(cells, ends, strict=True)),
                *(["; ".join(self._missing_in(cells))] if self.problems else []),
                *(note.text for note in self.notes),
            ]
            for texts, cells in self.rows
        )
        missing = [NO_VALUE] if self.problems else []
        return csv_text([*self.labels, *header, *missing, *(note.name for note in self.notes)], rows)

    def _missing_in(self, cells: Sequence[Cell]) -> Iterator[str]:
        """Yield the title of each missing value of a row, with the reason."""
        for title, each in zip(self.titles, cells, strict=True):
            if each.problem:
                yield f"{title}: {each.problem}"


@dataclass(frozen=True, slots=True)
class TerminalTable:
    """A table as rich prints it: columns that do not fit follow in further blocks, with the texts."""

    table: MeasureTable
    between: str
    """Between a value and its interval."""

    first: str
    """The same in the first cell of a row."""

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a block for as many columns as fit into the width, at least one, then the next."""
        columns = self._columns()
        left = options.max_width - sum(map(_text_width, self._texts()))
        widths = [max(map(_lines_width, column)) + GAP for column in columns]
        start = 0
        while start == 0 or start < len(columns):
            end = start + 1
            # nothing follows the last column
            while end < len(columns) and sum(widths[start : end + 1]) - GAP <= left:
                end += 1
            if start:
                yield Text()
            room = options.max_width - sum(widths[start:end])
            yield self._block(columns[start:end], room)
            start = end
        yield from map(Text, self.table.problem_notes)

    def _texts(self) -> list[list[str]]:
        """The columns of texts, each with its title."""
        return [
            [label, *(texts[place] for texts, _ in self.table.rows)] for place, label in enumerate(self.table.labels)
        ]

    def _columns(self) -> list[list[str]]:
        """The columns of measures, each with its title."""
        rows = [*self.table.numbered_rows()]
        return [
            [title, *(cells[place].in_terminal(self.between if place else self.first) for _, cells in rows)]
            for place, title in enumerate(self.table.titles)
        ]

    def _block(self, columns: Sequence[Sequence[str]], room: int) -> Table:
        """The texts, which have some room, and some of the columns."""
        block = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
        texts = self._texts()
        # rich would make columns of numbers narrower, too
        for column, width in zip(texts, _widths(texts, room), strict=True):
            block.add_column(column[0], **STYLES.get(column[0], WORDS) | {"min_width": None, "width": width})
        for title, *_ in columns:
            block.add_column(title, **NUMBER)
        for row in zip(*(column[1:] for column in texts), *(column[1:] for column in columns), strict=True):
            block.add_row(*map(Text, row[: len(texts)]), *row[len(texts) :])
        return block


def _lines_width(text: str) -> int:
    return max(cell_len(line) for line in text.split("\n"))


def _text_width(column: Sequence[str]) -> int:
    """The width that a column of texts needs with its gap: names are cut or folded down to a minimum."""
    least: int | None = STYLES.get(column[0], WORDS).get("min_width")
    widest = max(map(_lines_width, column))
    return (widest if least is None else min(widest, least)) + GAP


def _widths(texts: Sequence[Sequence[str]], room: int) -> list[int]:
    """The widths of columns of texts: as wide as their texts from left to right, while all get their minimum."""
    found = []
    for place, column in enumerate(texts):
        others = sum(map(_text_width, texts[place + 1 :]))
        width = min(max(map(_lines_width, column)), max(room - others, _text_width(column)) - GAP)
        found.append(width)
        room -= width + GAP
    return found


def _note_text(note: Note) -> str:
    return f"{note.name[0].upper()}{note.name[1:]}: {note.text}"
