"""Read the log of a contest, and check it: the chain of its lines, all signatures, what this machine has seen before.

The log is an append-only file, signed by the organizers, and names objects; `log_writing` adds lines.

Each line has the digest of the line before, and the last line of the file is the organizers' signature of the digest of
the last entry, so that one signature covers all. Whoever keeps the digest of one line can prove any later change before
it. Nothing but `log.jsonl` and `objects/<sha256>` is ever read, and never through a link.

What a team, a judge or a member of the board says is signed by its author: the entry, the contest by the digest of its
first line, the digest of the last line that the author had seen, and the number of lines that the author had signed
before. So a statement counts once, in the place that its author gave it.

An entry counts from the instant at which the organizers entered it, whatever day anybody has written into it. A
decision of the board counts if a quorum of its members has signed it, and a line that it voids is left out from then
on. `log_state.state` is all that follows on a day, and everything else reads that.
"""

import datetime
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cleanset.errors import CleansetError
from cleanset.plumbing.files import read_text, sha256
from cleanset.plumbing.json_files import parse_json
from cleanset.plumbing.machine import without_garbage_collection
from cleanset.plumbing.validation import check_known, shown, validate
from cleanset.sets.archive import SignatureError
from cleanset.studies.contest.checkpoints import (
    MerkleTree,
    NoteParts,
    check_checkpoint,
    check_cosignature,
    checkpoint_text,
    cosigner_name,
    last_published,
)
from cleanset.studies.contest.entries import SHORT_DIGEST, short
from cleanset.studies.contest.files import ContestFiles
from cleanset.studies.contest.log_lines import (
    COSIGN,
    ENTRIES,
    LOG,
    PUBLISH,
    RULES,
    Line,
    LogSignature,
    Signature,
    log_statement,
    statement,
)
from cleanset.studies.contest.log_state import state
from cleanset.studies.contest.memory import SeenLine, last_seen, remember, seen_file
from cleanset.studies.contest.objects import read_content, refuse_link
from cleanset.studies.contest.signatures import check_signature
from cleanset.studies.contest.signers import (
    GIVE_KEYS,
    check_signers,
    check_voided,
    give_keys,
    keys_of,
    may_void,
    voided,
)

PARAMS = "params.yaml"
"""Of the contest's DVC project."""
START = "0" * 64
"""`prev` of the first line."""
LOG_REMEDY = "take it from whoever has it unchanged, such as git checkout"


def read(contest: Path) -> list[Line]:
    """The lines of a log, each checked by itself, the chain and all signatures.

    Raises CleansetError, naming the line, for whatever was changed, and for a contest in the form of earlier versions.
    """
    return checked_log(contest).lines


@without_garbage_collection()
def checked_log(contest: Path) -> "LogReader":
    """The log as it was read, to which lines can be added. Raises CleansetError as `read`."""
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
    found = parse(read_text(path, LOG_REMEDY), path)
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
            f"{path}: names the contest {short(named.contest)}, but the first line of {LOG} has the digest "
            f"{short(first)}; expected the log of that contest: {LOG_REMEDY}"
        )
    if named.head and all(each.digest != named.head for each in lines):
        raise CleansetError(
            f"{path}: names the line {short(named.head)}, which is not in {LOG}, whose last line is {short(head)}; "
            f"expected a log that goes on after it, not an older or a forked one: {LOG_REMEDY}"
        )


def check_since(lines: Sequence[Line], digest: str) -> None:
    """Raise CleansetError unless a line has a digest, or its beginning, which somebody has kept."""
    if re.fullmatch(rf"[0-9a-f]{{{SHORT_DIGEST},}}", digest) is None:
        raise CleansetError(
            f"--since {shown(digest)}; expected at least {SHORT_DIGEST} characters of a line's digest, or the file of "
            "a checkpoint"
        )
    if not any(each.digest.startswith(digest) for each in lines):
        raise CleansetError(
            f"--since {short(digest)}: in no line of {LOG}, whose last line is {short(lines[-1].digest)}; expected a "
            f"log that goes on after it, not an older or a forked one: {LOG_REMEDY}"
        )


def _check_seen(log: "LogReader", seen: SeenLine | None, where: object) -> None:
    """Raise CleansetError for a log without the line that this machine has seen last."""
    lines = log.lines
    if seen is not None and not (seen.n < len(lines) and lines[seen.n].digest == seen.digest):
        raise CleansetError(
            f"{where}: its last line is {len(lines) - 1}, {short(lines[-1].digest)}; expected line {seen.n}, "
            f"{short(seen.digest)}, in it, which this machine has seen: it is an older or a forked log: {LOG_REMEDY}; "
            f"or remove {seen_file(lines[0].digest)}"
        )


def _without_log(contest: Path) -> str:
    if any((contest / name).is_dir() for name in ("board", "submissions", "defences", "answers")):
        return (
            f"{contest}: a contest in folders; expected {LOG}: since version 0.1.0 a contest is one log, and one in "
            "folders ends with the commit that it began with"
        )
    return f"{contest / LOG}: missing; expected the log of a contest: cleanset contest enter contest.yaml begins one"


def parse(text: str, where: object) -> "LogReader":
    """The lines of the text of a log, whose last line is the organizers' signature. Raises CleansetError as `read`."""
    *texts, rest = text.split("\n")
    if rest or len(texts) < 2:
        raise CleansetError(f"{where}: does not end with a whole line; expected the log of a contest: {LOG_REMEDY}")
    found = LogReader()
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


