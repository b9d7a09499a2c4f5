"""The log of a contest: an append-only file, its signature, and the objects that it names.

Each line has the digest of the line before, and the organizers sign the whole file, so that one signature covers all.
Whoever keeps the digest of one line can prove any later change before it. Nothing but `log.jsonl`,
`log.jsonl.sig` and `objects/<sha256>` is ever read, and never through a link.

An entry counts from the instant at which the organizers entered it, whatever day anybody has written into it. A
decision of the board counts if a quorum of its members has signed it, and a line that it voids is left out from then
on. `state` is all that follows on a day, and everything else reads that.
"""

import base64
import datetime
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cleanset.errors import CleansetError
from cleanset.files import locked, read_bytes, read_text, replace_file, sha256
from cleanset.images.codec import decode
from cleanset.json_files import parse_json
from cleanset.machine import without_garbage_collection
from cleanset.sets.archive import SignatureError, sign, signer
from cleanset.studies.contest import files as entries
from cleanset.studies.contest.files import ContestFiles, Submission, submitted_images, team_of
from cleanset.studies.contest.judges import check_drawn
from cleanset.studies.contest.judging import JudgeAnswer
from cleanset.studies.contest.rules import BOARD, ContestRules, Instant, Name, PublicKey, after, week_of_day
from cleanset.validation import EachOnce, Section, Sha256, check_known, shown, validate
from cleanset.yaml_files import read_yaml

LOG = "log.jsonl"
LOG_SIGNATURE = "log.jsonl.sig"
OBJECTS = "objects"
NAMESPACE = "cleanset-contest"
"""Purpose of the signatures of a contest (ssh-keygen -n)."""
MAX_CHARACTERS = 2**26
"""Size limit of a YAML file: one has a judge's answers of a week."""
START = "0" * 64
"""`prev` of the first line."""
_REMEDY = "take it from whoever has it unchanged, such as git checkout"


class Team(Section):
    """A team that takes part from now on."""

    name: Name


class NewKey(Section):
    """Another key of a person; `since`: the line from which signatures by the old one, which was stolen, are void."""

    person: Name
    key: PublicKey
    since: Annotated[int, Field(ge=1)] | None = None


class Void(Section):
    """Lines that count no longer, with the public reason."""

    lines: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1), EachOnce]
    reason: entries.Text


RULES = "contest"
ENTRIES: Mapping[str, type[Section]] = {
    RULES: ContestRules, "team": Team, "key": NewKey, "roster": entries.Roster, "controls": entries.ControlsFile,
    "examples": entries.ExamplesFile, "defence": entries.Defence, "accept": entries.Acceptance,
    "stake": entries.Stake, "submission": entries.SubmissionManifest, "publish": Section,
    "answers": entries.AnswerFile, "appeal": entries.Appeal, "decision": entries.BoardDecision,
    "run": entries.DefenceRun, "void": Void,
}  # fmt: skip
_DATES = {"defence": "submitted", **dict.fromkeys(("accept", "stake", "appeal", "decision", "run"), "date")}
_BY_BOARD = ("key", "accept", "stake", "decision", "void")


class Line(Section):
    """A line of the log."""

    n: int
    """Its number, from 0."""

    at: Instant
    kind: str
    prev: Sha256
    """The digest of the line before."""

    data: dict[str, object]
    signatures: dict[Name, str] = Field(default_factory=dict)
    """Of members of the board or of a judge, by name."""

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


def signed_text(contest: str, kind: str, data: Mapping[str, object]) -> bytes:
    """The text that people sign: the entry, and the contest by the digest of its first line."""
    return json.dumps({"contest": contest, kind: data}, sort_keys=True).encode()


def keys_before(lines: Sequence[Line], n: int) -> dict[str, str]:
    """The key of each person who has one, before line `n`; the organizers' are there from the beginning.

    Raises CleansetError for a key of two people: one of them could sign for both.
    """
    rules: ContestRules = lines[0].entry
    given = [*rules.signers.items(), *((name, each.key) for name, each in rules.board.items())]
    for each in lines[1:n]:
        if each.kind == "roster":
            given += each.entry.roster.items()
        elif each.kind == "key":
            given.append((each.entry.person, each.entry.key))
    found = {person: key for person, key in given if key is not None}
    for person, key in found.items():
        other = next(name for name, one in found.items() if one.split()[1] == key.split()[1])
        if other != person:
            raise CleansetError(f"{person}: the key of {other}, too; expected a key of each person's own")
    return found


def required_signers(lines: Sequence[Line], line: Line) -> tuple[Collection[str], int]:
    """Those who may sign a line, and how many of them have to."""
    rules: ContestRules = lines[0].entry
    if line.kind == "answers":
        judge = line.entry.judge
        return {judge}, int(judge in keys_before(lines, line.n))
    if line.kind not in _BY_BOARD or (line.kind == "stake" and line.entry.by != BOARD):
        return (), 0
    return rules.board.keys(), rules.quorum


