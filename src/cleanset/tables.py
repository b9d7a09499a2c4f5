"""The schemas of the tables between stages: Parquet, keyed and sorted by `image_id`, every value checked on reading.

In CROPS and CROP_SCORES, where an image may have several crops, the box belongs to the key; in VOTES the reviewer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cleanset.classes import ClassTable
from cleanset.errors import CleansetError, reason
from cleanset.image_ids import ID_PATTERN as IMAGENET_ID
from cleanset.plumbing.files import read_bytes, replacing
from cleanset.plumbing.validation import SHA256_FORM, check_columns, shown
from cleanset.vocabulary import NO_TIER, REASON_FORM, TIER_ORDER, TIERS, VERDICTS

REMEDY = "run dvc checkout to restore it, or dvc repro"

Values = NDArray[Any]
"""The values of a column, of its type."""

Valid = NDArray[np.bool]
"""Whether each row is valid."""

ValuesCheck = Callable[[pa.Array, ClassTable], Valid]
"""Maps the values of a column, and the classes of the dataset, to whether each is valid."""


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of column: its type, the expected values in words, and the check of all its values at once."""

    type: pa.DataType
    form: str
    is_valid: ValuesCheck
    nullable: bool = False

    def expected(self, classes: ClassTable) -> str:
        """The expected value in words."""
        like_id = " like ILSVRC2012_val_00000001" if classes.is_imagenet else ""
        return self.form.format(last_class=len(classes) - 1, like_id=like_id)

    def invalid_row(self, values: pa.Array, classes: ClassTable) -> int | None:
        """The first row with an unexpected value, counted from 0; None if all are valid."""
        valid = self.is_valid(values, classes)
        missing = values.is_null().to_numpy(zero_copy_only=False)
        valid = valid | missing if self.nullable else valid & ~missing
        return None if valid.all() else int(np.argmin(valid))


def nullable(column: Column) -> Column:
    """The same kind of column, with rows that have no value."""
    return replace(column, nullable=True)


def _numpy(values: pa.Array) -> Values:
    found: Values = values.to_numpy(zero_copy_only=False)
    return found


def _matches(pattern: str) -> ValuesCheck:
    # the group lets ^ and $ hold for every alternative of a pattern
    return lambda values, _: _numpy(pc.fill_null(pc.match_substring_regex(values, f"^(?:{pattern})$"), False))


def _one_of(*choices: str) -> ValuesCheck:
    return lambda values, _: _numpy(pc.is_in(values, value_set=pa.array(choices)))


def between(least: float, most: float) -> ValuesCheck:
    """A check of a closed range, of every value in lists of one length; NaN is outside every range."""

    return lambda values, _: _in_range(values, least, most)


def _in_range(values: pa.Array, least: float, most: float) -> Valid:
    numbers = _rows(values) if pa.types.is_fixed_size_list(values.type) else _numpy(values)[:, None]
    valid: Valid = np.all((numbers >= least) & (numbers <= most), axis=1)
    return valid


def _rows(values: pa.Array) -> Values:
    """The values of a column of lists of one length, a row each."""
    return _numpy(values.values).reshape(len(values), values.type.list_size)


def _five_classes(values: pa.Array, classes: ClassTable) -> Valid:
    # sorted, so that equal classes are neighbours
    rows = np.sort(_rows(values), axis=1)
    # fewer than five classes are padded with -1
    missing = max(0, rows.shape[1] - len(classes))
    are_distinct = np.all(rows[:, missing + 1 :] > rows[:, missing:-1], axis=1)
    are_known = (rows[:, missing] >= 0) & (rows[:, -1] < len(classes))
    valid: Valid = np.all(rows[:, :missing] == -1, axis=1) & are_known & are_distinct
    return valid


def _box(values: pa.Array, _: ClassTable) -> Valid:
    left, top, right, bottom = _rows(values).T
    valid: Valid = (left >= 0) & (top >= 0) & (left < right) & (top < bottom)
    return valid


