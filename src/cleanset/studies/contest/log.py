"""The log of a contest: an append-only file, signed by the organizers, and the objects that it names.

Each line has the digest of the line before, and the last line of the file is the organizers' signature of the digest of
the last entry, so that one signature covers all. Whoever keeps the digest of one line can prove any later change before
it. Nothing but `log.jsonl` and `objects/<sha256>` is ever read, and never through a link.

What a team, a judge or a member of the board says is signed by its author: the entry, the contest by the digest of its
first line, the digest of the last line that the author had seen, and the number of lines that the author had signed
before. So a statement counts once, in the place that its author gave it.

An entry counts from the instant at which the organizers entered it, whatever day anybody has written into it. A
decision of the board counts if a quorum of its members has signed it, and a line that it voids is left out from then
on. `state` is all that follows on a day, and everything else reads that.
"""

import base64
import datetime
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.files import locked, read_bytes, read_text, replace_file, sha256, write_text
from cleanset.images.codec import decode
from cleanset.json_files import parse_json
from cleanset.machine import without_garbage_collection
from cleanset.sets.archive import SignatureError
from cleanset.studies.contest import files as entries
from cleanset.studies.contest.files import ContestFiles, Submission, submitted_images, team_of
from cleanset.studies.contest.judges import check_drawn
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.memory import SeenLine, last_seen, remember, seen_file
from cleanset.studies.contest.rules import (
    BOARD,
    BoardMember,
    ContestRules,
    Instant,
    Name,
    PublicKey,
    after,
    week_of_day,
)
from cleanset.studies.contest.signatures import check_signature, signature_of
from cleanset.validation import EachOnce, Section, Sha256, check_known, shown, validate
from cleanset.yaml_files import read_yaml

LOG = "log.jsonl"
PARAMS = "params.yaml"
"""Of the contest's DVC project."""
SHORT_DIGEST = 12
"""Characters of a digest that are enough to name a line."""
OBJECTS = "objects"
MAX_CHARACTERS = 2**26
"""Size limit of a YAML file: one has a judge's answers of a week."""
START = "0" * 64
"""`prev` of the first line."""
_REMEDY = "take it from whoever has it unchanged, such as git checkout"
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


class Witness(Section):
    """A team that says no more than which line it has seen."""

    team: Name


class Conflict(Section):
    """A conflict of interest of a member of the board with a team, from the next day on, with the public reason."""

    member: Name
    team: Name
    reason: entries.Text


RULES = "contest"
ENTRIES: Mapping[str, type[Section]] = {
    RULES: ContestRules, "team": Team, "key": NewKey, "roster": entries.Roster, "controls": entries.ControlsFile,
    "examples": entries.ExamplesFile, "defence": entries.Defence, "accept": entries.Acceptance,
    "stake": entries.Stake, "submission": entries.SubmissionManifest, "publish": Section,
    "answers": entries.AnswerFile, "appeal": entries.Appeal, "decision": entries.BoardDecision,
    "run": entries.DefenceRun, "void": Void, "witness": Witness, "conflict": Conflict,
}  # fmt: skip
_DATES = {"defence": "submitted", **dict.fromkeys(("accept", "stake", "appeal", "decision", "run"), "date")}
_BY_BOARD = ("accept", "stake", "decision", "void")
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


def statement(contest: str, seen: str, mine: int, kind: str, data: Mapping[str, object]) -> bytes:
    """The text that the author of an entry signs."""
    return json.dumps({"contest": contest, "seen": seen, "mine": mine, kind: data}, sort_keys=True).encode()


def log_statement(lines: Sequence[Line]) -> bytes:
    """The text that the organizers sign: the contest, and its last line."""
    return json.dumps({"contest": lines[0].digest, "head": lines[-1].digest, "lines": len(lines)}).encode()


def keys_of(lines: Sequence[Line]) -> dict[str, str]:
    """The key of each person, team and judge who has one after some lines; a void line gives none.

    Raises CleansetError for a name with two keys, and for a key of two names: one of them could sign for both. A member
    of the board may be a team, too.
    """
    void = voided(lines)
    found: dict[str, str] = {}
    for line in lines:
        if line.n not in void:
            _give(found, line, lines[0].entry)
    return found