def _check_log_signature(log: "LogReader", signed: LogSignature, where: object) -> None:
    try:
        if signed.by not in log.lines[0].entry.signers:
            raise SignatureError("not by a signer")
        check_signature(log_statement(log.lines), signed.signature, log.keys[signed.by])
    except SignatureError as error:
        raise CleansetError(
            f"{where}: the signature in its last line is {error}; expected one of its entries by one of its signers: "
            f"{LOG_REMEDY}"
        ) from None


class LogReader:
    """The lines of a log so far, and what the next one is checked against."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.keys: dict[str, str] = {}
        self.signed: Counter[str] = Counter()
        """By name, the number of lines signed so far."""
        self._numbers: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._latest = datetime.datetime.min.replace(tzinfo=datetime.UTC)
        self._voiding: list[Line] = []
        self._giving: list[Line] = []
        self._void: Mapping[int, int] = {}
        self._tree = MerkleTree()

    def checkpoint(self) -> Line | None:
        """The last line that published a week, and is not void."""
        return last_published(self.lines, self._void)

    def checkpoint_text(self) -> str:
        """The checkpoint of the lines so far, without its signature."""
        # grown where it is asked for: most readings need no hash of a line that was seen before
        for each in self.lines[self._tree.size :]:
            self._tree.add(each.text)
        return checkpoint_text(self.lines[0].digest, self._tree)

    def add(self, text: str, where: str, *, is_verified: bool = False) -> None:
        """Add a line, checked by itself and against those before it; `is_verified`: its signatures were, before."""
        content = parse_json(text, where, "a line of the log")
        line = validate(Line, {**content, "text": text} if isinstance(content, dict) else content, where)
        prev = self.lines[-1].digest if self.lines else START
        if line.n != len(self.lines) or line.prev != prev:
            raise CleansetError(
                f"{where}: number {line.n} after {short(line.prev)}; expected {len(self.lines)} after {short(prev)}, "
                f"the line before: {LOG_REMEDY}"
            )
        check_known("kind of entry", line.kind, ENTRIES)
        if (line.kind == RULES) != (not self.lines):
            raise CleansetError(f"{where}: {line.kind}; expected contest in the first line, and there alone")
        _ = line.entry  # read here, so that data that are not valid are found in any log
        if may_void(line):
            check_voided(self.lines, line)
            self._voiding.append(line)
            self._void = voided(self.lines, self._voiding)
            self._latest = max(each.at for each in self.lines if each.n not in self._void)
        if line.at < self._latest:
            raise CleansetError(
                f"{where}: at {line.at:%FT%TZ}; expected no instant before the previous line's; "
                "if the clock was wrong there, enter a void of that line first"
            )
        check_signers(self.lines[0].entry if self.lines else line.entry, line)
        self._check_signatures(line, where, is_verified=is_verified)
        self._latest = line.at
        self.lines.append(line)
        self._numbers[line.digest] = line.n
        for name, signature in line.signatures.items():
            self.signed[name] += 1
            self._seen[name] = self._numbers[signature.seen]
        if line.kind in GIVE_KEYS:
            self._giving.append(line)
        if self._voiding and self._voiding[-1] is line:
            self.keys = keys_of(self._giving, self._void)
        else:
            give_keys(self.keys, line, self.lines[0].entry)

    def _check_signatures(self, line: Line, where: str, *, is_verified: bool) -> None:
        for name, signature in sorted(line.signatures.items()):
            self._check_signature(line, name, signature, where, is_verified=is_verified)
        if line.kind in (PUBLISH, COSIGN) and not is_verified:
            self._check_checkpoint(line, where)

    def _check_signature(self, line: Line, name: str, given: Signature, where: str, *, is_verified: bool) -> None:
        if name not in self.keys:
            raise CleansetError(f"{where}: signed by {name}, who has no key; expected a key in a line before it")
        seen = self._numbers.get(given.seen)
        if seen is None or seen < self._seen.get(name, 0):
            last = self.lines[self._seen.get(name, 0)].digest
            raise CleansetError(
                f"{where}: {name} had seen {short(given.seen)}; expected {short(last)} or a later line of this log: "
                "sign it anew: cleanset contest sign"
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

    def _check_checkpoint(self, line: Line, where: str) -> None:
        entry = line.entry
        first = self.lines[0]
        try:
            if line.kind == PUBLISH:
                keys = {name: self.keys[name] for name in first.entry.signers}
                check_checkpoint(entry.checkpoint, self.checkpoint_text(), keys, first.digest)
                return
            last = self.checkpoint()
            if last is None or entry.checkpoint != last.digest:
                raise SignatureError(f"of the line {short(entry.checkpoint)}, which has not the last checkpoint")
            text = NoteParts.of(last.entry.checkpoint).text
            name = cosigner_name(first.digest, entry.team)
            seconds = check_cosignature(entry.signature, text, name, self.keys[entry.team])
            if not last.at.timestamp() <= seconds <= line.at.timestamp():
                raise SignatureError(f"of the second {seconds}, not between its checkpoint and its own line")
        except SignatureError as error:
            remedy = "cleanset contest " + ("enter --publish" if line.kind == PUBLISH else "cosign")
            raise CleansetError(
                f"{where}: a {'checkpoint' if line.kind == PUBLISH else 'cosignature'} {error}; expected one of this "
                f"log: {remedy}"
            ) from None


def read_state(contest: Path, on: datetime.date | None = None) -> ContestFiles:
    """All that counts at the end of a day. Raises CleansetError as `read` and `state` do."""
    return state(read(contest), on)
