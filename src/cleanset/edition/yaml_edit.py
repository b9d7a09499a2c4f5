"""Change values, entries and list items in the text of a YAML file, and leave every other byte unchanged.

The marks of the composed nodes show where each key and value is. ruamel.yaml's round trip keeps only files in
its own layout, and changes others, such as dvc.yaml and params.yaml of studies/robustness: people write other indents,
comments at the margin, and lists over several lines.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate

import yaml

from cleanset.errors import CleansetError
from cleanset.plumbing.yaml_files import Document, is_plain_text, parse_document


class LayoutError(ValueError):
    """A change that this layout does not allow without touching other lines or comments."""


class InBraces(dict[str, object]):
    """A mapping that is written in braces on one line where it is new; others are written on a line per key."""


def edited_text(
    text: str, wanted: Mapping[str, object], where: str, parse: Callable[[str, str], Document] = parse_document
) -> str:
    """The text of a YAML file, changed in as few places as possible so that its content is `wanted`.

    A new key follows the key before it in `wanted`; the other keys keep their order. Items of a list are added and
    removed; a list for which `wanted` has a tuple is replaced as a whole. Comments stay, except those in the lines of a
    removed entry, and those below it that are indented further than its key.

    Raises CleansetError, naming `where`, for text that `parse_yaml` refuses; LayoutError if the result would not read
    back as `wanted`, or if a comment inside a replaced value would be lost.
    """
    content, _, events = parse(text, where)
    edit = _Edit(text)
    if content is None:
        edit.append(wanted)
    else:
        following = iter(events[2:])  # behind the starts of stream and document
        edit.change(None, _node(next(following), following), content, wanted)
    result = edit.result()
    # whatever the layout is, a text that reads back as wanted has no wrong value
    try:
        is_as_wanted = _canonical(parse(result, where)[0]) == _canonical(wanted)
    except (CleansetError, UnicodeError):
        is_as_wanted = False
    if not is_as_wanted:
        raise LayoutError
    return result


def _node(first: yaml.Event, following: Iterator[yaml.Event]) -> yaml.Node:
    """The node that begins with an event, of pairs of keys and values; the events up to its end are taken."""
    if isinstance(first, yaml.ScalarEvent):
        scalar = yaml.ScalarNode("", first.value)
        scalar.start_mark = first.start_mark
        scalar.end_mark = first.end_mark
        scalar.style = first.style
        return scalar
    below: list[yaml.Node] = []
    while not isinstance(event := next(following), yaml.CollectionEndEvent):
        below.append(_node(event, following))
    is_list = isinstance(first, yaml.SequenceStartEvent)
    pairs = zip(below, below, strict=True) if is_list else zip(below[::2], below[1::2], strict=True)
    found = (yaml.SequenceNode if is_list else yaml.MappingNode)("", list(pairs))
    found.start_mark = first.start_mark
    found.end_mark = event.end_mark
    found.flow_style = isinstance(first, yaml.CollectionStartEvent) and first.flow_style
    return found


def _canonical(value: object) -> str:
    """One text for the same content, in which 1, 1.0 and true differ, and tuples and lists do not."""
    return json.dumps(value, sort_keys=True)


_New = dict[int, list[tuple[str | None, object]]]
"""New keys (None in a list) and values, by the number of the entry that they follow; -1 is the front."""


class _Edit:
    """Replacements in a text, collected while its nodes are compared with the wanted content."""

    def __init__(self, text: str) -> None:
        self._newline = "\r\n" if "\r\n" in text else "\n"
        # lines come and go whole; a newline that the last one lacks is taken off again at the end
        self._lent = "" if not text or text.endswith(("\n", "\r")) else self._newline
        self._text = text + self._lent
        self._lines = self._text.splitlines(keepends=True)
        self._starts = [0, *accumulate(map(len, self._lines))]
        self._replacements: list[tuple[int, int, str]] = []

    def result(self) -> str:
        """The text with all replacements made."""
        pieces: list[str] = []
        at = 0
        # of two at one place the first to be collected is the inner one, and sorting keeps it first
        for start, end, new in sorted(self._replacements, key=lambda each: each[:2]):
            pieces += [self._text[at:start], new]
            at = end
        return "".join([*pieces, self._text[at:]]).removesuffix(self._lent)

    def append(self, content: Mapping[str, object]) -> None:
        """Add content to a text of comments alone."""
        self._insert(len(self._lines), [_lines(key, value, 0, 2) for key, value in content.items()])

    def change(
        self, key: yaml.Node | None, node: yaml.Node, before: object, wanted: object, *, in_flow: bool = False
    ) -> None:
        """Change the value of a node from `before` to `wanted`; `key` is None for the root and in lists."""
        if _canonical(before) == _canonical(wanted):
            return
        if not isinstance(before, dict | list) or not isinstance(wanted, type(before)):
            self._write_value(key, node, wanted, in_flow=in_flow)
            return
        keys, values = _entries(node)
        old = _pairs(before)
        new = _pairs(wanted)
        kept = _kept(before, wanted)
        staying = set(kept.values())
        stay = [number in staying for number in range(len(old))]
        added: _New = {}
        last = -1
        for number, (name, value) in enumerate(new):
            if number in kept:
                last = kept[number]
                self.change(keys[last], values[last], old[last][1], value, in_flow=in_flow or _is_in_flow(node))
            else:
                # below the comments of removed entries, whose place they take
                while last + 1 < len(old) and not stay[last + 1]:
                    last += 1
                added.setdefault(last, []).append((name, value))
        if in_flow or (_is_in_flow(node) and old):
            self._change_in_brackets(node, stay, added)
        else:
            self._change_lines(key, node, stay, added)

    def _change_in_brackets(self, node: yaml.Node, stay: Sequence[bool], added: _New) -> None:
        """Add and remove entries together with the comma in front of them, of the first ones that behind them."""
        keys, values = _entries(node)
        starts = [key.start_mark.index for key in keys] or [node.start_mark.index + 1]
        ends = [value.end_mark.index for value in values] or starts
        new = {last: ", ".join(_bracketed(*entry) for entry in entries) for last, entries in added.items()}
        if not any(stay):
            self._replace(starts[0], ends[-1], "".join(new.values()))
            return
        first = stay.index(True)
        self._replace(starts[0], starts[first], f"{new[first - 1]}, " if first - 1 in new else "")
        for number in range(first, len(stay)):
            if not stay[number]:
                self._replace(ends[number - 1], ends[number], "")
            if number in new:
                self._replace(ends[number], ends[number], f", {new[number]}")

    def _change_lines(self, key: yaml.Node | None, node: yaml.Node, stay: Sequence[bool], added: _New) -> None:
        """Add and remove the lines of entries; {} and [] become lines, and the other way round."""
        keys, values = _entries(node)
        column = node.start_mark.column
        step = 2
        if values:
            line = node.start_mark.line if key is None else key.end_mark.line + 1
            blocks = [value for value in values if isinstance(value, yaml.CollectionNode) and not value.flow_style]
            step = next((block.start_mark.column - column for block in blocks if block.start_mark.column > column), 2)
        else:
            self._replace(self._behind_colon(key), node.end_mark.index, "")
            line = node.end_mark.line + 1
            column = (key.start_mark.column if key else 0) + step
        line = self._below_comments(line, column)
        for number in range(-1, len(stay)):
            if number >= 0:
                line = self._line_after(values[number], column)
                if not stay[number]:
                    start = self._starts[keys[number].start_mark.line]
                    self._replacements.append((start, self._starts[line], ""))
            self._insert(line, [_lines(name, value, column, step) for name, value in added.get(number, ())])
        if not added and not any(stay):
            # a key without a value would have null
            colon = self._behind_colon(key)
            self._replace(colon, colon, " {}" if isinstance(node, yaml.MappingNode) else " []")

    def _write_value(self, key: yaml.Node | None, node: yaml.Node, value: object, *, in_flow: bool) -> None:
        start = node.start_mark.index
        end = self._end(node)
        new = flow_text(value) if isinstance(value, Mapping | list | tuple) else _scalar(value, in_flow=in_flow)
        if isinstance(node, yaml.CollectionNode):
            if node.flow_style:
                self._replace(start, end, new)
            else:
                self._replace(self._behind_colon(key), end, f" {new}")
        else:
            # of a block only the first line can end in a comment; below it, # is text
            if (
                isinstance(node, yaml.ScalarNode)
                and node.style in ("|", ">")
                and "#" in self._lines[node.start_mark.line][node.start_mark.column :]
            ):
                raise LayoutError
            gap = " " if start == end and not self._text[start - 1].isspace() else ""
            self._replacements.append((start, end, gap + new))

    def _replace(self, start: int, end: int, new: str) -> None:
        """Replace a part of the text. Raises LayoutError if it seems to hold a comment."""
        if "#" in self._text[start:end]:
            raise LayoutError
        self._replacements.append((start, end, new))

    def _insert(self, line: int, entries: Iterable[Iterable[str]]) -> None:
        new = "".join(each + self._newline for lines in entries for each in lines)
        self._replacements.append((self._starts[line], self._starts[line], new))

    def _behind_colon(self, key: yaml.Node | None) -> int:
        colon = None if key is None else re.compile(" *:").match(self._text, key.end_mark.index)
        if colon is None:  # the root, in a list, an explicit key
            raise LayoutError
        return colon.end()

    def _line_after(self, node: yaml.Node, column: int) -> int:
        return self._below_comments(bisect_right(self._starts, self._end(node)), column)

    def _below_comments(self, after: int, column: int) -> int:
        """The line below comments that belong to the entry above: indented further than `column`, where keys are."""
        for number in range(after, len(self._lines)):
            line = self._lines[number].lstrip(" ")
            if line.startswith("#") and len(self._lines[number]) - len(line) > column:
                after = number + 1
            elif line.strip():
                break
        return after

    def _end(self, node: yaml.Node) -> int:
        """The end of a node's content. (The end mark of a block is behind the comments that follow it.)"""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style:
            return max(self._end(value) for value in _entries(node)[1])
        start: int = node.start_mark.index
        return start + len(self._text[start : node.end_mark.index].rstrip())