def _give(keys: dict[str, str], line: Line, rules: ContestRules) -> None:
    for name, key in _given_keys(line):
        if line.kind not in (RULES, "key") and name in keys:
            raise CleansetError(f"{line}: {name} was entered before; expected each once: void the first one")
        if line.kind == "key" and name not in keys:
            raise CleansetError(f"{line}: {name}, who has no key; expected one who has")
        others = {each for each, one in keys.items() if one.split()[1] == key.split()[1] and each != name}
        if others and not _is_own_team(line, name, others, rules):
            raise CleansetError(f"{line}: {name}: the key of {min(others)}, too; expected a key of each person's own")
        if line.kind == RULES and keys.get(name, key).split()[1] != key.split()[1]:
            raise CleansetError(f"{line}: {name}: two keys; expected one key of a name")
        keys[name] = key


def _is_own_team(line: Line, name: str, others: set[str], rules: ContestRules) -> bool:
    """Whether a key is that of a team and of a member of the board alone, so that the team is the member's own."""
    if line.kind == "team":
        return others <= rules.board.keys()
    is_member, is_team = name in rules.board, name in rules.teams
    both = (is_member and others <= rules.teams.keys()) or (is_team and others <= rules.board.keys())
    return line.kind == RULES and both


def _given_keys(line: Line) -> Iterator[tuple[str, str]]:
    entry = line.entry
    found: list[tuple[str, str | None]] = []
    if line.kind == RULES:
        board = ((name, each.key) for name, each in entry.board.items())
        found = [*entry.signers.items(), *entry.teams.items(), *board]
    elif line.kind == "team":
        found = [(entry.name, entry.key)]
    elif line.kind == "roster":
        found = list(entry.roster.items())
    elif line.kind == "key":
        found = [(entry.person, entry.key)]
    return ((name, key) for name, key in found if key is not None)


def required_signers(rules: ContestRules, line: Line) -> tuple[Collection[str], int]:
    """Those who may sign a line, and how many of them have to; anybody who has a key declares a conflict."""
    entry = line.entry
    match line.kind:
        case "answers":
            return {entry.judge}, 1
        case "submission" | "appeal" | "witness":
            return {entry.team}, 1
        case "defence":
            return {team_of(entry.name)}, 1
        case "conflict":
            return line.signatures.keys(), 1
        case "key" if entry.void_from is None and entry.person in line.signatures:
            return {entry.person}, 1
        case "key":
            return rules.board.keys() - {entry.person}, rules.quorum
        case "stake" if entry.by != BOARD:
            return {entry.by}, 1
    return (rules.board.keys(), rules.quorum) if line.kind in _BY_BOARD else ((), 0)


def check_signers(rules: ContestRules, line: Line) -> None:
    """Raise CleansetError for a line that lacks required signatures, or has others."""
    may, needed = required_signers(rules, line)
    for name in sorted(line.signatures.keys() - set(may)):
        raise CleansetError(f"{line}: signed by {name}; expected {', '.join(sorted(may)) or 'no signature'}")
    if len(line.signatures) < needed:
        raise CleansetError(
            f"{line}: signed by {', '.join(sorted(line.signatures)) or 'nobody'}; expected {needed} of "
            f"{', '.join(sorted(may)) or 'those who have a key'}: cleanset contest sign"
        )


def voided(lines: Sequence[Line]) -> dict[int, int]:
    """By the lines that are void, the line that makes them so; a void line makes none void."""
    found: dict[int, int] = {}
    # from the end: whether a line is void is settled by those after it
    for line in reversed(lines):
        if line.n not in found:
            found |= dict.fromkeys(_voided_by(lines, line), line.n)
    return found


