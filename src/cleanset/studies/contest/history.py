"""Checks of what was changed after its day: by git's history, by the signatures of commits, and by board/log.

Git's history shows submissions, answers, runs and the board's entries that were changed. Merges are followed: every
commit of every branch that was merged counts, and what counts is the content. Git cannot prove a date: whoever commits
may set the clock back before anything is published.

Signed commits of judges and the board are checked by git with the keys in `allowed_signers` of the contest. The file is
that of OpenSSH (ssh-keygen, ALLOWED SIGNERS): a line for each key, which begins with the id of a judge or the name of a
member of the board.

board/log makes dates visible that were set back: a digest of all that is dated up to a day, each line with the digest
of the line before. Whoever keeps one line can see later whether anything before its day was changed, added or removed,
and whether the lines before it are the same.
"""

import datetime
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cleanset.errors import CleansetError
from cleanset.files import read_text, sha256, write_text
from cleanset.parsing import parse_yaml
from cleanset.studies.contest.files import ContestFiles, Submission, until
from cleanset.studies.contest.reading import LOG, MANIFEST_YAML, REMEDY, SUBMISSION, mask_path
from cleanset.studies.contest.rules import after, day_of, parse_day, week_of_day
from cleanset.validation import Section, shown

ENTRIES = ("answers", "board", "results/runs")
COMMIT_DAYS = 1
"""Days after the date of an answer, a run or an entry of the board until which it has to be committed."""
CONTROLS_YAML = "judges/controls.yaml"
_MARK = "commit "
# a repository may name programs in its config, and a submission may bring one
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class _Version:
    """A file as one commit left it; `blob` is None where the commit removed it."""

    day: datetime.date
    at: datetime.datetime
    path: str
    blob: str | None


def require_whole_history(contest: Path) -> None:
    """Raise CleansetError for a shallow clone: the commits that it lacks may be those that matter."""
    if git(contest, "rev-parse", "--is-shallow-repository") == "true":
        raise CleansetError(
            f"{contest}: a shallow clone, which lacks older commits; expected the whole history: git fetch --unshallow"
        )


def is_committed(contest: Path) -> bool:
    """Whether git has any commit of the contest."""
    return bool(git(contest, "log", "-1", "--format=%H", "--", "."))


def check_submission_unchanged(folder: Path, submission: Submission, on: datetime.date) -> None:
    """Raise CleansetError for a submission that was committed after its day, or changed after its week.

    A folder without history is accepted. Uncommitted changes count on a day `on` after the week's end; `cleanset
    contest check` takes the last day of the files for it.
    """
    days = sorted({(each.at, each.day) for each in _versions(folder, ".") if each.blob is not None})
    if not days:
        return
    if days[0][1] > submission.day:
        raise CleansetError(
            f"{folder}: first committed on {days[0][1]}; expected a commit by its date, {submission.day}: submit it as "
            "of the day of the commit"
        )
    published = max(at for at, day in days if day <= submission.week)
    later = [day for at, day in days if at > published]
    if _tree(folder, "HEAD") != _tree(folder, _commit_at(folder, published)):
        changed = f"changed on {max(later)}" if later else "changed by a merge"
        raise CleansetError(
            f"{folder}: {changed}, after its publication on {submission.week}; "
            f"expected what was published: git checkout it from a commit before {after(submission.week, 1)}"
        )
    if on > submission.week and git(folder, "status", "--porcelain", "--", "."):
        raise CleansetError(f"{folder}: differs from what is committed; expected what was published: git checkout it")


