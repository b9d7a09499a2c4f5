"""The log of a contest, read and checked line by line; its objects, and what comes by mail.

`log.jsonl` has a line for each entry: its number, the instant at which it was entered, its kind, the SHA-256 of the
line before, and the entry. Whoever keeps the digest of one line can show any later change before it. What people write
is read through no link.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_known, read_text, sha256
from cleanset.plumbing.json_files import parse_record
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.plumbing.validation import check_known, check_not_newer, shown, validate
from cleanset.plumbing.yaml_files import read_yaml
from cleanset.studies.contest.entries import ENTRIES, RULES, AnyLine, Line
from cleanset.studies.contest.rules import ContestRules, parse_instant

OBJECTS = "objects"
MAX_YAML_BYTES = 2**22
"""Size limit of a file: a judge's answers of a week have 400 bytes an image, and reading takes 200 times as much."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The files that a log names by their SHA-256."""

    contest: Path
    new: Mapping[str, Path] = field(default_factory=dict)
    """Those not in the folder yet."""

    def path(self, digest: str) -> Path:
        """The path of a file, whether or not it exists."""
        return self.new.get(digest, self.contest / OBJECTS / digest)

    def read(self, digest: str) -> bytes:
        """The bytes of a file. Raises CleansetError for one that is missing or has changed."""
        return read_known(self.path(digest), digest, "dvc pull, or git checkout")


def read_content(path: Path) -> dict[str, object]:
    """The keys and values of a YAML file. Raises CleansetError, naming the file, for a link and for faults."""
    refuse_link(path)
    found = read_yaml(path, "save it as UTF-8", MAX_YAML_BYTES)
    if not isinstance(found, dict):
        raise CleansetError(f"{path}: {shown(found)}; expected keys and values: see docs/contest.md")
    check_not_newer(found, path)
    return found


def refuse_link(path: Path) -> None:
    """Raise CleansetError for a link, whose target may be any file of the organizers, and for a pipe."""
    if path.is_symlink() or path.is_fifo():
        raise CleansetError(f"{path}: a link or pipe; expected a file or folder: put a copy of its target in its place")


def files_in(folder: Path) -> dict[str, Path]:
    """The files in a folder and those in it, by relative path, sorted, without hidden ones. Raises for a link."""
    paths = sorted(folder.rglob("[!.]*"))
    for path in (folder, *paths):
        refuse_link(path)
    return {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}


LOG = "log.jsonl"
START = "0" * 64
"""`prev` of the first line."""
KEYS = ("n", "at", "kind", "prev", "data")
BEGIN = "cleanset contest enter contest.yaml begins one again"
UNCHANGED = "take it from whoever has it unchanged, such as git checkout"


@dataclass(frozen=True, slots=True)
class DraftLine:
    """An entry that is not in the log yet, and the objects that it names, by SHA-256; `where`: what it came in."""

    kind: str
    data: Mapping[str, object]
    files: Mapping[str, Path] = field(default_factory=dict)
    where: Path | str = "a new line"


class Log:
    """The lines of a log so far, to which more are added; `void`: the line that made a line void, by numbers."""

    def __init__(self) -> None:
        self.lines: list[AnyLine] = []
        self.void: dict[int, int] = {}

    @property
    def rules(self) -> ContestRules:
        """The first line."""
        found: ContestRules = self.lines[0].entry
        return found

    @property
    def head(self) -> str:
        """The digest of the last line."""
        return self.lines[-1].digest if self.lines else START

    def add(self, text: str, where: object) -> None:
        """Add a line. Raises CleansetError unless it follows the line before, and is an entry by itself."""
        content = parse_record(text, str(where), "a line of the log")
        if not isinstance(content, dict) or tuple(content) != KEYS:
            raise CleansetError(f"{where}: {shown(content)}; expected the keys {', '.join(KEYS)}: {UNCHANGED}")
        number = len(self.lines)
        if (content["n"], content["prev"]) != (number, self.head):
            raise CleansetError(
                f"{where}: number {content['n']} after {shown(content['prev'])}; expected {number} after {self.head}, "
                f"the line before: {UNCHANGED}"
            )
        kind = content["kind"]
        check_known("kind of entry", str(kind), ENTRIES)
        if (kind == RULES) != (number == 0):
            raise CleansetError(f"{where}: {kind}; expected contest in the first line alone: leave it out")
        # the rules of a contest that an earlier version began are others
        entry = validate(ENTRIES[kind], content["data"], f"{where} ({kind})", f": {BEGIN}" if kind == RULES else "")
        try:
            at = parse_instant(str(content["at"]))
        except ValueError as error:
            raise CleansetError(f"{where}: at: {error}; expected an instant in UTC: {UNCHANGED}") from None
        digest = sha256(text.encode())
        line: AnyLine = Line(n=number, at=at, day=at.date(), kind=kind, entry=entry, text=text, digest=digest)
        if kind == "void":
            self._make_void(line)
        latest = next((each.at for each in reversed(self.lines) if each.n not in self.void), at)
        if at < latest:
            raise CleansetError(
                f"{where}: at {at}; expected no instant before the previous line's; if the clock was wrong there, "
                "enter a void of that line first"
            )
        self.lines.append(line)

    def _make_void(self, line: AnyLine) -> None:
        for n in line.entry.lines:
            if n >= line.n or self.lines[n].kind == "void":
                raise CleansetError(f"{line}: line {n}; expected an earlier one, and no void: leave it out")
            self.void.setdefault(n, line.n)


@without_garbage_collection()
def read(contest: Path) -> Log:
    """The log of a contest, each line checked by itself and the chain of all.

    Raises CleansetError, naming the line, for whatever was changed, and for a contest of an earlier version.
    """
    path = contest / LOG
    *texts, rest = read_text(path, f"expected a contest's log: {BEGIN}").split("\n")
    if rest or not texts:
        raise CleansetError(f"{path}: does not end with a whole line; expected the log of a contest: {UNCHANGED}")
    found = Log()
    for number, text in enumerate(texts):
        found.add(text, f"{path}, line {number}")
    return found
