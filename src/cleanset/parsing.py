"""Parsing JSON, CSV and ranges; any problem is one line."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from cleanset.errors import CleansetError, reason
from cleanset.validation import shown

MAX_DEPTH = 100
_RANGE = re.compile(r"([0-9]{1,3})-([0-9]{1,3})")
_NO_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")


def parse_json(text: str | bytes, where: str, expected: str) -> Any:
    """The value of a strict JSON text.

    Raises CleansetError, naming `where` and what is `expected`, for bad syntax, a duplicate key, NaN and infinities,
    endless digits and deep nesting.
    """
    # a strict encoder would fail at a lone surrogate, which json accepts
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if _depth(content) > MAX_DEPTH:
        raise CleansetError(f"{where}: not JSON (lists or tables more than {MAX_DEPTH} deep); expected {expected}")
    try:
        # json by itself keeps the last value of a duplicate key, and takes NaN and Infinity
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise CleansetError(f"{where}, line {error.lineno}: not JSON ({error.msg}); expected {expected}") from None
    except ValueError as error:  # not UTF-8, too many digits
        raise CleansetError(f"{where}: not JSON ({reason(error)}); expected {expected}") from None


def _depth(content: bytes) -> int:
    """Depth of nested brackets, those inside text included; json itself may crash on some 10,000."""
    brackets = content.translate(None, _NO_BRACKETS)
    return max(accumulate(1 if each in b"[{" else -1 for each in brackets), default=0)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        times = Counter(key for key, _ in pairs)
        first = next(key for key in entries if times[key] > 1)
        raise ValueError(f"the key {shown(first)} a second time")
    return entries


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def parse_csv(text: str, columns: tuple[str, ...], where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells, by column, of each row below a header that has exactly these columns.

    Raises CleansetError, naming `where` and the line, for anything else.
    """
    # newline="", as the csv module asks: it handles line ends inside quotes itself
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    expected = ",".join(columns)
    try:
        header = next(rows, [])
        if tuple(header) != columns:
            raise CleansetError(f"{where}, line 1: {shown(','.join(header))}; expected the header {expected}")
        for row in rows:
            if len(row) != len(columns):
                raise CleansetError(f"{where}, line {rows.line_num}: {len(row)} cells; expected {expected}")
            yield rows.line_num, dict(zip(columns, row, strict=True))
    except csv.Error as error:
        raise CleansetError(f"{where}, line {rows.line_num}: not CSV ({reason(error)}); expected {expected}") from None


def parse_ranges(text: str) -> frozenset[int]:
    """The class indices of a text such as 0-499 or 0-99,300-399. Raises ValueError for any other text."""
    found: set[int] = set()
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        if ends is None or int(ends[1]) > int(ends[2]):
            raise ValueError(f"{shown(part)}: expected ranges of class indices such as 0-499 or 0-99,300-399")
        found.update(range(int(ends[1]), int(ends[2]) + 1))
    return frozenset(found)