def _voided_by(lines: Sequence[Line], line: Line) -> list[int]:
    if line.kind == "void":
        return list(line.entry.lines)
    if line.kind != "key" or line.entry.void_from is None:
        return []
    person, first, rules = line.entry.person, line.entry.void_from, lines[0].entry
    signed = (each for each in lines if first <= each.n < line.n and person in each.signatures)
    return [each.n for each in signed if len(each.signatures) - 1 < required_signers(rules, each)[1]]


def state(lines: Sequence[Line], on: datetime.date | None = None) -> ContestFiles:
    """All that counts at the end of a day, from the lines up to it; at the end of the log without one.

    Raises CleansetError for lines that contradict each other.
    """
    lines = [each for each in lines if on is None or each.day <= on or each.n == 0]
    void = voided(lines)
    rules = lines[0].entry
    counting = [each for each in lines if each.n not in void]
    of: dict[str, list[Any]] = {kind: [] for kind in ENTRIES}
    for each in counting:
        of[each.kind].append(each.entry)
    _check_distinct(counting)
    every, draws = _submissions_and_draws(lines, void)
    submissions = [each for each in every if each.number not in void]
    controls = {sha: one for each in of["controls"] for sha, one in each.controls.items()}
    # what was answered or decided about an image that is void counts no more than the image
    gone = {image.sha256 for _, image in submitted_images(every)} | {
        sha for each in lines if each.kind == "controls" for sha in each.entry.controls
    }
    gone -= {image.sha256 for _, image in submitted_images(submissions)} | controls.keys()
    teams = {**rules.teams, **{each.name: each.key for each in of["team"]}}
    keys = keys_of(lines)
    board = {name: _with_own_teams(each, keys.get(name), teams, keys) for name, each in rules.board.items()}
    found = ContestFiles(
        rules=rules.model_copy(update={"teams": teams, "board": board}),
        defences={each.name: each for each in of["defence"]},
        submissions=submissions,
        roster=frozenset(judge for each in of["roster"] for judge in each.roster),
        controls=controls,
        answers=_answers([each for each in counting if each.kind == "answers"], gone),
        decisions=[each for each in of["decision"] if each.image not in gone],
        appeals=[each for each in of["appeal"] if each.image not in gone],
        stakes=of["stake"],
        accepted=of["accept"],
        runs=[
            each.model_copy(update={"answers": {sha: one for sha, one in each.answers.items() if sha not in gone}})
            for each in of["run"]
        ],
        masks={sha: mask_of(each.mask) for sha, each in controls.items() if each.mask is not None},
        examples={sha: one for each in of["examples"] for sha, one in each.examples.items()},
        draws=draws,
        conflicts=[(each.day, each.entry.member, each.entry.team) for each in counting if each.kind == "conflict"],
        withdrawals=[_withdrawal(lines, each) for each in counting if _may_void(each)],
        seen=_seen(lines),
        contest=lines[0].digest,
        head=lines[-1].digest,
    )
    check_drawn(found)
    return found


def _with_own_teams(member: BoardMember, key: str | None, teams: Iterable[str], keys: Mapping[str, str]) -> BoardMember:
    """A member, with each team that has the member's own key."""
    own = [] if key is None else [each for each in teams if each in keys and keys[each].split()[1] == key.split()[1]]
    return member.model_copy(update={"teams": [*member.teams, *own]})


def _withdrawal(lines: Sequence[Line], line: Line) -> entries.Withdrawal:
    by_number = {each.n: each for each in lines}
    images: set[str] = set()
    teams: set[str] = set()
    for entry in (by_number[n].entry for n in _voided_by(lines, line) if n in by_number):
        named = [getattr(entry, key, None) for key in ("team", "target", "defence", "name")]
        teams |= {team_of(each) for each in (*named, *getattr(entry, "defences", ())) if each}
        images |= {*getattr(entry, "answers", ()), getattr(entry, "image", None)} - {None}
    members = line.signatures.keys()
    return entries.Withdrawal(str(line), line.day, frozenset(members), frozenset(images), frozenset(teams))