def check_signers(lines: Sequence[Line], line: Line) -> None:
    """Raise CleansetError for a line that lacks required signatures, or has others."""
    may, needed = required_signers(lines, line)
    for name in sorted(line.signatures.keys() - set(may)):
        raise CleansetError(f"{line}: signed by {name}; expected {', '.join(sorted(may)) or 'no signature'}")
    if len(line.signatures) < needed:
        raise CleansetError(
            f"{line}: signed by {', '.join(sorted(line.signatures)) or 'nobody'}; expected {needed} of "
            f"{', '.join(sorted(may))}: cleanset contest sign"
        )


def voided(lines: Sequence[Line]) -> dict[int, int]:
    """By the lines that are void, the line that makes them so.

    Raises CleansetError for a void that names a line that is not before it, or by members with a conflict of interest.
    """
    found: dict[int, int] = {}
    for line in lines:
        if line.kind == "void":
            for n in line.entry.lines:
                if not n < line.n or lines[n].kind in ("void", "key", "publish"):
                    raise CleansetError(f"{line}: {n}; expected earlier lines that are not void, key or publish")
                found.setdefault(n, line.n)
            _check_void(lines, line)
        if line.kind == "key" and line.entry.since is not None:
            for each in lines[line.entry.since : line.n]:
                left = len(each.signatures.keys() - {line.entry.person})
                if line.entry.person in each.signatures and left < required_signers(lines, each)[1]:
                    found.setdefault(each.n, line.n)
    return found


def _check_void(lines: Sequence[Line], void: Line) -> None:
    board = lines[0].entry.board
    for entry in (lines[n].entry for n in void.entry.lines):
        named = [getattr(entry, key, None) for key in ("team", "target", "defence", "name")]
        teams = frozenset(team_of(each) for each in (*named, *getattr(entry, "defences", ())) if each)
        for member in sorted(void.signatures):
            if board[member].has_conflict_with(teams):
                raise CleansetError(
                    f"{void}: signed by {member}, who has a conflict with {', '.join(sorted(teams))}; expected others"
                )


def state(lines: Sequence[Line], on: datetime.date | None = None) -> ContestFiles:
    """All that counts at the end of a day, from the lines up to it; at the end of the log without one.

    Raises CleansetError for lines that contradict each other.
    """
    lines = [each for each in lines if on is None or each.day <= on or each.n == 0]
    void = voided(lines)
    rules = lines[0].entry
    counting = [each for each in lines if each.n not in void]
    of: dict[str, list[Any]] = {kind: [each.entry for each in counting if each.kind == kind] for kind in ENTRIES}
    _check_distinct(counting)
    every, draws = _submissions_and_draws(lines, void)
    submissions = [each for each in every if each.number not in void]
    controls = {sha: one for each in of["controls"] for sha, one in each.controls.items()}
    # what was answered or decided about an image that is void counts no more than the image
    gone = {image.sha256 for _, image in submitted_images(every)} | {
        sha for each in lines if each.kind == "controls" for sha in each.entry.controls
    }
    gone -= {image.sha256 for _, image in submitted_images(submissions)} | controls.keys()
    found = ContestFiles(
        rules=rules.model_copy(update={"teams": [*rules.teams, *(each.name for each in of["team"])]}),
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
        head=lines[-1].digest,
    )
    check_drawn(found)
    return found


def _check_distinct(lines: Sequence[Line]) -> None:
    known = set[tuple[str, str]]()
    for line in lines:
        names = [line.entry.name] if line.kind in ("defence", "team") else getattr(line.entry, line.kind, ())
        for name in names if line.kind in ("defence", "team", "roster", "controls", "examples") else ():
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
        elif line.kind == "publish":
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
        found.append(file.model_copy(update={"answers": {sha: one for sha, one in new.items() if sha not in gone}}))
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
    signatures: Mapping[str, str] = field(default_factory=dict)
    """Of members of the board or of a judge, by name."""

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


@without_garbage_collection()
def read(contest: Path) -> list[Line]:
    """The lines of a log, each checked by itself, the chain and all signatures.

    Raises CleansetError, naming the line, for whatever was changed, and for a contest in the form of earlier versions.
    """
    refuse_link(contest)
    if not (contest / LOG).exists() and not (contest / LOG).is_symlink():
        raise CleansetError(_without_log(contest))
    return _read(contest / LOG)


def _read(path: Path) -> list[Line]:
    signature = path.with_name(f"{path.name}.sig")
    refuse_link(path)
    refuse_link(signature)
    text = read_text(path, _REMEDY)
    lines = parse(text, path)
    if not signature.is_file():
        raise CleansetError(f"{signature}: missing; expected the organizers' signature of {path.name}: {_REMEDY}")
    try:
        check_signature(text.encode(), read_bytes(signature), _organizers(lines))
    except SignatureError as error:
        raise CleansetError(
            f"{signature}: {error}; expected a signature of {path.name} by one of its signers: {_REMEDY}"
        ) from None
    return lines


