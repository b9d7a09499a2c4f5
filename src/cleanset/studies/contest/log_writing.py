"""Add lines to the log of a contest, and sign it; signatures of entries by their authors, of checkpoints by teams."""

import datetime
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cleanset.errors import CleansetError
from cleanset.plumbing.file_locks import locked
from cleanset.plumbing.files import read_text, replace_file, write_text
from cleanset.sets.archive import SignatureError
from cleanset.studies.contest.checkpoints import (
    SIGNED_NOTE,
    NoteParts,
    cosignature_line,
    cosigned_text,
    cosigner_name,
    note,
    origin_of,
    signature_line,
)
from cleanset.studies.contest.log import LOG_REMEDY, PARAMS, START, LogReader, checked_log
from cleanset.studies.contest.log_lines import LOG, PUBLISH, RULES, DraftLine, Line, Signature, log_statement, statement
from cleanset.studies.contest.memory import remember
from cleanset.studies.contest.objects import OBJECTS, Objects
from cleanset.studies.contest.signatures import check_signature, raw_signature, signature_of

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
        log = LogReader() if begins else checked_log(contest)
        new = len(log.lines)
        for draft in drafts:
            if draft.kind == PUBLISH and key is not None:
                draft = replace(draft, data={"checkpoint": _signed_checkpoint(log, key)})
            _add_draft(log, draft, at or _now())
        if at is not None and not log.lines[0].entry.made_up:
            raise CleansetError("--at: for a contest that is made up; expected the instant of the clock: leave it out")
        objects = Objects(contest, {digest: path for each in drafts for digest, path in each.files.items()})
        notes = check(log.lines, new, objects)
        if key is not None:
            _write(contest, log, objects, key)
        return notes


def _add_draft(log: LogReader, draft: DraftLine, at: datetime.datetime) -> None:
    prev = log.lines[-1].digest if log.lines else START
    content = {"n": len(log.lines), "at": f"{at:%FT%TZ}", "kind": draft.kind, "prev": prev, "data": draft.data}
    if draft.signatures:
        content["signatures"] = {name: each.model_dump() for name, each in draft.signatures.items()}
    log.add(json.dumps(content, ensure_ascii=False, separators=(",", ":")), draft.kind)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def _signed_checkpoint(log: LogReader, key: Path) -> str:
    text = log.checkpoint_text()
    signed = raw_signature(text.encode(), key)
    line = signature_line(origin_of(log.lines[0].digest), SIGNED_NOTE, signed.public, signed.signature)
    return note(text, [line])


def cosigned(contest: Path, team: str, key: Path, at: datetime.datetime | None = None) -> dict[str, str]:
    """A team's cosignature of the last checkpoint, as its entry.

    Reading the log has shown that it goes on after what this machine has seen. Raises CleansetError as `read`, and for
    a log without a checkpoint.
    """
    log = checked_log(contest)
    last = log.checkpoint()
    if last is None:
        raise CleansetError(f"{contest / LOG}: no week is published yet; expected one: its checkpoint is cosigned")
    text = NoteParts.of(last.entry.checkpoint).text
    seconds = int((at or _now()).timestamp())
    signed = raw_signature(cosigned_text(text, seconds).encode(), key)
    name = cosigner_name(log.lines[0].digest, team)
    line = cosignature_line(name, signed.public, seconds, signed.signature)
    return {"team": team, "checkpoint": last.digest, "signature": line}


def sign_drafts(contest: Path, drafts: Sequence[DraftLine], name: str, key: Path) -> list[Signature]:
    """The signatures of some entries by their author, in the order in which they are to be entered."""
    log = checked_log(contest)
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


def _write(contest: Path, log: LogReader, objects: Objects, key: Path) -> None:
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
        text = read_text(path, LOG_REMEDY)
        for key, digest in (("contest", first), ("head", head)):
            text = re.sub(rf'(?m)^{key}: "[0-9a-f]*"', f'{key}: "{digest}"', text)
        write_text(path, text)
