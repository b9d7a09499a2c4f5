"""JSON: strict reading, which reports any problem on one line, and the digest that a record has of itself."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from cleanset.errors import CleansetError, reason
from cleanset.plumbing.files import read_text, sha256_of, write_text
from cleanset.plumbing.validation import check_not_newer, first_problem, shown

Kind = TypeVar("Kind")

JsonObject = dict[str, Any]
"""The content of a table in JSON: text, numbers, booleans, None, lists and further tables, by key."""

JsonMapping = Mapping[str, Any]
"""The same, which is only read."""

MAX_DEPTH = 100
"""Lists or tables within each other."""

_NO_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")


def parse_json(text: str | bytes, where: str, expected: str) -> Any:
    """The value of a strict JSON text.

    Raises CleansetError, which gives `where` and `expected`, for bad syntax, a duplicate key, NaN and infinities,
    endless digits and deep nesting.
    """
    # a strict encoder would fail at a lone surrogate, which json accepts
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    # counted first, which is faster than following each bracket
    if content.count(b"[") + content.count(b"{") > MAX_DEPTH and _depth(content) > MAX_DEPTH:
        raise CleansetError(f"{where}: not JSON (lists or tables more than {MAX_DEPTH} deep); expected {expected}")
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise CleansetError(f"{where}, line {error.lineno}: not JSON ({error.msg}); expected {expected}") from None
    except ValueError as error:  # not UTF-8, too many digits
        raise CleansetError(f"{where}: not JSON ({reason(error)}); expected {expected}") from None


def parse_record(text: str | bytes, where: str, expected: str, known: int = 1) -> Any:
    """As `parse_json`, of a file of cleanset. Raises CleansetError as `check_not_newer` does, too."""
    content = parse_json(text, where, expected)
    check_not_newer(content, where, known)
    return content


def read_json(path: Path, kind: type[Kind] | TypeAdapter[Kind], what: str, remedy: str) -> Kind:
    """The content of a JSON file as a `kind`. Raises CleansetError, which ends in `remedy`, for anything else."""
    text = read_text(path, remedy)
    parse_record(text, str(path), f"{what}: {remedy}")  # pydantic takes a key twice, and NaN
    try:
        return (kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)).validate_json(text)
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}; expected {what}: {remedy}") from None


def json_record(path: Path, what: str, remedy: str, numbers: Iterable[str]) -> JsonObject:
    """The table in a JSON file, with numbers under these keys. Raises CleansetError, which ends in `remedy`."""
    record = read_json(path, JsonObject, what, remedy)
    for key in numbers:
        if not isinstance(record.get(key), int | float):
            raise CleansetError(f"{path}: no {key} as a number; expected {what}: {remedy}")
    return record


def write_json(path: Path, content: object) -> None:
    """Write a value as JSON with indents, in place of an earlier file."""
    write_text(path, json.dumps(content, indent=2) + "\n")


DIGEST = "content_sha256"
"""The key of a record's own digest, which covers all its other keys."""


def with_digest(record: Mapping[str, object], result: Path | None = None) -> JsonObject:
    """A record with its own digest and its result's digest, so that readers notice an edit of either."""
    if result is not None:
        record = {**record, "predictions_sha256": sha256_of(result)}
    # through JSON, where tuples become lists and all keys texts
    content = json.loads(json.dumps({key: value for key, value in record.items() if key != DIGEST}))
    return {**record, DIGEST: _digest(content)}


def _digest(content: JsonMapping) -> str:
    """SHA-256 of a table read from JSON, encoded with sorted keys; its own digest is left out."""
    found = hashlib.sha256()
    for part in _encoded({key: value for key, value in content.items() if key != DIGEST}, 2):
        found.update(part.encode())
    return found.hexdigest()


def _encoded(value: object, depth: int) -> Iterator[str]:
    """Yield the text of `json.dumps(value, sort_keys=True)`, in parts as deep as `depth`, which saves memory."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        yield json.dumps(value, sort_keys=True)
        return
    is_table = isinstance(value, dict)
    yield "{" if is_table else "["
    for number, each in enumerate(sorted(value) if is_table else value):
        yield ", " if number else ""
        if is_table:
            yield f"{json.dumps(each)}: "
        yield from _encoded(value[each] if is_table else each, depth - 1)
    yield "}" if is_table else "]"


def check_digest(record: Mapping[str, object], path: Path, remedy: str) -> None:
    """Raise CleansetError, which ends in `remedy`, for a record without a digest, and for one that was edited.

    `record`: as JSON has it, so that all keys are texts.
    """
    if DIGEST not in record:
        raise CleansetError(f"{path}: no {DIGEST}; expected the digest of what it holds: {remedy}")
    if _digest(record) != record[DIGEST]:
        raise CleansetError(f"{path}: edited since it was written; expected the {DIGEST} in it: {remedy}")


def _depth(content: bytes) -> int:
    """Depth of nested brackets, those inside text included."""
    # json itself may crash on some 10,000
    brackets = content.translate(None, _NO_BRACKETS)
    return max(accumulate(1 if each in b"[{" else -1 for each in brackets), default=0)


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        times = Counter(key for key, _ in pairs)
        first = next(key for key in entries if times[key] > 1)
        raise ValueError(f"the key {shown(first)} a second time")
    return entries


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_distinct, parse_constant=_no_constant)
"""json by itself keeps the last value of a duplicate key, and takes NaN and Infinity."""
