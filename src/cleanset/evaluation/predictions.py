"""Predictions as tables: from scores, and from files, tables and arrays made elsewhere, whose values are all checked.

Files are CSV, which needs no further library, or Parquet.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, reason
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet, class_index_of, class_of, expected_class
from cleanset.evaluation.specs import MAX_NAME
from cleanset.image_ids import parse_image_id
from cleanset.plumbing.csv_files import read_rows, write_csv
from cleanset.plumbing.files import sha256_of
from cleanset.plumbing.validation import join_names, shown
from cleanset.scoring.logits import SUM_TOLERANCE, TOP

PREDICTED_CLASS_COLUMNS = tuple(f"class_{rank}" for rank in range(1, TOP + 1))
PROBABILITY_COLUMNS = tuple(f"probability_{rank}" for rank in range(1, TOP + 1))


def _expected_columns(classes: ClassTable) -> str:
    """The end of a message about the columns of predictions."""
    return (
        f"image with class_index or {classes.key_column}, perhaps probability; or with class_1 to class_5, the most "
        "probable first, perhaps probability_1 to probability_5"
    )


# columns of the predictions that `cleanset evaluate --out` writes; class_index is the label there
STORED = {"file", "sha256", "prediction", "top5_class", "top5_probability"}
# programs read the columns of a model that was run in this order
SCORED = (
    "file", "class_index", "tier", "sha256", "prediction", "confidence", "correct", "top5_class", "top5_probability",
    "log_odds",
)  # fmt: skip
# limit of a sum of probabilities: those of float16 are off by less
MAX_SUM = 1.001
PREDICTION_SUFFIXES = (".csv", ".parquet")
MAX_PARQUET_BYTES = 2**30
_NUMBER = re.compile(r"[-+.0-9eE]+", re.ASCII)

Columns = Mapping[str, Sequence[Any]]
"""The values of a table by column."""


def checked_table(columns: Columns, where: str, line_of: Callable[[int], str], images: EvaluationSet) -> pd.DataFrame:
    """The predictions of a table with a row for each image, in any order; sorted by file.

    The result has the columns file, class_index (of the set), tier, prediction and correct, with confidence where
    probabilities are known, and top5_class and top5_probability where five are. `line_of` names a row, counted from 0.
    Raises CleansetError for the first row that is not valid, and for images without a prediction.
    """
    columns = _as_five(columns) if set(columns) >= STORED else columns
    classes, probabilities = _chosen(columns, where, images.classes)
    known = _names(images.items)
    seen = dict[str, int]()
    found: dict[str, tuple[list[int], list[float]]] = {}
    for row, name in enumerate(columns["image"]):
        at = f"{where}, {line_of(row)}"
        item = _item(name, known, images, at)
        if item.file in seen:
            raise CleansetError(f"{at}: {item.file} a second time, after {line_of(seen[item.file])}; expected it once")
        seen[item.file] = row
        if "sha256" in columns and columns["sha256"][row] != item.sha256:
            raise CleansetError(f"{at}: predicted on other bytes of {item.file} than the set has; evaluate it again")
        predicted = _classes(columns, classes, row, at, images.classes)
        found[item.file] = predicted, _probabilities(columns, probabilities, row, at)
    missing = [item.file for item in images.items if item.file not in found]
    if missing:
        raise CleansetError(
            f"{where}: no prediction for {len(missing):,} of the {len(images.items):,} images of {images.name}: "
            f"{join_names(missing[:3])}{' and others' if len(missing) > 3 else ''}; expected one for each"
        )
    return _frame(images.items, *zip(*(found[item.file] for item in images.items), strict=True))


def checked_array(array: NDArray[Any], where: str, images: EvaluationSet) -> pd.DataFrame:
    """The predictions of an array with a row for each image in the order of the set, with columns as `checked_table`.

    Either class indices of shape (n), or probabilities of shape (n, number of classes). Raises CleansetError.
    """
    count = len(images.items)
    classes = len(images.classes)
    expected = f"expected ({count},) class indices, or ({count}, {classes}) probabilities, in the order of the set"
    if array.shape not in ((count,), (count, classes)):
        raise CleansetError(f"{where}: {array.dtype} {array.shape}; {expected}")
    if array.dtype.kind not in ("iu" if array.ndim == 1 else "f"):
        raise CleansetError(f"{where}: {array.dtype} {array.shape}; {expected}")
    sums = array.reshape(count, -1).sum(axis=1, dtype=np.float64)
    is_wrong = (array < 0) | (array >= classes)
    if array.ndim == 2:  # NaN is off as well
        is_wrong = (array < 0).any(axis=1) | ~(np.abs(sums - 1) <= SUM_TOLERANCE)
    if is_wrong.any():
        first = int(np.argmax(is_wrong))
        found = f"{array[first]}; {expected_class(images.classes)}"
        if array.ndim == 2:
            low = array[first].min()
            high = array[first].max()
            found = (
                f"values from {low:.4g} to {high:.4g} with the sum {sums[first]:.4g}; expected probabilities with the "
                "sum 1: apply softmax to logits"
            )
        raise CleansetError(f"{where}, row {first + 1}: {found}")
    rows = {file: row for row, file in enumerate(images.order)}
    array = array[[rows[item.file] for item in images.items]]
    if array.ndim == 1:
        return _frame(images.items, [[each] for each in array.tolist()], [[]] * count)
    exact = array.astype(np.float64)
    top = np.argsort(-exact, axis=1, kind="stable")[:, :TOP]  # of equal ones the lower class first
    return _frame(images.items, top.tolist(), np.take_along_axis(exact, top, axis=1).tolist())


def _as_five(columns: Columns) -> Columns:
    """The columns that --out writes, under the names of those that are read."""
    five = {"image": columns["file"], "sha256": columns["sha256"]}
    return (
        five
        | _five(PREDICTED_CLASS_COLUMNS, columns["top5_class"])
        | _five(PROBABILITY_COLUMNS, columns["top5_probability"])
    )


def _five(names: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, list[object]]:
    return {name: [row[rank] for row in rows] for rank, name in enumerate(names)}


def _chosen(columns: Columns, where: str, table: ClassTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of classes and of probabilities."""
    names = set(columns) - {"sha256"}
    by_index = tuple(name for name in ("class_index", table.key_column) if name in names)
    for classes, probabilities in ((by_index, ("probability",)), (PREDICTED_CLASS_COLUMNS, PROBABILITY_COLUMNS)):
        for given in ((), probabilities):
            if classes and names == {"image", *classes, *given}:
                return classes, given
    raise CleansetError(f"{where}: columns {shown(', '.join(map(str, columns)))}; expected {_expected_columns(table)}")


