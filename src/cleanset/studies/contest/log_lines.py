"""A line of the log of a contest: the kinds of entries, their authors' signatures, and the texts that are signed."""

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.plumbing.files import sha256
from cleanset.plumbing.validation import EachOnce, Section, Sha256, validate
from cleanset.studies.contest import entries
from cleanset.studies.contest.rules import (
    ContestRules,
    Instant,
    Name,
    PublicKey,
)

LOG = "log.jsonl"
LineNumber = Annotated[int, Field(ge=1)]


class Team(Section):
    """A team that takes part from now on."""

    name: Name
    key: PublicKey


class NewKey(Section):
    """Another key of a person, by that person's own old one, or by a quorum of the other members of the board."""

    person: Name
    key: PublicKey
    void_from: LineNumber | None = None
    """The line from which signatures by the old key, which was stolen, are void."""


class Void(Section):
    """Lines that count no longer, with the public reason."""

    lines: Annotated[list[LineNumber], Field(min_length=1), EachOnce]
    reason: entries.Text


class Publication(Section):
    """The end of a week: a checkpoint of the lines before it, signed by an organizer."""

    checkpoint: Annotated[str, Field(max_length=1000)]
    """A signed note, without cosignatures."""


class Cosignature(Section):
    """A team's signature of the last checkpoint, with its time."""

    team: Name
    checkpoint: Sha256
    """The digest of the line that has it."""

    signature: Annotated[str, Field(max_length=1000)]
    """The line below the checkpoint."""


class Conflict(Section):
    """A conflict of interest of a member of the board with a team, from the next day on, with the public reason."""

    member: Name
    team: Name
    reason: entries.Text


RULES = "contest"
PUBLISH = "publish"
COSIGN = "cosignature"
ENTRIES: Mapping[str, type[Section]] = {
    RULES: ContestRules, "team": Team, "key": NewKey, "roster": entries.Roster, "controls": entries.ControlsFile,
    "examples": entries.ExamplesFile, "defence": entries.Defence, "accept": entries.Acceptance,
    "stake": entries.Stake, "submission": entries.SubmissionManifest, PUBLISH: Publication,
    "answers": entries.AnswerFile, "appeal": entries.Appeal, "decision": entries.BoardDecision,
    "run": entries.DefenceRun, "void": Void, COSIGN: Cosignature, "conflict": Conflict,
}  # fmt: skip
_DATES = {"defence": "submitted", **dict.fromkeys(("accept", "stake", "appeal", "decision", "run"), "date")}
WHOLE = ("roster", "controls", "examples", "answers")
"""Kinds whose file has the kind's name as one of its own keys."""


class Signature(Section):
    """The signature of an entry by its author."""

    seen: Sha256
    """The digest of the last line that the author had seen."""

    mine: Annotated[int, Field(ge=0)]
    """The number of lines that the author had signed before."""

    signature: Annotated[str, Field(max_length=1000)]


class LogSignature(Section):
    """The last line of the file: the organizers' signature of the entries before it."""

    by: Name
    signature: Annotated[str, Field(max_length=1000)]


class Line(Section):
    """A line of the log."""

    n: int
    """Its number, from 0."""

    at: Instant
    kind: str
    prev: Sha256
    """The digest of the line before."""

    data: dict[str, object]
    signatures: dict[Name, Signature] = Field(default_factory=dict)
    """Of its authors, by name: a team, a judge, or members of the board."""

    text: str
    """The line itself."""

    @cached_property
    def entry(self) -> Any:
        """The entry with its day. Raises CleansetError for data that are not valid."""
        return entry_of(self.kind, self.data, self.day, signers=self.signatures, where=self)

    @cached_property
    def digest(self) -> str:
        return sha256(self.text.encode())

    @property
    def day(self) -> datetime.date:
        return self.at.date()

    def __str__(self) -> str:
        return f"line {self.n} ({self.kind})"


def entry_of(
    kind: str, data: Mapping[str, object], day: datetime.date, *, signers: Iterable[str], where: object
) -> Section:
    """The section of an entry of a day. Raises CleansetError, beginning with `where`, for invalid data."""
    content = dict(data)
    if kind in _DATES:
        content[_DATES[kind]] = day
    answers = content.get(kind)
    if kind in ("answers", "examples") and isinstance(answers, dict):
        content[kind] = {key: {**one, "date": day} if isinstance(one, dict) else one for key, one in answers.items()}
    if kind == "decision":
        content["members"] = sorted(signers)
    return validate(ENTRIES[kind], content, where)


def entered_twice(line: Line, name: str) -> CleansetError:
    """The error for a line with a name that an earlier line has entered."""
    return CleansetError(f"{line}: {name} was entered before; expected each once: void the first one")


_SORTED = json.JSONEncoder(sort_keys=True)


def statement(contest: str, seen: str, mine: int, kind: str, data: Mapping[str, object]) -> bytes:
    """The text that the author of an entry signs."""
    return _SORTED.encode({"contest": contest, "seen": seen, "mine": mine, kind: data}).encode()


def log_statement(lines: Sequence[Line]) -> bytes:
    """The text that the organizers sign: the contest, and its last line."""
    return json.dumps({"contest": lines[0].digest, "head": lines[-1].digest, "lines": len(lines)}).encode()


@dataclass(frozen=True, slots=True)
class DraftLine:
    """An entry that is not in the log yet."""

    kind: str
    data: Mapping[str, object]
    signatures: Mapping[str, Signature] = field(default_factory=dict)
    """Of its authors, by name."""

    files: Mapping[str, Path] = field(default_factory=dict)
    """The objects that it names, by SHA-256."""