def _seen(lines: Sequence[Line]) -> dict[datetime.date, entries.SeenHead]:
    """By week, the line that published it, and the teams that have said since that they had seen it."""
    numbers = {each.digest: each.n for each in lines}
    teams = set[str](lines[0].entry.teams) | {each.entry.name for each in lines if each.kind == "team"}
    last: dict[str, int] = {}
    for line in lines:
        for name in line.signatures.keys() & teams:
            last[name] = numbers[line.signatures[name].seen]
    without = lines[0].entry.organizers
    return {
        each.day: entries.SeenHead(each.digest, frozenset(last.keys() - {*without} - _before(last, each.n)))
        for each in lines
        if each.kind == "publish"
    }


def _before(last: Mapping[str, int], n: int) -> set[str]:
    return {name for name, seen in last.items() if seen < n}


def _check_distinct(lines: Sequence[Line]) -> None:
    known = set[tuple[str, str]]()
    for line in lines:
        names = [line.entry.name] if line.kind == "defence" else getattr(line.entry, line.kind, ())
        for name in names if line.kind in ("defence", "controls", "examples") else ():
            if (line.kind, name) in known:
                raise CleansetError(f"{line}: {name} was entered before; expected each once: void the first one")
            known.add((line.kind, name))


def _submissions_and_draws(
    lines: Sequence[Line], void: Mapping[int, int]
) -> tuple[list[Submission], dict[datetime.date, tuple[frozenset[str], int]]]:
    """All submissions, also void ones, and the draw of each week.

    A draw is of what was there when the week was published: what is taken back later changes none.
    """
    waiting: list[Line] = []
    found: list[Submission] = []
    draws: dict[datetime.date, tuple[frozenset[str], int]] = {}
    pool: dict[str, int] = {}
    images: set[str] = set()
    published = datetime.date.min
    for line in lines:
        if line.kind == "submission":
            waiting.append(line)
        elif line.kind == "controls":
            pool |= dict.fromkeys(line.entry.controls, line.n)
        elif line.kind == "publish" and line.n not in void:
            ends = week_of_day(max(waiting[0].day, after(published, 1))) if waiting else None
            if ends is None or line.day < ends:
                expected = f"a day from {ends} on, the Friday that ends the week" if ends else "a submission before it"
                raise CleansetError(f"{line}: on {line.day}; expected {expected}")
            week = [Submission(each.n, each.day, line.day, each.entry) for each in waiting]
            images |= {image.sha256 for _, image in submitted_images(week)}
            there = [each for each in week if void.get(each.number, line.n) >= line.n]
            drawn = {sha for sha, n in pool.items() if void.get(n, line.n) >= line.n}
            draws[line.day] = frozenset(drawn - images), len(list(submitted_images(there)))
            found = [*found, *week]
            waiting = []
            published = line.day
    return [*found, *(Submission(each.n, each.day, datetime.date.max, each.entry) for each in waiting)], draws


def _answers(lines: Sequence[Line], gone: Collection[str]) -> list[entries.AnswerFile]:
    """The answers in some lines, each where it was entered first."""
    first: dict[tuple[str, str], JudgeAnswer] = {}
    found = []
    for line in lines:
        file = line.entry
        new: dict[str, JudgeAnswer] = {}
        for image, answer in file.answers.items():
            before = first.setdefault((file.judge, image), answer)
            if before is answer:
                new[image] = answer
            elif before.model_copy(update={"date": answer.date}) != answer:
                raise CleansetError(
                    f"{line}: {image[:12]}… was answered otherwise before; expected the same: it cannot be taken back"
                )
        if not new:
            raise CleansetError(f"{line}: no answer that was not entered before; expected new ones")
        kept = {sha: one for sha, one in new.items() if sha not in gone}
        # copied only where something is left out, which takes a third of the time of a standing
        found.append(file if len(kept) == len(file.answers) else file.model_copy(update={"answers": kept}))
    return found