def _names(items: Iterable[EvaluationImage]) -> dict[str, list[EvaluationImage]]:
    """The images of each name: path in the set, file name, and file name without its ending, which is the image id."""
    named: dict[str, list[EvaluationImage]] = {}
    for item in items:
        base = item.file.rpartition("/")[2]
        for name in {item.file, base, base.rpartition(".")[0]}:
            named.setdefault(name, []).append(item)
    return named


def _item(
    name: object, known: Mapping[str, Sequence[EvaluationImage]], images: EvaluationSet, at: str
) -> EvaluationImage:
    found: Sequence[EvaluationImage] = ()
    if isinstance(name, str):
        found = known.get(name) or known.get(parse_image_id(name, images.classes) or "", ())
    if not found:
        expected = f"an image of {images.name}: its path there, file name or image id"
        raise CleansetError(f"{at}: {shown(name)}; expected {expected}")
    if len(found) > 1:
        files = " and ".join(item.file for item in found[:2])
        raise CleansetError(f"{at}: {shown(name)} is {files}; expected a path in {images.name}")
    return found[0]


def _classes(columns: Columns, names: Sequence[str], row: int, at: str, table: ClassTable) -> list[int]:
    """The class of a row, or five different ones."""
    if names[0] != PREDICTED_CLASS_COLUMNS[0]:
        return [class_index_of({name: columns[name][row] for name in names}, at, table)]
    found = [class_of(columns[name][row], name, at, table) for name in names]
    if len(set(found)) < len(found):
        raise CleansetError(f"{at}: {', '.join(map(str, found))}; expected five different classes")
    return found


def _probabilities(columns: Columns, names: Sequence[str], row: int, at: str) -> list[float]:
    """The probabilities of a row, highest first; none if none are known."""
    found = [_probability(columns[name][row], name, at) for name in names]
    if found != sorted(found, reverse=True) or sum(found) > MAX_SUM:
        given = ", ".join(f"{each:g}" for each in found)
        raise CleansetError(f"{at}: probabilities {given}; expected the highest first, with a sum of at most 1")
    return found


def _probability(value: Any, name: str, at: str) -> float:
    number = math.nan
    # float alone would take True, 1_0, nan and digits of other scripts
    if _NUMBER.fullmatch(value) if isinstance(value, str) else isinstance(value, Real) and not isinstance(value, bool):
        with suppress(ValueError):
            number = float(value)
    if not 0 <= number <= 1:
        raise CleansetError(f"{at}, column {name}: {shown(value)}; expected a probability from 0 to 1")
    return number


