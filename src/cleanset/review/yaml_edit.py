"""Change one verdict in the text of a review file, and leave every other byte as it was written.

By lines, not with ruamel.yaml: that keeps the committed files, but not what people write by hand (another indent, a
comment at the margin), and takes five times as long.
"""

import re
from collections.abc import Iterable
from typing import Any

import yaml

from cleanset.errors import CleansetError
from cleanset.review.verdicts import Review, Vote, parse_reviews
from cleanset.yaml_files import is_plain_text

FIELDS = tuple(Review.model_fields)
"""The keys of an entry, in the order in which they are written."""


def with_review(text: str, votes: Iterable[Vote], wnid: str, image_id: str, review: Review | None, where: str) -> str:
    """The text with this verdict on one image, or without a verdict on it (None).

    `votes` are those in `text`, a valid review file of class `wnid`, as parse_reviews gives them. A
    new entry goes before the first one of a higher image id. Comments stay, except those on the lines
    of a removed field, and on and inside a removed entry. The text of a file without entries and comments is empty.

    Raises CleansetError, naming `where`, if the text is written in such a way that this entry cannot
    be changed without touching another, or a comment.
    """
    before = {vote.image_id: vote.review for vote in votes}
    wanted = {other: old for other, old in before.items() if other != image_id}
    if review is not None:
        wanted[image_id] = review
    if wanted == before:
        return text
    try:
        changed = _changed(text, wnid, image_id, review, before.get(image_id))
    except (ValueError, IndexError):  # a layout that is not in lines
        changed = text
    # the edit counts only if it reads back as wanted; else the file is written anew, unless comments would be lost
    if _reviews(changed, wnid, where) != wanted:  # a table in {…}, an explicit key
        if "#" in text:
            raise CleansetError(
                f"{where}: written in a way in which {image_id} cannot be changed alone; "
                "write it as docs/review.md shows, or change it by hand"
            )
        changed = review_file_text(wnid, wanted)
        if _reviews(changed, wnid, where) != wanted:
            raise CleansetError(f"{where}: this verdict on {image_id} cannot be written as YAML; write its note anew")
    return "" if re.fullmatch(rf"\s*{wnid}:(\s*\{{\}})?\s*", changed) else changed


def review_file_text(wnid: str, reviews: dict[str, Review]) -> str:
    """The text of a file with these verdicts, by image id."""
    lines = [line for image_id in sorted(reviews) for line in _entry(image_id, reviews[image_id], 2, 4, "\n")]
    return "".join([f"{wnid}:\n", *lines])


def _reviews(text: str, wnid: str, where: str) -> dict[str, Review] | None:
    try:
        return {vote.image_id: vote.review for vote in parse_reviews(text, wnid, where)}
    except CleansetError:
        return None


_Entries = list[tuple[yaml.ScalarNode, yaml.MappingNode]]
"""The nodes of image ids and of their fields."""


def _changed(text: str, wnid: str, image_id: str, review: Review | None, old: Review | None) -> str:
    """The text with the entry changed, for a file in block style; for others the result may be wrong, or no YAML."""
    newline = "\r\n" if "\r\n" in text else "\n"
    entries: _Entries = []
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(newline):
        lines[-1] += newline
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if root is None:
        lines.append(f"{wnid}:{newline}")
        at, indents, found = len(lines), (2, 4), None
    else:
        (key, images) = root.value[0]
        entries = images.value
        if not entries:  # n01440764: {}
            _cut(lines, images)
        at, indents, found = _place(lines, key, entries, image_id)
    if review is None:
        assert found is not None
        del lines[at : _end(found, lines, indents[0])]
        # the wnid must keep a table: without a value it would be null, which no review file has
        if len(entries) == 1:
            line, colon = key.end_mark.line, lines[key.end_mark.line].index(":", key.end_mark.column) + 1
            lines[line] = f"{lines[line][:colon]} {{}}{lines[line][colon:]}"
    elif found is None:
        lines[at:at] = _entry(image_id, review, *indents, newline)
    else:
        assert old is not None
        end = _end(found, lines, indents[0])
        if found.flow_style:
            if any("#" in line for line in lines[at:end]):
                return text
            lines[at:end] = _entry(image_id, review, *indents, newline)
        else:
            lines[at:end] = _fields_changed(lines, at, end, found, old, review, newline)
    return "".join(lines)


def _cut(lines: list[str], node: yaml.Node) -> None:
    """Remove a node from the one line that it stands on."""
    line = lines[node.start_mark.line]
    lines[node.start_mark.line] = line[: node.start_mark.column].rstrip() + line[node.end_mark.column :]


