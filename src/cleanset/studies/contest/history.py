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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cleanset.errors import CleansetError
from cleanset.files import read_bytes, read_text, sha256, write_text
from cleanset.parsing import parse_yaml
from cleanset.studies.contest.files import ContestFiles, Submission, last_day, repeats, until
from cleanset.studies.contest.git import History, Version, blob_of
from cleanset.studies.contest.reading import CONTEST_YAML, LOG, MANIFEST_YAML, REMEDY, SUBMISSION, mask_path
from cleanset.studies.contest.rules import ContestRules, after, parse_day, week_of_day
from cleanset.validation import Section, shown

ENTRIES = ("answers", "board", "results/runs")
COMMIT_DAYS = 1
"""Days after the date of an answer, a run or an entry of the board until which it has to be committed."""
CONTROLS_YAML = "judges/controls.yaml"
ALLOWED_SIGNERS = "allowed_signers"
_Kind = TypeVar("_Kind")


def check_submission_unchanged(contest: Path, history: History, submission: Submission, on: datetime.date) -> None:
    """Raise CleansetError for a submission that was committed after its day, or changed after its week.

    A folder without history is accepted. Uncommitted changes count on a day `on` after the week's end; `cleanset
    contest check` takes the last day of the files for it.
    """
    folder = contest / str(submission)
    versions = [each for each in history.versions(str(submission)) if each.blob is not None]
    if not versions:
        return
    first, week = versions[0].day, submission.week
    if first > submission.day:
        raise CleansetError(
            f"{folder}: first committed on {first}; expected a commit by its date, {submission.day}: submit it as "
            "of the day of the commit"
        )
    *_, published = (each for each in versions if each.day <= week)
    committed = history.files(str(submission))
    if committed != history.files(str(submission), published.commit):
        changed = f"changed on {versions[-1].day}" if versions[-1].day > week else "changed by a merge"
        raise CleansetError(
            f"{folder}: {changed}, after its publication on {week}; expected what was published: git checkout it from "
            f"a commit before {after(week, 1)}"
        )
    if on > week and any(blob_of(contest / name, like=blob) != blob for name, blob in committed.items()):
        raise CleansetError(f"{folder}: differs from what is committed; expected what was published: git checkout it")


def first_commits(history: History) -> dict[str, datetime.datetime]:
    """By the path of each file from the contest's folder, when it was first committed."""
    return {each.path: each.at for each in reversed(history.versions("submissions", "judges/images"))}


def check_first(contest: Path, history: History, files: ContestFiles) -> None:
    """Raise CleansetError for an image that counts as the first of two equal ones, though it was committed later."""
    versions = [each for each in history.versions("submissions") if Path(each.path).name == MANIFEST_YAML]
    texts = history.texts(versions)
    for repeat in repeats(files.submissions):
        pixels = repeat.image.pixels_sha256.encode()
        later, first = (
            next((one.at for one in versions if one.path == path and one.blob and pixels in texts[one.blob]), None)
            for path in (f"{repeat.submission}/{MANIFEST_YAML}", f"{repeat.first}/{MANIFEST_YAML}")
        )
        if later is not None and (first is None or later < first) and repeat.first.team != repeat.submission.team:
            raise CleansetError(
                f"{contest / str(repeat.first)}: submitted {repeat.first.manifest.submitted:%Y-%m-%dT%H:%M:%SZ}, but "
                f"{repeat.submission} has committed the same image before it; expected the time of its commit"
            )


def check_none_removed(contest: Path, history: History, on: datetime.date) -> None:
    """Raise CleansetError for a published submission that git knows and that was removed or renamed.

    Uncommitted removals count on a day `on` after the week's end, as for `check_submission_unchanged`.
    """
    versions = [each for each in history.versions("submissions") if Path(each.path).name == MANIFEST_YAML]
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


