"""Readers of JSON, YAML, CSV and ranges that report any problem on one line; writing CSV.

Every YAML file that people write is read here: params.yaml, dvc.yaml, reviews, the files of a contest. PyYAML reads
YAML 1.1, DVC (by ruamel.yaml) 1.2: `012` is 10 to the one and 12 to the other, `yes` true to the one and text to the
other. Values that the versions read differently are refused, and so are tags, anchors and dates, which such files do
not need. Merge keys (`<<`) with aliases are read only in the params of a training study, where many runs share their
settings.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from cleanset.errors import CleansetError, cut, reason
from cleanset.files import MAX_BYTES, open_file, read_text, sha256, sha256_of
from cleanset.progress import print_notice
from cleanset.validation import MAX_VALUE, expected_value, first_problem, join_names, shown

if TYPE_CHECKING:
    import pandas as pd

MAX_DEPTH = 100
_RANGE = re.compile(r"([0-9]{1,3})-([0-9]{1,3})")
_NO_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")


def parse_json(text: str | bytes, where: str, expected: str) -> Any:
    """The value of a strict JSON text.

    Raises CleansetError, which gives `where` and `expected`, for bad syntax, a duplicate key, NaN and infinities,
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


def read_json(path: Path, kind: Any, what: str, remedy: str) -> Any:
    """The content of a JSON file as a `kind`. Raises CleansetError, which ends in `remedy`, for anything else."""
    text = read_text(path, remedy)
    parse_json(text, str(path), f"{what}: {remedy}")  # pydantic takes a key twice, and NaN
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        raise CleansetError(f"{path}: {first_problem(error)}; expected {what}: {remedy}") from None


def json_record(path: Path, what: str, remedy: str, numbers: Iterable[str]) -> dict[str, Any]:
    """The table in a JSON file, with numbers under these keys. Raises CleansetError, which ends in `remedy`."""
    record: dict[str, Any] = read_json(path, dict[str, Any], what, remedy)
    for key in numbers:
        if not isinstance(record.get(key), int | float):
            raise CleansetError(f"{path}: no {key} as a number; expected {what}: {remedy}")
    return record


DIGEST = "content_sha256"
"""The key of a record's own digest, which covers all its other keys."""


def with_digest(record: Mapping[str, Any], result: Path | None = None) -> dict[str, Any]:
    """A record with its own digest and its result's digest, so that readers notice an edit of either."""
    if result is not None:
        record = {**record, "predictions_sha256": sha256_of(result)}
    # through JSON, where tuples become lists and all keys texts
    content = json.loads(json.dumps({key: value for key, value in record.items() if key != DIGEST}))
    return {**record, DIGEST: sha256(json.dumps(content, sort_keys=True).encode())}


def check_digest(record: Mapping[str, Any], path: Path, remedy: str) -> None:
    """Raise CleansetError, which ends in `remedy`, for a record that was edited; an older one passes with a notice."""
    if DIGEST not in record:
        print_notice(f"{path}: written by an earlier version, without a digest: nothing pins it")
    elif with_digest(record) != record:
        raise CleansetError(f"{path}: edited since it was written; expected the {DIGEST} in it: {remedy}")


def _depth(content: bytes) -> int:
    """Depth of nested brackets, those inside text included."""
    # json itself may crash on some 10,000
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


Row = TypeVar("Row")


def read_rows(
    path: Path, columns: Sequence[str], kind: Callable[..., Row], remedy: str, **options: Any
) -> Iterator[tuple[str, Row]]:
    """The rows of a CSV file, as `parse_rows` reads them. Raises CleansetError as `read_text` does, too."""
    return parse_rows(read_text(path, remedy), columns, kind, str(path), remedy, **options)


