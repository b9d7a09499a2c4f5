"""The tables that stages hand on: Parquet, keyed and sorted by `image_id`, every value checked on reading.

In CROPS and CROP_SCORES, where an image may have several crops, the box belongs to the key; in VOTES the reviewer.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cleanset.columns import (
    BOX,
    BYTES,
    CLASS,
    CLASSES,
    DIFFERENCE,
    FILE,
    FLAG,
    IMAGE_ID,
    LOG_ODDS,
    LOG_ODDS_DIFFERENCE,
    MODE,
    PROBABILITY,
    RANK,
    REASON,
    REVIEWER,
    SHA256,
    SIDE,
    TIER,
    TOP5_CLASSES,
    TOP5_PROBABILITIES,
    VERDICT,
    Column,
    nullable,
)
from cleanset.errors import CleansetError, reason
from cleanset.files import replacing
from cleanset.validation import shown

REMEDY = "run dvc checkout to restore it, or dvc repro"

_Check = Callable[[pa.Table], "tuple[str, int, str] | None"]
"""From a table to the column, row (from 0) and expectation of what is wrong across columns."""


class Table:
    """A kind of table: its columns, the key that its rows are sorted by, and a check across columns."""

    def __init__(self, check: _Check | None = None, *, key: tuple[str, ...] = ("image_id",), **columns: Column) -> None:
        self.columns = columns
        self.key = key
        self.check = check

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the Parquet file."""
        return pa.schema(
            [pa.field(name, column.type, nullable=column.nullable) for name, column in self.columns.items()]
        )


def _single_is_one_label(table: pa.Table) -> tuple[str, int, str] | None:
    one = pc.equal(pc.list_value_length(table["real_classes"]), 1)
    differs = pc.not_equal(one, table["single"]).to_numpy()
    return ("single", int(np.argmax(differs)), "true where there is one of real_classes") if differs.any() else None


def _unknown_box_is_none(table: pa.Table) -> tuple[str, int, str] | None:
    wrong = pc.and_(table["box_unknown"], pc.is_valid(table["crop"])).to_numpy()
    return ("box_unknown", int(np.argmax(wrong)), "false where crop has a box") if wrong.any() else None


INDEX = Table(
    _single_is_one_label,
    image_id=IMAGE_ID,
    size=BYTES,
    sha256=SHA256,  # of the bytes
    width=SIDE,
    height=SIDE,
    mode=MODE,
    pixels_sha256=SHA256,
    ilsvrc_class=CLASS,  # of the original label
    real_classes=CLASSES,  # of the reassessed labels
    single=FLAG,  # exactly one reassessed label
)
LOCATIONS = Table(
    image_id=IMAGE_ID,
    file=FILE,  # relative to dataset.images; "." is dataset.images itself
    offset=BYTES,
    size=BYTES,
)
SCORES = Table(
    image_id=IMAGE_ID,
    top5_class=TOP5_CLASSES,
    top5_probability=TOP5_PROBABILITIES,
    log_odds=LOG_ODDS,  # of the top-1 class
)
CROPS = Table(image_id=IMAGE_ID, crop=BOX, key=("image_id", "crop"))
CROP_SCORES = Table(
    image_id=IMAGE_ID,
    crop=BOX,
    top5_class=TOP5_CLASSES,
    top5_probability=TOP5_PROBABILITIES,
    log_odds=LOG_ODDS,
    key=("image_id", "crop"),
)
SHARED = Table(image_id=IMAGE_ID, class_index=CLASS)
CANDIDATES = Table(
    image_id=IMAGE_ID,
    class_index=CLASS,
    tier=TIER,
    rank=RANK,  # 1 is the first to be reviewed in its class
    confidence=PROBABILITY,
    log_odds=LOG_ODDS,
)
MARGINS = Table(
    image_id=IMAGE_ID,  # the last image of tier top5
    class_index=CLASS,
    confidence=PROBABILITY,
    log_odds=LOG_ODDS,
    next_image_id=IMAGE_ID,  # the first one out: the next of the images that tier top5 is taken from
    next_confidence=PROBABILITY,
    next_log_odds=LOG_ODDS,
    margin=DIFFERENCE,  # between the two confidences
    log_odds_margin=LOG_ODDS_DIFFERENCE,  # below 0 only where select.order is float32
)
SELECTION = Table(
    _unknown_box_is_none,
    image_id=IMAGE_ID,
    class_index=CLASS,
    place=RANK,  # 1, 2, 3 in the finished class
    tier=TIER,
    rank=RANK,
    confidence=PROBABILITY,
    crop=nullable(BOX),  # null: the whole image, or a box that is not known
    box_unknown=FLAG,  # kept for counting only, never exported
)
REJECTED = Table(
    image_id=IMAGE_ID,
    class_index=CLASS,
    tier=TIER,
    rank=RANK,
    confidence=PROBABILITY,
    reason=REASON,
    open=FLAG,  # a verdict is missing that could still bring it in
)
VOTES = Table(
    image_id=IMAGE_ID,
    reviewer=REVIEWER,
    verdict=VERDICT,
    reason=nullable(REASON),
    crop=nullable(BOX),
    key=("image_id", "reviewer"),
)