def _without_log(contest: Path) -> str:
    if any((contest / name).is_dir() for name in ("board", "submissions", "defences", "answers")):
        return (
            f"{contest}: a contest in folders; expected {LOG}: since version 0.1.0 a contest is one log, and one in "
            "folders ends with the commit that it began with"
        )
    return f"{contest / LOG}: missing; expected the log of a contest: cleanset contest enter contest.yaml begins one"


def parse(text: str, where: object) -> list[Line]:
    """The lines of the text of a log. Raises CleansetError as `read` does, but for the signature of the whole."""
    *texts, rest = text.split("\n")
    if rest or not texts:
        raise CleansetError(f"{where}: does not end with a whole line; expected the log of a contest: {_REMEDY}")
    found: list[Line] = []
    for number, each in enumerate(texts):
        _add(found, each, f"{where}, line {number}")
    return found


def _add(lines: list[Line], text: str, where: str) -> None:
    """Add a line, checked by itself and against those before it."""
    content = parse_json(text, where, "a line of the log")
    line = validate(Line, {**content, "text": text} if isinstance(content, dict) else content, where)
    prev = lines[-1].digest if lines else START
    if line.n != len(lines) or line.prev != prev:
        raise CleansetError(
            f"{where}: number {line.n} after {line.prev[:12]}…; expected {len(lines)} after {prev[:12]}…, the line "
            f"before: {_REMEDY}"
        )
    if lines and line.at < lines[-1].at:
        raise CleansetError(f"{where}: at {line.at:%FT%TZ}; expected no instant before the previous line's")
    check_known("kind of entry", line.kind, ENTRIES)
    if (line.kind == RULES) != (not lines):
        raise CleansetError(f"{where}: {line.kind}; expected contest in the first line, and there alone")
    keys = keys_before(lines, line.n) if lines else {}
    lines.append(line)
    _ = line.entry  # read here, so that data that are not valid are found in any log
    check_signers(lines, line)
    for name, signature in sorted(line.signatures.items()):
        if name not in keys:
            raise CleansetError(f"{where}: signed by {name}, who has no key; expected a key in a line before it")
        if any(signature in each.signatures.values() for each in lines[:-1]):
            raise CleansetError(f"{where}: a signature that was entered before; expected one of a new text")
        try:
            check_signature(signed_text(lines[0].digest, line.kind, line.data), signature.encode(), {name: keys[name]})
        except SignatureError as error:
            raise CleansetError(
                f"{where}: the signature of {name} is {error}; expected a signature of this entry in this contest: "
                "cleanset contest sign"
            ) from None


def check_signature(data: bytes, signature: bytes, keys: Mapping[str, str]) -> None:
    """Raise SignatureError unless data are signed by one of the keys."""
    with tempfile.TemporaryDirectory() as folder:
        signers = Path(folder, "the log's keys")
        signers.write_text("".join(f"{name} {key}\n" for name, key in keys.items()))
        signer(data, signature, signers, NAMESPACE)


def _organizers(lines: Sequence[Line]) -> dict[str, str]:
    rules: ContestRules = lines[0].entry
    keys = keys_before(lines, len(lines))
    return {name: keys[name] for name in rules.signers}


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
        lines = [] if begins else read(contest)
        new = len(lines)
        for draft in drafts:
            _add_draft(lines, draft, at or datetime.datetime.now(datetime.UTC).replace(microsecond=0))
        if at is not None and not lines[0].entry.made_up:
            raise CleansetError("--at: for a contest that is made up; expected the instant of the clock: leave it out")
        objects = Objects(contest, {digest: path for each in drafts for digest, path in each.files.items()})
        notes = check(lines, new, objects)
        if key is not None:
            _write(contest, lines, objects, key)
        return notes


def _add_draft(lines: list[Line], draft: DraftLine, at: datetime.datetime) -> None:
    prev = lines[-1].digest if lines else START
    content = {"n": len(lines), "at": f"{at:%FT%TZ}", "kind": draft.kind, "prev": prev, "data": draft.data}
    if draft.signatures:
        content["signatures"] = dict(draft.signatures)
    _add(lines, json.dumps(content, ensure_ascii=False, separators=(",", ":")), draft.kind)


def _write(contest: Path, lines: Sequence[Line], objects: Objects, key: Path) -> None:
    data = "".join(f"{each.text}\n" for each in lines).encode()
    signature = sign(data, key, NAMESPACE)
    try:
        check_signature(data, signature, _organizers(lines))
    except SignatureError:
        raise CleansetError(
            f"{key}: not the key of a signer; expected the key of {', '.join(lines[0].entry.signers) or 'somebody'}, "
            "as the log's first line names it"
        ) from None
    (contest / OBJECTS).mkdir(exist_ok=True)
    for digest in objects.new:
        if not (contest / OBJECTS / digest).exists():
            replace_file(contest / OBJECTS / digest, objects.read(digest))
    replace_file(contest / LOG, data)
    replace_file(contest / LOG_SIGNATURE, signature)