def _distinct_classes(values: pa.Array, classes: ClassTable) -> Valid:
    rows = _numpy(pc.list_parent_indices(values))
    indices = _numpy(pc.list_flatten(values))
    valid = np.ones(len(values), dtype=np.bool)
    valid[rows[~((indices >= 0) & (indices < len(classes)))]] = False
    # the lists differ in length: all classes are compared in one flat array, equal ones of a row side by side
    order = np.lexsort((indices, rows))
    rows = rows[order]
    indices = indices[order]
    valid[rows[1:][(rows[1:] == rows[:-1]) & (indices[1:] == indices[:-1])]] = False
    return valid


def _not_empty(values: pa.Array, _: ClassTable) -> Valid:
    return _numpy(pc.fill_null(pc.greater(pc.list_value_length(values), 0), False))


def any_value(values: pa.Array, _: ClassTable) -> Valid:
    """A check that every value passes."""
    return np.ones(len(values), dtype=np.bool)


def _is_class(values: pa.Array, classes: ClassTable) -> Valid:
    return _in_range(values, 0, len(classes) - 1)


def _is_image_id(values: pa.Array, classes: ClassTable) -> Valid:
    pattern = IMAGENET_ID if classes.is_imagenet else "[^\\x00-\\x1f]+"
    return _matches(pattern)(values, classes)


MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MAX_FLOAT32 = float(np.finfo(np.float32).max)

IMAGE_ID = Column(pa.string(), "an image id{like_id}", _is_image_id)
SHA256 = Column(pa.string(), "a SHA-256 of 64 hexadecimal digits", _matches(SHA256_FORM.pattern))
FILE = Column(pa.string(), "a path", _matches("[^\\x00]+"))
MODE = Column(pa.string(), "RGB, L or CMYK", _one_of("RGB", "L", "CMYK"))
TIER = Column(pa.string(), f"one of {', '.join(TIERS)}", _one_of(*TIERS))
TIER_OR_NONE = Column(
    pa.string(), f"one of {', '.join(TIERS)}, or {NO_TIER}, of a set without a model", _one_of(*TIER_ORDER)
)
REASON = Column(pa.string(), "a reason, such as watermark", _matches(REASON_FORM))
REVIEWER = Column(pa.string(), "the name of a reviewer's folder", _matches("[a-z0-9][a-z0-9_-]*"))
VERDICT = Column(pa.string(), f"one of {', '.join(VERDICTS)}", _one_of(*VERDICTS))
FLAG = Column(pa.bool_(), "true or false", any_value)
BYTES = Column(pa.int64(), "a number of bytes", between(0, MAX_INT64))
SIDE = Column(pa.int32(), "a number of pixels from 1", between(1, MAX_INT32))
RANK = Column(pa.int32(), "a number from 1", between(1, MAX_INT32))
CLASS = Column(pa.int16(), "a class index from 0 to {last_class}", _is_class)
CLASSES_COLUMN = Column(pa.list_(pa.int16()), "distinct class indices from 0 to {last_class}", _distinct_classes)
PROBABILITY = Column(pa.float32(), "a probability from 0 to 1", between(0, 1))
DIFFERENCE = Column(pa.float64(), "a difference of probabilities from 0 to 1", between(0, 1))
LOG_ODDS = Column(pa.float32(), "log-odds, a finite number", between(-MAX_FLOAT32, MAX_FLOAT32))
LOG_ODDS_DIFFERENCE = Column(
    # two float32 may be twice the largest one apart
    pa.float64(),
    "a difference of log-odds, a finite number",
    between(-2 * MAX_FLOAT32, 2 * MAX_FLOAT32),
)
TOP5_CLASSES = Column(pa.list_(pa.int16(), 5), "five distinct class indices from 0 to {last_class}", _five_classes)
TOP5_PROBABILITIES = Column(pa.list_(pa.float32(), 5), "five probabilities from 0 to 1", between(0, 1))
LOGIT = Column(pa.float32(), "a logit, a finite number", between(-MAX_FLOAT32, MAX_FLOAT32))
NAME = Column(pa.string(), "a name of small letters, digits and _", _matches("[a-z][a-z0-9_]*"))
CHANGE = Column(
    pa.string(),
    "a name of small letters, digits and _, or MODULE:FUNCTION",
    _matches(r"[a-z][a-z0-9_]*|[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"),
)
NAMES = Column(pa.list_(pa.string()), "a list of one or more names", _not_empty)
SEVERITY = Column(pa.int8(), "a severity from 1 to 5, 0 for an unchanged image", between(0, 5))
FRAME = Column(pa.int8(), "a frame from 0 to 40", between(0, 40))
BOX = Column(pa.list_(pa.int32(), 4), "left, top, right, bottom of a box with an area", _box)
"""Edges in pixels of the whole image; right and bottom excluded."""