def _entries(node: yaml.Node) -> tuple[list[yaml.Node], list[yaml.Node]]:
    """The nodes of keys and values; for a list, the items as both."""
    return [key for key, _ in node.value], [value for _, value in node.value]


def _is_in_flow(node: yaml.Node) -> bool:
    """Whether a node is written in brackets."""
    return isinstance(node, yaml.CollectionNode) and bool(node.flow_style)


def _pairs(value: dict[str, object] | list[object]) -> list[tuple[str | None, object]]:
    return list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]


def _kept(before: dict[str, object] | list[object], wanted: dict[str, object] | list[object]) -> dict[int, int]:
    """The number in `before` of each entry of `wanted` that stays, by its number there."""
    if isinstance(before, dict):
        numbers = {key: number for number, key in enumerate(before)}
        return {number: numbers[key] for number, key in enumerate(wanted) if key in numbers}
    blocks = SequenceMatcher(
        None, [*map(_canonical, before)], [*map(_canonical, wanted)], autojunk=False
    ).get_matching_blocks()
    return {block.b + number: block.a + number for block in blocks for number in range(block.size)}


def _lines(key: str | None, value: object, column: int, step: int) -> list[str]:
    """The lines of a new entry, an item of a list if `key` is None."""
    start = " " * column + ("-" if key is None else f"{_scalar(key)}:")
    if isinstance(value, Mapping) and value and not isinstance(value, InBraces):
        return [start, *(line for entry in value.items() for line in _lines(*entry, column + step, step))]
    return [f"{start} {flow_text(value) if isinstance(value, Mapping | list | tuple) else _scalar(value)}"]


