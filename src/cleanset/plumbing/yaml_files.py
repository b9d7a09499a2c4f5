"""YAML, as every reader of YAML 1.1 and 1.2 understands it; anything else is refused on one line.

Every YAML file that people write is read here: params.yaml, dvc.yaml, reviews, the files of a contest. PyYAML reads
YAML 1.1, DVC (by ruamel.yaml) 1.2: `012` is 10 to the one and 12 to the other, `yes` true to the one and text to the
other. Values that the versions read differently are refused, and so are tags, anchors and dates, which such files do
not need. Merge keys (`<<`) with aliases are read only in the params of a training study, where many runs share their
settings.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from cleanset.errors import CleansetError, reason
from cleanset.plumbing.files import read_text
from cleanset.plumbing.validation import shown

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


def read_study_yaml(path: Path, study: str, *, merges: bool = False) -> object:
    """The content of a params.yaml of a study, or of the file that a command is given in its place.

    Raises CleansetError as `read_yaml` does, whose `merges` it has.
    """
    return read_yaml(path, f"expected the params of {study}: correct the path, or put the file back", merges=merges)


def data_beside(module: str, name: str) -> Any:
    """The content of a YAML file of this package that is next to a module; `module` is its `__file__`."""
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
        reader = _Reader(yaml.CSafeLoader(text).get_event, where, merges=merges)
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

    def __init__(self, next_event: Callable[[], yaml.Event | None], where: str, *, merges: bool) -> None:
        self._next_event = next_event
        self.events: list[yaml.Event] = []
        self._where = where
        self._merges = merges
        self._anchored: dict[str, dict[str, object]] = {}
        self.lines: dict[tuple[str, ...], int] = {}
        self._plain_values: dict[str, object] = {}  # many a text comes often, and costs ten times an entry

    def _next(self) -> yaml.Event:
        event = self._next_event()
        assert event is not None  # it is behind the end of the stream, and nobody asks there
        self.events.append(event)
        return event

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

    def _value(self, event: yaml.Event, depth: int, path: tuple[str, ...] | None) -> object:
        """The value that begins with an event; `path`: the keys that lead to it, None inside a list."""
        is_table = type(event) is yaml.MappingStartEvent
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        if anchor is not None and not (self._merges and is_table):
            raise self._error(event, "an anchor or alias; expected the values themselves")
        tag = event.tag if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) else None
        if tag is not None:
            raise self._error(
                event,
                f"a tag, {shown(tag.replace('tag:yaml.org,2002:', '!!'))}; expected text, numbers, lists and tables",
            )
        if type(event) is yaml.ScalarEvent:
            return event.value if event.style else self._plain(event)
        if depth == YAML_DEPTH:
            raise self._error(event, f"lists or tables more than {YAML_DEPTH} deep")
        if not is_table:
            return self._list(depth)
        found = self._mapping(depth, path)
        if anchor is not None:
            self._anchored[anchor] = found
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
            lines[key] = _line_of(event)
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

    def _merged_table(self, event: yaml.Event, depth: int) -> dict[str, object]:
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
        return CleansetError(f"{self._where}, line {_line_of(event)}: {what}")


def _line_of(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


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
