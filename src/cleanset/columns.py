"""The kinds of columns that tables have: type, and which values are valid."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cleanset.vocabulary import EXCLUSION_REASONS, TIERS, VERDICTS

Valid = NDArray[np.bool]
"""For each row, whether it is valid."""


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of column: its type, what a value is expected to be, and the check of all its values at once."""

    type: pa.DataType
    expected: str
    is_valid: Callable[[pa.Array], Valid]
    nullable: bool = False

    def invalid_row(self, values: pa.Array) -> int | None:
        """The first row with a value that is not expected, counted from 0; None if there is none."""
        valid = self.is_valid(values)
        missing = values.is_null().to_numpy(zero_copy_only=False)
        valid = valid | missing if self.nullable else valid & ~missing
        return None if valid.all() else int(np.argmin(valid))


def nullable(column: Column) -> Column:
    """The same kind of column, with rows that have no value."""
    return replace(column, nullable=True)


def _numpy(values: pa.Array) -> NDArray[Any]:
    found: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return found


def _matches(pattern: str) -> Callable[[pa.Array], Valid]:
    return lambda values: _numpy(pc.fill_null(pc.match_substring_regex(values, f"^(?:{pattern})$"), False))


def _one_of(*choices: str) -> Callable[[pa.Array], Valid]:
    return lambda values: _numpy(pc.is_in(values, value_set=pa.array(choices)))


def _between(least: float, most: float) -> Callable[[pa.Array], Valid]:
    """Also of NaN, which is in no range."""

    def is_valid(values: pa.Array) -> Valid:
        numbers = _numpy(values)
        valid: Valid = (numbers >= least) & (numbers <= most)
        return valid

    return is_valid


def _rows(values: pa.Array) -> NDArray[Any]:
    """The values of a column of lists of one length, a row each."""
    return _numpy(values.values).reshape(len(values), values.type.list_size)


def _each_between(least: float, most: float) -> Callable[[pa.Array], Valid]:
    def is_valid(values: pa.Array) -> Valid:
        rows = _rows(values)
        valid: Valid = np.all((rows >= least) & (rows <= most), axis=1)
        return valid

    return is_valid


def _five_classes(values: pa.Array) -> Valid:
    rows = np.sort(_rows(values), axis=1)
    valid: Valid = (rows[:, 0] >= 0) & (rows[:, -1] <= MAX_CLASS) & np.all(rows[:, 1:] > rows[:, :-1], axis=1)
    return valid


def _box(values: pa.Array) -> Valid:
    left, top, right, bottom = _rows(values).T
    valid: Valid = (left >= 0) & (top >= 0) & (left < right) & (top < bottom)
    return valid


def _distinct_classes(values: pa.Array) -> Valid:
    rows, classes = _numpy(pc.list_parent_indices(values)), _numpy(pc.list_flatten(values))
    valid = np.ones(len(values), dtype=np.bool)
    valid[rows[~((classes >= 0) & (classes <= MAX_CLASS))]] = False
    order = np.lexsort((classes, rows))
    rows, classes = rows[order], classes[order]
    valid[rows[1:][(rows[1:] == rows[:-1]) & (classes[1:] == classes[:-1])]] = False
    return valid


def _not_empty(values: pa.Array) -> Valid:
    return _numpy(pc.fill_null(pc.greater(pc.list_value_length(values), 0), False))


def _any(values: pa.Array) -> Valid:
    return np.ones(len(values), dtype=np.bool)


MAX_CLASS = 999
MAX_INT32, MAX_INT64 = 2**31 - 1, 2**63 - 1
MAX_FLOAT32 = float(np.finfo(np.float32).max)

IMAGE_ID = Column(pa.string(), "an image id like ILSVRC2012_val_00000001", _matches("ILSVRC2012_val_[0-9]{8}"))
SHA256 = Column(pa.string(), "a SHA-256 of 64 hexadecimal digits", _matches("[0-9a-f]{64}"))
FILE = Column(pa.string(), "a path", _matches("[^\\x00]+"))
MODE = Column(pa.string(), "RGB, L or CMYK", _one_of("RGB", "L", "CMYK"))
TIER = Column(pa.string(), f"one of {', '.join(TIERS)}", _one_of(*TIERS))
REASON = Column(pa.string(), "a reason of the closed list (cleanset/vocabulary.py)", _one_of(*EXCLUSION_REASONS))
REVIEWER = Column(pa.string(), "the name of a reviewer's folder", _matches("[a-z0-9][a-z0-9_-]*"))
VERDICT = Column(pa.string(), f"one of {', '.join(VERDICTS)}", _one_of(*VERDICTS))
FLAG = Column(pa.bool_(), "true or false", _any)
BYTES = Column(pa.int64(), "a number of bytes", _between(0, MAX_INT64))
SIDE = Column(pa.int32(), "a number of pixels from 1", _between(1, MAX_INT32))
RANK = Column(pa.int32(), "a number from 1", _between(1, MAX_INT32))
CLASS = Column(pa.int16(), f"a class index from 0 to {MAX_CLASS}", _between(0, MAX_CLASS))
CLASSES = Column(pa.list_(pa.int16()), f"distinct class indices from 0 to {MAX_CLASS}", _distinct_classes)
PROBABILITY = Column(pa.float32(), "a probability from 0 to 1", _between(0, 1))
DIFFERENCE = Column(pa.float64(), "a difference of probabilities from 0 to 1", _between(0, 1))
LOG_ODDS = Column(pa.float32(), "log-odds, a finite number", _between(-MAX_FLOAT32, MAX_FLOAT32))
LOG_ODDS_DIFFERENCE = Column(
    pa.float64(), "a difference of log-odds, a finite number", _between(-2 * MAX_FLOAT32, 2 * MAX_FLOAT32)
)
TOP5_CLASSES = Column(pa.list_(pa.int16(), 5), f"five distinct class indices from 0 to {MAX_CLASS}", _five_classes)
TOP5_PROBABILITIES = Column(pa.list_(pa.float32(), 5), "five probabilities from 0 to 1", _each_between(0, 1))
LOGIT = Column(pa.float32(), "a logit, a finite number", _between(-MAX_FLOAT32, MAX_FLOAT32))
NAME = Column(pa.string(), "a name of small letters, digits and _", _matches("[a-z][a-z0-9_]*"))
NAMES = Column(pa.list_(pa.string()), "a list of one or more names", _not_empty)
SEVERITY = Column(pa.int8(), "a severity from 1 to 5, 0 for an unchanged image", _between(0, 5))
FRAME = Column(pa.int8(), "a frame from 0 to 40", _between(0, 40))
BOX = Column(pa.list_(pa.int32(), 4), "left, top, right, bottom of a box with an area", _box)
"""In pixels of the whole image; right and bottom excluded."""