def write_table(path: Path, frame: pd.DataFrame, table: Table) -> None:
    """Write `frame` sorted by its key: the same rows give the same bytes.

    Raises ValueError if a key occurs twice.
    """
    keys = pd.Series(_keys(*(frame[name] for name in table.key)), index=frame.index, dtype=object).sort_values()
    if keys.duplicated().any():
        raise ValueError(f"{path}: {' '.join(map(str, keys[keys.duplicated()].iloc[0]))} occurs twice")
    frame = frame.loc[keys.index]
    columns = [pa.array(frame[field.name].tolist(), type=field.type, from_pandas=True) for field in table.schema]
    content = pa.Table.from_arrays(columns, schema=table.schema)
    with replacing(path) as partial, partial.open("wb") as file:
        pq.write_table(content, file, compression="zstd", compression_level=9)


def _keys(*columns: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The key of each row: its values in these columns, of a box the four edges."""
    parts = ([(value,) if isinstance(value, str | int) else tuple(value) for value in column] for column in columns)
    return [sum(row, ()) for row in zip(*parts, strict=True)]


def read_table(path: Path, table: Table, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table, or some columns of it, while all are checked.

    Raises CleansetError if it is missing, or naming the first column and row that is not valid.
    """
    content = _read(path)
    _check_schema(path, content.schema, table.schema)
    for name, column in table.columns.items():
        row = column.invalid_row(content[name].combine_chunks())
        if row is not None:
            raise _invalid(path, content, table.key[0], name, row, column.expected)
    found = table.check(content) if table.check else None
    if found:
        raise _invalid(path, content, table.key[0], *found)
    _check_order(path, content, table.key)
    frame: pd.DataFrame = content.select(columns or table.names).to_pandas()
    return frame


def _read(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            content = file.read()
        content.validate(full=True)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; run dvc repro, or dvc pull to fetch it") from None
    except Exception as error:  # Arrow raises whatever damaged bytes lead it to
        raise CleansetError(f"{path}: not a Parquet file ({reason(error)}); {REMEDY}") from None
    return content


def _check_schema(path: Path, found: pa.Schema, expected: pa.Schema) -> None:
    if found.names != expected.names:
        names = ", ".join(found.names)
        raise CleansetError(f"{path}: columns {shown(names)}; expected {', '.join(expected.names)}: {REMEDY}")
    for field in expected:
        if not found.field(field.name).equals(field):
            types = [f"{each.type}{'' if each.nullable else ' not null'}" for each in (found.field(field.name), field)]
            raise CleansetError(f"{path}, column {field.name}: {types[0]}; expected {types[1]}: {REMEDY}")


def _check_order(path: Path, content: pa.Table, key: tuple[str, ...]) -> None:
    is_less, is_tied = np.zeros((2, max(len(content) - 1, 0)), np.bool_)
    is_tied[:] = True
    for values in (part for name in key for part in _parts(content[name].combine_chunks())):
        before, after = values[:-1], values[1:]
        is_less |= is_tied & pc.less(before, after).to_numpy(zero_copy_only=False)
        is_tied &= pc.equal(before, after).to_numpy(zero_copy_only=False)
    if not is_less.all():
        row = int(np.argmin(is_less))
        first, second = _keys(*(content[name].slice(row, 2).to_pylist() for name in key))
        raise CleansetError(
            f"{path}, row {row + 2}: {' '.join(map(str, second))} after {' '.join(map(str, first))}; "
            f"expected rows sorted by {' and '.join(key)}, each once: {REMEDY}"
        )


def _parts(values: pa.Array) -> list[pa.Array]:
    """What a column of a key is compared by: itself, or the four edges of boxes."""
    if not pa.types.is_fixed_size_list(values.type):
        return [values]
    edges = values.flatten().to_numpy().reshape(len(values), values.type.list_size)
    return [pa.array(edge) for edge in edges.T]


def _invalid(path: Path, content: pa.Table, key: str, name: str, row: int, expected: str) -> CleansetError:
    value = content[name][row].as_py()
    where = f"{path}, column {name}, row {row + 1}"
    if name != key:
        where += f" ({content[key][row].as_py()})"
    return CleansetError(f"{where}: {shown(value)}; expected {expected}: {REMEDY}")