def mask_of(text: str) -> NDArray[np.bool_]:
    """The pixels of a control's largest object, shape (height, width).

    Raises CleansetError unless the text is a PNG in base64 with some white in it.
    """
    try:
        # half of the range, since an edge may be soft
        mask = np.asarray(decode(base64.b64decode(text, validate=True), ("PNG",)).convert("L")) > 127
    except ValueError as error:
        raise CleansetError(f"mask of a control: {error}; expected a PNG, white where the object is") from None
    if not mask.any():
        raise CleansetError("mask of a control: nothing in it is white; expected white where the object is")
    return mask


@dataclass(frozen=True, slots=True)
class DraftLine:
    """An entry that is not in the log yet."""

    kind: str
    data: Mapping[str, object]
    signatures: Mapping[str, Signature] = field(default_factory=dict)
    """Of its authors, by name."""

    files: Mapping[str, Path] = field(default_factory=dict)
    """The objects that it names, by SHA-256."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The files that a log names by their SHA-256."""

    contest: Path
    new: Mapping[str, Path] = field(default_factory=dict)
    """Those not in the folder yet."""

    verified: set[str] = field(default_factory=set)
    """Those read, whose bytes have their SHA-256."""

    def path(self, digest: str) -> Path:
        """Where a file lies, whether it is there or not."""
        return self.new.get(digest, self.contest / OBJECTS / digest)

    def has(self, digest: str) -> bool:
        return self.path(digest).is_file()

    def read(self, digest: str) -> bytes:
        """The bytes of a file. Raises CleansetError for a link, and for a file that is missing or has changed."""
        path = self.path(digest)
        refuse_link(path.parent)
        refuse_link(path)
        if not path.is_file():
            raise CleansetError(f"{path}: missing; expected every file that {LOG} names: dvc pull")
        data = read_bytes(path)
        if sha256(data) != digest:
            raise CleansetError(f"{path}: SHA-256 {sha256(data)}; expected {digest}: the file has changed")
        self.verified.add(digest)
        return data


def refuse_link(path: Path) -> None:
    """Raise CleansetError for a link: its target may lie anywhere, and change."""
    if path.is_symlink():
        raise CleansetError(f"{path}: a link; expected a file or folder: put a copy of its target in its place")


def read_content(path: Path) -> dict[str, object]:
    """The keys and values of a YAML file. Raises CleansetError, naming the file, for a link and for faults."""
    refuse_link(path)
    found = read_yaml(path, "save it as UTF-8", MAX_CHARACTERS)
    if not isinstance(found, dict):
        raise CleansetError(f"{path}: {shown(found)}; expected keys and values")
    return found


def visible(folder: Path) -> list[Path]:
    """The paths in a folder, sorted, without hidden files; empty without a folder. Raises CleansetError for a link."""
    refuse_link(folder)
    found = sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []
    for path in found:
        refuse_link(path)
    return found


def read(contest: Path) -> list[Line]:
    """The lines of a log, each checked by itself, the chain and all signatures.

    Raises CleansetError, naming the line, for whatever was changed, and for a contest in the form of earlier versions.
    """
    return _read(contest).lines


@without_garbage_collection()
def _read(contest: Path) -> "_Reader":
    refuse_link(contest)
    path = contest / LOG
    refuse_link(path)
    if not path.exists():
        raise CleansetError(_without_log(contest))
    if path.with_name(f"{LOG}.sig").exists():
        raise CleansetError(
            f"{path}.sig: a signature beside the log, as of earlier versions; expected it in the log's last line: "
            "begin the contest anew with cleanset contest enter contest.yaml"
        )
    found = parse(read_text(path, _REMEDY), path)
    _check_named(contest / PARAMS, found.lines)
    remember(found.lines[0].digest, len(found.lines) - 1, found.lines[-1].digest)
    return found


class _Named(NamedTuple):
    """What the params.yaml of a contest's DVC project names: its first line, and a later one."""

    contest: str
    head: str


def _named(path: Path) -> _Named:
    refuse_link(path)
    content = read_content(path) if path.is_file() else {}
    return _Named(*(str(content.get(key) or "") for key in _Named._fields))