def check_none_removed(contest: Path, on: datetime.date) -> None:
    """Raise CleansetError for a published submission that git knows and that was removed or renamed.

    Uncommitted removals count on a day `on` after the week's end, as for `check_submission_unchanged`.
    """
    versions = [each for each in _versions(contest, "submissions") if Path(each.path).name == MANIFEST_YAML]
    for path in sorted({each.path for each in versions}):
        folder = (contest / path).parent
        week = _week_of_submission(folder)
        mine = [each for each in versions if each.path == path]
        removed = max((each.day for each in mine if each.blob is None), default=on)
        was_published = week is not None and any(each.blob and each.day <= week for each in mine)
        if week is not None and was_published and removed > week and not folder.exists():
            raise CleansetError(
                f"{folder}: removed or renamed on {removed}, after its publication on {week}; "
                f"expected what was published: git checkout it from a commit before {after(week, 1)}"
            )


def check_entries(contest: Path) -> None:
    """Raise CleansetError for an answer, a run or an entry of the board that was changed, removed or dated back.

    Each may change until the end of its day, and has to be committed a day later at the latest.
    """
    versions = [each for each in _versions(contest, *ENTRIES) if each.path.endswith((".yaml", ".json"))]
    texts = _texts(contest, sorted({each.blob for each in versions if each.blob is not None}))
    for path in sorted({each.path for each in versions}):
        mine = sorted((each for each in versions if each.path == path), key=lambda each: each.at)
        found = [(each, {} if each.blob is None else _entries(path, texts[each.blob])) for each in mine]
        file = contest / path
        current = _entries(path, file.read_bytes()) if file.is_file() else {}
        for version, entries in found:
            for entry, date in sorted(entries.items()):
                by_day = [each for each, _ in found if each.day <= date]
                is_last_of_day = bool(by_day) and by_day[-1] is version
                # one that was committed later still never counted: it may be taken back
                is_in_time = date < version.day <= after(date, COMMIT_DAYS)
                if entry not in current and (is_in_time or is_last_of_day):
                    raise CleansetError(
                        f"{file}: what was committed on {version.day} for {date} is changed or removed "
                        f"({entry[:60]}…); expected it as it was on that day: git checkout it"
                    )
        for entry, date in sorted(current.items()):
            first = min((each.day for each, entries in found if entry in entries), default=None)
            if first is not None and first > after(date, COMMIT_DAYS):
                raise CleansetError(
                    f"{file}: an entry of {date}, first committed on {first} ({entry[:60]}…); expected a commit by "
                    f"{after(date, COMMIT_DAYS)}: date it on the day of the commit"
                )


def check_controls(contest: Path, files: ContestFiles) -> None:
    """Raise CleansetError for a control, or its mask, that was changed after the day of the first answer to it.

    Both decide whose answers count. As entries they have to be committed a day later at the latest.
    """
    first: dict[str, datetime.date] = {}
    for each in files.answers:
        for digest in each.answers.keys() & files.controls.keys():
            first[digest] = min(each.answers[digest].date, first.get(digest, datetime.date.max))
    masks = {mask_path(Path(), digest).as_posix(): digest for digest in sorted(first)}
    versions = sorted(_versions(contest, CONTROLS_YAML, *masks), key=lambda each: each.at)
    lists = [each for each in versions if each.path == CONTROLS_YAML]
    texts = _texts(contest, sorted({each.blob for each in lists if each.blob is not None}))
    controls = [(each.day, {} if each.blob is None else _controls(texts[each.blob])) for each in lists]
    for digest, day in sorted(first.items()):
        of_control = [(on, known.get(digest)) for on, known in controls]
        if controls and _on_its_day(of_control, day) != files.controls[digest].model_dump(mode="json"):
            raise CleansetError(_changed_control(contest / CONTROLS_YAML, digest, day))
    for name, digest in masks.items():
        of_mask = [(each.day, each.blob) for each in versions if each.path == name]
        now = git(contest, "hash-object", name) if (contest / name).is_file() else None
        if of_mask and _on_its_day(of_mask, first[digest]) != now:
            raise CleansetError(_changed_control(contest / name, digest, first[digest]))


def _on_its_day(versions: Sequence[tuple[datetime.date, _Kind | None]], day: datetime.date) -> _Kind | None:
    """The last version of a day; without one, the first that was committed in time."""
    before = [version for on, version in versions if on <= day]
    if before and before[-1] is not None:
        return before[-1]
    in_time = (version for on, version in versions if day < on <= after(day, COMMIT_DAYS) and version is not None)
    return next(in_time, None)


