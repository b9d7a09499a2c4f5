"""Checks of a manifest from anyone: each line by the model of an entry, then the lines together."""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cleanset.classes import ClassTable
from cleanset.dataset.duplicates import equal_pairs
from cleanset.errors import CleansetError, cut, one_line
from cleanset.image_ids import expected_id
from cleanset.plumbing.csv_files import unescaped
from cleanset.plumbing.json_files import JsonObject
from cleanset.plumbing.validation import SHA256_FORM, check_columns
from cleanset.sets.manifest import (
    BOX,
    COLUMNS,
    DENIED_BY,
    EXPECTED_FURTHER,
    FORMAT,
    FURTHER,
    MANIFEST,
    Entry,
    ManifestForm,
    column_of,
    manifest_csv,
)

MAX_SHOWN_CHARACTERS = 100
"""Limit of a value in a message; a damaged file may hold one of any length."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of kind `what` in `file`; `found` and `expected` are SHA-256 or a few words.

    Kinds: manifest (a line is invalid, or contradicts another), twice (the bytes or pixels of one image in two
    places), missing, surplus, misplaced (in another folder), changed (other bytes, other pixels), reencoded (other
    bytes, the same pixels), undecodable, unreadable (by a fault of the disk), pixels (the bytes of the manifest, but
    other pixels), unlike (a file that is made from the manifest has other content), source (another original),
    signature (missing, or not valid), release (another model or version than was asked for, or than the name says),
    outdated (its edition has changed since).
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
    return f"{text[:12]}..." if SHA256_FORM.fullmatch(text) else printable(text)


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """The lines of a manifest, valid ones as entries, and the problems of the others and between them."""

    text: str
    classes: ClassTable
    entries: Mapping[int, Entry]
    """By number of the line; the header is line 1."""

    problems: Sequence[Problem]
    invalid_files: Collection[str]
    """The names in the column `file` of the other lines; they may lead anywhere."""

    @property
    def lines(self) -> int:
        """The number of all lines but the header."""
        return len(self.entries) + len(self.invalid_files)


def read_manifest(text: str, where: str, classes: ClassTable) -> list[Entry]:
    """The entries of a manifest. Raises CleansetError, naming `where`, for the first problem."""
    checked = check_manifest(text, where, classes)
    if checked.problems:
        first = checked.problems[0]
        line = f", line {first.line}" if first.line else ""
        found = printable(first.found)
        expected = printable(first.expected)
        raise CleansetError(f"{where}{line}: {found}; expected {expected}: export or fetch the set again")
    return list(checked.entries.values())


def check_manifest(text: str, where: str, classes: ClassTable) -> CheckedManifest:
    """Check every line of a manifest. Raises CleansetError, naming `where`, if it is not CSV or has other columns."""
    entries: dict[int, Entry] = {}
    problems: list[Problem] = []
    invalid_files: list[str] = []
    form = _form_of_header(text.partition("\n")[0], classes)
    names = form.fields(classes)
    for number, row in enumerate(_rows(text, where, form.columns(classes)), start=2):
        found = _entry(row, names, classes)
        if isinstance(found, Entry):
            entries[number] = found
        else:
            problems += [_of_line(number, *each) for each in found]
            invalid_files.append(row[names.index("file")] if len(row) == len(names) else "")
    if not problems:
        # only if every line is valid: a missing one would make its neighbors look wrong, too
        problems += _between(entries)
    # last, because each problem above makes the text differ, too
    if not problems and manifest_csv(entries.values(), classes, form) != text:
        problems.append(Problem("manifest", MANIFEST, "other line ends, quotes or digits", "the file unchanged"))
    return CheckedManifest(text=text, classes=classes, entries=entries, problems=problems, invalid_files=invalid_files)


def _form_of_header(header: str, classes: ClassTable) -> ManifestForm:
    """The form with this header; for another header, the one with most of its first columns, in today's format if
    any."""
    found = header.split(",")
    further = tuple(name for name in found if name.startswith(FURTHER))
    forms = [
        ManifestForm(has_tiers=has_tiers, has_studies=DENIED_BY in found, further=further, format=number)
        for number in range(FORMAT, 0, -1)
        for has_tiers in (True, False)
    ]
    same = (form for form in forms if list(form.columns(classes)) == found)

    def shared(form: ManifestForm) -> int:
        pairs = zip(form.columns(classes), found, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return next(same, None) or max((form for form in forms if form.has_tiers), key=shared)


def check_set(entries: Mapping[int, Entry], classes: ClassTable) -> list[Problem]:
    """The problems of a set as a whole that need no file of an image: no images at all, and duplicates.

    `entries`: by line of the manifest, each valid.
    """
    if not entries:
        return [Problem("manifest", MANIFEST, "no images", "at least one")]
    return duplicates(entries, classes)


def duplicates(entries: Mapping[int, Entry], classes: ClassTable) -> list[Problem]:
    """A problem for each image with another id but the source bytes or pixels of an earlier one, by line.

    None for ImageNet's images; ImageNet has some twice: `twins_notice` names them.
    """
    if classes.is_imagenet:
        return []
    line_of = {entry.file: number for number, entry in entries.items()}
    return [
        Problem("twice", entry.file, f"the same image as {first.file}", "one place for each", line=line_of[entry.file])
        for entry, first in twins(entries.values())
    ]


def twins(entries: Iterable[Entry]) -> list[tuple[Entry, Entry]]:
    """Each entry with another id but the source bytes or pixels of an earlier one, and that one."""
    every = list(entries)
    pairs = equal_pairs((str(place), each.source_sha256, each.pixels_sha256) for place, each in enumerate(every))
    return [(every[int(pair.image_id)], every[int(pair.duplicate_of)]) for pair in pairs]


def _rows(text: str, where: str, wanted: Sequence[str]) -> Iterator[list[str]]:
    # each line counts, the empty ones too: a manifest is unchanged, or it is refused
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        _check_header(next(rows, []), where, wanted)
        yield from (list(map(unescaped, row)) for row in rows)
    except csv.Error as error:
        raise CleansetError(f"{where}: not CSV ({error}); expected a manifest: export or fetch it again") from None


def _check_header(header: list[str], where: str, wanted: Sequence[str]) -> None:
    check_columns(header, wanted, f"{where}, line 1")
    for number, (found, expected) in enumerate(zip_longest(header, wanted), start=1):
        if found != expected:
            raise CleansetError(
                f"{where}, line 1, column {number}: {_name(found)}; expected {_name(expected)}: "
                "export or fetch the set again, or use the version of cleanset that wrote it"
            )


def _name(column: str | None) -> str:
    return "nothing" if column is None else printable(column)


def _of_line(number: int, found: str, expected: str) -> Problem:
    return Problem("manifest", f"{MANIFEST}, line {number}", found, expected, line=number)


def _entry(row: Sequence[str], names: Sequence[str], classes: ClassTable) -> Entry | list[tuple[str, str]]:
    """The entry of a line, or what is found and expected of its values; `names`: the fields of the columns."""
    if len(row) != len(names):
        return [(f"values: {len(row)}", str(len(names)))]
    values: JsonObject = dict(zip(names, row, strict=True))
    box = tuple(values.pop(edge) for edge in BOX)
    values["crop"] = box if any(box) else None
    values["further"] = tuple((name, values.pop(name)) for name in names if name.startswith(FURTHER))
    for name in names:
        if column_of(name).kind == "words":
            values[name] = values[name].split(" ") if values[name] else ()
        elif name in values and column_of(name).is_optional:
            values[name] = values[name] or None
    # what the form lacks
    values |= {name: None for name, each in COLUMNS.items() if each.only == "model" and name not in names}
    try:
        return Entry.checked(values, classes)
    except ValidationError as error:
        texts = dict(zip(names, row, strict=True))
        # pydantic reports each edge of a box; in a message the box is one value
        return list(dict.fromkeys(_found_and_expected(each, texts, classes) for each in error.errors()))


def _expected(description: str, classes: ClassTable) -> str:
    """The expected value of a field in words, from the field's description."""
    named = {
        "a class": "one of the 1,000 of ILSVRC2012" if classes.is_imagenet else "a class of classes.tsv",
        "an image id": expected_id(classes).removeprefix("expected "),
        "a class index": f"0 to {len(classes) - 1}",
    }
    return named.get(description, description)


def _found_and_expected(error: ErrorDetails, row: Mapping[str, str], classes: ClassTable) -> tuple[str, str]:
    if not error["loc"]:  # from the model: values that contradict each other
        found, _, expected = str(error["ctx"]["error"]).partition("; expected ")
        return found, expected
    field = str(error["loc"][0])
    if field == "further":
        name = [each for each in row if each.startswith(FURTHER)][int(error["loc"][1])]
        return f"{name} {row[name]}", EXPECTED_FURTHER
    value = " ".join(row[edge] for edge in BOX) if field == "crop" else row[field]
    known = Entry.model_fields[field].description
    description = known or COLUMNS[field].description
    return f"{classes.column(field)} {value}", _expected(description, classes)


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