def parse_rows(
    text: str,
    columns: Sequence[str],
    kind: Callable[..., Row],
    where: str,
    remedy: str,
    key: Sequence[str] = (),
    invalid: list[str] | None = None,
    *,
    others: bool = False,
    context: object = None,
) -> Iterator[tuple[str, Row]]:
    """Each row of a CSV text as a `kind`, after its place in messages.

    `columns`: the header; the last may be missing where their fields have defaults. `kind`: a dataclass with a field of
    the expected type for each column, or a function of the cells by column that raises ValueError. `key`: columns whose
    values are unique together. `others`: more columns may be there, in any order. `context`: what the validators of a
    dataclass need beside the cell, such as the class table. Raises CleansetError, naming `where`, line and column, for
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
    if others and set(columns) <= set(header) and len(set(header)) == len(header):
        column_of = dict(zip(header, header, strict=True))
    elif header != list(columns[: max(needed, len(header))]):
        names = ",".join(columns)
        expected = f"the column {names}, each once" if others else f"the header {names}"
        raise CleansetError(f"{where}, line {line}: {shown(','.join(header))}; expected {expected}: {remedy}")
    seen: dict[tuple[str, ...], int] = {}
    places = [header.index(name) for name in key]
    for line, cells in rows:
        at, problem = f"{where}, line {line}", ""
        if len(cells) != len(header):
            problem = f": {len(cells)} cells; expected {cut(','.join(header), MAX_VALUE)}"
        elif key and seen.setdefault(values := tuple(cells[place] for place in places), line) != line:
            again = ", ".join(f"{name} {shown(cell)}" for name, cell in zip(key, values, strict=True))
            problem = f": {again} a second time, after line {seen[values]}; expected it once"
        else:
            try:
                yield at, check(dict(zip(column_of, cells, strict=False)))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                column = column_of[str(first["loc"][0])]
                problem = f", {column}: {shown(cells[header.index(column)])}; {expected_value(first)}"
            except ValueError as error:
                problem = f": {shown(','.join(cells))}; {error}"
        if problem and invalid is None:
            raise CleansetError(f"{at}{problem}: {remedy}")
        if problem and invalid is not None:
            invalid.append(f"{at}{problem}: {remedy}")


def csv_rows(text: str, where: str, remedy: str, invalid: list[str] | None = None) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a CSV text, the header among them; `invalid` as for `parse_rows`.

    A byte order mark, any line ends and empty lines are read, as spreadsheets write them. Raises CleansetError, naming
    `where` and the line, for a text that is not CSV.
    """
    # newline="", as the csv module asks: it handles line ends inside quotes itself
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
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
            yield rows.line_num, cells


def read_frame(
    path: Path, columns: Iterable[str], remedy: str, most: int = MAX_BYTES, **options: Any
) -> "pd.DataFrame":
    """A CSV file with at least these columns, read in bulk by pandas with these options; only empty cells are missing.

    Raises CleansetError, which ends in `remedy`, for anything else, and as `open_file` does.
    """
    import pandas as pd

    # of itself, pandas reads texts such as NA and null as missing
    options = {"keep_default_na": False, "na_values": [""], "encoding": "utf-8-sig", **options}
    try:
        with open_file(path, most) as file:
            found: pd.DataFrame = pd.read_csv(file, **options)
    except FileNotFoundError:
        raise CleansetError(f"{path}: missing; {remedy}") from None
    except (ValueError, pd.errors.ParserError) as error:
        raise CleansetError(f"{path}: no CSV table ({reason(error)}); {remedy}") from None
    for name in columns:
        if name not in found:
            raise CleansetError(f"{path}: no column {shown(name)}; found {join_names(map(str, found))}: {remedy}")
    return found


