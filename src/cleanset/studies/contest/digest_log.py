"""board/log: a digest of all that is dated up to a day, each line with the digest of the line before.

Whoever keeps one line can see later whether anything before its day was changed, added or removed, and whether the
lines before it are the same: git cannot show that, since a commit may be given any date.
"""

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np

from cleanset.errors import CleansetError
from cleanset.files import read_text, sha256, write_text
from cleanset.studies.contest.days import parse_day
from cleanset.studies.contest.files import ContestFiles, until
from cleanset.studies.contest.reading import LOG, REMEDY
from cleanset.validation import Section, shown

_START = "0" * 64


def digest_of(files: ContestFiles, on: datetime.date) -> str:
    """The SHA-256 of everything in the files that is dated up to a day, in an order of its own."""
    known = until(files, on)
    # the rules have no date; a change of them changes every line
    entries: list[Any] = [["rules", _plain(files.rules)]]
    entries += [["defence", name, known.digests[name]] for name in known.defences]
    entries += [["submission", str(each), _plain(each.manifest)] for each in known.submissions]
    entries += [
        ["answer", str(each), sha, _plain(answer)] for each in known.answers for sha, answer in each.answers.items()
    ]
    entries += [[name, _plain(each)] for name in type(known.board).model_fields for each in getattr(known.board, name)]
    entries += [["run", _plain(each)] for each in known.runs]
    # a control has no date: it counts from its first answer on, since it decides whose answers count
    answered = {sha for each in known.answers for sha in each.answers}
    for sha in answered & known.controls.keys():
        mask = known.masks.get(sha)
        shape = None if mask is None else [*mask.shape, sha256(np.packbits(mask).tobytes())]
        entries.append(["control", sha, _plain(known.controls[sha]), shape])
    lines = sorted(json.dumps(each, sort_keys=True) for each in entries)
    return sha256("\n".join(lines).encode())


def _plain(section: Section) -> Any:
    return section.model_dump(mode="json", exclude_none=True)


def append(contest: Path, files: ContestFiles, on: datetime.date) -> str:
    """Add the line of a day to board/log, and return it. Raises CleansetError as `check` does, and for an older day."""
    lines = check(contest, files)
    last = lines[-1] if lines else ""
    if last and parse_day(last.split()[0]) >= on:
        raise CleansetError(f"{_path(contest)}: its last line is of {last.split()[0]}; expected a later day than that")
    line = f"{on} {digest_of(files, on)} {sha256(last.encode()) if last else _START}"
    write_text(_path(contest), "".join(f"{each}\n" for each in [*lines, line]))
    return line


def check(contest: Path, files: ContestFiles) -> list[str]:
    """The lines of board/log; none without it.

    Raises CleansetError for a line that does not follow from the one before, or from the files as they are now.
    """
    path = _path(contest)
    if not path.exists():
        return []
    lines = read_text(path, REMEDY).splitlines()
    before, last = _START, datetime.date.min
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        try:
            day_text, digest, chained = line.split(" ")
            day = parse_day(day_text)
        except ValueError:
            raise CleansetError(
                f"{where}: {shown(line)}; expected a day, a digest and the digest of the line before: git checkout it"
            ) from None
        if chained != before or day <= last:
            raise CleansetError(f"{where}: does not follow the line before; expected {before}: git checkout it")
        if digest_of(files, day) != digest:
            raise CleansetError(
                f"{where}: the files of {day} have another digest today, {digest_of(files, day)}; expected {digest}: "
                "something dated up to that day was changed, added or removed since"
            )
        before, last = sha256(line.encode()), day
    return lines


def _path(contest: Path) -> Path:
    return contest / "board" / LOG