def check_rules(contest: Path, history: History, files: ContestFiles) -> None:
    """Raise CleansetError for a contest.yaml that was changed after the first stake, but for teams that were added.

    A contest whose history is made up may not have begun with another one.
    """
    path = contest / CONTEST_YAML
    versions = history.versions(CONTEST_YAML)
    texts = history.texts(versions)
    found = [(each, rules) for each in versions if (rules := _rules(texts.get(each.blob or "", b""))) is not None]
    if files.rules.history == "made_up":
        last = last_day(files) if files.defences else datetime.date.min
        for version in (each for each, rules in found if each.day <= last and rules.history != "made_up"):
            raise CleansetError(
                f"{path}: history: made_up, but committed on {version.day} without; expected what the contest began "
                "with: git checkout it"
            )
        return
    start = min((each.date for each in files.board.stakes), default=None)
    if start is None or not found:
        return
    # what was committed up to that day, else the first that was committed at all
    version, then = next((each for each in reversed(found) if each[0].day <= start), found[0])
    if version.day > after(start, COMMIT_DAYS):
        raise CleansetError(
            f"{path}: first committed on {version.day}; expected a commit by {after(start, COMMIT_DAYS)}, a day after "
            "the first stake"
        )
    has_all = set(then.teams) <= set(files.rules.teams)
    now = files.rules.model_copy(update={"teams": then.teams} if has_all else {})
    for key in ContestRules.model_fields:
        if getattr(now, key) != getattr(then, key):
            raise CleansetError(
                f"{path}: {key} was changed after {start}, the day of the first stake; expected the rules of that day, "
                f"but for further teams: git checkout it from commit {version.commit[:12]}"
            )


def _rules(content: bytes) -> ContestRules | None:
    """The rules in an earlier contest.yaml; None for what cannot be read."""
    try:
        return ContestRules.model_validate(parse_yaml(content.decode(), CONTEST_YAML))
    except (CleansetError, ValueError):
        return None


def check_entries(contest: Path, history: History) -> None:
    """Raise CleansetError for an answer, a run or an entry of the board that was changed, removed or dated back.

    Each may change until the end of its day, and has to be committed a day later at the latest.
    """
    versions = [each for each in history.versions(*ENTRIES) if each.path.endswith((".yaml", ".json"))]
    texts = history.texts(versions)
    by_path: dict[str, list[Version]] = {}
    for each in versions:
        by_path.setdefault(each.path, []).append(each)
    for path, mine in sorted(by_path.items()):
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


def check_controls(contest: Path, history: History, files: ContestFiles) -> None:
    """Raise CleansetError for a control, or its mask, that was changed after the day of the first answer to it.

    Both decide whose answers count. As entries they have to be committed a day later at the latest.
    """
    first: dict[str, datetime.date] = {}
    for each in files.answers:
        for digest in each.answers.keys() & files.controls.keys():
            first[digest] = min(each.answers[digest].date, first.get(digest, datetime.date.max))
    masks = {mask_path(Path(), digest).as_posix(): digest for digest in sorted(first)}
    versions = history.versions(CONTROLS_YAML, *masks)
    lists = [each for each in versions if each.path == CONTROLS_YAML]
    texts = history.texts(lists)
    controls = [(each.day, {} if each.blob is None else _controls(texts[each.blob])) for each in lists]
    for digest, day in sorted(first.items()):
        of_control = [(on, known.get(digest)) for on, known in controls]
        if controls and _on_its_day(of_control, day) != files.controls[digest].model_dump(mode="json"):
            raise CleansetError(_changed_control(contest / CONTROLS_YAML, digest, day))
    for name, digest in masks.items():
        of_mask = [(each.day, each.blob) for each in versions if each.path == name]
        then = _on_its_day(of_mask, first[digest])
        if of_mask and then != blob_of(contest / name, like=then or ""):
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


def _week_of_submission(folder: Path) -> datetime.date | None:
    """The week of the day in the folder's name; None for any other name."""
    match = SUBMISSION.fullmatch(folder.name)
    try:
        return week_of_day(parse_day(match[1])) if match else None
    except ValueError:
        return None