def csv_text(header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """A table as CSV with `\\n` line ends; a cell is in quotes only where it has to be, and None is empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def parse_ranges(text: str) -> frozenset[int]:
    """The class indices of a text such as 0-499 or 0-99,300-399. Raises ValueError for any other text."""
    found: set[int] = set()
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        if ends is None or int(ends[1]) > int(ends[2]):
            raise ValueError(f"{shown(part)}: expected ranges of class indices such as 0-499 or 0-99,300-399")
        found.update(range(int(ends[1]), int(ends[2]) + 1))
    return frozenset(found)


YAML_DEPTH = 20
MAX_YAML_BYTES = 2**20

LineNumbers = Mapping[tuple[str, ...], int]
"""The line of each key, by the keys that lead to it from the top; keys of tables inside lists are left out."""

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}|\.[0-9]{1,18}")
# NEL, LS and PS end a line in YAML 1.1 and are ordinary characters in 1.2; the last is a byte order mark
_LINE_BREAK_IN_1_1 = re.compile("[\x85\u2028\u2029\ufeff]")
_NUMBER_IN_1_2 = re.compile(
    r"[-+]?(0b?[01_]+|0o?[0-7_]+|[0-9_]+|0x[0-9a-fA-F_]+"
    r"|([0-9][0-9_]*\.?[0-9_]*|\.[0-9_]+)([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))|\.(nan|NaN|NAN)"
)
"""Numbers in the reading of ruamel.yaml, which takes underscores as 1.1 does."""


def read_yaml(path: Path, remedy: str, most: int = MAX_YAML_BYTES, *, merges: bool = False) -> object:
    """The content of a YAML file of at most `most` bytes; `merges`: merge keys are allowed.

    Raises CleansetError, which ends in `remedy`, if it is missing or not UTF-8.
    """
    return parse_document(read_text(path, remedy, most), str(path), merges=merges)[0]


def data_beside(module: str, name: str) -> Any:
    """The content of a YAML file of this package that lies beside a module; `module` is its `__file__`."""
    return read_yaml(Path(module).with_name(name), "install cleanset again")


def parse_yaml(text: str, where: str) -> object:
    """Dicts with text as keys, lists, text, whole and decimal numbers, booleans and None from one YAML document.

    Raises CleansetError as `parse_document` does.
    """
    return parse_document(text, where)[0]


Document = tuple[object, LineNumbers, Sequence[yaml.Event]]
"""The content of a YAML document, the lines of its keys, and the events that it was read from."""


def parse_document(text: str, where: str, *, merges: bool = False) -> Document:
    """One YAML document, its content as `parse_yaml` reads it.

    Raises CleansetError, naming `where` and the line, for anything else: bad syntax, a key twice, deep
    nesting, a tag, an anchor, and a plain scalar that YAML 1.1 and 1.2 read differently.
    """
    if not text:
        return None, {}, ()
    found = _LINE_BREAK_IN_1_1.search(text)
    if found:
        raise CleansetError(f"{where}: the character {found[0]!a}: write it escaped, in double quotes")
    try:
        reader = _Reader(yaml.CSafeLoader(text).get_event, where, merges)
        return reader.document(), reader.lines, reader.events
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = error.problem or error.context or "bad syntax"
        raise CleansetError(f"{where}{line}: not YAML: {problem}") from None
    except yaml.YAMLError as error:
        raise CleansetError(f"{where}: not YAML: {reason(error)}") from None


parse_remembered = lru_cache(maxsize=64)(parse_document)
"""`parse_document` for texts that are read several times in a row; nobody may change its result."""


class _Reader:
    """Builds the values from the events of a document; so nothing is built of what is refused."""

    def __init__(self, next_event: Callable[[], Any], where: str, merges: bool) -> None:
        self._next_event = next_event
        self.events: list[yaml.Event] = []
        self._where = where
        self._merges = merges
        self._anchored: dict[str, dict[str, object]] = {}
        self.lines: dict[tuple[str, ...], int] = {}
        self._plain_values: dict[str, object] = {}  # many a text comes often, and costs ten times an entry

    def _next(self) -> Any:
        self.events.append(self._next_event())
        return self.events[-1]

    def document(self) -> object:
        self._next()  # the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        content = self._value(self._next(), 0, ())
        self._next()  # the document's end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._error(after, "a second document; a file holds one: remove the other")
        return content

    def _value(self, event: Any, depth: int, path: tuple[str, ...] | None) -> object:
        """The value that begins with an event; `path`: the keys that lead to it, None inside a list."""
        is_table = type(event) is yaml.MappingStartEvent
        if event.anchor is not None and not (self._merges and is_table):
            raise self._error(event, "an anchor or alias; expected the values themselves")
        if event.tag is not None:
            raise self._error(
                event,
                f"a tag, {shown(event.tag.replace('tag:yaml.org,2002:', '!!'))}; "
                "expected text, numbers, lists and tables",
            )
        if type(event) is yaml.ScalarEvent:
            return event.value if event.style else self._plain(event)
        if depth == YAML_DEPTH:
            raise self._error(event, f"lists or tables more than {YAML_DEPTH} deep")
        if not is_table:
            return self._list(depth)
        self._anchored[event.anchor] = found = self._mapping(depth, path)
        return found

    def _list(self, depth: int) -> list[object]:
        items = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            items.append(self._value(event, depth + 1, None))
        return items

    def _mapping(self, depth: int, path: tuple[str, ...] | None) -> dict[str, object]:
        entries: dict[str, object] = {}
        merged: dict[str, object] = {}
        lines: dict[str, int] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            if self._merges and type(event) is yaml.ScalarEvent and event.value == "<<":
                merged = self._merged_tables(depth + 1)
                continue
            key = self._value(event, depth + 1, None)
            if not isinstance(key, str):
                raise self._error(event, f"the key {shown(key)}; expected text: put it in quotes")
            if key in entries:
                raise self._error(
                    event,
                    f"the key {shown(key)} a second time, first in line {lines[key]}; a key comes once: remove one",
                )
            lines[key] = event.start_mark.line + 1
            below = None if path is None else (*path, key)
            if below is not None:
                self.lines[below] = lines[key]
            entries[key] = self._value(self._next(), depth + 1, below)
        return merged | entries

    def _merged_tables(self, depth: int) -> dict[str, object]:
        """The entries of the table after a merge key, or of a list of tables; the first that has a key decides it."""
        event = self._next()
        if type(event) is not yaml.SequenceStartEvent:
            return self._merged_table(event, depth)
        found: dict[str, object] = {}
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            found = self._merged_table(event, depth) | found
        return found

    def _merged_table(self, event: Any, depth: int) -> dict[str, object]:
        if type(event) is yaml.AliasEvent and event.anchor in self._anchored:
            return self._anchored[event.anchor]
        if type(event) is not yaml.MappingStartEvent:
            raise self._error(event, "a merge key (<<); expected the alias of a table above it, or a list of them")
        found = self._value(event, depth, None)
        assert isinstance(found, dict)
        return found

    def _plain(self, event: yaml.ScalarEvent) -> object:
        """The value of a scalar without quotes."""
        if event.value not in self._plain_values:
            self._plain_values[event.value] = self._new_plain(event)
        return self._plain_values[event.value]

    def _new_plain(self, event: yaml.ScalarEvent) -> object:
        text = event.value
        if _NULL.fullmatch(text):
            return None
        if _BOOL.fullmatch(text):
            return text.lower() == "true"
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if not _is_text(text):
            raise self._error(
                event,
                f"{shown(text)} without quotes, which YAML readers read differently; expected a decimal number "
                "without leading zeros, such as 30, true, false or null: put it in quotes if it is text",
            )
        return text

    def _error(self, event: yaml.Event, what: str) -> CleansetError:
        line = event.start_mark.line + 1 if event.start_mark else 1
        return CleansetError(f"{self._where}, line {line}: {what}")


def is_plain_text(text: str) -> bool:
    """Whether a scalar of these characters, written without quotes, is text to every YAML reader."""
    return not any(each.fullmatch(text) for each in (_NULL, _BOOL, _INT, _FLOAT)) and _is_text(text)


def _is_text(text: str) -> bool:
    return not _NUMBER_IN_1_2.fullmatch(text) and _tag_in_1_1(text) == "tag:yaml.org,2002:str"


_resolver = yaml.resolver.Resolver()


def _tag_in_1_1(text: str) -> str:
    # (True, False): the tag of a plain scalar, not of one in quotes
    tag: str = _resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag
