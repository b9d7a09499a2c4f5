"""Predictions that were made elsewhere: files of them, as CSV, which needs no further library, or Parquet; and the
answers that a program prints for the files that it was given.
"""

import csv
import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.errors import CleansetError, needing, reason
from cleanset.files import read_bytes, sha256, write_text
from cleanset.measure.prediction_tables import (
    CLASS_COLUMNS,
    EXPECTED,
    PROBABILITY_COLUMNS,
    checked_table,
)
from cleanset.measure.sets import EvaluationSet
from cleanset.validation import shown


def printed_answers(
    text: str, files: Collection[str], name: str, is_answer: Callable[[str], bool], *, kind: str, expected: str
) -> dict[str, str]:
    """The answer to each file that has one, from lines `file, answer` in any order; empty lines are skipped.

    `kind` and `expected` stand in messages for what follows the comma, and for the possible answers. Raises
    CleansetError, beginning `name`, for another line, another answer, and a file with two.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        file, comma, answer = (part.strip() for part in line.partition(","))
        where = f"{name}: line {number} of its output"
        if not comma or file not in files:
            raise CleansetError(f"{where}: {shown(line)}; expected a file that it was given, a comma and {kind}")
        if not is_answer(answer):
            raise CleansetError(f"{where}: answers {shown(answer)}; expected {expected}")
        if file in found:
            raise CleansetError(f"{where}: {file} a second time; expected one line for each image")
        found[file] = answer
    return found


ENDINGS = (".csv", ".parquet")
MAX_NAME = 100
"""Characters of the name of predictions."""


@dataclass(frozen=True, slots=True)
class PredictionsFile:
    """A file of predictions, and the name of the model that they are of."""

    name: str
    path: Path


def parse_prediction_files(texts: Sequence[str], taken: Sequence[str]) -> list[PredictionsFile]:
    """The files that FILE or NAME=FILE name; without a name, the text is the name.

    `taken` are names that are in use. Raises CleansetError for a missing file, another ending, or a name that is taken.
    """
    found: list[PredictionsFile] = []
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_file():  # a file's name may have an equals sign
            name, path = text, text
        if (equals and not 1 <= len(name) <= MAX_NAME) or not name.isprintable():
            raise CleansetError(f"--predictions {shown(text)}: expected a name of 1 to {MAX_NAME} characters before =")
        if not path.endswith(ENDINGS):
            raise CleansetError(f"--predictions {shown(text)}: expected a file that ends in {' or '.join(ENDINGS)}")
        if not Path(path).exists():
            raise CleansetError(f"--predictions {shown(text)}: missing; expected FILE or NAME=FILE")
        if name in (*taken, *(each.name for each in found)):
            raise CleansetError(f"--predictions {shown(text)}: the name {shown(name)} is taken; expected NAME=FILE")
        found.append(PredictionsFile(name, Path(path)))
    return found


def read_predictions(path: Path, images: EvaluationSet) -> tuple[pd.DataFrame, str]:
    """The checked predictions of a file (see checked_table), and its SHA-256. Raises CleansetError."""
    if not path.exists():
        raise CleansetError(f"{path}: missing; expected a file of predictions")
    if path.suffix == ".csv":
        data = read_bytes(path)
        columns, lines = _csv(data, path)
        return checked_table(columns, str(path), lambda row: f"line {lines[row]}", images), sha256(data)
    columns = _parquet(path)
    return checked_table(columns, str(path), lambda row: f"row {row + 1}", images), sha256(read_bytes(path))


def _csv(data: bytes, path: Path) -> tuple[dict[str, list[Any]], list[int]]:
    """The cells by column, and the line of each row."""
    try:
        # utf-8-sig: spreadsheets put a byte order mark before the first column
        rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        header = next(rows, [])
        if len(set(header)) < len(header) or "image" not in header:
            raise CleansetError(f"{path}, line 1: columns {shown(', '.join(header))}; {EXPECTED}")
        cells, lines = [], []
        for row in filter(None, rows):  # spreadsheets leave empty lines
            if len(row) != len(header):
                raise CleansetError(f"{path}, line {rows.line_num}: {len(row)} cells; expected {len(header)}")
            cells.append(row)
            lines.append(rows.line_num)
    except UnicodeDecodeError as error:
        raise CleansetError(f"{path}: not UTF-8 at byte {error.start}; expected a CSV file") from None
    except csv.Error as error:
        raise CleansetError(f"{path}, line {rows.line_num}: not CSV ({reason(error)}); {EXPECTED}") from None
    return {name: [row[place] for row in cells] for place, name in enumerate(header)}, lines


def _parquet(path: Path) -> dict[str, list[Any]]:
    with needing("pyarrow", str(path)):  # a CSV file does without it
        from cleanset.tables import parquet_content

    try:
        table = parquet_content(path)
        names = table.column_names
        columns = dict(zip(names, (column.to_pylist() for column in table.columns), strict=True))
    except CleansetError:
        raise
    except Exception as error:  # Arrow raises whatever damaged bytes lead it to
        raise CleansetError(f"{path}: not a Parquet file ({reason(error)}); {EXPECTED}") from None
    if len(columns) < len(names):
        raise CleansetError(f"{path}: columns {shown(', '.join(names))}; expected each once")
    return columns


def write_predictions_csv(path: Path, predictions: pd.DataFrame) -> None:
    """Write checked predictions as CSV, sorted by file, in the columns that are read from such a file."""
    columns: dict[str, list[Any]] = {"image": predictions["file"].tolist()}
    if "top5_class" in predictions:
        columns |= _five(CLASS_COLUMNS, predictions["top5_class"])
        columns |= _five(PROBABILITY_COLUMNS, predictions.get("top5_probability", pd.Series(dtype=object)))
    else:
        columns["class_index"] = predictions["prediction"].tolist()
        if "confidence" in predictions:
            columns["probability"] = list(predictions["confidence"].to_numpy())
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    # str of a float32 has the fewest digits that read back as the same one
    writer.writerows(zip(*columns.values(), strict=True))
    write_text(path, out.getvalue())


def _five(names: Sequence[str], rows: "pd.Series[Any]") -> dict[str, list[Any]]:
    return {name: [row[rank] for row in rows] for rank, name in enumerate(names)} if len(rows) else {}