def check_signatures(contest: Path, history: History, files: ContestFiles) -> list[str]:
    """A line on the signatures of each judge and the board; none without `allowed_signers`.

    Raises CleansetError for a commit of answers that its judge has not signed, or of the board's files that none of
    its members has, where that judge or any member has a key; for a key of nobody; and for keys that were changed.
    """
    path = contest / ALLOWED_SIGNERS
    keys = _keys(path.read_bytes()) if path.exists() else {}
    if files.board.stakes:
        _check_keys_kept(path, history, keys, min(each.date for each in files.board.stakes))
    for name in sorted(keys.keys() - files.roster - files.rules.board.keys()):
        raise CleansetError(f"{path}: {name}; expected the id of a judge in the roster, or a member of the board")
    folders: Mapping[str, set[str]] = {
        **{f"answers/{judge}": {judge} & keys.keys() for judge in sorted(files.roster)},
        "board": keys.keys() & files.rules.board.keys(),
    }
    lines = []
    for folder, expected in folders.items() if keys else ():
        commits = history.signatures(folder, path)
        for commit, signer in commits:
            if expected and signer not in expected:
                by = "not signed by a known key" if signer is None else f"signed by {signer}"
                raise CleansetError(
                    f"{contest / folder}: commit {commit[:12]} is {by}; expected a signature of "
                    f"{', '.join(sorted(expected))}, by a key in {ALLOWED_SIGNERS}"
                )
        signers = [signer for _, signer in commits if signer is not None]
        if commits:
            names = f", by {', '.join(sorted(set(signers)))}" if signers else ""
            lines.append(f"{folder}: {len(signers)} of {len(commits)} commits signed{names}")
    return lines


def _keys(content: bytes) -> dict[str, list[str]]:
    """The lines of an `allowed_signers` by the name that each begins with."""
    found: dict[str, list[str]] = {}
    for line in content.decode(errors="replace").splitlines():
        if line.strip() and line[0] != "#":
            found.setdefault(line.split()[0], []).append(line)
    return found


def _check_keys_kept(path: Path, history: History, keys: Mapping[str, list[str]], start: datetime.date) -> None:
    """Raise CleansetError where anybody's keys are other ones than at the start, or than when they came later."""
    versions = history.versions(ALLOWED_SIGNERS)
    texts = history.texts(versions)
    kept: dict[str, list[str]] = {}
    for each in versions:
        found = {} if each.blob is None else _keys(texts[each.blob])
        kept = found if each.day <= start else found | kept
    for name, lines in sorted(kept.items()):
        if keys.get(name) != lines:
            raise CleansetError(
                f"{path}: the keys of {name} were changed after {start}, the day of the first stake; expected them as "
                "they were first committed: git checkout it"
            )


def check_history(contest: Path, files: ContestFiles, history: History, on: datetime.date | None) -> list[str]:
    """The lines of `check_signatures`. Raises CleansetError for whatever was changed after its day, up to `on`."""
    check_rules(contest, history, files)
    if files.rules.history == "made_up":
        return []
    history.require_whole()
    check_none_removed(contest, history, on or (last_day(files) if files.defences else datetime.date.max))
    check_entries(contest, history)
    check_first(contest, history, files)
    check_controls(contest, history, files)
    check_log_kept(contest, history)
    return check_signatures(contest, history, files)


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


def check_log_kept(contest: Path, history: History) -> None:
    """Raise CleansetError for a board/log that lacks a line that was once committed."""
    path = _path(contest)
    versions = history.versions(f"board/{LOG}")
    content = read_bytes(path) if path.is_file() else b""
    for each in versions:
        if each.blob is not None and not content.startswith(history.texts([each])[each.blob]):
            raise CleansetError(
                f"{path}: lacks lines that were committed on {each.day}; expected only added lines: git checkout it"
            )


def _path(contest: Path) -> Path:
    return contest / "board" / LOG