def _controls(content: bytes) -> dict[str, Any]:
    """The controls of a file by SHA-256; empty for what cannot be read."""
    try:
        found: Any = parse_yaml(content.decode(), CONTROLS_YAML)
        return dict(found["controls"])
    except (CleansetError, ValueError, TypeError, KeyError):
        return {}


def _changed_control(path: Path, digest: str, day: datetime.date) -> str:
    return (
        f"{path}: {digest[:12]}… was changed after {day}, when a judge first answered this control; expected it as it "
        "was on that day: git checkout it"
    )


def _entries(path: str, content: bytes) -> dict[str, datetime.date]:
    """The dated entries of a file, as JSON with sorted keys; empty for what cannot be read."""
    try:
        found: Any = json.loads(content) if path.endswith(".json") else parse_yaml(content.decode(), path)
        if path.startswith("answers/"):
            pairs = [([key, value], value["date"]) for key, value in found["answers"].items()]
        else:
            pairs = [(each, each["date"]) for each in (found if isinstance(found, list) else [found])]
        return {json.dumps(entry, sort_keys=True, default=str): parse_day(date) for entry, date in pairs}
    except (CleansetError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _versions(folder: Path, *paths: str) -> list[_Version]:
    """Every version of the files below some paths, in all commits up to now; of merges what they themselves changed."""
    log = git(
        folder, "log", "--full-history", "-c", "--raw", "--no-renames", "--no-abbrev", f"--format={_MARK}%cI",
        "--", *paths,
    )  # fmt: skip
    # not by --relative, which git ignores for merges
    prefix = git(folder, "rev-parse", "--show-prefix") or ""
    found: list[_Version] = []
    at = datetime.datetime.min
    for line in (log or "").splitlines():
        if line.startswith(_MARK):
            at = _instant(line.removeprefix(_MARK), folder)
        elif line.startswith(":"):
            fields, _, path = line.partition("\t")
            # of a merge there is a mode and a digest of each parent; those of the result are the last ones
            *_, blob, _status = fields.split()
            found.append(_Version(day_of(at), at, path.removeprefix(prefix), None if set(blob) == {"0"} else blob))
    return found


def _commit_at(folder: Path, at: datetime.datetime) -> str:
    """The commit of an instant that changed the folder; of several the last one."""
    lines = (git(folder, "log", "--full-history", "--format=%H %cI", "--", ".") or "").splitlines()
    return next(line.split()[0] for line in lines if _instant(line.split()[1], folder) == at)


def _instant(text: str, folder: Path) -> datetime.datetime:
    """The date of a commit, as git writes it."""
    try:
        # in UTC at once: at the ends of the calendar only this conversion fails
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise CleansetError(
            f"{folder}: a commit dated {shown(text)}; expected a date of this contest: leave that commit out"
        ) from None


def _tree(folder: Path, commit: str) -> str | None:
    return git(folder, "rev-parse", f"{commit}:./")


def _texts(folder: Path, blobs: Sequence[str]) -> dict[str, bytes]:
    """The contents of blobs, read by one process."""
    done = subprocess.run(
        [*_GIT, "cat-file", "--batch"], cwd=folder, input="\n".join(blobs).encode(), capture_output=True, check=False
    )
    return dict(_batch(done.stdout))


def _batch(output: bytes) -> Iterator[tuple[str, bytes]]:
    place = 0
    while place < len(output):
        end = output.index(b"\n", place)
        blob, _, size = output[place:end].decode().split()
        yield blob, output[end + 1 : end + 1 + int(size)]
        place = end + 2 + int(size)


def _week_of_submission(folder: Path) -> datetime.date | None:
    """The week of the day in the folder's name; None for any other name."""
    match = SUBMISSION.fullmatch(folder.name)
    try:
        return week_of_day(parse_day(match[1])) if match else None
    except ValueError:
        return None


def git(folder: Path, *arguments: str) -> str | None:
    """The output of git; None without git or without a repository.

    Raises CleansetError for a repository that git does not read, because somebody else owns it.
    """
    try:
        # in English, since one of its messages is looked for
        done = subprocess.run(
            [*_GIT, *arguments], cwd=folder, capture_output=True, text=True, check=False,
            env=os.environ | {"LC_ALL": "C"},
        )  # fmt: skip
    except OSError:
        return None
    if "dubious ownership" in done.stderr:
        raise CleansetError(
            f"{folder}: git reads no repository of another owner; expected one of your own: git config --global --add "
            "safe.directory with its path"
        )
    return done.stdout.strip() if done.returncode == 0 else None


ALLOWED_SIGNERS = "allowed_signers"


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit, and who signed it; None without a signature that is good by one of the keys."""

    name: str
    signer: str | None


def check_signatures(contest: Path, files: ContestFiles) -> list[str]:
    """A line on the signatures of each judge and the board; none without `allowed_signers`.

    Raises CleansetError for a commit of answers that its judge has not signed, or of the board's files that none of
    its members has, where that judge or any member has a key; and for a key of nobody.
    """
    path = contest / ALLOWED_SIGNERS
    if not path.exists():
        return []
    people = {line.split()[0] for line in read_text(path, REMEDY).splitlines() if line.strip() and line[0] != "#"}
    for name in sorted(people - files.roster - files.rules.board.keys()):
        raise CleansetError(f"{path}: {name}; expected the id of a judge in the roster, or a member of the board")
    folders: Mapping[str, set[str]] = {
        **{f"answers/{judge}": {judge} & people for judge in sorted(files.roster)},
        "board": people & files.rules.board.keys(),
    }
    lines = []
    for folder, expected in folders.items():
        commits = _commits(contest, path, folder)
        for each in commits:
            if expected and each.signer not in expected:
                raise CleansetError(
                    f"{contest / folder}: commit {each.name[:12]} is {_by(each)}; expected a signature of "
                    f"{', '.join(sorted(expected))}, by a key in {ALLOWED_SIGNERS}"
                )
        if commits:
            lines.append(_line(folder, commits))
    return lines


def _commits(contest: Path, signers: Path, folder: str) -> list[_Commit]:
    log = git(
        contest, "-c", f"gpg.ssh.allowedSignersFile={signers.resolve()}", "log", "--full-history",
        f"--format={_MARK}%H %G? %GS", "--", folder,
    )  # fmt: skip
    found = []
    for line in (log or "").splitlines():
        name, state, *signer = line.removeprefix(_MARK).split(" ", 2)
        found.append(_Commit(name, signer[0] if state == "G" and signer and signer[0] else None))
    return found


def _by(commit: _Commit) -> str:
    return "not signed by a known key" if commit.signer is None else f"signed by {commit.signer}"


def _line(folder: str, commits: Sequence[_Commit]) -> str:
    signers = sorted({each.signer for each in commits if each.signer is not None})
    signed = sum(each.signer is not None for each in commits)
    return f"{folder}: {signed} of {len(commits)} commits signed{', by ' + ', '.join(signers) if signers else ''}"


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


def append_log(contest: Path, files: ContestFiles, on: datetime.date) -> str:
    """Add the line of a day to board/log, and return it.

    Raises CleansetError as `check_log` does, and for an older day.
    """
    lines = check_log(contest, files)
    last = lines[-1] if lines else ""
    if last and parse_day(last.split()[0]) >= on:
        raise CleansetError(f"{_path(contest)}: its last line is of {last.split()[0]}; expected a later day than that")
    line = f"{on} {digest_of(files, on)} {sha256(last.encode()) if last else _START}"
    write_text(_path(contest), "".join(f"{each}\n" for each in [*lines, line]))
    return line


def check_log(contest: Path, files: ContestFiles) -> list[str]:
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
