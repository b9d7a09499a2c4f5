"""CSV: tables read row by row or in bulk, any problem reported on one line with line and column, and written.

A spreadsheet runs a cell that begins with one of `=+-@`, tab or carriage return as a formula. Such a text is written
behind an apostrophe, and read without it; a number is written unchanged.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack

from pydantic import TypeAdapter, ValidationError

from cleanset.errors import CleansetError, cut, reason
from cleanset.plumbing.files import MAX_BYTES, open_file, read_text, write_text
from cleanset.plumbing.validation import MAX_VALUE, check_columns, expected_value, join_names, shown

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")

_ESCAPABLE = re.compile("'*[=+\\-@\t\r]")
"""How a text begins that is written behind an apostrophe: with others before the sign, so that reading is exact."""

_FIRST = frozenset("'=+-@\t\r")
"""Its first character: few texts have one of these, and only those are matched."""

_NUMBER = re.compile(r"(?i)[+-](?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-](?:inf|nan)")
"""A number with a sign."""


class RowOptions(TypedDict, total=False):
    """The options of `parse_rows`."""

    key: Sequence[str]
    others: bool
    is_own: bool
    context: object


def read_rows(
    path: Path, columns: Sequence[str], kind: Callable[..., Row], remedy: str, **options: Unpack[RowOptions]
) -> Iterator[tuple[str, Row]]:
    """The rows of a CSV file, as `parse_rows` reads them, in pieces. Raises CleansetError as `read_text` does, too."""
    try:
        with open_file(path, MAX_BYTES) as file:
            lines = io.TextIOWrapper(file, "utf-8-sig", newline="")
            yield from parse_rows(lines, columns, kind, str(path), remedy=remedy, **options)
    except (FileNotFoundError, UnicodeDecodeError):
        read_text(path, remedy)  # whole: it names the byte that is not text
        raise


def parse_rows(
    text: str | Iterable[str],
    columns: Sequence[str],
    kind: Callable[..., Row],
    where: str,
    *,
    remedy: str,
    key: Sequence[str] = (),
    invalid: list[str] | None = None,
    others: bool = False,
    is_own: bool = False,
    context: object = None,
) -> Iterator[tuple[str, Row]]:
    """Each row of a CSV text, whole or in lines, as a `kind`, after its place in messages.

    `columns`: the header; the last may be missing where their fields have defaults. `kind`: a dataclass with a field of
    the expected type for each column, or a function of the cells by column that raises ValueError. `key`: columns whose
    values are unique together. `others`: more columns may be there, in any order. `is_own`: only cleanset writes such a
    file, so that further columns are those of a newer version. `context`: what the validators of a
    dataclass need next to the cell, such as the class table. Raises CleansetError, naming `where`, line and column, for
    a row that is not valid; with `invalid` only for another header: such a row is then left out, and its message
    appended.
    """
    wanted = fields(kind) if is_dataclass(kind) else ()
    check = partial(TypeAdapter(kind).validate_python, context=context) if wanted else kind  # type: ignore[arg-type]
    # fields beyond the columns are not read
    column_of = dict(zip([each.name for each in wanted] or columns, columns, strict=False))
    needed = sum(each.default is MISSING for each in wanted) or len(columns)
    rows = csv_rows(text, where, remedy, invalid)
    line, header = next(rows, (1, []))
    if is_own:
        check_columns(header, columns, f"{where}, line {line}")
    if others and set(columns) <= set(header) and len(set(header)) == len(header):
        column_of = dict(zip(header, header, strict=True))
    elif header != list(columns[: max(needed, len(header))]):
        names = ",".join(columns)
        expected = f"the column{'s' * (len(columns) > 1)} {names}, each once" if others else f"the header {names}"
        raise CleansetError(f"{where}, line {line}: {shown(','.join(header))}; expected {expected}: {remedy}")
    seen: dict[tuple[object, ...], int] = {}
    places = [header.index(name) for name in key]
    # while reading: an image may be listed in two forms
    field_of = {column: name for name, column in column_of.items()} if wanted else {}
    for line, cells in rows:
        at = f"{where}, line {line}"
        problem = ""
        if len(cells) != len(header):
            problem = f": {len(cells)} cells; expected {cut(','.join(header), MAX_VALUE)}"
        else:
            try:
                row = check(dict(zip(column_of, cells, strict=False)))
                values = tuple(
                    getattr(row, field_of[name]) if wanted else cells[place]
                    for name, place in zip(key, places, strict=True)
                )
                if not key or seen.setdefault(values, line) == line:
                    yield at, row
                    continue
                again = ", ".join(f"{name} {shown(cells[place])}" for name, place in zip(key, places, strict=True))
                problem = f": {again} a second time, after line {seen[values]}; expected it once"
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                column = column_of[str(first["loc"][0])]
                problem = f", {column}: {shown(cells[header.index(column)])}; {expected_value(first)}"
            except ValueError as error:
                problem = f": {shown(','.join(cells))}; {error}"
        if invalid is None:
            raise CleansetError(f"{at}{problem}: {remedy}")
        invalid.append(f"{at}{problem}: {remedy}")


def csv_rows(
    text: str | Iterable[str], where: str, remedy: str, invalid: list[str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a CSV text, the header among them; `invalid` as for `parse_rows`.

    A byte order mark, any line ends and empty lines are read, as spreadsheets write them, and cells without the
    apostrophe of `csv_text`. Raises CleansetError, naming `where` and the line, for a text that is not CSV.
    """
    # newline="", as the csv module asks: it handles line ends inside quotes itself
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="") if isinstance(text, str) else text
    rows = csv.reader(lines, strict=True)
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as error:
            problem = f"{where}, line {rows.line_num}: not CSV ({reason(error)}); expected a table: {remedy}"
            if invalid is None:
                raise CleansetError(problem) from None
            invalid.append(problem)
            continue
        if cells is None:
            return
        if cells:
            yield rows.line_num, list(map(unescaped, cells))