def _check_named(path: Path, lines: Sequence[Line]) -> None:
    """Raise CleansetError for the log of another contest than params.yaml names, and for an older or forked one."""
    named = _named(path)
    first, head = lines[0].digest, lines[-1].digest
    if named.contest not in ("", first):
        raise CleansetError(
            f"{path}: names the contest {named.contest[:12]}…, but the first line of {LOG} has the digest "
            f"{first[:12]}…; expected the log of that contest: {_REMEDY}"
        )
    if named.head and all(each.digest != named.head for each in lines):
        raise CleansetError(
            f"{path}: names the line {named.head[:12]}…, which is not in {LOG}, whose last line is {head[:12]}…; "
            f"expected a log that goes on after it, not an older or a forked one: {_REMEDY}"
        )


def check_since(lines: Sequence[Line], digest: str) -> None:
    """Raise CleansetError unless a line has a digest, or its beginning, which somebody has kept."""
    if len(digest) < SHORT_DIGEST or not any(each.digest.startswith(digest) for each in lines):
        raise CleansetError(
            f"--since {digest[:12]}…: in no line of {LOG}, whose last line is {lines[-1].digest[:12]}…; expected a log "
            f"that goes on after it, not an older or a forked one: {_REMEDY}"
        )


def _check_seen(log: "_Reader", seen: SeenLine | None, where: object) -> None:
    """Raise CleansetError for a log without the line that this machine has seen last."""
    lines = log.lines
    if seen is not None and not (seen.n < len(lines) and lines[seen.n].digest == seen.digest):
        raise CleansetError(
            f"{where}: its last line is {len(lines) - 1}, {lines[-1].digest[:12]}…; expected line {seen.n}, "
            f"{seen.digest[:12]}…, in it, which this machine has seen: it is an older or a forked log: {_REMEDY}; or "
            f"remove {seen_file(lines[0].digest)}"
        )


def _without_log(contest: Path) -> str:
    if any((contest / name).is_dir() for name in ("board", "submissions", "defences", "answers")):
        return (
            f"{contest}: a contest in folders; expected {LOG}: since version 0.1.0 a contest is one log, and one in "
            "folders ends with the commit that it began with"
        )
    return f"{contest / LOG}: missing; expected the log of a contest: cleanset contest enter contest.yaml begins one"


def parse(text: str, where: object) -> "_Reader":
    """The lines of the text of a log, whose last line is the organizers' signature. Raises CleansetError as `read`."""
    *texts, rest = text.split("\n")
    if rest or len(texts) < 2:
        raise CleansetError(f"{where}: does not end with a whole line; expected the log of a contest: {_REMEDY}")
    found = _Reader()
    seen = last_seen(sha256(texts[0].encode()))
    for number, each in enumerate(texts[:-1]):
        # up to the line that was seen all signatures were verified before, if it is this line: see _check_seen
        found.add(each, f"{where}, line {number}", is_verified=seen is not None and number <= seen.n)
    _check_seen(found, seen, where)
    signed = validate(
        LogSignature, parse_json(texts[-1], str(where), "the organizers' signature"), f"{where}, last line"
    )
    _check_log_signature(found, signed, where)
    return found


def _check_log_signature(log: "_Reader", signed: LogSignature, where: object) -> None:
    try:
        if signed.by not in log.lines[0].entry.signers:
            raise SignatureError("not by a signer")
        check_signature(log_statement(log.lines), signed.signature, log.keys[signed.by])
    except SignatureError as error:
        raise CleansetError(
            f"{where}: the signature in its last line is {error}; expected one of its entries by one of its signers: "
            f"{_REMEDY}"
        ) from None