def _place(
    lines: list[str], key: yaml.Node, entries: _Entries, image_id: str
) -> tuple[int, tuple[int, int], yaml.MappingNode | None]:
    """The line where the entry starts or would start, the columns of ids and of fields, and the entry if present."""
    at = key.end_mark.line + 1
    if not entries:
        return at, (2, 4), None
    column = entries[0][0].start_mark.column
    first = entries[0][1]
    within = column + 2 if first.flow_style else first.value[0][0].start_mark.column
    for name, value in entries:
        if name.value == image_id:
            return name.start_mark.line, (column, within), value
    for name, value in entries:
        if name.value > image_id:
            break
        at = _end(value, lines, column)
    return at, (column, within), None


def _fields_changed(
    lines: list[str], start: int, end: int, entry: yaml.MappingNode, old: Review, new: Review, newline: str
) -> list[str]:
    """The lines of an entry, with the changed fields written again."""
    keys = [key for key, _ in entry.value]
    column = keys[0].start_mark.column
    blocks: list[tuple[str, list[str]]] = []
    for (key, value), stop in zip(entry.value, [*(key.start_mark.line for key in keys[1:]), end], strict=True):
        first, after = key.start_mark.line, _last_line(value) + 1
        content, rest = lines[first:after], lines[after:stop]
        wanted = getattr(new, key.value)
        if wanted is None and getattr(old, key.value) is not None:
            content = []
        elif wanted != getattr(old, key.value):
            if len(content) > 1 and _holds_comment(content, key, value):
                raise ValueError("a comment would be lost")
            comment = re.search(r"\s#.*", content[-1][value.end_mark.column :]) if len(content) == 1 else None
            behind = "" if comment is None else content[-1][value.end_mark.column :].rstrip("\r\n")
            content = [f"{' ' * column}{_field(key.value, wanted)}{behind}{newline}"]
        blocks.append((key.value, content + rest))
    for name in FIELDS:
        if getattr(new, name) is not None and all(name != there for there, _ in blocks):
            earlier = [i for i, (there, _) in enumerate(blocks) if FIELDS.index(there) < FIELDS.index(name)]
            written = f"{' ' * column}{_field(name, getattr(new, name))}{newline}"
            blocks.insert(earlier[-1] + 1 if earlier else 0, (name, [written]))
    return lines[start : keys[0].start_mark.line] + [line for _, block in blocks for line in block]


def _holds_comment(content: list[str], key: yaml.Node, value: yaml.Node) -> bool:
    """Whether the lines of a field hold a comment, that is, a # outside of its text."""
    start = value.start_mark.line - key.start_mark.line
    beside = [*content[:start], content[start][: value.start_mark.column]]
    if not isinstance(value, yaml.ScalarNode):  # a crop: numbers
        beside = content
    elif value.style in ("|", ">"):
        beside.append(content[start][value.start_mark.column :])
    else:
        beside.append(content[-1][value.end_mark.column :])
    return any("#" in part for part in beside)


def _end(entry: yaml.Node, lines: list[str], column: int) -> int:
    """The line after an entry and its comments, which are indented further than `column`, where ids stand."""
    after = end = _last_line(entry) + 1
    while after < len(lines):
        line = lines[after].lstrip(" ")
        if line.startswith("#") and len(lines[after]) - len(line) > column:
            end = after + 1
        elif line.strip():
            break
        after += 1
    return end


def _last_line(node: yaml.Node) -> int:
    """The last line of a node's content. (The end mark of a block lies behind the comments that follow it.)"""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        below = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        return max(_last_line(part) for part in below)
    at_start = node.end_mark.column == 0 and node.end_mark.line > node.start_mark.line
    return int(node.end_mark.line) - at_start


def _entry(image_id: str, review: Review, column: int, within: int, newline: str) -> list[str]:
    fields = [(name, getattr(review, name)) for name in FIELDS]
    return [f"{' ' * column}{image_id}:{newline}"] + [
        f"{' ' * within}{_field(name, value)}{newline}" for name, value in fields if value is not None
    ]


def _field(name: str, value: Any) -> str:
    """`name: value` on one line, in quotes only where needed."""
    if isinstance(value, tuple):  # a box
        return f"{name}: [{', '.join(map(str, value))}]"
    shown = _dumped({name: value})
    if len(shown.splitlines()) > 1:
        # in double quotes YAML writes line breaks as \n, so that the field stays on one line
        return f"{name}: " + _dumped(value, style='"')
    if (
        isinstance(value, str) and shown == f"{name}: {value}" and not is_plain_text(value)
    ):  # 1e9: text to PyYAML, a number to others
        return f"{name}: " + _dumped(value, style="'")
    return shown


def _dumped(value: Any, style: str | None = None) -> str:
    # PyYAML breaks lines after 80 characters by default; an entry is edited by lines, a field on each
    return yaml.safe_dump(value, default_style=style, allow_unicode=True, width=2**31).removesuffix("\n")
