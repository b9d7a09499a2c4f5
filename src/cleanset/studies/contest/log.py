"""The log of a contest: read and checked line by line, and written. Nothing else but its objects is ever read.

`log.jsonl` has a line for each entry: its number, the instant at which it was entered, its kind, the SHA-256 of the
line before, and the entry. Whoever keeps the digest of one line can show any later change before it.
"""

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import read_text, replace_file, sha256
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.plumbing.validation import check_known, shown, validate
from cleanset.studies.contest.entries import ENTRIES, PUBLISH, RULES
from cleanset.studies.contest.objects import OBJECTS, Objects, refuse_link
from cleanset.studies.contest.rules import ContestRules, parse_instant

LOG = "log.jsonl"
START = "0" * 64
"""`prev` of the first line."""
KEYS = ("n", "at", "kind", "prev", "data")
REMEDY = "take it from whoever has it unchanged, such as git checkout"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log, numbered from 0; `entry`: a section of its kind in ENTRIES; `digest`: of the text."""

    n: int
    at: datetime.datetime
    day: datetime.date
    kind: str
    entry: Any
    text: str
    digest: str

    def __str__(self) -> str:
        return f"line {self.n} ({self.kind})"


@dataclass(frozen=True, slots=True)
class DraftLine:
    """An entry that is not in the log yet, and the objects that it names, by SHA-256."""

    kind: str
    data: Mapping[str, object]
    files: Mapping[str, Path] = field(default_factory=dict)


class Log:
    """The lines of a log so far, to which more are added; `void`: the line that made a line void, by numbers."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.void: dict[int, int] = {}
        self._latest = datetime.datetime.min.replace(tzinfo=datetime.UTC)

    @property
    def rules(self) -> ContestRules:
        """The first line."""
        found: ContestRules = self.lines[0].entry
        return found

    @property
    def head(self) -> str:
        """The digest of the last line."""
        return self.lines[-1].digest if self.lines else START

    def add(self, text: str, where: str) -> None:
        """Add a line. Raises CleansetError unless it follows the line before, and is an entry by itself."""
        content = parse_json(text, where, "a line of the log")
        if not isinstance(content, dict) or tuple(content) != KEYS:
            raise CleansetError(f"{where}: {shown(content)}; expected the keys {', '.join(KEYS)}: {REMEDY}")
        n, at, kind, prev, data = content.values()
        number = len(self.lines)
        if type(n) is not int or (n, prev) != (number, self.head):
            raise CleansetError(
                f"{where}: number {shown(n)} after {shown(prev)}; expected {number} after {self.head}, the line "
                f"before: {REMEDY}"
            )
        check_known("kind of entry", str(kind), ENTRIES)
        if (kind == RULES) != (number == 0):
            raise CleansetError(f"{where}: {kind}; expected contest in the first line, and there alone")
        try:
            instant = parse_instant(str(at))
        except ValueError as error:
            raise CleansetError(f"{where}: at: {error}") from None
        entry = validate(ENTRIES[kind], data, f"{where} ({kind})")
        digest = sha256(text.encode())
        line = Line(n=number, at=instant, day=instant.date(), kind=kind, entry=entry, text=text, digest=digest)
        if kind == "void":
            self._make_void(line)
        if instant < self._latest:
            raise CleansetError(
                f"{where}: at {at}; expected no instant before the previous line's; if the clock was wrong there, "
                "enter a void of that line first"
            )
        self._latest = instant
        self.lines.append(line)

    def _make_void(self, line: Line) -> None:
        published = max((each.n for each in self.lines if each.kind == PUBLISH), default=0)
        for n in line.entry.lines:
            kind = self.lines[n].kind if n < len(self.lines) else "none"
            is_drawn = kind in ("submission", "controls") and n < published
            if n in self.void or kind in ("none", RULES, PUBLISH, "void") or is_drawn:
                raise CleansetError(
                    f"{line}: line {n} is {'void already' if n in self.void else kind}; expected an earlier line, "
                    "other than contest, publish and void, and no submission or controls of a week that is published: "
                    "the board decides on an image"
                )
            self.void[n] = line.n
        self._latest = max(each.at for each in self.lines if each.n not in self.void)


@without_garbage_collection()
def read(contest: Path) -> Log:
    """The log of a contest, each line checked by itself and the chain of all.

    Raises CleansetError, naming the line, for whatever was changed, and for a contest of an earlier version.
    """
    path = contest / LOG
    refuse_link(contest)
    refuse_link(path)
    if not path.exists():
        raise CleansetError(
            f"{path}: missing; expected a contest's log: cleanset contest enter contest.yaml begins one"
        )
    *texts, rest = read_text(path, REMEDY).split("\n")
    if rest or not texts:
        raise CleansetError(f"{path}: does not end with a whole line; expected the log of a contest: {REMEDY}")
    found = Log()
    for number, text in enumerate(texts):
        found.add(text, f"{path}, line {number}")
    return found


Check = Callable[[Log, int, Objects], list[str]]
"""Raises CleansetError for a problem in the lines from a number on, and returns lines for the organizers."""


def append(
    contest: Path, drafts: Sequence[DraftLine], check: Check, *, at: datetime.datetime | None = None, write: bool = True
) -> list[str]:
    """Add entries to the log of a contest, and return the notes of `check`.

    `at`: the instant, for a made-up contest; otherwise this machine's clock. `write`: False writes nothing.
    """
    if not contest.is_dir():
        raise CleansetError(f"{contest}: no folder; expected the folder of a contest")
    with locked(contest):
        begins = [each.kind for each in drafts[:1]] == [RULES] and not (contest / LOG).exists()
        log = Log() if begins else read(contest)
        new = len(log.lines)
        instant = at or datetime.datetime.now(datetime.UTC)
        for draft in drafts:
            values = (len(log.lines), f"{instant:%FT%TZ}", draft.kind, log.head, draft.data)
            content = dict(zip(KEYS, values, strict=True))
            log.add(json.dumps(content, ensure_ascii=False, separators=(",", ":")), draft.kind)
        if at is not None and not log.rules.made_up:
            raise CleansetError("--at: for a contest that is made up; expected the instant of the clock: leave it out")
        objects = Objects(contest, {digest: path for each in drafts for digest, path in each.files.items()})
        notes = check(log, new, objects)
        if write:
            (contest / OBJECTS).mkdir(exist_ok=True)
            for digest in objects.new:
                if not (contest / OBJECTS / digest).exists():
                    replace_file(contest / OBJECTS / digest, objects.read(digest))
            # the objects first, and the log as one file: a kill or a full disk leaves the old log or the new one
            replace_file(contest / LOG, "".join(f"{line.text}\n" for line in log.lines).encode())
        return notes