class _Reader:
    """The lines of a log so far, and what the next one is checked against."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.keys: dict[str, str] = {}
        self.signed: Counter[str] = Counter()
        """By name, the number of lines signed so far."""
        self._numbers: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._latest = datetime.datetime.min.replace(tzinfo=datetime.UTC)

    def add(self, text: str, where: str, *, is_verified: bool = False) -> None:
        """Add a line, checked by itself and against those before it; `is_verified`: its signatures were, before."""
        content = parse_json(text, where, "a line of the log")
        line = validate(Line, {**content, "text": text} if isinstance(content, dict) else content, where)
        prev = self.lines[-1].digest if self.lines else START
        if line.n != len(self.lines) or line.prev != prev:
            raise CleansetError(
                f"{where}: number {line.n} after {line.prev[:12]}…; expected {len(self.lines)} after {prev[:12]}…, the "
                f"line before: {_REMEDY}"
            )
        check_known("kind of entry", line.kind, ENTRIES)
        if (line.kind == RULES) != (not self.lines):
            raise CleansetError(f"{where}: {line.kind}; expected contest in the first line, and there alone")
        _ = line.entry  # read here, so that data that are not valid are found in any log
        lines = [*self.lines, line] if _may_void(line) else []
        if lines:
            _check_voided(lines, line)
            void = voided(lines)
            self._latest = max(each.at for each in self.lines if each.n not in void)
        if line.at < self._latest:
            raise CleansetError(
                f"{where}: at {line.at:%FT%TZ}; expected no instant before the previous line's; "
                "if the clock was wrong there, enter a void of that line first"
            )
        check_signers(self.lines[0].entry if self.lines else line.entry, line)
        for name, signature in sorted(line.signatures.items()):
            self._check_signature(line, name, signature, where, is_verified=is_verified)
        self._latest = line.at
        self.lines.append(line)
        self._numbers[line.digest] = line.n
        for name, signature in line.signatures.items():
            self.signed[name] += 1
            self._seen[name] = self._numbers[signature.seen]
        if lines:
            self.keys = keys_of(lines)
        else:
            _give(self.keys, line, self.lines[0].entry)

    def _check_signature(self, line: Line, name: str, given: Signature, where: str, *, is_verified: bool) -> None:
        if name not in self.keys:
            raise CleansetError(f"{where}: signed by {name}, who has no key; expected a key in a line before it")
        seen = self._numbers.get(given.seen)
        if seen is None or seen < self._seen.get(name, 0):
            last = self.lines[self._seen.get(name, 0)].digest
            raise CleansetError(
                f"{where}: {name} had seen {given.seen[:12]}…; expected {last[:12]}… or a later line of this log: sign "
                "it anew: cleanset contest sign"
            )
        if given.mine != self.signed[name]:
            raise CleansetError(
                f"{where}: statement {given.mine} of {name}; expected {self.signed[name]}, as many as {name} has "
                "signed before: none may be left out or entered twice; sign it anew: cleanset contest sign"
            )
        if is_verified:
            return
        text = statement(self.lines[0].digest, given.seen, given.mine, line.kind, line.data)
        try:
            check_signature(text, given.signature, self.keys[name])
        except SignatureError as error:
            raise CleansetError(
                f"{where}: the signature of {name} is {error}; expected a signature of this entry in this contest: "
                "cleanset contest sign"
            ) from None


def _may_void(line: Line) -> bool:
    return line.kind == "void" or (line.kind == "key" and line.entry.void_from is not None)


def _check_voided(lines: Sequence[Line], line: Line) -> None:
    """Raise CleansetError for lines that cannot be void: later ones, and some kinds unless their clock was wrong."""
    if line.kind == "key" and line.entry.void_from >= line.n:
        raise CleansetError(f"{line}: void_from {line.entry.void_from}; expected a line before it")
    for n in _voided_by(lines, line):
        if not n < line.n or (
            line.kind == "void" and lines[n].kind in ("void", "key", "publish") and lines[n].at <= line.at
        ):
            raise CleansetError(f"{line}: {n}; expected earlier lines that are not void, key or publish")


def read_state(contest: Path, on: datetime.date | None = None) -> ContestFiles:
    """All that counts at the end of a day. Raises CleansetError as `read` and `state` do."""
    return state(read(contest), on)


Check = Callable[[Sequence[Line], int, Objects], list[str]]
"""Raises CleansetError for a problem in the lines from a number on, and returns lines for the organizers."""


def append(
    contest: Path,
    drafts: Sequence[DraftLine],
    check: Check,
    *,
    key: Path | None,
    at: datetime.datetime | None = None,
) -> list[str]:
    """Add entries to the log, sign it, and return the notes of `check`; without a key nothing is written.

    `at`: the instant, for a made-up contest; otherwise this machine's clock.
    """
    if not contest.is_dir():
        raise CleansetError(f"{contest}: no folder; expected the folder of a contest")
    with locked(contest):
        begins = [each.kind for each in drafts[:1]] == [RULES] and not (contest / LOG).exists()
        log = _Reader() if begins else _read(contest)
        new = len(log.lines)
        for draft in drafts:
            _add_draft(log, draft, at or datetime.datetime.now(datetime.UTC).replace(microsecond=0))
        if at is not None and not log.lines[0].entry.made_up:
            raise CleansetError("--at: for a contest that is made up; expected the instant of the clock: leave it out")
        objects = Objects(contest, {digest: path for each in drafts for digest, path in each.files.items()})
        notes = check(log.lines, new, objects)
        if key is not None:
            _write(contest, log, objects, key)
        return notes


def _add_draft(log: _Reader, draft: DraftLine, at: datetime.datetime) -> None:
    prev = log.lines[-1].digest if log.lines else START
    content = {"n": len(log.lines), "at": f"{at:%FT%TZ}", "kind": draft.kind, "prev": prev, "data": draft.data}
    if draft.signatures:
        content["signatures"] = {name: each.model_dump() for name, each in draft.signatures.items()}
    log.add(json.dumps(content, ensure_ascii=False, separators=(",", ":")), draft.kind)


def sign_drafts(contest: Path, drafts: Sequence[DraftLine], name: str, key: Path) -> list[Signature]:
    """The signatures of some entries by their author, in the order in which they are to be entered."""
    log = _read(contest)
    first, seen, mine = log.lines[0].digest, log.lines[-1].digest, log.signed[name]
    return [
        Signature(
            seen=seen,
            mine=number,
            signature=signature_of(statement(first, seen, number, each.kind, each.data), key),
        )
        for number, each in enumerate(drafts, mine)
    ]


def signed_log(lines: Sequence[Line], keys: Mapping[str, str], key: Path) -> str:
    """The text of a log, with the signature of an organizer in its last line.

    `keys`: the public ones by name. Raises CleansetError for the key of somebody else.
    """
    signature = signature_of(log_statement(lines), key)
    signers = lines[0].entry.signers
    by = next((name for name in signers if _is_by(keys[name], log_statement(lines), signature)), None)
    if by is None:
        raise CleansetError(
            f"{key}: not the key of a signer; expected the key of {', '.join(signers) or 'somebody'}, "
            "as the log's first line names it"
        )
    signed = json.dumps({"by": by, "signature": signature}, separators=(",", ":"))
    return "".join(f"{text}\n" for text in (*(each.text for each in lines), signed))


def _is_by(key: str, text: bytes, signature: str) -> bool:
    try:
        check_signature(text, signature, key)
    except SignatureError:
        return False
    return True


def _write(contest: Path, log: _Reader, objects: Objects, key: Path) -> None:
    text = signed_log(log.lines, log.keys, key)
    (contest / OBJECTS).mkdir(exist_ok=True)
    for digest in objects.new:
        if not (contest / OBJECTS / digest).exists():
            replace_file(contest / OBJECTS / digest, objects.read(digest))
    # one file, so that a kill or a full disk leaves the old log or the new one
    replace_file(contest / LOG, text.encode())
    first, head = log.lines[0].digest, log.lines[-1].digest
    remember(first, len(log.lines) - 1, head)
    _name(contest / PARAMS, first, head)


def _name(path: Path, first: str, head: str) -> None:
    """Write the first and the last line of a log into a params.yaml that has keys for them."""
    if path.is_file():
        text = read_text(path, _REMEDY)
        for key, digest in (("contest", first), ("head", head)):
            text = re.sub(rf'(?m)^{key}: "[0-9a-f]*"', f'{key}: "{digest}"', text)
        write_text(path, text)
