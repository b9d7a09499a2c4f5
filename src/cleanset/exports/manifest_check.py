"""Read a manifest, whoever wrote it: check each line by the model of an entry, then the lines together."""

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cleanset.errors import CleansetError, cut, one_line
from cleanset.exports.manifest import COLUMNS, MANIFEST, Entry, manifest_csv

_SHA256 = re.compile(r"[0-9a-f]{64}")

MAX_SHOWN_CHARACTERS = 100
"""Limit of a value in a message; a damaged file may hold one of any length."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of kind `what` in `file`; `found` and `expected` are SHA-256 or a few words.

    Kinds: manifest (a line is invalid, or contradicts another), twice (the bytes or pixels of one image in two
    places), missing, surplus, misplaced (in another folder), changed (other bytes, other pixels), reencoded (other
    bytes, the same pixels), undecodable, pixels (the bytes of the manifest, but other pixels), unlike (a file that is
    made from the manifest has other content), source (another original), signature (missing, or not valid).
    `line` is the line of the manifest.
    """

    what: str
    file: str
    found: str
    expected: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.what:<11}  {printable(self.file)}: {_short(self.found)}; expected {_short(self.expected)}"


def printable(text: str) -> str:
    """The text on one line, cut in the middle where it is long."""
    return cut(one_line(text), MAX_SHOWN_CHARACTERS)


def _short(text: str) -> str:
    """A SHA-256 by its first digits, anything else as it prints."""
    return f"{text[:12]}..." if _SHA256.fullmatch(text) else printable(text)


_BOX = ("left", "top", "right", "bottom")


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """The valid lines by their number (the header is line 1), and the problems of the others and between them.

    `invalid_files` are the names in the column `file` of the other lines; they may lead anywhere.
    """

    text: str
    entries: Mapping[int, Entry]
    problems: Sequence[Problem]
    invalid_files: Collection[str]

    @property
    def lines(self) -> int:
        """The number of all lines but the header."""
        return len(self.entries) + len(self.invalid_files)


def read_manifest(text: str, where: str) -> list[Entry]:
    """The entries of a manifest. Raises CleansetError, naming `where`, for the first problem."""
    checked = check_manifest(text, where)
    if checked.problems:
        first = checked.problems[0]
        line = f", line {first.line}" if first.line else ""
        found, expected = printable(first.found), printable(first.expected)
        raise CleansetError(f"{where}{line}: {found}; expected {expected}: export or fetch the set again")
    return list(checked.entries.values())


def check_manifest(text: str, where: str) -> CheckedManifest:
    """Check every line of a manifest. Raises CleansetError, naming `where`, if it is not CSV or has other columns."""
    entries: dict[int, Entry] = {}
    problems: list[Problem] = []
    invalid_files: list[str] = []
    for number, row in enumerate(_rows(text, where), start=2):
        found = _entry(row)
        if isinstance(found, Entry):
            entries[number] = found
        else:
            problems += [_of_line(number, *each) for each in found]
            invalid_files.append(row[COLUMNS.index("file")] if len(row) == len(COLUMNS) else "")
    if not problems:
        # only if every line is valid: a missing one would make its neighbors look wrong, too
        problems += _between(entries)
    # last, because each problem above makes the text differ, too
    if not problems and manifest_csv(entries.values()) != text:
        problems.append(
            Problem("manifest", MANIFEST, "other line ends, quotes or digits", "the file as it was written")
        )
    return CheckedManifest(text, entries, problems, invalid_files)


def check_set(entries: Mapping[int, Entry]) -> list[Problem]:
    """The problems of a set as a whole that need no file of an image: no images at all, and duplicates.

    `entries`: by line of the manifest, each valid.
    """
    if not entries:
        return [Problem("manifest", MANIFEST, "no images", "at least one")]
    return duplicates(entries)


def duplicates(entries: Mapping[int, Entry]) -> list[Problem]:
    """A problem for each image that has another id but the source bytes or pixels of an earlier one, by line."""
    seen: dict[tuple[str, str], Entry] = {}
    problems = []
    for number, entry in entries.items():
        keys = [("source", entry.source_sha256), ("pixels", entry.pixels_sha256)]
        first = next((seen[key] for key in keys if key in seen), None)
        if first is not None:
            found = f"the same image as {first.file}"
            problems.append(Problem("twice", entry.file, found, "one place for each", number))
        for key in keys:
            seen.setdefault(key, entry)
    return problems


def _rows(text: str, where: str) -> list[list[str]]:
    try:
        header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except csv.Error as error:
        raise CleansetError(f"{where}: not CSV ({error}); expected a manifest: export or fetch it again") from None
    for number, (found, expected) in enumerate(zip_longest(header, COLUMNS), start=1):
        if found != expected:
            raise CleansetError(
                f"{where}, line 1, column {number}: {_name(found)}; expected {_name(expected)}: "
                "export or fetch the set again, or use the version of cleanset that wrote it"
            )
    return rows


def _name(column: str | None) -> str:
    return "nothing" if column is None else printable(column)


def _of_line(number: int, found: str, expected: str) -> Problem:
    return Problem("manifest", f"{MANIFEST}, line {number}", found, expected, number)


def _entry(row: Sequence[str]) -> Entry | list[tuple[str, str]]:
    """The entry of a line, or what is found and expected of its values."""
    if len(row) != len(COLUMNS):
        return [(f"values: {len(row)}", str(len(COLUMNS)))]
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    box = tuple(values.pop(edge) for edge in _BOX)
    values["crop"] = box if any(box) else None
    for name in ("confidence", "source_confidence"):
        values[name] = values[name] or None
    values["real_classes"] = values["real_classes"].split(" ")
    try:
        return Entry.model_validate(values)
    except ValidationError as error:
        texts = dict(zip(COLUMNS, row, strict=True))
        # pydantic reports each edge of a box; in a message the box is one value
        return list(dict.fromkeys(_found_and_expected(each, texts) for each in error.errors()))


def _found_and_expected(error: ErrorDetails, row: Mapping[str, str]) -> tuple[str, str]:
    if not error["loc"]:  # from the model: values that contradict each other
        found, _, expected = str(error["ctx"]["error"]).partition("; expected ")
        return found, expected
    field = str(error["loc"][0])
    value = " ".join(row[edge] for edge in _BOX) if field == "crop" else row[field]
    return f"{field} {value}", str(Entry.model_fields[field].description)


def _between(entries: Mapping[int, Entry]) -> Iterator[Problem]:
    """Other models, an image twice, ranks that are missing or doubled, lines that are not sorted."""
    ranks: dict[str, int] = {}
    lines: dict[str, int] = {}
    last_class = -1
    model = next((entry.model for entry in entries.values()), "")
    for number, entry in entries.items():
        if entry.model != model:
            yield _of_line(number, f"model {entry.model}", f"{model} as in line 2")
        if entry.image_id in lines:
            yield _of_line(number, f"{entry.image_id} as in line {lines[entry.image_id]}", "each image once")
        expected = ranks.get(entry.wnid, 0) + 1
        if entry.rank != expected:
            yield _of_line(number, f"rank {entry.rank} in {entry.wnid}", f"rank {expected}")
        if entry.class_index < last_class:
            yield _of_line(number, f"class {entry.class_index} after {last_class}", "lines sorted by class and rank")
        lines.setdefault(entry.image_id, number)
        ranks[entry.wnid] = max(expected, entry.rank)
        last_class = max(last_class, entry.class_index)