def _frame(
    items: Sequence[EvaluationImage], classes: Sequence[Sequence[int]], probabilities: Sequence[Sequence[float]]
) -> pd.DataFrame:
    """The predictions of these images; the probabilities rounded to float32, in which a model's are stored."""
    labels = [item.label_of(predicted) for item, predicted in zip(items, classes, strict=True)]
    predicted = [each[0] for each in classes]
    frame = {
        "file": [item.file for item in items],
        "class_index": labels,
        "tier": pd.Series([item.tier for item in items], dtype=object),
        "prediction": predicted,
        "correct": [label == each for label, each in zip(labels, predicted, strict=True)],
    }
    if len(probabilities[0]):
        frame["confidence"] = np.asarray([each[0] for each in probabilities], np.float32)
    if len(classes[0]) == TOP:
        frame["top5_class"] = list(classes)
        if len(probabilities[0]):
            frame["top5_probability"] = list(np.asarray(probabilities, np.float32))
    return pd.DataFrame(frame)


def scored_table(items: Sequence[EvaluationImage], scores: pd.DataFrame) -> pd.DataFrame:
    """The predictions of a model, from the scores of exactly these images in the same order (see SCORES)."""
    table = _frame(items, scores["top5_class"].tolist(), scores["top5_probability"].tolist())
    table = table.assign(sha256=[item.sha256 for item in items], log_odds=scores["log_odds"].tolist())
    return table.astype({"class_index": "int16", "confidence": "float64"})[list(SCORED)]


def parse_prediction_files(texts: Sequence[str], taken: Sequence[str]) -> dict[str, Path]:
    """The files that FILE or NAME=FILE name, by the name of the model; without a name, the text is the name.

    `taken` are names that are in use. Raises CleansetError for a missing file, another ending, or a name that is taken.
    """
    found: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or Path(text).is_file():  # a file's name may have an equals sign
            name = text
            path = text
        problem = ""
        if (equals and not 1 <= len(name) <= MAX_NAME) or not name.isprintable():
            problem = f"expected a name of 1 to {MAX_NAME} characters before ="
        elif not path.endswith(PREDICTION_SUFFIXES):
            problem = f"expected a file that ends in {' or '.join(PREDICTION_SUFFIXES)}"
        elif not Path(path).exists():
            problem = "missing; expected FILE or NAME=FILE"
        elif name in (*taken, *found):
            problem = f"the name {shown(name)} is taken; expected NAME=FILE"
        if problem:
            raise CleansetError(f"--predictions {shown(text)}: {problem}")
        found[name] = Path(path)
    return found


def read_predictions(path: Path, images: EvaluationSet) -> tuple[pd.DataFrame, str]:
    """The checked predictions of a file (see checked_table), and its SHA-256. Raises CleansetError."""
    if not path.exists():
        raise CleansetError(f"{path}: missing; expected a file of predictions")
    if path.suffix != ".csv":
        return checked_table(_parquet(path), str(path), lambda row: f"row {row + 1}", images), sha256_of(path)
    rows = dict(read_rows(path, ("image",), dict[str, str], f"give {_expected_columns(images.classes)}", others=True))
    columns = {
        name: [row[name] for row in rows.values()] for name in next(iter(rows.values()), ("image", "class_index"))
    }
    lines = [where.removeprefix(f"{path}, ") for where in rows]
    return checked_table(columns, str(path), lines.__getitem__, images), sha256_of(path)


def _parquet(path: Path) -> dict[str, list[object]]:
    try:
        from cleanset.tables import parquet_content
    except ModuleNotFoundError:  # a CSV file does without it
        raise CleansetError(f"{path}: needs pyarrow, which is not installed: pip install pyarrow") from None
    try:
        table = parquet_content(path, MAX_PARQUET_BYTES)
        names = table.column_names
        columns = dict(zip(names, (column.to_pylist() for column in table.columns), strict=True))
    except CleansetError:
        raise
    except Exception as error:  # Arrow raises whatever damaged bytes lead it to
        raise CleansetError(f"{path}: not a Parquet file ({reason(error)}); expected a Parquet or a CSV file") from None
    if len(columns) < len(names):
        raise CleansetError(f"{path}: columns {shown(', '.join(names))}; expected each once")
    return columns


def write_predictions_csv(path: Path, predictions: pd.DataFrame) -> None:
    """Write checked predictions as CSV, sorted by file, in the columns that are read from such a file."""
    columns: dict[str, list[object]] = {"image": predictions["file"].tolist()}
    if "top5_class" in predictions:
        columns |= _five(PREDICTED_CLASS_COLUMNS, predictions["top5_class"].tolist())
        if "top5_probability" in predictions:
            columns |= _five(PROBABILITY_COLUMNS, predictions["top5_probability"].tolist())
    else:
        columns["class_index"] = predictions["prediction"].tolist()
        if "confidence" in predictions:
            # str of a float32 has the fewest digits that read back as the same one
            columns["probability"] = list(predictions["confidence"].to_numpy())
    write_csv(path, columns, zip(*columns.values(), strict=True))