class Invalid(NamedTuple):
    """An invalid value of a table: its column, its row (from 0), and the expected value in words."""

    column: str
    row: int
    expected: str


_Check = Callable[[pa.Table], Invalid | None]
"""Maps a table to the first problem across columns."""


class Table:
    """A kind of table: its columns, the key that its rows are sorted by, and a check across columns."""

    def __init__(
        self,
        check: _Check | None = None,
        *,
        key: tuple[str, ...] = ("image_id",),
        **columns: Column,
    ) -> None:
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


def _single_is_one_label(table: pa.Table) -> Invalid | None:
    one = pc.equal(pc.list_value_length(table["real_classes"]), 1)
    differs = pc.not_equal(one, table["single"]).to_numpy()
    if not differs.any():
        return None
    return Invalid("single", int(np.argmax(differs)), "true where there is one of real_classes")


def _unknown_box_is_none(table: pa.Table) -> Invalid | None:
    wrong = pc.and_(table["box_unknown"], pc.is_valid(table["crop"])).to_numpy()
    if not wrong.any():
        return None
    return Invalid("box_unknown", int(np.argmax(wrong)), "false where crop has a box")


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
    real_classes=CLASSES_COLUMN,  # of the reassessed labels
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
CROP_SCORES = Table(None, key=CROPS.key, **(CROPS.columns | SCORES.columns))
SHARED = Table(image_id=IMAGE_ID, class_index=CLASS)
CANDIDATES = Table(
    image_id=IMAGE_ID,
    class_index=CLASS,
    tier=TIER_OR_NONE,
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
    tier=TIER_OR_NONE,
    rank=RANK,
    confidence=PROBABILITY,
    crop=nullable(BOX),  # null: the whole image, or a box that is not known
    box_unknown=FLAG,  # kept for counting only, never exported
)
REJECTED = Table(
    image_id=IMAGE_ID,
    class_index=CLASS,
    tier=TIER_OR_NONE,
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


def write_table(
    path: Path,
    frame: pd.DataFrame,
    table: Table,
    classes: ClassTable,
    *,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write `frame`, about images of `classes`, sorted by its key: the same rows give the same bytes.

    `texts`: texts by name that go with the table, for `text_of_table`. Raises ValueError if a key occurs twice.
    """
    keys = pd.Series(_keys(*(frame[name] for name in table.key)), index=frame.index, dtype=object).sort_values()
    if keys.duplicated().any():
        raise ValueError(f"{path}: {' '.join(map(str, keys[keys.duplicated()].iloc[0]))} occurs twice")
    frame = frame.loc[keys.index]
    # from_pandas: pandas has NaN where Parquet needs null
    columns = [pa.array(frame[field.name].tolist(), type=field.type, from_pandas=True) for field in table.schema]
    content = pa.Table.from_arrays(columns, schema=table.schema)
    # before the texts, which it would drop
    content = content.rename_columns([classes.column(name) for name in content.column_names])
    if texts:
        content = content.replace_schema_metadata(dict(sorted(texts.items())))
    with replacing(path) as partial, partial.open("wb") as file:
        # without page checksums most flipped bits are read as other values
        pq.write_table(content, file, compression="zstd", compression_level=9, write_page_checksum=True)


def text_of_table(path: Path, name: str) -> str | None:
    """A text that was written with a table; None if it is missing. Only the end of the file is read."""
    metadata = _read(path, pq.read_schema).metadata or {}
    text = metadata.get(name.encode())
    return None if text is None else text.decode()


def rows_of_table(path: Path) -> int:
    """The number of rows of a table. Only the end of the file is read."""
    return int(_read(path, pq.read_metadata).num_rows)


def _keys(*columns: Iterable[str | int | Iterable[int]]) -> list[tuple[str | int, ...]]:
    """The key of each row: its values in these columns, of a box the four edges."""
    parts = ([(value,) if isinstance(value, str | int) else tuple(value) for value in column] for column in columns)
    return [sum(row, ()) for row in zip(*parts, strict=True)]


def read_table(path: Path, table: Table, classes: ClassTable, *, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table about images of `classes`, or some columns of it, while all are checked.

    Raises CleansetError if it is missing, or naming the first column and row that is not valid.
    """
    content = _read(path, parquet_content)
    names = {classes.column(name): name for name in table.names}
    content = content.rename_columns([names.get(name, name) for name in content.column_names])
    _check_schema(path, content.schema, table.schema)
    for name, column in table.columns.items():
        row = column.invalid_row(content[name].combine_chunks(), classes)
        if row is not None:
            raise _invalid(path, content, table, Invalid(name, row, column.expected(classes)), classes=classes)
    found = table.check(content) if table.check else None
    if found:
        raise _invalid(path, content, table, found, classes=classes)
    _check_order(path, content, table.key)
    frame: pd.DataFrame = content.select(columns or table.names).to_pandas()
    return frame


Read = TypeVar("Read")


def _read(path: Path, read: Callable[[Path], Read]) -> Read:
    try:
        return read(path)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; run dvc repro, or dvc pull to fetch it") from None
    except CleansetError:
        raise
    except Exception as error:  # Arrow raises whatever damaged bytes lead it to
        raise CleansetError(f"{path}: not a Parquet file ({reason(error)}); {REMEDY}") from None


MAX_ROWS = 1 << 25
"""The most rows of a table; the answers to 50,000 images in 300 frames each are half of that."""


def parquet_content(path: Path, most: int = 2**36) -> pa.Table:
    """The table in a Parquet file of at most `most` bytes, with its page checksums verified if it has them.

    Raises Arrow's exception for damaged bytes, and ValueError where counts of rows contradict each other, or are over
    MAX_ROWS: a small file may repeat one value any number of times.
    """
    with pq.ParquetFile(pa.BufferReader(read_bytes(path, most)), page_checksum_verification=True) as file:
        rows = sum(file.metadata.row_group(number).num_rows for number in range(file.num_row_groups))
        # no checksum covers the counts, and reading takes memory for as many rows as they say
        if rows != file.metadata.num_rows:
            raise ValueError(f"{file.metadata.num_rows:,} rows by its footer, {rows:,} by its parts")
        if rows > MAX_ROWS:
            raise ValueError(f"{rows:,} rows, expected at most {MAX_ROWS:,}")
        content = file.read()
    # reading alone checks neither offsets of lists nor the UTF-8 of strings
    content.validate(full=True)
    return content


def _check_schema(path: Path, found: pa.Schema, expected: pa.Schema) -> None:
    check_columns(found.names, expected.names, str(path))
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
        before = values[:-1]
        after = values[1:]
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
    """The columns by which a column of a key is compared: itself, or the four edges of boxes."""
    if not pa.types.is_fixed_size_list(values.type):
        return [values]
    edges = values.flatten().to_numpy().reshape(len(values), values.type.list_size)
    return [pa.array(edge) for edge in edges.T]


def _invalid(path: Path, content: pa.Table, table: Table, problem: Invalid, *, classes: ClassTable) -> CleansetError:
    key = table.key[0]
    value = content[problem.column][problem.row].as_py()
    where = f"{path}, column {classes.column(problem.column)}, row {problem.row + 1}"
    if problem.column != key:
        where += f" ({content[key][problem.row].as_py()})"
    return CleansetError(f"{where}: {shown(value)}; expected {problem.expected}: {REMEDY}")