def flow_text(value: object) -> str:
    """The value on one line, as it can be in brackets."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(_bracketed(key, each) for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow_text, value)) + "]"
    return _scalar(value, in_flow=True)


def _bracketed(key: str | None, value: object) -> str:
    """An entry as written in brackets, an item of a list if `key` is None."""
    return flow_text(value) if key is None else f"{_scalar(key, in_flow=True)}: {flow_text(value)}"


def _scalar(value: object, *, in_flow: bool = False) -> str:
    """A value on one line, in quotes only where needed."""
    shown = _dumped(value, in_flow=in_flow)
    if len(shown.splitlines()) > 1:
        # in double quotes line breaks are written as \n
        return _dumped(value, style='"', in_flow=in_flow)
    if isinstance(value, str) and shown == value and not is_plain_text(value):
        # 1e9: text to PyYAML, a number to others
        return _dumped(value, style="'", in_flow=in_flow)
    return shown


def _dumped(value: object, style: str | None = None, *, in_flow: bool) -> str:
    # in a list, because PyYAML ends a plain scalar that is alone with a line of dots; without width it breaks lines
    shown = yaml.safe_dump(
        [value], default_flow_style=in_flow, default_style=style, allow_unicode=True, width=2**31
    ).removesuffix("\n")
    return shown[1:-1] if in_flow else shown.removeprefix("- ")