def read_frame(
    path: Path,
    columns: Iterable[str],
    remedy: str,
    most: int = MAX_BYTES,
    *,
    dtype: Mapping[str, type] | type | None = None,
    na_values: Sequence[str] = ("",),
) -> "pd.DataFrame":
    """A CSV file of at most `most` bytes with at least these columns, read in bulk by pandas, cells as by `csv_rows`.

    `dtype`: the types of columns, or of all. `na_values`: the cells that are missing values, the empty ones alone if
    not told otherwise. Raises CleansetError, which ends in `remedy`, for anything else, and as `open_file` does.
    """
    import pandas as pd

    try:
        with open_file(path, most) as file:
            # of itself, pandas reads texts such as NA and null as missing
            found: pd.DataFrame = pd.read_csv(
                file, dtype=dtype, keep_default_na=False, na_values=list(na_values), encoding="utf-8-sig"
            )
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; {remedy}") from None
    except (ValueError, pd.errors.ParserError) as error:
        raise CleansetError(f"{path}: no CSV table ({reason(error)}); {remedy}") from None
    found = _with_texts(found, unescaped)
    for name in columns:
        if name not in found:
            raise CleansetError(f"{path}: no column {shown(name)}; found {join_names(map(str, found))}: {remedy}")
    return found


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV with `\\n` line ends; a cell is in quotes only where it has to be, and None is empty.

    No cell but a number begins with a sign that makes it a formula: see `escaped`.
    """
    text = _Lines()
    csv.writer(text, lineterminator=text.END).writerows(map(_cell, row) for row in (header, *rows))
    return text.getvalue()


def write_csv(path: Path, header: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as `csv_text`, in place of an earlier file."""
    write_text(path, csv_text(header, rows))


def frame_csv(frame: "pd.DataFrame", float_format: str | None = None) -> str:
    """A data frame without its index as CSV, its texts as in `csv_text`; a missing value is empty."""
    text = _Lines()
    _with_texts(frame, escaped).to_csv(text, index=False, lineterminator=text.END, float_format=float_format)
    return text.getvalue()


def write_frame(path: Path, frame: "pd.DataFrame", float_format: str | None = None) -> None:
    """Write a data frame as `frame_csv`, in place of an earlier file."""
    write_text(path, frame_csv(frame, float_format))


class _Lines(io.StringIO):
    """Collects the rows that a writer ends with END, and ends them with `\\n`."""

    # a writer puts only the characters of its line end in quotes, and a carriage return needs them
    END = "\r\n"

    def write(self, row: str) -> int:
        return super().write(f"{row.removesuffix(self.END)}\n")


def escaped(text: str) -> str:
    """A text as a cell: behind an apostrophe if a spreadsheet would run it as a formula."""
    return f"'{text}" if text[:1] in _FIRST and _ESCAPABLE.match(text) and not _NUMBER.fullmatch(text) else text


def unescaped(cell: str) -> str:
    """The text that `escaped` made this cell of."""
    return cell[1:] if cell.startswith("'") and _ESCAPABLE.match(cell) else cell


def _cell(value: object) -> object:
    if isinstance(value, str):
        return escaped(value)
    return value if value is None or isinstance(value, int | float) else escaped(str(value))


def _with_texts(frame: "pd.DataFrame", changed: Callable[[str], str]) -> "pd.DataFrame":
    """The frame with every text in header and cells changed; all other columns keep their values and types."""
    import pandas as pd

    found = frame.copy(deep=False)
    found.columns = pd.Index([changed(name) if isinstance(name, str) else name for name in frame.columns])
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if pd.api.types.is_numeric_dtype(column):
            continue
        before = column.tolist()
        after = [changed(value) if isinstance(value, str) else value for value in before]
        if any(old is not new for old, new in zip(before, after, strict=True)):
            # a category may be new
            dtype = object if isinstance(column.dtype, pd.CategoricalDtype) else column.dtype
            found.isetitem(place, pd.Series(after, dtype=dtype).array)
    return found
